"""Fits to tables in blocks: beyond memory, and beyond one machine.

    first pass   ``look_at``   exact class counts, and a sample from which all that is chosen comes:
                               preprocessing, kernels, metric, landmarks
    second pass  ``SumsOf``    what each block says of functions on the landmarks, added up

Memory is that of one block, of the sample, and of an m x m matrix for each kernel. Blocks are read
here, one after the other, or by the workers of a Dask cluster, which send sums. Neither the order
of the blocks nor their size decides anything: rows are drawn by what they hold.

Workers import this module; it needs no torch before a model is put together.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import vstack
from sklearn.utils import _safe_indexing

from cocoloss._checks import did_you_mean, is_sparse, listed
from cocoloss.columns.column_kinds import warn_of_columns
from cocoloss.columns.encoder import TableEncoder
from cocoloss.columns.frames import are_paths, is_dask, is_dataset, is_polars, rows_of
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.model import (
    FittedModel,
    History,
    as_inputs,
)
from cocoloss.fitting.targets import (
    beyond_balance,
    class_weights,
    decision_prior,
    make_copies,
    read_target,
    row_codes,
)
from cocoloss.geometry import target_points
from cocoloss.kernels import Kernel, Sums, sums_of
from cocoloss.kernels.classes import Lesson, fit_sampled
from cocoloss.kernels.closed_form import Plan
from cocoloss.pace import Pace
from cocoloss.threads import WORTH_A_THREAD, threads_for

SAMPLE = 20_000  # distinct rows that are drawn: a table of fewer is fitted as if it had come whole
PER_CLASS = 200  # rows of each class that are drawn besides, if there are no more than 100 classes
FEWEST_PER_CLASS = 10  # however many there are
MOST_CLASSES = 10_000
SAMPLED_CELLS = 20_000_000  # at most, of a wide table
READ_ROWS = 65_536  # of a Parquet file at once, and of a block that become numbers at once
SAID_EVERY = 5  # seconds, by a verbose fit
MOST_ADDED_THERE = 16  # blocks whose sums workers add up before they send them

Block = tuple[Any, Any]  # rows, and their classes
Reader = Callable[[Any, Any], Any]  # makes of a block a value; those of blocks can be added


# What comes in blocks ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LocalBlocks:
    """Blocks that are read here."""

    read: Callable[[], Iterable[Block]]

    def results(self, function: Reader) -> Iterator[Any]:
        """Yield what a function makes of each block."""
        for X, y in self.read():
            yield function(X, y)


@dataclass(frozen=True)
class ClusterBlocks:
    """Blocks that the workers of a Dask cluster read, as they compute them."""

    client: Any
    parts: Sequence[tuple[Any, Any]]  # delayed rows, and their classes, delayed or a name

    def results(self, function: Reader) -> Iterator[Any]:
        """Yield what a function makes of some blocks, added up there, as soon as it is known.

        A value that has come is let go of, so that neither a worker nor this process ever holds
        many. A worker that dies takes along what it had not sent; Dask has that computed anew.
        """
        import distributed  # noqa: PLC0415 - optional, and heavy
        from dask.delayed import delayed  # noqa: PLC0415

        shared = delayed(function, pure=False)  # sent once, and known to whoever tries again
        made = [delayed(_made_of)(shared, X, y) for X, y in self.parts]
        n_workers = max(1, len(self.client.nthreads()))
        group = min(MOST_ADDED_THERE, max(1, len(made) // (4 * n_workers)))
        added = [
            delayed(_added)(made[start : start + group]) for start in range(0, len(made), group)
        ]
        futures = self.client.compute(added)
        del added, made
        arriving: Any = distributed.as_completed(futures)  # type: ignore[no-untyped-call]
        futures.clear()
        try:
            for future in arriving:
                yield future.result()
                future.release()
        except distributed.KilledWorker as error:
            raise CoCoError(
                f"workers died again and again over the same block of the table ({error}); give "
                f"them more memory, or the table smaller partitions"
            ) from error


def _made_of(function: Reader, X: Any, y: Any) -> Any:
    """Apply a function to a block, on a worker."""
    return function(*_read_block(X, y))


def _read_block(X: Any, y: Any) -> Block:
    """Return the rows and classes of a partition; y may be the name of its column."""
    return _split(X, y) if isinstance(y, str) else (X, y)


def _added(values: Sequence[Any]) -> Any:
    """Add up what there is, on a worker; empty blocks are None."""
    present = [value for value in values if value is not None]
    return sum(present[1:], start=present[0]) if present else None


def open_blocks(X: Any, y: Any) -> LocalBlocks | ClusterBlocks:
    """Return a table in blocks as what can be read twice, or say why it cannot."""
    if is_dask(X):
        return _dask_blocks(X, y)
    if are_paths(X) or is_dataset(X):
        from cocoloss.tables.parquet_and_arff import (  # noqa: PLC0415 - an extra
            iter_dataset,
            open_dataset,
        )

        if not isinstance(y, str):
            raise CoCoError(
                f"y must be the name of the target column where X is Parquet files, not {y!r:.80}"
            )
        dataset = open_dataset(X) if are_paths(X) else X
        _check_column(dataset.schema.names, y)
        return LocalBlocks(lambda: (_split(frame, y) for frame in iter_dataset(dataset, READ_ROWS)))
    if isinstance(X, Iterator):
        raise CoCoError(
            f"X is a {type(X).__name__}, which can be read once, but a fit reads its blocks twice; "
            f"give the function that makes it (X=read, without the brackets), or a list"
        )
    if not (y is None or isinstance(y, str)):
        raise CoCoError(
            f"y must be the name of the target column where X is blocks, or None where each block "
            f"is a pair of X and y, not {type(y).__name__}"
        )
    return LocalBlocks(lambda: (_as_block(each, y) for each in (X() if callable(X) else X)))


def _dask_blocks(X: Any, y: Any) -> LocalBlocks | ClusterBlocks:
    if not hasattr(X, "columns"):
        raise CoCoError(
            "X is a Dask collection without columns; make it one with, by "
            "dask.dataframe.from_dask_array(X)"
        )
    rows = X.to_delayed()
    if isinstance(y, str):
        _check_column(X.columns, y)
        classes: list[Any] = [y] * len(rows)
    elif is_dask(y) and hasattr(y, "name") and y.npartitions == X.npartitions:
        classes = y.to_delayed()
    else:
        has = f", which has {y.npartitions} partitions" if is_dask(y) else ""
        raise CoCoError(
            f"y must be the name of a column of X, or a Dask Series with its {X.npartitions} "
            f"partitions, not {type(y).__name__}{has}"
        )
    parts = list(zip(rows, classes, strict=True))
    client = _client()
    if client is not None:
        return ClusterBlocks(client, parts)

    def read() -> Iterator[Block]:
        from dask.base import compute  # noqa: PLC0415 - optional, and heavy

        for block in parts:
            yield _read_block(*compute(*block))  # type: ignore[no-untyped-call]

    return LocalBlocks(read)


def _client() -> Any:
    """Return the Dask client of this process, if somebody has started one."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed and distributed.default_client()
    except ValueError:
        return None


def _as_block(each: Any, y: str | None) -> Block:
    """Return rows and classes of what somebody's blocks are."""
    if y is not None and not isinstance(each, tuple):
        return _split(each, y)
    if y is None and isinstance(each, tuple) and len(each) == 2:
        return each
    what = f"a {type(each).__name__}"
    raise CoCoError(
        f"a block is {what}, but y is {y!r}; give data frames and the name of their target column "
        f"as y, or pairs of X and y, and None as y"
    )


def _split(frame: Any, target: str) -> Block:
    """Split the target off a data frame."""
    frame = _as_rows(frame)
    if not hasattr(frame, "columns"):
        raise CoCoError(
            f"a block is a {type(frame).__name__}, which has no column {target!r}; give data "
            f"frames, or pairs of X and y"
        )
    _check_column(frame.columns, target)
    rest = frame.drop(target) if is_polars(frame) else frame.drop(columns=target)
    return rest, frame[target]


def _check_column(names: Iterable[Any], target: str) -> None:
    names = list(map(str, names))
    if target not in names:
        guess = did_you_mean(target, names) or f"; the columns are {listed(names)}"
        raise CoCoError(f"there is no column {target!r}{guess}")


def _as_rows(X: Any) -> Any:
    """Return a table whose rows can be chosen."""
    if is_sparse(X):
        return rows_of(X)
    if hasattr(X, "iloc") or is_polars(X) or isinstance(X, np.ndarray):
        return X
    return X.to_pandas() if hasattr(X, "to_pandas") else np.asarray(X)


# The first pass ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Look:
    """How often each class occurs in some blocks, and a sample of their rows.

    Every row has a priority that only its contents and the seed decide; those with the lowest are
    the sample, overall and of each class. So looks can be added in any order, and a row of the
    sample has been in that of every block where it occurs: its copies are counted exactly.
    """

    classes: NDArray[Any]  # (C,)
    counts: NDArray[np.int64]  # (C,)
    rows: Any  # n distinct ones, a table
    label: NDArray[np.intp]  # (n,), positions in the classes
    priority: NDArray[np.uint64]  # (n,), ascending
    copies: NDArray[np.int64]  # (n,)
    whole: bool  # whether these are all rows

    @property
    def n_rows(self) -> int:
        """Rows seen, copies included."""
        return int(self.counts.sum())

    def __add__(self, other: Self) -> Self:
        classes, of_class = np.unique(
            _of_one_kind([self.classes, other.classes]), return_inverse=True
        )
        counts = np.bincount(of_class, weights=np.r_[self.counts, other.counts])
        C = len(self.classes)
        priority, first, of_row = np.unique(
            np.r_[self.priority, other.priority], return_index=True, return_inverse=True
        )
        copies = np.bincount(of_row, weights=np.r_[self.copies, other.copies])
        label = np.r_[of_class[:C][self.label], of_class[C:][other.label]][first]
        kept = _lowest(label, len(classes), _n_columns(self.rows))
        return type(self)(
            classes,
            counts.astype(np.int64),
            _safe_indexing(_joined([self.rows, other.rows]), first[kept]),
            label[kept],
            priority[kept],
            copies[kept].astype(np.int64),
            self.whole and other.whole and len(kept) == len(first),
        )


def look_at(X: Any, y: Any, seed: int, reader: str) -> Look | None:
    """Return a look at one block, or None if it is empty."""
    X = _as_rows(X)
    if not X.shape[0]:
        return None
    with warnings.catch_warnings():  # of many classes for so few rows: it is but a block
        warnings.simplefilter("ignore", UserWarning)
        y, _ = read_target(X, y, None, reader)
    classes, label, counts = np.unique(y, return_inverse=True, return_counts=True)
    if len(classes) > MOST_CLASSES:
        raise _too_many_classes(len(classes))
    codes = row_codes(X, reader) ^ row_codes(_column(y), reader) * np.uint64(0x9E3779B97F4A7C15)
    priority, first, copies = np.unique(
        _mixed(codes ^ np.uint64(seed)), return_index=True, return_counts=True
    )
    label = label.ravel()[first]
    kept = _lowest(label, len(classes), _n_columns(X))
    rows = _safe_indexing(X, first[kept])
    whole = len(kept) == len(first)
    return Look(classes, counts, rows, label[kept], priority[kept], copies[kept], whole)


def _too_many_classes(n: int) -> CoCoError:
    return CoCoError(
        f"y has more than {MOST_CLASSES:,} different values ({n:,} so far); it looks like an "
        f"identifier or a quantity, not like classes"
    )


def _column(y: NDArray[Any]) -> Any:
    return y[:, None] if y.dtype.kind in "iufb" else pd.DataFrame({"y": y})


def _mixed(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return codes whose order has nothing to do with theirs (the finaliser of splitmix64)."""
    codes = (codes ^ codes >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    codes = (codes ^ codes >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return codes ^ codes >> np.uint64(31)


def _lowest(label: NDArray[np.intp], n_classes: int, n_columns: int) -> NDArray[np.intp]:
    """Return which of some rows, in the order of their priorities, are in the sample."""
    if n_classes > MOST_CLASSES:
        raise _too_many_classes(n_classes)
    most = min(SAMPLE, max(SAMPLED_CELLS // n_columns, n_classes))
    each = min(PER_CLASS, max(FEWEST_PER_CLASS, most // n_classes))
    by_class = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[by_class], np.arange(n_classes))
    rank = np.empty(len(label), dtype=np.intp)  # within the class
    rank[by_class] = np.arange(len(label)) - starts[label[by_class]]
    return np.flatnonzero((np.arange(len(label)) < most) | (rank < each))


def _n_columns(X: Any) -> int:
    return max(1, int(X.shape[1]))


def _of_one_kind(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Return the classes of several blocks as one array; numpy would write numbers as text."""
    kinds = {
        "text" if p.dtype.kind in "OUST" else "b" if p.dtype.kind == "b" else "n" for p in parts
    }
    if len(kinds) > 1:
        some = [f"{p[0]!r} in one block" for p in parts]
        raise CoCoError(f"y mixes kinds of classes: {', '.join(some)}; make all of one kind")
    return np.concatenate(parts)


def _joined(tables: Sequence[Any]) -> Any:
    """Return the rows of several tables as one; categories stay categories."""
    first = tables[0]
    if isinstance(first, np.ndarray):
        return np.concatenate(tables)
    if is_sparse(first):
        return vstack(tables).tocsr()
    if is_polars(first):
        return sys.modules["polars"].concat(tables, how="vertical_relaxed")
    names = [
        name
        for name in first.columns
        if all(name in t.columns and isinstance(t[name].dtype, pd.CategoricalDtype) for t in tables)
    ]
    unions = {
        name: pd.api.types.union_categoricals([t[name] for t in tables], ignore_order=True)
        for name in names
    }
    return pd.concat(tables, ignore_index=True).assign(**unions)


# The second pass --------------------------------------------------------------------------------


class BlockSums(NamedTuple):
    """What some blocks say of the function of each member."""

    n_rows: int
    of_members: tuple[Sums, ...]
    strays: dict[str, str]  # columns of numbers with other text, which is a gap

    def __add__(self, other: Self) -> Self:  # type: ignore[override]
        members = zip(self.of_members, other.of_members, strict=True)
        return type(self)(
            self.n_rows + other.n_rows,
            tuple(ours + theirs for ours, theirs in members),
            other.strays | self.strays,
        )


@dataclass(frozen=True, eq=False)
class SumsOf:
    """A function of blocks: their sums. It is sent to workers, and small."""

    kernels: tuple[Kernel, ...]
    landmarks: NDArray[np.float32]  # (m, d)
    preprocessor: Any  # fitted
    classes: NDArray[Any]  # (C,)
    points: NDArray[np.float64]  # (C, q)
    scale: NDArray[np.float64]  # (C,), what a row weighs
    reader: str

    def __call__(self, X: Any, y: Any) -> BlockSums | None:
        """Return the sums of one block, or None if it is empty."""
        X = _as_rows(X)
        n = X.shape[0]
        if not n:
            return None
        label = self._labels(X, y)
        total = None
        for start in range(0, n, READ_ROWS):
            part = np.arange(start, min(start + READ_ROWS, n))
            sums = self._sums(_safe_indexing(X, part) if len(part) < n else X, label[part])
            total = sums if total is None else total + sums
        return total

    def _labels(self, X: Any, y: Any) -> NDArray[np.intp]:
        with warnings.catch_warnings():  # as in look_at
            warnings.simplefilter("ignore", UserWarning)
            y, _ = read_target(X, y, None, self.reader)
        label = np.searchsorted(self.classes, y).clip(max=len(self.classes) - 1)
        if not np.array_equal(self.classes[label], y):
            raise _not_the_same("classes that were not there the first time")
        return np.asarray(label)

    def _sums(self, X: Any, label: NDArray[np.intp]) -> BlockSums:
        inputs, strays = encoded(self.preprocessor, X)
        sums = sums_of(self.kernels, self.landmarks, inputs, self.points[label], self.scale[label])
        return BlockSums(len(label), sums, strays)


def encoded(preprocessor: Any, X: Any) -> tuple[NDArray[np.float32], dict[str, str]]:
    """Return rows as numbers, and the columns of numbers that hold other text, taken for gaps."""
    strays: dict[str, str] = {}
    encoder = getattr(preprocessor, "encoder_", preprocessor)
    if isinstance(encoder, TableEncoder):
        strays = encoder.strays(X)
        encoder = encoder.lenient_in(strays)
    return as_inputs(encoder.transform(X), encoder, X), strays


def _not_the_same(what: str) -> CoCoError:
    return CoCoError(
        f"the second pass over the blocks found {what}; they must be the same rows each time they "
        f"are read"
    )


# The fit ----------------------------------------------------------------------------------------


class OfSample(NamedTuple):
    """What fits without them say of the rows of the sample, which stand for all."""

    score: float  # accuracy


def fit_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Any:
    """Fit a classifier in closed form to a table in blocks."""
    from cocoloss.fitting import fit as steps  # noqa: PLC0415 - torch
    from cocoloss.fitting.fit_kernels import fit_kernels  # noqa: PLC0415 - the same

    steps.check_arguments(estimator)
    if steps.solver_of(estimator) in ("network", "both"):
        raise CoCoError(
            "X is a table in blocks, and networks need all rows at once; fit by solver='kernel' "
            "(--solver kernel), or call partial_fit block by block"
        )
    if estimator.time_limit is not None:
        raise CoCoError(
            "time_limit is not for a table in blocks, of which every row is read twice; leave it "
            "out, or fit to fewer blocks"
        )
    if sample_weight is not None:
        raise CoCoError(
            "sample_weight is not for a table in blocks; leave out the rows that weigh nothing, "
            "repeat those that weigh more, or weigh classes by class_weight"
        )
    blocks, reader = open_blocks(X, y), type(estimator).__name__
    seed, pace = steps.new_seed(estimator), Pace(verbose=estimator.verbose)
    look = add_up(blocks, partial(look_at, seed=seed, reader=reader), "first pass", pace)
    if look is None:
        raise CoCoError("X has no rows (0 sample(s)), and a minimum of 1 is required")
    if look.whole:
        found = fit_kernels(estimator, look.rows, look.classes[look.label], look.copies)
        history = replace(found.history, class_masses=look.counts.astype(np.float64))
        return found._replace(history=history, loo=OfSample(found.loo.score))
    return _fit_look(estimator, blocks, look, seed, pace)


def add_up(blocks: LocalBlocks | ClusterBlocks, function: Reader, what: str, pace: Pace) -> Any:
    """Return the sum over blocks of what a function makes of each; None if there is nothing."""
    total, said = None, pace.elapsed
    for value in blocks.results(function):
        if value is None:
            continue
        total = value if total is None else total + value
        if pace.elapsed - said > SAID_EVERY:
            said = pace.elapsed
            pace.say(f"{what}: {total.n_rows:,} rows so far")
    if total is not None:
        pace.say(f"{what}: all {total.n_rows:,} rows")
    return total


def _fit_look(
    estimator: Any, blocks: LocalBlocks | ClusterBlocks, look: Look, seed: int, pace: Pace
) -> Any:
    """Fit to blocks of which the first pass has left a look."""
    from cocoloss.fitting import fit as steps  # noqa: PLC0415 - torch

    reader, classes, labels = type(estimator).__name__, look.classes, look.label.astype(np.int64)
    totals, copies = look.counts.astype(np.float64), look.copies.astype(np.float64)
    if len(classes) < 2:
        raise CoCoError(
            f"{reader} needs at least two classes to tell apart, but y has one class: "
            f"{classes.tolist()}"
        )
    repeated = make_copies(look.rows, labels, copies, reader, in_lowest_terms=True).rows
    preprocessor, _ = steps.read_inputs(
        estimator,
        _safe_indexing(look.rows, repeated),
        classes[labels[repeated]],
        learn=True,
        ranks=True,
    )
    inputs = as_inputs(preprocessor.transform(look.rows), preprocessor, look.rows)
    points = target_points(estimator.similarity, len(classes))
    prior = decision_prior(estimator.priors, estimator.class_weight, classes, totals)
    strays: dict[str, str] = {}

    def second_pass(plan: Plan, scale: NDArray[np.float64]) -> Sequence[Sums]:
        function = SumsOf(
            plan.kernels, plan.landmarks, preprocessor, classes, points, scale, reader
        )
        found = add_up(blocks, function, "second pass", pace)
        n_rows = 0 if found is None else found.n_rows
        if n_rows != totals.sum():
            raise _not_the_same(f"{n_rows:,} rows, the first {int(totals.sum()):,}")
        strays.update(found.strays)
        return list(found.of_members)

    with threads_for(WORTH_A_THREAD):
        weights = class_weights(estimator.class_weight, classes, totals)
        weights = beyond_balance(estimator.class_weight, weights)
        lesson = Lesson(inputs, labels, copies, weights, points, prior)
        means = estimator.landmarks == "kmeans"
        form = fit_sampled(lesson, totals, seed, second_pass, pace, means=means)
    if strays:
        preprocessor.encoder_ = preprocessor.encoder_.lenient_in(strays)
        columns = preprocessor.encoder_.columns
        odd = {name: replace(columns[name], remark=why) for name, why in strays.items()}
        warn_of_columns(odd, in_estimator=True, stacklevel=5)
    proba = form.readout.predict_proba(form.honest)
    sampled = np.bincount(labels, weights=copies)
    stand_for = copies * (totals / sampled)[labels]
    score = float(np.average(proba.argmax(axis=1) == labels, weights=stand_for))
    weights = stand_for * (copies.sum() / stand_for.sum())  # errors are those of the sample
    honest = steps.Honest("left out", proba, labels, weights)
    history = History([[s.loss for s in form.recipe.members]], np.zeros(1, np.int64), seed, totals)
    encoder = getattr(preprocessor, "encoder_", preprocessor)
    model = FittedModel(classes, prior, encoder, form.machine, (form.readout,))
    pace.end()
    return steps.Fitted(model, history, preprocessor, [form.readout], OfSample(score), honest)
