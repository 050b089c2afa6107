"""What the three classifiers share: a table in, networks trained in lockstep, heads on top.

Torch is imported where something is trained, so that a fitted classifier predicts without it.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing

from cocoloss._checks import RandomState, as_generator
from cocoloss.columns import make_preprocessor
from cocoloss.estimators.all_or_nothing import unchanged_on_failure
from cocoloss.estimators.arguments import check_arguments, check_device, is_auto, is_named
from cocoloss.estimators.averages import MemberAverage
from cocoloss.estimators.copies import make_copies
from cocoloss.estimators.fitting import Fitting, train_together
from cocoloss.estimators.held_out import split_held_out
from cocoloss.estimators.inputs import as_table, fit_inputs, transform_inputs
from cocoloss.estimators.jobs import Design, Job, Trained
from cocoloss.estimators.member_heads import fit_heads
from cocoloss.estimators.saving import SavedWhole
from cocoloss.estimators.scikit_callbacks import (
    CallbackSupportMixin,
    EpochReporter,
    with_callbacks,
)
from cocoloss.estimators.streaming import LearnsInParts
from cocoloss.estimators.targets import (
    class_weights,
    decision_prior,
    encode_targets,
    relative,
)
from cocoloss.exceptions import CoCoError
from cocoloss.heads import EmbeddingHead, make_head

if TYPE_CHECKING:
    from cocoloss.training import Callback

LINEAR_HEADS = ("ridge", "svm")
VALIDATIONS = 50  # at most so many looks at the held-out rows in a fit


class BaseNetworkClassifier(
    CallbackSupportMixin,
    ClassifierMixin,
    LearnsInParts,
    MemberAverage,
    SavedWhole,
    BaseEstimator,
):
    """One base for the classifiers; see them for the parameters."""

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        *,
        embedding_dim: int | str = "auto",
        module: Any = None,
        output: str = "identity",
        normalize: bool | str = "auto",
        dropout: float = 0.0,
        dropout_layer: int = -1,
        max_iter: int = 100,
        batch_size: int = 64,
        learning_rate_init: float = 3e-3,
        learning_rate: str = "cosine",
        weight_decay: float = 1e-2,
        clip_norm: float | None = None,
        n_members: int = 6,
        early_stopping: bool = True,
        validation_fraction: float = 0.15,
        n_iter_no_change: int = 30,
        head: Any = "auto",
        priors: str | ArrayLike = "uniform",
        class_weight: Any = None,
        preprocess: Any = "auto",
        warm_start: bool = False,
        callbacks: "Sequence[Callback] | None" = None,
        verbose: bool = False,
        device: str = "cpu",
        random_state: RandomState = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.embedding_dim = embedding_dim
        self.module = module
        self.output = output
        self.normalize = normalize
        self.dropout = dropout
        self.dropout_layer = dropout_layer
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.clip_norm = clip_norm
        self.n_members = n_members
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.head = head
        self.priors = priors
        self.class_weight = class_weight
        self.preprocess = preprocess
        self.warm_start = warm_start
        self.callbacks = callbacks
        self.verbose = verbose
        self.device = device
        self.random_state = random_state

    @abstractmethod
    def _make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:
        """Return the loss."""

    def _readout(self, job: Job) -> EmbeddingHead:  # noqa: ARG002
        """Return the head that reads the classes off the outputs, if the loss has one."""
        raise CoCoError(f"head='readout' is not for {type(self).__name__}, which has no prototypes")

    def _loss_weights(
        self,
        labels: NDArray[np.int64],  # noqa: ARG002
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the weights that the loss gets, which may balance the classes."""
        return weights

    _logits = False  # whether the networks give logits rather than embeddings
    _pairs_rows = False  # whether small batches of many classes are made of pairs of one class
    _normalizes = False  # what normalize="auto" means
    _automatic_head = "readout"  # what head="auto" means

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
        with unchanged_on_failure(self):
            self._fit(X, y, sample_weight)
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        fitting = self._start(X, y, sample_weight)
        if not hasattr(self, "_skl_callbacks"):  # where set_callbacks of scikit-learn puts them
            train_together([fitting])
            return
        reporter = EpochReporter(self, fitting.job, X, y, sample_weight)
        train_together([fitting], [reporter])
        reporter.finish()

    def _start(self, X: Any, y: Any, sample_weight: Any = None) -> Fitting:
        """Check everything, and say what is to be trained."""
        job = self._prepare(X, y, sample_weight)

        def finish(trained: Trained) -> None:
            self._finish(job, trained)
            self._count_as_a_part(job)

        return Fitting(self, job, finish)

    def _prepare(self, X: Any, y: Any, sample_weight: Any) -> Job:
        check_arguments(self)
        X = self._as_table(X)
        going_on = self.warm_start and hasattr(self, "parameters_")
        known = self.classes_ if going_on else None
        self.classes_, labels, weights = encode_targets(X, y, sample_weight, type(self).__name__)
        if going_on:
            self._check_goes_on(known)
        else:
            self._seed = int(as_generator(self.random_state).integers(2**31))

        copies = make_copies(X, labels, weights, type(self).__name__, in_lowest_terms=True)
        labels, weights = labels[copies.rows], copies.weights
        inputs = self._read_inputs(_safe_indexing(X, copies.rows), labels, learn=not going_on)
        masses = np.bincount(labels, weights=weights).astype(np.float64)
        self.class_prior_ = decision_prior(self.priors, self.class_weight, self.classes_, masses)
        per_class = class_weights(self.class_weight, self.classes_, masses)
        seeds = [self._seed + k for k in range(self.n_members)]
        train, held_out = self._split(labels, copies.groups, seeds)
        design = self._make_design(inputs.shape[1], len(self.classes_))
        if going_on and design.layer_sizes != self.layer_sizes_:
            raise CoCoError(
                f"warm_start goes on with layers of {self.layer_sizes_}, but the arguments and the "
                f"table ask for {design.layer_sizes}; set warm_start=False to start anew"
            )
        return Job(
            design,
            inputs,
            labels,
            relative(self._loss_weights(labels, weights * per_class[labels])),
            len(self.classes_),
            train,
            held_out,
            seeds,
            weights,
            self.parameters_ if going_on else None,
            self.modules_ if going_on else None,
        )

    def _as_table(self, X: Any) -> Any:
        own = self.preprocess is not None and not is_auto(self.preprocess)
        return as_table(X, type(self).__name__, own=own)

    def _read_inputs(
        self, rows: Any, labels: NDArray[np.int64], *, learn: bool
    ) -> NDArray[np.float32]:
        """Return what the preprocessing makes of training rows, after learning from them if new."""
        if not learn:
            return transform_inputs(self.preprocessor_, rows)
        self.preprocessor_ = make_preprocessor(self.preprocess, type(self).__name__)
        inputs = fit_inputs(self.preprocessor_, rows, self.classes_[labels])
        self._copy_input_names()
        return inputs

    def _copy_input_names(self) -> None:
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.preprocessor_, name):
                setattr(self, name, getattr(self.preprocessor_, name))

    def _check_goes_on(self, known: Any) -> None:
        """Refuse to go on from networks of another shape."""
        if not np.array_equal(known, self.classes_):
            found, self.classes_ = self.classes_, known
            raise CoCoError(
                f"warm_start goes on with the classes {known.tolist()}, but y has "
                f"{found.tolist()}; set warm_start=False to start anew"
            )
        if len(self.heads_) != self.n_members:
            raise CoCoError(
                f"warm_start goes on with {len(self.heads_)} members, but n_members is "
                f"{self.n_members}; set warm_start=False to start anew"
            )

    def _finish(self, job: Job, trained: Trained) -> Self:
        """Keep what was learnt."""
        outcome = trained.outcome
        self.loss_curves_ = outcome.loss_curves
        self.loss_curve_ = outcome.loss_curves[0]
        self.n_iter_ = max(len(curve) for curve in outcome.loss_curves)
        self.best_epochs_ = outcome.best_epochs
        self.loss_ = self.loss_curve_[-1]
        return self._adopt(job, trained.parameters, trained.modules)

    def _adopt(self, job: Job, parameters: NDArray[np.float32], modules: list[Any] | None) -> Self:
        """Take networks over, and fit a head for each."""
        self.parameters_ = parameters
        self.modules_ = modules
        self.layer_sizes_ = job.design.layer_sizes
        self.normalize_ = job.design.network["normalize"]
        self.linear_hidden_ = job.design.network["linear_hidden"]
        kind = self._automatic_head if is_auto(self.head) else self.head
        self.reads_outputs_ = is_named(kind, "readout")
        linear = isinstance(kind, str) and kind in LINEAR_HEADS
        features = self._head_inputs(job.inputs)

        def make() -> Any:
            if self.reads_outputs_:
                return self._readout(job)
            head = make_head(kind, "empirical" if linear else self.class_prior_)
            if isinstance(kind, EmbeddingHead) and is_named(kind.priors, "uniform"):
                head.set_params(priors=self.class_prior_)  # it has none of its own
            return head

        self.heads_ = fit_heads(make, features, job, self._head_weights(job, linear=linear))
        self._n_features_out = self._embedding_width() * len(self.heads_)
        return self

    def _head_weights(self, job: Job, *, linear: bool) -> NDArray[Any]:
        """Return what each row weighs for the heads."""
        if self.reads_outputs_ and self._logits and job.weights is not None:
            return job.weights  # logits have learnt the class shares that these make
        weights = job.row_weights
        if linear:  # which know no priors: rows are weighted until the class shares are the priors
            share = np.bincount(job.labels, weights=weights) / weights.sum()
            weights = weights * (self.class_prior_ / share)[job.labels]
        return weights

    def _split(
        self, labels: NDArray[np.int64], groups: NDArray[np.int64], seeds: list[int]
    ) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
        """Return the training rows and the held-out rows of each member."""
        if not self.early_stopping:
            everything = np.arange(len(labels))
            return [everything] * len(seeds), [everything[:0]] * len(seeds)
        fraction = self.validation_fraction
        pairs = [
            split_held_out(labels, groups, fraction, np.random.default_rng([seed, 1]))
            for seed in seeds
        ]
        return [train for train, _ in pairs], [held_out for _, held_out in pairs]

    def _make_design(self, n_features: int, n_classes: int) -> Design:
        from cocoloss.training import Schedule  # noqa: PLC0415

        q = self._resolve_embedding_dim(n_classes)
        sizes = self._layer_sizes(n_features, q, n_classes)
        # Often enough to see within the patience whether there is progress.
        every = max(1, min(self.max_iter // VALIDATIONS, self.n_iter_no_change // 3))
        schedule = Schedule(
            n_epochs=self.max_iter,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate_init,
            decay=self.learning_rate,
            weight_decay=self.weight_decay,
            clip_norm=self.clip_norm,
            patience=self.n_iter_no_change if self.early_stopping else None,
            validate_every=every,
            pair_rows=self._pairs_rows,
        )
        network = {
            "dropout": self.dropout,
            "dropout_layer": self.dropout_layer,
            "output": self.output,
            "normalize": self._normalizes if is_auto(self.normalize) else bool(self.normalize),
            "linear_hidden": self._logits and not is_auto(self.embedding_dim),
        }
        check_device(self.device)
        loss = self._make_loss(n_classes, sizes[-1], self._seed)
        module = None if self.module is None else self._module_factory(n_features, sizes[-1])
        return Design(sizes, loss, schedule, network, self._logits, module, self.device)

    def _layer_sizes(self, n_features: int, q: int, n_classes: int) -> tuple[int, ...]:  # noqa: ARG002
        return (n_features, *np.atleast_1d(self.hidden_layer_sizes).tolist(), q)

    def _resolve_embedding_dim(self, n_classes: int) -> int:
        # Theory says q >= C: with one spare dimension merged classes can part (docs/theory.md).
        return max(8, n_classes) if is_auto(self.embedding_dim) else int(self.embedding_dim)

    def _module_factory(self, n_features: int, width: int) -> Callable[[int], Any]:
        from cocoloss.estimators.modules import module_factory  # noqa: PLC0415 - torch, to train

        return module_factory(self.module, n_features, width)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "heads_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        automatic = isinstance(self.preprocess, str)
        tags.input_tags.allow_nan = automatic
        tags.input_tags.categorical = automatic
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
