"""A fit, step by step: from a table to a fitted model.

    table ->  arguments, columns, targets ``prepare_job``  leaves a job: matrix, labels, design
          ->  networks that embed rows    ``train_jobs``   in jobs.py: the solver
          ->  heads that read classes off ``finish_job``   leaves the FittedModel

Nothing here changes an estimator: its arguments are read, and it keeps what comes out. Another
solver takes jobs and returns :class:`cocoloss.estimators.jobs.Trained`, with networks that embed.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, has_fit_parameter

from cocoloss._checks import as_generator, check_integer, check_option, is_sparse
from cocoloss.columns import make_preprocessor
from cocoloss.columns.frames import check_is_table, is_polars
from cocoloss.estimators.early_stopping import split_held_out
from cocoloss.estimators.jobs import Design, Job, Trained, module_factory, trained_so_far
from cocoloss.estimators.model import (
    BLOCK_NUMBERS,
    OUTPUTS,
    WORTH_A_THREAD,
    FittedModel,
    History,
    as_inputs,
    threads_for,
)
from cocoloss.estimators.objective import READOUT, Objective
from cocoloss.estimators.targets import (
    class_weights,
    decision_prior,
    encode_targets,
    make_copies,
    relative,
)
from cocoloss.exceptions import CoCoError
from cocoloss.geometry import target_points
from cocoloss.heads import HEADS, EmbeddingHead, make_head
from cocoloss.heads.fitted import FittedLinear
from cocoloss.training import Callback, Epoch, Schedule

DECAYS = ("cosine", "constant")
SOLVERS = ("network", "kernel")
OF_NETWORKS = {"module": None, "head": "auto", "warm_start": False, "callbacks": None}
LINEAR_HEADS = ("ridge", "svm")
VALIDATIONS = 50  # at most so many looks at the held-out rows in a fit


class Fitted(NamedTuple):
    """What a fit leaves: the model, how it came about, and its learnt parts of scikit-learn."""

    model: FittedModel
    history: History
    preprocessor: Any
    heads: list[Any]
    loo: "LeaveOneOut | None" = None


class LeaveOneOut(NamedTuple):
    """What fits without them say of the rows that ``fit`` was given."""

    proba: NDArray[np.float64]  # (n, C)
    score: float  # accuracy


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was, fitted or not, if learning fails or is stopped by Ctrl-C.

    Learning replaces attributes and changes none in place, so that the old ones are all it takes.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


@dataclass(frozen=True)
class Rows:
    """What ``fit`` was given, read: whatever solves it begins here."""

    table: Any  # as it was given
    classes: NDArray[Any]  # (C,)
    positions: NDArray[np.int64]  # (n,), in the table: each of its rows as often as it weighs
    labels: NDArray[np.int64]  # (n,), positions in the classes
    weights: NDArray[np.float64]  # (n,), what no copies of rows could say
    groups: NDArray[np.int64]  # (n,), equal rows of one class have the same number
    preprocessor: Any  # fitted; has made the inputs
    inputs: NDArray[np.float32]  # (n, d)
    class_weights: NDArray[np.float64]  # (C,), of the user's own
    prior: NDArray[np.float64]  # (C,), under which classes are predicted
    masses: NDArray[np.float64]  # (C,), what the rows of each class weigh


def read_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, keep_preprocessor: bool
) -> Rows:
    """Read a table, its classes and weights, and learn the preprocessing, unless it is to stay."""
    reader = type(estimator).__name__
    X = as_table(estimator, X)
    classes, labels, weights = encode_targets(X, y, sample_weight, reader)

    # Every row as often as it weighs; from here on weights are what no copies could say.
    copies = make_copies(X, labels, weights, reader, in_lowest_terms=True)
    labels, weights = labels[copies.rows], copies.weights
    preprocessor, inputs = read_inputs(
        estimator, _safe_indexing(X, copies.rows), classes[labels], learn=not keep_preprocessor
    )
    masses = np.bincount(labels, weights=weights).astype(np.float64)
    return Rows(
        X,
        classes,
        copies.rows,
        labels,
        weights,
        copies.groups,
        preprocessor,
        inputs,
        class_weights(estimator.class_weight, classes, masses),
        decision_prior(estimator.priors, estimator.class_weight, classes, masses),
        masses,
    )


def prepare_job(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Job:
    """Read all that ``fit`` was given, learn the preprocessing, and say what is to be trained.

    With ``warm_start`` it goes on from the networks of the estimator.
    """
    check_arguments(estimator)
    goes_on = estimator.warm_start and hasattr(estimator, "model_")
    rows = read_rows(estimator, X, y, sample_weight, keep_preprocessor=goes_on)
    start, seed = _start(estimator, rows.classes) if goes_on else (None, new_seed(estimator))
    seeds = [seed + k for k in range(estimator.n_members)]
    train, held_out = _split(estimator, rows.labels, rows.groups, seeds)
    design = make_design(estimator, rows.inputs.shape[1], len(rows.classes), seed)
    if start is not None and design.layer_sizes != start.layer_sizes:
        raise CoCoError(
            f"warm_start goes on with layers of {start.layer_sizes}, but the arguments and the "
            f"table ask for {design.layer_sizes}; set warm_start=False to start anew"
        )
    weighted = rows.weights * rows.class_weights[rows.labels]
    return Job(
        design=design,
        classes=rows.classes,
        prior=rows.prior,
        preprocessor=rows.preprocessor,
        inputs=rows.inputs,
        labels=rows.labels,
        weights=relative(design.objective.loss_weights(rows.labels, weighted)),
        row_weights=rows.weights,
        train=train,
        held_out=held_out,
        seed=seed,
        seeds=seeds,
        start=start,
    )


def fit_kernel(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
    """Fit a classifier in closed form, by kernels; see closed_form.py."""
    from cocoloss.estimators.closed_form import (  # noqa: PLC0415 - scipy
        LARGE,
        fit_closed_form,
    )

    check_arguments(estimator)
    rows = read_rows(estimator, X, y, sample_weight, keep_preprocessor=False)
    seed = new_seed(estimator)
    points = target_points(estimator.similarity, len(rows.classes))
    with threads_for(WORTH_A_THREAD if len(rows.inputs) >= LARGE else 0):
        found = fit_closed_form(
            rows.inputs, rows.labels, rows.weights, rows.class_weights, points, rows.prior, seed
        )
    losses = [setting.loss for setting in found.recipe.members]
    history = History([losses], np.zeros(1, np.int64), seed, rows.masses)
    encoder = getattr(rows.preprocessor, "encoder_", rows.preprocessor)  # a user's own has none
    model = FittedModel(rows.classes, rows.prior, encoder, found.machine, (found.readout,))
    honest = found.readout.predict_proba(found.honest)
    right = honest.argmax(axis=1) == rows.labels
    accuracy = float(np.average(right, weights=rows.weights))
    loo = LeaveOneOut(_of_given_rows(rows, honest, model), accuracy)
    return Fitted(model, history, rows.preprocessor, [found.readout], loo)


def _of_given_rows(rows: Rows, proba: NDArray[np.float64], model: FittedModel) -> NDArray[Any]:
    """Return probabilities of each row of the table, from those of its copies.

    The fit has not seen rows that weigh nothing: what the model predicts is honest.
    """
    n = _num_samples(rows.table)
    result = np.empty((n, proba.shape[1]))
    unseen = np.setdiff1d(np.arange(n), rows.positions)
    if len(unseen):
        result[unseen] = model.predict_proba(_safe_indexing(rows.table, unseen))
    result[rows.positions] = proba
    return result


def as_table(estimator: Any, X: Any) -> Any:
    """Return a table whose rows can be chosen: a pandas or polars frame, or an array.

    A transformer of the user's own decides itself what a table is.
    """
    reader = type(estimator).__name__
    if is_sparse(X):
        raise TypeError(
            f"Sparse data was passed, but {reader} needs a dense table; use X.toarray()"
        )
    if estimator.preprocess is None or is_auto(estimator.preprocess):
        check_is_table(X, reader)
    if hasattr(X, "iloc") or is_polars(X):
        return X
    if hasattr(X, "to_pandas"):  # Arrow and other frames, which keep their names so
        return X.to_pandas()
    if isinstance(X, np.ndarray):
        return X
    array = np.asarray(X)
    # Beside text, numpy turns numbers into text.
    return np.asarray(X, dtype=object) if array.dtype.kind in "US" else array


def new_seed(estimator: Any) -> int:
    """Draw what everything random in a fit follows from."""
    return int(as_generator(estimator.random_state).integers(2**31))


def read_inputs(
    estimator: Any, rows: Any, y: NDArray[Any], *, learn: bool
) -> tuple[Any, NDArray[np.float32]]:
    """Return the preprocessing and what it makes of training rows, after learning if it is new."""
    if not learn:
        preprocessor = estimator.preprocessor_
        return preprocessor, as_inputs(preprocessor.transform(rows), preprocessor, rows)
    preprocessor = make_preprocessor(estimator.preprocess, type(estimator).__name__)
    # To those who read the classes, such as a target encoder, that is not fit and then transform.
    if hasattr(preprocessor, "fit_transform"):
        made = preprocessor.fit_transform(rows, y)
    else:
        made = preprocessor.fit(rows, y).transform(rows)
    return preprocessor, as_inputs(made, preprocessor, rows)


def make_design(estimator: Any, n_features: int, n_classes: int, seed: int) -> Design:
    """Return what the arguments of an estimator make of a table of that size."""
    _check_device(estimator.device)
    objective: Objective = estimator.make_objective()
    q = None if is_auto(estimator.embedding_dim) else int(estimator.embedding_dim)
    hidden = np.atleast_1d(estimator.hidden_layer_sizes).tolist()
    sizes = objective.layer_sizes(n_features, hidden, q, n_classes)
    patience = estimator.n_iter_no_change
    schedule = Schedule(
        n_epochs=estimator.max_iter,
        batch_size=estimator.batch_size,
        learning_rate=estimator.learning_rate_init,
        decay=estimator.learning_rate,
        weight_decay=estimator.weight_decay,
        clip_norm=estimator.clip_norm,
        patience=patience if estimator.early_stopping else None,
        # Often enough to see within the patience whether there is progress.
        validate_every=max(1, min(estimator.max_iter // VALIDATIONS, patience // 3)),
        pair_rows=objective.pair_rows,
    )
    normalize = estimator.normalize
    network = {
        "dropout": estimator.dropout,
        "dropout_layer": estimator.dropout_layer,
        "output": estimator.output,
        "normalize": objective.normalize if is_auto(normalize) else bool(normalize),
        "linear_hidden": objective.logits and q is not None,
    }
    module = estimator.module
    return Design(
        objective,
        sizes,
        objective.make_loss(n_classes, sizes[-1], seed),
        schedule,
        network,
        objective.head if is_auto(estimator.head) else estimator.head,
        None if module is None else module_factory(module, n_features, sizes[-1]),
        estimator.device,
    )


def _start(estimator: Any, classes: NDArray[Any]) -> tuple[Any, int]:
    """Return the networks that a warm start goes on from, and the seed of their fit."""
    known, n_members = estimator.classes_, len(estimator.model_.heads)
    if not np.array_equal(known, classes):
        raise CoCoError(
            f"warm_start goes on with the classes {known.tolist()}, but y has "
            f"{classes.tolist()}; set warm_start=False to start anew"
        )
    if n_members != estimator.n_members:
        raise CoCoError(
            f"warm_start goes on with {n_members} members, but n_members is "
            f"{estimator.n_members}; set warm_start=False to start anew"
        )
    return estimator.model_.networks, estimator.history_.seed


def _split(
    estimator: Any, labels: NDArray[np.int64], groups: NDArray[np.int64], seeds: list[int]
) -> tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]:
    """Return the training rows and the held-out rows of each member."""
    if not estimator.early_stopping:
        everything = np.arange(len(labels))
        return [everything] * len(seeds), [everything[:0]] * len(seeds)
    fraction = estimator.validation_fraction
    pairs = [
        split_held_out(labels, groups, fraction, np.random.default_rng([seed, 1])) for seed in seeds
    ]
    return [rows for rows, _ in pairs], [held_out for _, held_out in pairs]


def finish_job(job: Job, trained: Trained, heads: list[Any] | None = None) -> Fitted:
    """Return the fitted model of a job: its networks, and a head for each, fitted unless given."""
    networks, design = trained.networks, job.design
    masses = np.bincount(job.labels, weights=job.row_weights, minlength=job.n_classes)
    history = History(trained.loss_curves, trained.best_epochs, job.seed, masses.astype(np.float64))
    reads_outputs = is_named(design.head, READOUT)
    if heads is None:
        features = (networks.outputs if reads_outputs else networks.embeddings)(job.inputs)
        heads = _fit_heads(job, features)
    encoder = getattr(job.preprocessor, "encoder_", job.preprocessor)  # a user's own has none
    values = tuple(_fitted_value(head) for head in heads)
    model = FittedModel(job.classes, job.prior, encoder, networks, values, reads_outputs)
    return Fitted(model, history, job.preprocessor, heads)


def _fit_heads(
    job: Job,
    features: NDArray[Any],  # (K, n, q), what the heads look at
) -> list[Any]:
    """Return a head for each member, fitted on its training rows, calibrated on the others."""
    weights = head_weights(job)
    even = bool(np.all(weights == weights[0]))
    heads = []
    with threads_for(BLOCK_NUMBERS * features.shape[-1]):
        for h, rows, held_out in zip(features, job.train, job.held_out, strict=True):
            head = _make_head(job)
            if even:
                head.fit(h[rows], job.labels[rows])
            elif not has_fit_parameter(head, "sample_weight"):
                raise CoCoError(
                    f"the rows have different weights, but the head {type(head).__name__} takes "
                    f"no sample_weight; give whole numbers, which are numbers of copies, or "
                    f"another head"
                )
            else:
                head.fit(h[rows], job.labels[rows], sample_weight=weights[rows])
            if len(held_out) and isinstance(head, EmbeddingHead):
                head.calibrate(h[held_out], job.labels[held_out], sample_weight=weights[held_out])
            heads.append(head)
    return heads


def head_weights(job: Job) -> NDArray[Any]:
    """Return what each row weighs for the heads, (n,)."""
    kind = job.design.head
    if is_named(kind, READOUT) and job.design.logits and job.weights is not None:
        return job.weights  # logits have learnt the class shares that these make
    weights = job.row_weights
    if is_named(kind, *LINEAR_HEADS):  # they know no priors: class shares are weighted to be these
        share = np.bincount(job.labels, weights=weights) / weights.sum()
        weights = weights * (job.prior / share)[job.labels]
    return weights


def _make_head(job: Job) -> Any:
    design, kind = job.design, job.design.head
    if is_named(kind, READOUT):
        weights = job.row_weights if job.weights is None else job.weights
        masses = np.bincount(job.labels, weights=weights)
        return design.objective.readout(design.loss, masses / masses.sum(), job.prior)
    head = make_head(kind, "empirical" if is_named(kind, *LINEAR_HEADS) else job.prior)
    if isinstance(kind, EmbeddingHead) and is_named(kind.priors, "uniform"):
        head.set_params(priors=job.prior)  # it has none of its own
    return head


def _fitted_value(head: Any) -> Any:
    """Return what a head has learnt as a value that needs no scikit-learn, if it is one of ours."""
    if isinstance(head, EmbeddingHead):
        return head.fitted_
    return FittedLinear.of(head) if type(head) in (RidgeClassifier, LinearSVC) else head


@contextmanager
def reported(
    estimator: Any, job: Job, X: Any, y: Any, sample_weight: Any
) -> Iterator[list[Callback]]:
    """Give the listeners that report to what ``set_callbacks`` of scikit-learn has set, if any.

    Callbacks that ask for a fitted estimator get what ``fit`` would leave if training stopped after
    the epoch, heads and all: that costs what the end of a fit costs, every epoch.
    """
    if not hasattr(estimator, "_skl_callbacks"):  # where set_callbacks of scikit-learn puts them
        yield []
        return
    data = {"X": X, "y": y}
    if sample_weight is not None:  # what callbacks pass on to their scorers
        data["metadata"] = {"sample_weight": sample_weight}
    n_epochs = job.design.schedule.n_epochs
    root = estimator._init_callback_context(max_subtasks=n_epochs)  # noqa: SLF001 - its authors' way
    root.call_on_fit_task_begin(estimator=estimator, **data)

    def report(epoch: Epoch) -> bool:
        def attributes() -> dict[str, Any]:
            twin = copy.copy(estimator)
            twin.keep(*finish_job(job, trained_so_far(job, epoch)))
            return dict(vars(twin))

        context = root.subcontext(task_name="epoch")
        context.call_on_fit_task_begin(estimator=estimator, **data)
        return bool(
            context.call_on_fit_task_end(
                estimator=estimator, reconstruction_attributes=attributes, **data
            )
        )

    yield [report]
    root.call_on_fit_task_end(estimator=estimator, reconstruction_attributes={}, **data)


# Arguments --------------------------------------------------------------------------------------


def is_named(value: Any, *names: str) -> bool:
    """Return whether a value is one of these texts; arrays and estimators are compared to none."""
    return isinstance(value, str) and value in names


def is_auto(value: Any) -> bool:
    """Return whether a value is left to us."""
    return is_named(value, "auto")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def _is_truth(value: Any) -> bool:
    return isinstance(value, (bool, np.bool_))


def _are_callbacks(value: Any) -> bool:
    """Return whether this is no callbacks, or functions that can be read again and again."""
    if value is None:
        return True
    readable_again = isinstance(value, Iterable) and not isinstance(value, Iterator)
    return readable_again and all(callable(each) for each in value)


# Argument -> what it must be, in words and as a test.
POSSIBLE: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "embedding_dim": (
        "'auto' or a whole number",
        lambda value: is_auto(value) or not isinstance(value, str),
    ),
    "learning_rate_init": ("a number above 0", lambda x: _is_number(x) and 0 < x < np.inf),
    "weight_decay": ("a number at least 0", lambda x: _is_number(x) and 0 <= x < np.inf),
    "dropout": ("a number at least 0 and below 1", lambda x: _is_number(x) and 0 <= x < 1),
    # Whether there is such a layer, the network will say.
    "dropout_layer": (
        "a whole number, 0 for the inputs or -1 for what the output layer gets",
        lambda layer: isinstance(layer, Integral) and not isinstance(layer, bool),
    ),
    "validation_fraction": (
        "a number above 0 and below 1",
        lambda x: _is_number(x) and 0 < x < 1,
    ),
    "clip_norm": (
        "a number above 0, or None for no clipping",
        lambda x: x is None or (_is_number(x) and 0 < x < np.inf),
    ),
    "early_stopping": ("True or False", _is_truth),
    "warm_start": ("True or False", _is_truth),
    "normalize": ("True or False, or 'auto'", lambda value: is_auto(value) or _is_truth(value)),
    "callbacks": ("a list of functions that get an Epoch", _are_callbacks),
    "class_weight": (
        "None, 'balanced' or a dict of class to weight",
        lambda value: value is None or is_named(value, "balanced") or isinstance(value, Mapping),
    ),
}


def check_arguments(estimator: Any) -> None:
    """Refuse what no fit could use, and say what was expected."""
    objective = estimator.make_objective()
    if not isinstance(objective, Objective):
        raise CoCoError(
            f"objective must be a value of cocoloss.estimators.objective, such as CoCo(), not "
            f"{objective!r:.80}"
        )
    for name, (wanted, is_possible) in POSSIBLE.items():
        value = getattr(estimator, name)
        if not is_possible(value):
            raise CoCoError(f"{name} must be {wanted}, not {value!r:.80}")
    for name in ("max_iter", "batch_size", "n_iter_no_change", "n_members"):
        check_integer(getattr(estimator, name), name, minimum=1)
    for size in np.atleast_1d(np.asarray(estimator.hidden_layer_sizes, dtype=object)).tolist():
        check_integer(size, "each of hidden_layer_sizes", minimum=1)
    if not is_auto(estimator.embedding_dim):
        check_integer(estimator.embedding_dim, "embedding_dim", minimum=1)
    check_option(estimator.solver, "solver", SOLVERS)
    check_option(estimator.learning_rate, "learning_rate", DECAYS)
    check_option(estimator.output, "output", OUTPUTS)
    if isinstance(estimator.class_weight, Mapping):
        _check_class_weights(estimator.class_weight)
    _check_head(estimator, objective)
    _check_together(estimator, objective)


def _check_class_weights(class_weight: Mapping[Any, Any]) -> None:
    for label, weight in class_weight.items():
        if not isinstance(weight, Real) or not 0 < float(weight) < np.inf:
            raise CoCoError(
                f"class_weight must be positive, but class {label!r} has {weight!r}; leave the "
                f"rows of a class out that is not to be learnt"
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
    if is_named(head, *names):
        return
    try:
        make_head(head)
    except CoCoError as error:
        raise CoCoError(
            f"head must be one of {', '.join(map(repr, names))} or an instance of a scikit-learn "
            f"classifier, not {head!r}"
        ) from error


def _check_together(estimator: Any, objective: Objective) -> None:
    """Refuse arguments that other arguments leave without effect or sense."""
    if estimator.solver == "kernel":
        for name, default in OF_NETWORKS.items():
            value = getattr(estimator, name)
            if not (value is default or is_named(value, "auto") or not value):
                raise CoCoError(
                    f"{name}={value!r:.80} is for networks, and solver='kernel' trains none; leave "
                    f"it out, or use solver='network'"
                )
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


def _check_device(device: Any) -> None:
    """Refuse a device that torch does not know or that is not there."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CoCoError(
            f"device {device!r} cannot be used here; it may be 'cpu', 'cuda', 'cuda:1' or 'mps' "
            f"where there is one"
        ) from error
