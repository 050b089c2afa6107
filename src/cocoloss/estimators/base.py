"""What every estimator has, whatever its target: embeddings, a kernel, importances, a file.

It reads the fitted model, and knows neither classes nor numbers nor how anything is learnt.
"""

import os
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.columns.drift import Drift
    from cocoloss.fitting.explain import Explanation


def part_of(whole: str, name: str) -> Any:
    """Return a property that is a part of a fitted attribute, and missing before there is one."""

    def read(self: Any) -> Any:
        found = getattr(self, whole)
        if whole == "loo_" and not hasattr(found, name):
            raise AttributeError(
                f"there is no loo_{name}_: kernels have it that were fitted to a table in memory, "
                f"and no model file holds it; quality_ says how good a fit is"
            )
        return getattr(found, name)

    return property(read)


class TableEstimator(TransformerMixin, BaseEstimator):
    """An estimator whose ``model_`` embeds the rows of a table."""

    preprocess: Any
    honest_: Any  # Honest, HeldOut of fitting.fit, or why there is neither, in words

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of each row.

        The embeddings of the members stand side by side, scaled so that inner products are the
        mean of theirs: ``transform(X) @ transform(Z).T`` is :meth:`kernel` of networks.
        """
        embedding: NDArray[np.float32] = self._fitted_model().transform(X)
        return embedding

    def kernel(self, X: Any, Z: Any = None) -> NDArray[np.float64]:
        """Return the learnt kernel between the rows of X and of Z (X if None)."""
        values: NDArray[np.float64] = self._fitted_model().kernel(X, Z)
        return values

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Return a name for each column of :meth:`transform`."""
        prefix, width = type(self).__name__.lower(), self._fitted_model().n_outputs
        return np.asarray([f"{prefix}{i}" for i in range(width)], dtype=object)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much the function goes with each column of the table, (d,); they sum to one."""
        model = self._fitted_model()
        if model.machine is None:
            raise AttributeError(
                "feature_importances_ is what kernels have learnt; fit with solver='kernel', or "
                "ask explain(X).importances, which any model has"
            )
        return np.array(list(model.column_importances().values()))

    def explain(
        self, X: Any, *, of: Any = None, neighbours: int = 3, among: Any = None
    ) -> "Explanation":
        """Say why each row gets the prediction that it gets.

        Contributions are Shapley values: they sum to the prediction less that of references, rows
        that are made up of the values that training had, column by column. Up to 5 columns they
        are exact, else from 6 to 24 orders of the columns and their reverses.

        Parameters
        ----------
        X : table of n rows
        of : optional
            The class whose probability is explained, of all rows, or an array of one for each; the
            most probable one of each row if None. Of several numbers the position of one.
        neighbours : int, default=3
            How many of the nearest training rows are looked for.
        among : table, optional
            Rows to look for them among; without it, those that the model holds. Networks hold none.

        Returns
        -------
        Explanation
            ``contributions`` of the columns of the table, ``base``, ``value``, ``out_of_range``,
            ``neighbours``; ``top(k)`` are the strongest columns.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from cocoloss import CoCoClassifier
        >>> X, y = load_wine(return_X_y=True, as_frame=True)
        >>> explanation = CoCoClassifier(random_state=0).fit(X, y).explain(X[:2])
        >>> explanation.contributions.shape, explanation.top(2).shape
        ((2, 13), (2, 4))
        >>> total = explanation.base + explanation.contributions.sum(axis=1)
        >>> bool(np.allclose(total, explanation.value))
        True
        """
        explanation: Explanation = self._fitted_model().explain(X, of, neighbours, among)
        return explanation

    def drift(self, X: Any) -> "Drift":
        """Return what a table has that training had not: ranges, categories, gaps.

        ``drift(X).notes()`` are lines to read, none if the table is like that of training;
        ``drift(X).counts()`` are rows by sort of drift and by column.
        """
        from cocoloss.columns.drift import drift_of  # noqa: PLC0415 - seldom needed

        return drift_of(self._fitted_model().encoder, X)

    @property
    def quality_(self) -> Any:
        """How good the fit is by rows that were left out or held out, beside guessing.

        A :class:`cocoloss.metrics.quality.Quality`: ``str`` of it is one line.
        """
        from cocoloss.metrics.quality import Quality, with_shared_rows  # noqa: PLC0415 - seldom

        try:
            honest = self._honest_rows()
        except CoCoError as error:
            raise AttributeError(str(error)) from None
        n, n_classes = len(honest.true), len(getattr(self, "classes_", [0]))
        measures = with_shared_rows(self._measures(honest), n / n_classes)
        return Quality(honest.how, n, measures)

    def _honest_rows(self) -> Any:
        """Return what is said of rows by what has not learnt from them, or say why nothing is."""
        self._fitted_model()
        if self.honest_ is None or isinstance(self.honest_, str):
            why = self.honest_ or "a model file holds none"
            raise CoCoError(
                f"there are no predictions of rows that the fit had not learnt from: {why}; "
                f"cross-validate instead"
            )
        if callable(self.honest_):  # rows that were held out
            self.honest_ = self.honest_()
        return self.honest_

    @abstractmethod
    def _measures(self, honest: Any) -> dict[str, Any]:
        """Return how good honest predictions are."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to a file such as ``model.coco``, whole or not at all.

        The file holds the weights and what the preprocessing has learnt, no pickle, and no rows
        but those of kernels, preprocessed, unless ``landmarks`` is "kmeans".
        Callbacks are left out, and so are a ``random_state`` that is a generator and requests of
        scikit-learn's metadata routing; arguments that are series or frames become arrays.

        Raises
        ------
        CoCoError
            If the place cannot be written to, or if the estimator has a network, a preprocessing
            or a head of the user's own, which only pickle could hold.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_iris
        >>> from cocoloss import CoCoClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CoCoClassifier(max_iter=5, random_state=0).fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     classifier.save(Path(folder) / "iris.coco")
        ...     loaded = CoCoClassifier.load(Path(folder) / "iris.coco")
        >>> bool((loaded.predict_proba(X) == classifier.predict_proba(X)).all())
        True
        """
        from cocoloss.estimators.model_file import save  # noqa: PLC0415 - seldom needed

        check_is_fitted(self)
        save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read an estimator that :meth:`save` wrote; nothing in the file is run.

        Raises
        ------
        CoCoError
            If there is no such file, or it is of another kind, altered, cut short, from a later
            version, or holds an estimator of another class.
        """
        from cocoloss.estimators.model_file import load  # noqa: PLC0415 - seldom needed

        model: Self = load(path, cls)
        return model

    def _fitted_model(self) -> Any:
        if not hasattr(self, "model_"):  # asked first, since scikit-learn asks for all its tags
            check_is_fitted(self)
        return self.model_

    # What scikit-learn and the documentation call parts of what a fit leaves.
    n_features_in_ = part_of("preprocessor_", "n_features_in_")
    feature_names_in_ = part_of("preprocessor_", "feature_names_in_")
    loss_curves_ = part_of("history_", "loss_curves")
    loss_curve_ = property(lambda self: self.loss_curves_[0])
    loss_ = property(lambda self: self.loss_curve_[-1])
    n_iter_ = property(lambda self: max(len(curve) for curve in self.loss_curves_))
    best_epochs_ = part_of("history_", "best_epochs")
    loo_score_ = part_of("loo_", "score")  # missing where nothing was left out

    @property
    def _n_features_out(self) -> int:
        width: int = self._fitted_model().n_outputs
        return width

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        automatic = isinstance(self.preprocess, str)
        tags.input_tags.allow_nan = automatic
        tags.input_tags.categorical = automatic
        own = isinstance(self.preprocess, BaseEstimator)  # which says what it takes
        tags.input_tags.sparse = get_tags(self.preprocess).input_tags.sparse if own else True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
