"""What the classifiers share, as scikit-learn wants it: arguments and their checks, and methods.

The work is done elsewhere: a fit by plain functions, a prediction by the fitted model. Torch is
imported where something is trained, so that a fitted classifier predicts without it.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from cocoloss._checks import RandomState, check_integer, check_option
from cocoloss.estimators.model import OUTPUTS, FittedModel, History
from cocoloss.estimators.objective import READOUT, Objective
from cocoloss.exceptions import CoCoError
from cocoloss.heads import HEADS, make_head

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


DECAYS = ("cosine", "constant")


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


def check_arguments(estimator: Any) -> None:
    """Refuse what no fit could use, and say what was expected."""
    objective = estimator.make_objective()
    if not isinstance(objective, Objective):
        raise CoCoError(
            f"objective must be a value of cocoloss.estimators.objective, such as CoCo(), not "
            f"{objective!r:.80}"
        )
    for name in ("max_iter", "batch_size", "n_iter_no_change", "n_members"):
        check_integer(getattr(estimator, name), name, minimum=1)
    for size in np.atleast_1d(np.asarray(estimator.hidden_layer_sizes, dtype=object)).tolist():
        check_integer(size, "each of hidden_layer_sizes", minimum=1)
    if not is_auto(estimator.embedding_dim):
        if isinstance(estimator.embedding_dim, str):
            raise CoCoError(
                f"embedding_dim must be 'auto' or a whole number, not {estimator.embedding_dim!r}"
            )
        check_integer(estimator.embedding_dim, "embedding_dim", minimum=1)
    check_option(estimator.learning_rate, "learning_rate", DECAYS)
    check_option(estimator.output, "output", OUTPUTS)
    _check_dropout_layer(estimator.dropout_layer)
    _check_number(estimator, "learning_rate_init", above=0)
    _check_number(estimator, "weight_decay", least=0)
    _check_number(estimator, "dropout", least=0, below=1)
    _check_number(estimator, "validation_fraction", above=0, below=1)
    if estimator.clip_norm is not None:
        _check_number(estimator, "clip_norm", above=0, otherwise=", or None for no clipping")
    for name in ("early_stopping", "warm_start"):
        _check_truth(estimator, name)
    if not is_auto(estimator.normalize):
        _check_truth(estimator, "normalize", otherwise=", or 'auto'")
    _check_callbacks(estimator.callbacks)
    _check_class_weight(estimator.class_weight)
    _check_head(estimator, objective)
    _check_together(estimator, objective)


def is_named(value: Any, name: str) -> bool:
    """Return whether a value is this very text; arrays and estimators are compared to none."""
    return isinstance(value, str) and value == name


def is_auto(value: Any) -> bool:
    """Return whether a value is left to us."""
    return is_named(value, "auto")


def check_device(device: Any) -> None:
    """Refuse a device that torch does not know or that is not there."""
    import torch  # noqa: PLC0415 - only to train

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CoCoError(
            f"device {device!r} cannot be used here; it may be 'cpu', 'cuda', 'cuda:1' or 'mps' "
            f"where there is one"
        ) from error


def _check_number(
    estimator: Any,
    name: str,
    *,
    least: float = -np.inf,
    above: float = -np.inf,
    below: float = np.inf,
    otherwise: str = "",
) -> None:
    value = getattr(estimator, name)
    is_number = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not is_number or not (least <= value < below and value > above):
        bounds = [
            f"at least {least:g}" if least > -np.inf else "",
            f"above {above:g}" if above > -np.inf else "",
            f"below {below:g}" if below < np.inf else "",
        ]
        wanted = " and ".join(filter(None, bounds))
        raise CoCoError(f"{name} must be a number {wanted}{otherwise}, not {value!r}")


def _check_truth(estimator: Any, name: str, otherwise: str = "") -> None:
    value = getattr(estimator, name)
    if not isinstance(value, (bool, np.bool_)):
        raise CoCoError(f"{name} must be True or False{otherwise}, not {value!r}")


def _check_dropout_layer(layer: Any) -> None:
    # Whether there is such a layer, the network will say.
    if isinstance(layer, bool) or not isinstance(layer, Integral):
        raise CoCoError(
            f"dropout_layer must be a whole number, 0 for the inputs or -1 for what the output "
            f"layer gets, not {layer!r}"
        )


def _check_together(estimator: Any, objective: Objective) -> None:
    """Refuse arguments that other arguments leave without effect or sense."""
    if estimator.module is not None and (estimator.output != "identity" or estimator.dropout):
        raise CoCoError(
            f"output={estimator.output!r} and dropout={estimator.dropout!r} are options of the "
            f"multilayer perceptron; put what you want of them into your module"
        )
    if not is_auto(estimator.normalize) and estimator.normalize and objective.logits:
        raise CoCoError(
            f"normalize=True is not for {type(estimator).__name__}: its outputs are logits, which "
            f"a norm of one would keep from ever being sure; leave it at 'auto'"
        )


def _check_head(estimator: Any, objective: Objective) -> None:
    """Refuse a misspelt head before the training."""
    head, names = estimator.head, ["auto", *HEADS]
    if objective.head == READOUT:
        names.insert(1, READOUT)
    elif is_named(head, READOUT):
        raise CoCoError(
            f"head='readout' is not for {type(estimator).__name__}, which has no prototypes"
        )
    if isinstance(head, str) and head in names:
        return
    try:
        make_head(head)
    except CoCoError as error:
        raise CoCoError(
            f"head must be one of {', '.join(map(repr, names))} or an instance of a scikit-learn "
            f"classifier, not {head!r}"
        ) from error


def _check_callbacks(callbacks: Any) -> None:
    if callbacks is None:
        return
    readable_again = isinstance(callbacks, Iterable) and not isinstance(callbacks, Iterator)
    if not readable_again or not all(callable(each) for each in callbacks):
        raise CoCoError(
            f"callbacks must be a list of functions that get an Epoch, not {callbacks!r:.80}"
        )


def _check_class_weight(class_weight: Any) -> None:
    if class_weight is None or is_named(class_weight, "balanced"):
        return
    if not isinstance(class_weight, Mapping):
        raise CoCoError(
            f"class_weight must be None, 'balanced' or a dict of class to weight, not "
            f"{class_weight!r:.80}"
        )
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 < float(weight) < np.inf:
            raise CoCoError(
                f"class_weight must be positive, but class {label!r} has {weight!r}; leave the "
                f"rows of a class out that is not to be learnt"
            )
