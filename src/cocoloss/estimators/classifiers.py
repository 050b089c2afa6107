"""The classifiers, as scikit-learn wants them: CoCo, dot regression, cross-entropy, any objective.

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
from cocoloss.estimators.objective import CoCo, CrossEntropy, DotRegression, Objective
from cocoloss.exceptions import MissingMethodError
from cocoloss.kernels.machine import KernelMachine

if TYPE_CHECKING:
    from cocoloss.estimators.fit import LeaveOneOut
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


class _of_networks:  # noqa: N801 - a decorator
    """A method that is missing where kernels are the solver, and says what to do instead."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is not None and estimator.solver == "kernel":
            raise MissingMethodError(
                f"solver='kernel' has no {self.method.__name__}, since it needs all rows at once; "
                f"fit to all of them, or use solver='network', which goes on learning"
            )
        return self.method.__get__(estimator, owner)


def _head_has(*methods: str) -> Callable[[Any], bool]:
    """Say whether the heads of an estimator have one of these methods; before a fit, by name."""

    def check(estimator: Any) -> bool:
        if hasattr(estimator, "model_"):
            return any(map(estimator.model_.has, methods))
        return estimator.head not in ("ridge", "svm") or "decision_function" in methods

    return check


def _part_of(whole: str, name: str) -> Any:
    """Return a property that is a part of a fitted attribute, and missing before there is one."""
    return property(lambda self: getattr(getattr(self, whole), name))


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

    solver = "network"  # no argument, but of CoCoClassifier

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
        """
        from cocoloss.estimators import fit as steps  # noqa: PLC0415 - torch, to train
        from cocoloss.estimators.jobs import train_jobs  # noqa: PLC0415

        with steps.unchanged_on_failure(self):
            if self.solver == "kernel":
                self.keep(*steps.fit_kernel(self, X, y, sample_weight))
                return self
            job = steps.prepare_job(self, X, y, sample_weight)
            with steps.reported(self, job, X, y, sample_weight) as listeners:
                heard = [*(self.callbacks or []), *listeners]
                (trained,) = train_jobs([job], heard, verbose=self.verbose)
                self.keep(*steps.finish_job(job, trained))
        return self

    @_of_networks
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
        """
        from cocoloss.estimators.partial_fit import learn_part  # noqa: PLC0415 - torch, to train

        fitted, recent_rows = learn_part(self, X, y, classes, sample_weight)
        self.keep(*fitted, recent_rows=recent_rows)
        return self

    def keep(
        self,
        model: FittedModel,
        history: History,
        preprocessor: Any,
        heads: list[Any],
        loo: "LeaveOneOut | None" = None,
        recent_rows: "RecentRows | None" = None,
    ) -> None:
        """Become fitted: take over what :func:`cocoloss.estimators.fit.finish_job` returns."""
        self.model_ = model
        self.history_ = history
        self.preprocessor_ = preprocessor
        self.heads_ = heads
        self.recent_rows_ = recent_rows
        self.loo_ = loo

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

    @available_if(_head_has("predict_proba", "decision_function"))  # type: ignore[untyped-decorator]
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
        return self._fitted_model().kernel(X, Z)

    @available_if(_head_has("outlier_score"))  # type: ignore[untyped-decorator]
    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, averaged over the members; larger is stranger."""
        return self._fitted_model().outlier_score(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:  # noqa: ARG002
        """Return a name for each column of :meth:`transform`."""
        prefix, width = type(self).__name__.lower(), self._fitted_model().n_outputs
        return np.asarray([f"{prefix}{i}" for i in range(width)], dtype=object)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file such as ``model.coco``, whole or not at all.

        The file holds the weights and what the preprocessing has learnt, no pickle, and no rows
        but those of ``solver="kernel"``, preprocessed.
        Callbacks are left out, and so are a ``random_state`` that is a generator and requests of
        scikit-learn's metadata routing; arguments that are series or frames become arrays.

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

    # What scikit-learn and the documentation call the parts of the model and its history.
    classes_ = _part_of("model_", "classes")
    class_prior_ = _part_of("model_", "prior")
    n_features_in_ = _part_of("preprocessor_", "n_features_in_")
    feature_names_in_ = _part_of("preprocessor_", "feature_names_in_")
    loss_curves_ = _part_of("history_", "loss_curves")
    loss_curve_ = property(lambda self: self.loss_curves_[0])
    loss_ = property(lambda self: self.loss_curve_[-1])
    n_iter_ = property(lambda self: max(len(curve) for curve in self.loss_curves_))
    best_epochs_ = _part_of("history_", "best_epochs")
    loo_proba_ = _part_of("loo_", "proba")  # missing where nothing was left out
    loo_score_ = _part_of("loo_", "score")
    parameters_ = property(lambda self: self.model_.networks.parameters)
    layer_sizes_ = property(lambda self: self.model_.networks.layer_sizes)
    modules_ = property(lambda self: getattr(self.model_.networks, "modules", None))

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


@dataclass(eq=False, repr=False)
class CoCoClassifier(BaseNetworkClassifier):
    r"""A classifier that collapses each class to a point and contrasts the classes to a simplex.

    Small networks embed the rows of a table on the unit sphere so that inner products are 1
    within a class and -1/(C-1) between classes; one Gaussian per class classifies there. By
    default six networks are trained at once, each stops on rows it did not train on, and their
    probabilities, calibrated on the same rows, are averaged.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(128, 128)
        Units of each hidden layer.
    embedding_dim : int or "auto", default="auto"
        Dimensions q of the embedding; "auto" is the number of classes, and at least 8.
    loss : {"auto", "coco", "balanced"}, default="auto"
        "auto" is the paper's rule: plain if the largest class has less than three times the rows
        of the smallest, else balanced.
    similarity : str or array of shape (C, C), default="simplex"
        Target similarity of the classes, as for :class:`cocoloss.CoCoLoss`.
    solver : {"network", "kernel"}, default="network"
        "network" trains networks by the loss. "kernel" finds in closed form what the loss
        estimates, the conditional mean of the target points, by kernels with a learnt metric:
        seconds for some thousand rows, no seeds that matter, and most arguments of networks have
        no say. Its model file holds the preprocessed training rows.
    module : torch.nn.Module or callable, optional
        A network of your own instead of the multilayer perceptron: a module, which is copied and
        initialised anew for each member, or a function of (n_features, embedding_dim). Its output
        is divided by its norm as ``normalize`` says.
    output : {"identity", "tanh"}, default="identity"
        What follows the last layer.
    normalize : bool or "auto", default="auto"
        Whether embeddings are divided by their norm; "auto" is True. False is the paper's form,
        which starts at unit norm and learns to stay there.
    dropout : float, default=0.0
        Share of units dropped before layer ``dropout_layer``.
    dropout_layer : int, default=-1
        0 drops inputs, -1 drops before the output layer.
    max_iter : int, default=100
        Epochs.
    batch_size : int, default=64
        Rows per step; with CoCo, small batches of many classes are drawn in pairs of one class.
    learning_rate_init : float, default=3e-3
        Learning rate at the start.
    learning_rate : {"cosine", "constant"}, default="cosine"
        Whether it falls to zero along a cosine.
    weight_decay : float, default=1e-2
        Of AdamW.
    clip_norm : float, optional
        Longest gradient of a network.
    n_members : int, default=6
        Networks in the ensemble, trained in lockstep.
    early_stopping : bool, default=True
        Whether each member holds out rows, keeps its best epoch by them, and calibrates on them.
        Where they would be fewer than 20, nothing is held out.
    validation_fraction : float, default=0.15
        Share of the rows that a member holds out; every class keeps at least two thirds.
    n_iter_no_change : int, default=30
        Epochs without improvement after which a member stops; there is a look at the held-out
        rows at least three times in so many epochs.
    head : str or classifier, default="auto"
        What classifies the embedding: "gaussian" (which is "auto"), "centroid", "angular",
        "ridge", "svm", or a scikit-learn classifier. One of :mod:`cocoloss.heads` that has priors
        of its own, other than "uniform", keeps them.
    priors : {"uniform", "empirical"} or array of shape (C,), default="uniform"
        Under which prior ``predict`` and ``predict_proba`` are meant: "uniform" for balanced
        accuracy, "empirical" for accuracy and log loss.
    class_weight : dict, "balanced" or None
        Weights of the classes in training; those of a dict also multiply the prior, whatever
        ``priors`` is.
    preprocess : "auto", None or transformer, default="auto"
        "auto" takes tables of any kind; None takes finite numbers as they are. A transformer of
        your own gets the rows as often as they weigh, and the classes.
    warm_start : bool, default=False
        Whether another ``fit`` goes on from the networks of the last one.
    callbacks : sequence of callables, optional
        Called after every epoch with a :class:`cocoloss.training.Epoch`; True stops training.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    device : str, default="cpu"
        Where networks are trained: "cpu", "cuda" or "mps". Predicting is done by numpy.
    random_state : int, numpy generator or None
        Seed of everything that is drawn.

    Attributes
    ----------
    classes_ : array of shape (C,)
    n_features_in_, feature_names_in_
        What ``fit`` has seen.
    loss_curve_ : list of float
        Training loss of the first member in each epoch; ``loss_curves_`` has all of them.
    n_iter_ : int
        Epochs of the member that trained longest.
    heads_ : list of classifiers
        One per member.
    parameters_ : array of shape (n_members, P)
        Weights of the networks: predicting needs no torch.
    loo_proba_ : array of shape (n, C)
        Of ``solver="kernel"``: probabilities of the rows of ``fit``, each by a fit without it (in
        five folds, metric included). ``loo_score_`` is their accuracy.
    feature_importances_ : array of shape (d,)
        Of ``solver="kernel"``: how much the function goes with each column; they sum to one.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> classifier = CoCoClassifier(random_state=0, max_iter=20).fit(X, y)
    >>> classifier.score(X, y) > 0.95
    True
    """

    loss: str = "auto"
    similarity: str | ArrayLike = "simplex"
    solver: str = "network"

    def make_objective(self) -> Objective:
        """Return the CoCo loss that the arguments ask for."""
        return CoCo(balance=self.loss, similarity=self.similarity)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """How much the function goes with each column of the table, (d,); they sum to one."""
        model = self._fitted_model()
        if not isinstance(model.networks, KernelMachine):
            raise AttributeError(  # noqa: TRY004 - for hasattr
                "feature_importances_ is what kernels have learnt; fit with solver='kernel'"
            )
        return np.array(list(model.column_importances().values()))


class DotRegressionClassifier(BaseNetworkClassifier):
    r"""A classifier that pulls rows onto fixed simplex vertices, one per class.

    Parameters are those of :class:`CoCoClassifier`, without ``loss`` and ``similarity``. "auto"
    means that embeddings are normalised, and that ``head`` is "readout": with the class shares of
    the training rows as ``priors`` ("empirical"), the class whose vertex has the smallest angle to
    the embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import DotRegressionClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> DotRegressionClassifier(random_state=0, max_iter=20).fit(X, y).score(X, y) > 0.95
    True
    """

    def make_objective(self) -> Objective:
        """Return dot regression."""
        return DotRegression()


class CrossEntropyClassifier(BaseNetworkClassifier):
    r"""The usual classifier: a softmax on a linear layer of the last hidden layer.

    Parameters are those of :class:`CoCoClassifier`, without ``loss`` and ``similarity``. The
    embedding is the last hidden layer; an ``embedding_dim`` adds a linear one of that many. "auto"
    means that ``head`` is "readout", the softmax; other heads look at the embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CrossEntropyClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> CrossEntropyClassifier(random_state=0, max_iter=20).fit(X, y).score(X, y) > 0.95
    True
    """

    def make_objective(self) -> Objective:
        """Return cross-entropy."""
        return CrossEntropy()


@dataclass(eq=False, repr=False)
class ObjectiveClassifier(BaseNetworkClassifier):
    r"""A classifier whose networks are trained for an objective that is given as a value.

    Parameters are those of :class:`CoCoClassifier`, with ``objective`` in place of ``loss`` and
    ``similarity``: a value of :mod:`cocoloss.estimators.objective`, or one of your own.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss.estimators.objective import CoCo
    >>> X, y = load_wine(return_X_y=True)
    >>> tempered = ObjectiveClassifier(objective=CoCo(balance=0.25), max_iter=20, random_state=0)
    >>> tempered.fit(X, y).score(X, y) > 0.95
    True
    """

    objective: Objective = CoCo()  # noqa: RUF009 - a frozen value

    def make_objective(self) -> Objective:
        """Return the objective that was given."""
        return self.objective
