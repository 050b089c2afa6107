"""What the classifiers share: arguments, fitting, predicting and files, as scikit-learn wants them.

The work is done elsewhere: a fit by plain functions, a prediction by the fitted model. Torch is
imported where something is trained, so that a fitted classifier predicts without it.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cocoloss._checks import RandomState
from cocoloss.estimators.model import FittedModel, History
from cocoloss.estimators.objective import Objective

if TYPE_CHECKING:
    from cocoloss.estimators.partial_fit import RecentRows
    from cocoloss.training import Callback

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: nobody can have set callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


def _head_has(method: str) -> Callable[[Any], bool]:
    """Say whether the head of an estimator has a method; fitted heads know, names are looked up."""

    def check(estimator: Any) -> bool:
        if hasattr(estimator, "model_"):
            getattr(estimator.model_.heads[0], method)
        elif estimator.head in ("ridge", "svm"):
            raise AttributeError(f"a linear head has no {method}")
        return True

    return check


def _head_scores(estimator: Any) -> bool:
    """Say whether the heads of an estimator have scores of any kind."""
    if hasattr(estimator, "model_") and not estimator.model_.has("predict_proba"):
        estimator.model_.heads[0].decision_function  # noqa: B018 - says who lacks it
    return True


@dataclass(eq=False, repr=False)
class BaseNetworkClassifier(CallbackSupportMixin, ClassifierMixin, TransformerMixin, BaseEstimator):
    """One base for the classifiers; see them for the parameters, which are written once, here.

    As a dataclass, because scikit-learn wants a constructor that names every argument and does
    nothing but store it.
    """

    hidden_layer_sizes: Sequence[int] = (128, 128)
    _: KW_ONLY
    embedding_dim: int | str = "auto"
    module: Any = None
    output: str = "identity"
    normalize: bool | str = "auto"
    dropout: float = 0.0
    dropout_layer: int = -1
    max_iter: int = 100
    batch_size: int = 64
    learning_rate_init: float = 3e-3
    learning_rate: str = "cosine"
    weight_decay: float = 1e-2
    clip_norm: float | None = None
    n_members: int = 6
    early_stopping: bool = True
    validation_fraction: float = 0.15
    n_iter_no_change: int = 30
    head: Any = "auto"
    priors: str | ArrayLike = "uniform"
    class_weight: Any = None
    preprocess: Any = "auto"
    warm_start: bool = False
    callbacks: "Sequence[Callback] | None" = None
    verbose: bool = False
    device: str = "cpu"
    random_state: RandomState = None

    @abstractmethod
    def make_objective(self) -> Objective:
        """Return what the networks are trained for, as the arguments say."""

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the preprocessing, the networks and the heads.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Numbers, categories, dates, booleans, with gaps.
        y : array of shape (n,)
            Classes, of any kind.
        sample_weight : array of shape (n,), optional
            How often each row counts: 2 is exactly the row twice, 0 the row left out. Weights
            that are not all whole numbers are relative: they are scaled to a mean of one. So are
            whole ones that make more than 10,000 rows and ten of each.

        Returns
        -------
        The estimator itself.
        """
        from cocoloss.estimators import fit as steps  # noqa: PLC0415 - torch, to train
        from cocoloss.estimators.jobs import train_jobs  # noqa: PLC0415

        with steps.unchanged_on_failure(self):
            job = steps.prepare_job(self, X, y, sample_weight)
            with steps.reported(self, job, X, y, sample_weight) as listeners:
                heard = [*(self.callbacks or []), *listeners]
                (trained,) = train_jobs([job], heard, verbose=self.verbose)
                self.keep(*steps.finish_job(job, trained))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from some more rows: one epoch, at a constant learning rate.

        The first part decides the preprocessing and must hold rows of every class. The heads are
        fitted on the last rows of each class, 5000 in all, which the estimator keeps (but no file
        that ``save`` writes). Nothing is held out, so probabilities are not calibrated.

        After a ``fit`` or a ``load``, which keep no rows, it goes on from the networks, the class
        shares and the heads: these stay until there are ten new rows of every class.

        Class shares, for priors and for the balanced loss, are those of the rows seen so far.

        Parameters
        ----------
        X, y
            Some rows and their classes.
        classes : array, optional
            All classes, in the first call; those of ``y`` if None.
        sample_weight : array of shape (n,), optional
            How often each row counts, as for ``fit``.

        Returns
        -------
        The estimator itself.
        """
        from cocoloss.estimators.partial_fit import learn_part  # noqa: PLC0415 - torch, to train

        fitted, recent_rows = learn_part(self, X, y, classes, sample_weight)
        self.keep(*fitted, recent_rows)
        return self

    def keep(
        self,
        model: FittedModel,
        history: History,
        preprocessor: Any,
        heads: list[Any],
        recent_rows: "RecentRows | None" = None,
    ) -> None:
        """Become fitted: take over what :func:`cocoloss.estimators.fit.finish_job` returns."""
        self.model_ = model
        self.history_ = history
        self.preprocessor_ = preprocessor
        self.heads_ = heads
        self.recent_rows_ = recent_rows

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: the argmax of :meth:`predict_proba` if there is one.

        Heads without any scores vote.
        """
        return self._fitted_model().predict(X)

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C), averaged over the members."""
        return self._fitted_model().predict_proba(X)

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the log of :meth:`predict_proba`."""
        proba: NDArray[np.float64] = self.predict_proba(X)
        return np.log(np.maximum(proba, np.finfo(np.float64).tiny))

    @available_if(_head_scores)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score per class, (n, C); for two classes one score, positive for the second."""
        return self._fitted_model().decision_function(X)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return the embedding of each row.

        The embeddings of the members stand side by side, scaled so that inner products are the
        mean of theirs: ``transform(X) @ transform(Z).T`` is :meth:`kernel`.
        """
        return self._fitted_model().transform(X)

    def kernel(self, X: Any, Z: Any = None) -> NDArray[np.float64]:
        """Return the learnt kernel <h(x), h(z)> between the rows of X and of Z (X if None)."""
        model = self._fitted_model()
        left = model.transform(X).astype(np.float64)
        right = left if Z is None else model.transform(Z).astype(np.float64)
        return left @ right.T

    @available_if(_head_has("outlier_score"))  # type: ignore[untyped-decorator]
    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, averaged over the members; larger is stranger."""
        return self._fitted_model().outlier_score(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Return a name for each column of :meth:`transform`."""
        prefix, width = type(self).__name__.lower(), self._fitted_model().n_outputs
        return np.asarray([f"{prefix}{i}" for i in range(width)], dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, whole or not at all.

        The file holds the weights and what the preprocessing has learnt, no rows and no pickle.
        Callbacks are left out, and so are a ``random_state`` that is a generator and requests of
        scikit-learn's metadata routing; arguments that are series or frames become arrays.

        Parameters
        ----------
        path : path
            Such as ``model.coco``; a file that is there is replaced.

        Raises
        ------
        CoCoError
            If the place cannot be written to, or if the classifier has a network, a preprocessing
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
        """Read a classifier that :meth:`save` wrote; nothing in the file is run.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        The fitted classifier; predicting needs no torch.

        Raises
        ------
        CoCoError
            If there is no such file, or it is of another kind, altered, cut short, from a later
            version, or holds a classifier of another class.
        """
        from cocoloss.estimators.model_file import load  # noqa: PLC0415 - seldom needed

        model: Self = load(path, cls)
        return model

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write an ONNX file: from the preprocessed matrix to classes, probabilities, embedding.

        The preprocessing stays here: what the graph takes as ``X`` is what
        ``preprocessor_.transform`` gives, which with ``preprocess=None`` is the table itself.
        Its outputs are ``label``, ``probabilities`` (``scores`` for a linear head; of two classes
        the one score with both signs) and ``embedding``, those of :meth:`predict`,
        :meth:`predict_proba` and :meth:`transform`.

        Parameters
        ----------
        path : path
            Such as ``model.onnx``.

        Raises
        ------
        CoCoError
            If onnx is not installed, or a part of the classifier has no place in the graph.
        """
        from cocoloss.estimators.onnx_export import write_onnx  # noqa: PLC0415 - seldom needed

        write_onnx(self._fitted_model(), path)

    def _fitted_model(self) -> FittedModel:
        if not hasattr(self, "model_"):  # asked first, since scikit-learn asks for all its tags
            check_is_fitted(self)
        return self.model_

    # What scikit-learn and the documentation call the parts of the model.

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes that were seen, (C,)."""
        return self.model_.classes

    @property
    def class_prior_(self) -> NDArray[np.float64]:
        """Prior under which classes are predicted, (C,)."""
        return self.model_.prior

    @property
    def n_features_in_(self) -> int:
        """Number of columns that were seen."""
        return int(self.preprocessor_.n_features_in_)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns that were seen, if they had names."""
        names: NDArray[Any] = self.preprocessor_.feature_names_in_
        return names

    @property
    def parameters_(self) -> NDArray[np.float32]:
        """Weights of the networks, (n_members, P)."""
        networks: Any = self.model_.networks
        return np.asarray(networks.parameters)

    @property
    def layer_sizes_(self) -> tuple[int, ...]:
        """Inputs, hidden units and outputs of the networks."""
        networks: Any = self.model_.networks
        return tuple(networks.layer_sizes)

    @property
    def modules_(self) -> list[Any] | None:
        """Networks of the user's own; None if there are none."""
        return getattr(self.model_.networks, "modules", None)

    @property
    def loss_curves_(self) -> list[list[float]]:
        """Training loss of each member in each epoch."""
        return self.history_.loss_curves

    @property
    def loss_curve_(self) -> list[float]:
        """Training loss of the first member in each epoch."""
        return self.loss_curves_[0]

    @property
    def loss_(self) -> float:
        """The last of them."""
        return self.loss_curve_[-1]

    @property
    def n_iter_(self) -> int:
        """Epochs of the member that trained longest."""
        return max(len(curve) for curve in self.loss_curves_)

    @property
    def best_epochs_(self) -> NDArray[np.int64]:
        """The epoch that each member keeps."""
        return self.history_.best_epochs

    @property
    def _n_features_out(self) -> int:
        return self._fitted_model().n_outputs

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        automatic = isinstance(self.preprocess, str)
        tags.input_tags.allow_nan = automatic
        tags.input_tags.categorical = automatic
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
