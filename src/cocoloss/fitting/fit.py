"""A fit, step by step: from a table to a fitted model.

    table ->  arguments, columns, targets ``prepare_job``  leaves a job: matrix, labels, design
          ->  networks that embed rows    ``train_jobs``   in jobs.py: the solver
          ->  heads that read classes off ``finish_job``   leaves the FittedModel

Nothing here changes an estimator: its arguments are read, and it keeps what comes out. Another
solver takes jobs and returns :class:`cocoloss.fitting.jobs.Trained`, with networks that embed.
"""

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import Field, dataclass, fields, replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import has_fit_parameter

from cocoloss._checks import as_generator, check_integer, check_option, is_sparse
from cocoloss.columns import make_preprocessor
from cocoloss.columns.frames import check_is_table, is_polars, rows_of
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.early_stopping import deal_held_out, split_held_out
from cocoloss.fitting.explain import Reference, make_references
from cocoloss.fitting.jobs import Design, Job, Trained, module_factory, trained_so_far
from cocoloss.fitting.model import (
    ACTIVATIONS,
    BLOCK_NUMBERS,
    OUTPUTS,
    FittedModel,
    History,
    as_inputs,
)
from cocoloss.fitting.objective import READOUT, Objective
from cocoloss.fitting.targets import (
    class_weights,
    decision_prior,
    encode_targets,
    make_copies,
    relative,
)
from cocoloss.heads import HEADS, EmbeddingHead, MatrixHead, make_head
from cocoloss.heads.base import share_temperature
from cocoloss.heads.fitted import FittedLinear
from cocoloss.heads.readout import calibrate_together, pool_weights
from cocoloss.pace import Pace
from cocoloss.threads import threads_for
from cocoloss.training import Callback, Epoch, Schedule

DECAYS = ("auto", "averaged", "cosine", "constant")
SOLVERS = ("auto", "kernel", "network", "both")
LANDMARKS = ("rows", "kmeans")
UNLABELLED = ("soft", "ignore")
# Arguments that kernels have, too; who gives another one wants networks.
OF_BOTH = {
    "solver",
    "landmarks",
    "similarity",
    "levels",
    "unlabelled",
    "priors",
    "class_weight",
    "preprocess",
    "time_limit",
    "verbose",
    "random_state",
}
OF_NETWORKS = {"module": None, "head": "auto", "warm_start": False, "callbacks": None}
LINEAR_HEADS = ("ridge", "svm")
HELD_OUT_HEADS = {"gaussian": "matrix"}  # what "auto" prefers where rows are held out
LEAST_SECONDS = 0.01  # for a training whose time is up before it begins
FOLDS = 5  # in which rows held out judge what was learnt from them
VALIDATIONS = 50  # at most so many looks at the held-out rows in a fit

# What "auto" means where nothing is held out, which is the paper's way, or a module is trained.
PLAIN: dict[str, Any] = {
    "max_iter": 100,
    "batch_size": 64,
    "learning_rate_init": 3e-3,
    "learning_rate": "cosine",
    "activation": "relu",
}
# Elsewhere: up to so many rows of a member, rows in a batch, and the rate that suits it.
BATCHES = ((4_000, 64, 5e-3), (16_000, 128, 5e-3), (math.inf, 256, 8e-3))
ROWS_SEEN = 1_200_000  # by a member in all its epochs, but in so many epochs at least and at most:
FEWEST_EPOCHS, MOST_EPOCHS = 6, 100
PATIENCE = {"averaged": 10, "cosine": 30, "constant": 30}


class Fitted(NamedTuple):
    """What a fit leaves: the model, how it came about, and its learnt parts of scikit-learn."""

    model: FittedModel
    history: History
    preprocessor: Any
    heads: list[Any]
    loo: Any = None  # LeaveOneOut, or the score alone where there are too many rows
    honest: Any = None  # Honest, HeldOut, or why there is neither, in words


class LeaveOneOut(NamedTuple):
    """What fits without them say of the rows that ``fit`` was given."""

    proba: NDArray[np.float64]  # (n, C)
    score: float  # accuracy


class Honest(NamedTuple):
    """What is said of rows of the fit by what has not learnt from them."""

    how: str  # "left out" or "held out", see cocoloss.metrics.quality
    predicted: NDArray[np.float64]  # (m, C), probabilities; (m, t), numbers
    true: NDArray[Any]  # (m,), positions in the classes; (m, t), numbers
    weights: NDArray[np.float64]  # (m,)


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
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    *,
    keep_preprocessor: bool,
    ranks: bool = False,
) -> Rows:
    """Read a table, its classes and weights, and learn the preprocessing, unless it is to stay."""
    reader = type(estimator).__name__
    X = as_table(estimator, X)
    classes, labels, weights = encode_targets(X, y, sample_weight, reader, estimator.in_order)

    # Every row as often as it weighs; from here on weights are what no copies could say.
    copies = make_copies(X, labels, weights, reader, in_lowest_terms=True)
    labels, weights = labels[copies.rows], copies.weights
    preprocessor, inputs = read_inputs(
        estimator,
        _safe_indexing(X, copies.rows),
        classes[labels],
        learn=not keep_preprocessor,
        ranks=ranks,
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
    train, held_out = split_members(estimator, rows.labels, rows.groups, seeds)
    shape = min(map(len, train)), rows.inputs.shape[1], len(rows.classes)
    design = make_design(estimator, shape, seed, holds_out=estimator.early_stopping, start=start)
    if start is not None and design.layer_sizes != start.layer_sizes:
        raise CoCoError(
            f"warm_start goes on with layers of {start.layer_sizes}, but the arguments and the "
            f"table ask for {design.layer_sizes}; set warm_start=False to start anew"
        )
    return job_of(rows, design, train, held_out, seed, seeds, start)


def job_of(
    rows: Rows,
    design: Design,
    train: list[NDArray[np.int64]],
    held_out: list[NDArray[np.int64]],
    seed: int,
    seeds: list[int],
    start: Any = None,
) -> Job:
    """Return rows as a job: those that each member trains on, and those it holds out."""
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


def solver_of(estimator: Any) -> str:
    """Return what fits an estimator: "auto" is networks where an argument of theirs was given."""
    solver = check_option(estimator.solver, "solver", SOLVERS)
    if solver != "auto":
        return solver
    mine = (field for field in fields(estimator) if field.name not in OF_BOTH)
    given = any(not _is_default(getattr(estimator, field.name), field) for field in mine)
    return "network" if given else "auto"


def _is_default(value: Any, field: Field[Any]) -> bool:
    simple = isinstance(value, (str, int, float, tuple))
    return value is field.default or (simple and value == field.default)


def as_table(estimator: Any, X: Any) -> Any:
    """Return a table whose rows can be chosen: a pandas or polars frame, an array, sparse or not.

    A transformer of the user's own decides itself what a table is.
    """
    reader = type(estimator).__name__
    if estimator.preprocess is None or is_auto(estimator.preprocess):
        check_is_table(X, reader)
        X = rows_of(X) if is_sparse(X) else X
    if is_sparse(X):
        return X.tocsr()
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
    estimator: Any, rows: Any, y: NDArray[Any], *, learn: bool, ranks: bool = False
) -> tuple[Any, NDArray[np.float32]]:
    """Return the preprocessing and what it makes of training rows, after learning if it is new."""
    if not learn:
        preprocessor = estimator.preprocessor_
        return preprocessor, as_inputs(preprocessor.transform(rows), preprocessor, rows)
    preprocessor = make_preprocessor(estimator.preprocess, type(estimator).__name__, ranks=ranks)
    # To those who read the classes, such as a target encoder, that is not fit and then transform.
    if hasattr(preprocessor, "fit_transform"):
        made = preprocessor.fit_transform(rows, y)
    else:
        made = preprocessor.fit(rows, y).transform(rows)
    return preprocessor, as_inputs(made, preprocessor, rows)


def training_settings(estimator: Any, n_rows: int) -> dict[str, Any]:
    """Return the arguments of training, with "auto" as what it means for so many rows."""
    meant = PLAIN
    if estimator.early_stopping and estimator.module is None:
        suits = n_rows if is_auto(estimator.batch_size) else 0  # 8e-3 is for large batches
        batch_size, rate = next((size, rate) for most, size, rate in BATCHES if suits <= most)
        meant = {
            "max_iter": int(np.clip(ROWS_SEEN // n_rows, FEWEST_EPOCHS, MOST_EPOCHS)),
            "batch_size": batch_size,
            "learning_rate_init": rate,
            "learning_rate": "averaged",
            "activation": "silu",
        }
    given = {name: getattr(estimator, name) for name in meant}
    settings = {name: meant[name] if is_auto(value) else value for name, value in given.items()}
    patience = estimator.n_iter_no_change
    patience = PATIENCE[settings["learning_rate"]] if is_auto(patience) else patience
    return settings | {"n_iter_no_change": patience}


def given_dimension(estimator: Any) -> int | None:
    """Return the dimension of the embedding, if it was given."""
    return None if is_auto(estimator.embedding_dim) else int(estimator.embedding_dim)


def make_design(
    estimator: Any, shape: tuple[int, int, int], seed: int, *, holds_out: bool, start: Any = None
) -> Design:
    """Return what the arguments of an estimator make of a table.

    ``shape`` has the rows of a member, the columns of the matrix, and the classes; ``holds_out``
    says whether some rows are kept from training. Networks to go on from keep their units.
    """
    n_rows, n_features, n_classes = shape
    check_device(estimator.device)
    objective: Objective = estimator.make_objective()
    q = given_dimension(estimator)
    hidden = np.atleast_1d(estimator.hidden_layer_sizes).tolist()
    sizes = objective.layer_sizes(n_features, hidden, q, n_classes)
    settings = training_settings(estimator, n_rows)
    n_epochs, patience = settings["max_iter"], settings["n_iter_no_change"]
    schedule = Schedule(
        n_epochs=n_epochs,
        batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate_init"],
        decay=settings["learning_rate"],
        weight_decay=estimator.weight_decay,
        clip_norm=estimator.clip_norm,
        patience=patience if estimator.early_stopping else None,
        # Often enough to see within the patience whether there is progress.
        validate_every=max(1, min(n_epochs // VALIDATIONS, patience // 3)),
        pair_rows=objective.pair_rows,
        seconds=estimator.time_limit,
    )
    normalize = estimator.normalize
    network = {
        "dropout": estimator.dropout,
        "dropout_layer": estimator.dropout_layer,
        "output": estimator.output,
        "normalize": objective.normalize if is_auto(normalize) else bool(normalize),
        "linear_hidden": objective.logits and q is not None,
        "activation": getattr(start, "activation", settings["activation"]),
    }
    head = estimator.head
    if is_auto(head):
        head = HELD_OUT_HEADS.get(objective.head, objective.head) if holds_out else objective.head
    module = estimator.module
    return Design(
        objective,
        sizes,
        objective.make_loss(n_classes, sizes[-1], seed),
        schedule,
        network,
        head,
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


def split_members(
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
    train, held_out = [rows for rows, _ in pairs], [part for _, part in pairs]
    if not any(map(len, held_out)):
        held_out = deal_held_out(labels, groups, len(seeds), np.random.default_rng([seeds[0], 2]))
        train = [np.setdiff1d(rows, part) for rows, part in zip(train, held_out, strict=True)]
    return train, held_out


def in_time(job: Job, pace: Pace) -> Job:
    """Return a job that trains for as long as there is time left, if that has an end."""
    if pace.limit is None:
        return job
    schedule = replace(job.design.schedule, seconds=max(pace.left, LEAST_SECONDS))
    return replace(job, design=replace(job.design, schedule=schedule))


def finish_job(job: Job, trained: Trained, heads: list[Any] | None = None) -> Fitted:
    """Return the fitted model of a job: its networks, and a head for each, fitted unless given."""
    networks, design = trained.networks, job.design
    masses = np.bincount(job.labels, weights=job.row_weights, minlength=job.n_classes)
    history = History(trained.loss_curves, trained.best_epochs, job.seed, masses.astype(np.float64))
    reads_outputs = is_named(design.head, READOUT)
    honest: Any = "partial_fit holds no rows out"
    if heads is None:
        features = (networks.outputs if reads_outputs else networks.embeddings)(job.inputs)
        heads = _fit_heads(job, features)
        honest = _held_out(job, features, heads)
    encoder = getattr(job.preprocessor, "encoder_", job.preprocessor)  # a user's own has none
    values = tuple(_fitted_value(head) for head in heads)
    model = FittedModel(job.classes, job.prior, encoder, networks, values, reads_outputs)
    model = replace(model, reference=Reference(make_references(job.inputs, model.origins)))
    return Fitted(model, history, job.preprocessor, heads, honest=honest)


def _held_out(job: Job, features: NDArray[Any], heads: list[Any]) -> "HeldOut | str":
    """Return what tells of rows that members hold out, or why nothing does."""
    if not any(map(len, job.held_out)):
        return "no rows were held out; networks hold some out with early_stopping=True"
    if not all(hasattr(head, "predict_proba") for head in heads):
        return "the head has no probabilities"
    parts = [h[rows] for h, rows in zip(features, job.held_out, strict=True)]
    return HeldOut(heads, parts, job.held_out, job.labels, job.row_weights, job.prior)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows that members hold out, which say how good these are once somebody asks.

    A matrix is learnt from these rows, and would flatter them: here it is learnt anew in folds,
    and each row is judged by that of the others. That takes a while, so a fit leaves it.
    """

    heads: list[Any]
    features: list[NDArray[Any]]  # of each member: (m, q), what its head looks at
    rows: list[NDArray[np.int64]]  # of each member: (m,)
    labels: NDArray[np.int64]  # (n,), of all rows
    weights: NDArray[np.float64]  # (n,)
    prior: NDArray[np.float64]  # (C,)
    kernels: NDArray[np.float64] | None = None  # (m, C): probabilities by kernels, if there are

    def __reduce__(self) -> tuple[Any, ...]:
        """Become words in a pickle, which is small and holds nothing of rows."""
        return str, ("a pickle of networks holds none",)

    def __call__(self) -> Honest:
        """Return what is said of the rows."""
        order = np.argsort(self.labels, kind="stable")
        fold = np.empty(len(order), np.int64)
        fold[order] = np.arange(len(order)) % FOLDS  # even in every class
        said = [np.zeros((len(rows), len(self.prior))) for rows in self.rows]
        for f in range(FOLDS if isinstance(self.heads[0], MatrixHead) else 1):
            heads = self._without(fold, f)
            for head, h, rows, proba in zip(heads, self.features, self.rows, said, strict=True):
                mine = fold[rows] == f if heads is not self.heads else np.ones(len(rows), bool)
                if mine.any():
                    proba[mine] = _fitted_value(head).predict_proba(h[mine])
        proba, seen = self._together(said, fold)
        return Honest("held out", proba, self.labels[seen], self.weights[seen])

    def _without(self, fold: NDArray[np.int64], f: int) -> list[Any]:
        """Return the heads as if a fold had not been there; all but matrices stay as they are."""
        if not isinstance(self.heads[0], MatrixHead):
            return self.heads
        heads = [copy.copy(head) for head in self.heads]
        others = [fold[rows] != f for rows in self.rows]
        parts = [
            (h[keep], self.labels[rows[keep]], self.weights[rows[keep]])
            for h, rows, keep in zip(self.features, self.rows, others, strict=True)
        ]
        calibrate_together(heads, *zip(*parts, strict=True))
        return heads

    def _together(
        self, said: list[NDArray[np.float64]], fold: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return what members say together, or with kernels, and of which rows."""
        if self.kernels is not None:
            return self._pooled(np.stack([self.kernels, *said]), fold[self.rows[0]]), self.rows[0]
        sums, times = np.zeros((len(self.labels), len(self.prior))), np.zeros(len(self.labels))
        for proba, rows in zip(said, self.rows, strict=True):
            sums[rows] += proba
            times[rows] += 1
        seen = np.flatnonzero(times)
        return sums[seen] / times[seen, None], seen

    def _pooled(self, proba: NDArray[np.float64], fold: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what kernels and networks, (1 + K, m, C), say, weighed by the other folds."""
        log_prior = np.log(self.prior)
        scores = np.log(np.maximum(proba, np.finfo(np.float64).tiny)) - log_prior
        both = np.stack([scores[0], scores[1:].mean(axis=0)])
        labels, weights = self.labels[self.rows[0]], self.weights[self.rows[0]]
        result = np.empty(both.shape[1:])
        for f in np.unique(fold):
            rest, mine = fold != f, fold == f
            pool = pool_weights(both[:, rest], labels[rest], weights[rest])
            logits = log_prior + np.tensordot(pool, both[:, mine], 1)
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            result[mine] = p / p.sum(axis=1, keepdims=True)
        return result


def _fit_heads(
    job: Job,
    features: NDArray[Any],  # (K, n, q), what the heads look at
) -> list[Any]:
    """Return a head for each member, fitted on its training rows, calibrated on the others.

    Those of "matrix" learn from the held-out rows of all members together.
    """
    weights = head_weights(job)
    even = bool(np.all(weights == weights[0]))
    if even:
        weights = np.ones(len(weights))
    few = not job.can_stop_early
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
            alone = isinstance(head, EmbeddingHead) and not isinstance(head, MatrixHead)
            if alone and not few:
                head.calibrate(h[held_out], job.labels[held_out], sample_weight=weights[held_out])
            heads.append(head)
        honest = zip(features, job.held_out, strict=True)
        parts = [(h[rows], job.labels[rows], weights[rows]) for h, rows in honest]
        if isinstance(heads[0], MatrixHead):
            calibrate_together(heads, *zip(*parts, strict=True))
        elif isinstance(heads[0], EmbeddingHead) and sum(map(len, job.held_out)) > 0 and few:
            share_temperature(heads, *zip(*parts, strict=True))
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
    "learning_rate_init": (
        "'auto' or a number above 0",
        lambda x: is_auto(x) or (_is_number(x) and 0 < x < np.inf),
    ),
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
    "time_limit": (
        "a number of seconds above 0, or None for no limit",
        lambda x: x is None or (_is_number(x) and 0 < x < np.inf),
    ),
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
            f"objective must be a value of cocoloss.fitting.objective, such as CoCo(), not "
            f"{objective!r:.80}"
        )
    for name in POSSIBLE:
        check_possible(estimator, name)
    check_counts(estimator, "max_iter", "batch_size", "n_iter_no_change", "embedding_dim")
    check_option(estimator.solver, "solver", SOLVERS)
    check_option(estimator.landmarks, "landmarks", LANDMARKS)
    if estimator.unlabelled is not None:
        check_option(estimator.unlabelled, "unlabelled", UNLABELLED)
    check_option(estimator.learning_rate, "learning_rate", DECAYS)
    check_option(estimator.output, "output", OUTPUTS)
    check_option(estimator.activation, "activation", ("auto", *ACTIVATIONS))
    if isinstance(estimator.class_weight, Mapping):
        _check_class_weights(estimator.class_weight)
    _check_head(estimator, objective)
    _check_together(estimator, objective)
    if estimator.unlabelled == "soft":
        _check_soft(estimator)


def check_counts(estimator: Any, *names: str) -> None:
    """Refuse arguments that count something of networks, and are no whole number above 0."""
    check_integer(estimator.n_members, "n_members", minimum=1)
    for name in names:
        if not is_auto(getattr(estimator, name)):
            check_integer(getattr(estimator, name), name, minimum=1)
    for size in np.atleast_1d(np.asarray(estimator.hidden_layer_sizes, dtype=object)).tolist():
        check_integer(size, "each of hidden_layer_sizes", minimum=1)


def check_possible(estimator: Any, name: str) -> None:
    """Refuse the value of an argument that none could have."""
    (wanted, is_possible), value = POSSIBLE[name], getattr(estimator, name)
    if not is_possible(value):
        raise CoCoError(f"{name} must be {wanted}, not {value!r:.80}")


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
    if estimator.solver in ("kernel", "both"):
        for name, default in OF_NETWORKS.items():
            value = getattr(estimator, name)
            if not (value is default or is_named(value, "auto") or not value):
                raise CoCoError(
                    f"{name}={value!r:.80} is for networks alone, not for "
                    f"solver={estimator.solver!r}; leave it out, or use solver='network'"
                )
    if estimator.landmarks != "rows" and solver_of(estimator) == "network":
        raise CoCoError(
            f"landmarks={estimator.landmarks!r} is for kernels, and networks have none; leave it "
            f"out, or use solver='kernel'"
        )
    of_perceptrons = {"output": "identity", "dropout": 0.0, "activation": "auto"}
    changed = [name for name, usual in of_perceptrons.items() if getattr(estimator, name) != usual]
    if estimator.module is not None and changed:
        raise CoCoError(
            f"{' and '.join(f'{name}={getattr(estimator, name)!r}' for name in changed)} is for "
            f"the multilayer perceptron; put what you want of it into your module"
        )
    if not is_auto(estimator.normalize) and estimator.normalize and objective.logits:
        raise CoCoError(
            f"normalize=True is not for {type(estimator).__name__}: its outputs are logits, which "
            f"a norm of one would keep from ever being sure; leave it at 'auto'"
        )


def refuse_unlabelled(estimator: Any, where: str) -> None:
    """Refuse rows without a label where only ``fit`` knows them."""
    if estimator.unlabelled is not None:
        raise CoCoError(
            f"unlabelled={estimator.unlabelled!r} is for fit, not for {where}; leave rows without "
            f"a label out, and the argument"
        )


def _check_soft(estimator: Any) -> None:
    """Refuse what students have no place for."""
    without = {"solver": "both", "landmarks": "kmeans", "warm_start": True}
    given = {name: value for name, value in without.items() if getattr(estimator, name) == value}
    if estimator.module is not None:
        given["module"] = estimator.module
    for name, value in given.items():
        raise CoCoError(
            f"unlabelled='soft' does not go with {name}={value!r:.80}; leave that out, or use "
            f"unlabelled='ignore'"
        )


def _devices() -> list[str]:
    """Return what networks can be trained on, on this machine."""
    cuda = ["'cuda'"] if torch.cuda.is_available() else []
    return ["'cpu'", *cuda, *(["'mps'"] if torch.backends.mps.is_available() else [])]


def check_device(device: Any) -> None:
    """Refuse a device that torch does not know or that is not there."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        raise CoCoError(
            f"device {device!r} cannot be used here; it may be {' or '.join(_devices())}"
        ) from error
