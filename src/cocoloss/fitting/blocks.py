"""Tables in blocks: beyond memory, and beyond one machine.

    first pass   ``LookAt``   what the target is like, exactly, and a sample from which all that is
                              chosen comes: preprocessing, kernels, metric, landmarks
    second pass  ``SumsOf``   what each block says of functions on the landmarks, added up

Memory is that of one block, of the sample, and of an m x m matrix for each kernel. Blocks are read
here, one after the other, or by the workers of a Dask cluster, which send sums. Neither the order
of the blocks nor their size decides anything: rows are drawn by what they hold.

Workers import this module, which needs no torch; fit_blocks.py puts models together.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import vstack
from sklearn.utils import _safe_indexing

from cocoloss._checks import did_you_mean, is_sparse, listed
from cocoloss.columns.encoder import TableEncoder
from cocoloss.columns.frames import are_paths, is_dask, is_dataset, is_polars, rows_of
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.model import as_inputs
from cocoloss.fitting.targets import (
    ordered_categories,
    read_numbers,
    read_target,
    row_codes,
)
from cocoloss.kernels import Kernel, Sums, sums_of
from cocoloss.kernels.intervals import Response
from cocoloss.pace import Pace

SAMPLE = 20_000  # distinct rows that are drawn: a table of fewer is fitted as if it had come whole
PER_CLASS = 200  # rows of each class that are drawn besides, if there are no more than 100 classes
FEWEST_PER_CLASS = 10  # however many there are
MOST_CLASSES = 10_000
SAMPLED_CELLS = 20_000_000  # at most, of a wide table
READ_ROWS = 65_536  # of a Parquet file at once, and of a block that become numbers at once
SAID_EVERY = 5  # seconds, by a verbose fit
MOST_ADDED_THERE = 16  # blocks whose sums workers add up before they send them

Block = tuple[Any, Any]  # rows, and their classes or numbers
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
    if isinstance(y, str):
        _check_column(X.columns, y)
        rows = X.to_delayed()
        classes: list[Any] = [y] * len(rows)
    elif is_dask(y) and hasattr(y, "name") and y.npartitions == X.npartitions:
        # Optimised one by one, those of few columns of a file would be merged.
        rows, classes = (each.to_delayed(optimize_graph=False) for each in (X, y))
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
class Classes:
    """How often each class occurs in some blocks."""

    names: NDArray[Any]  # (C,), sorted
    counts: NDArray[np.int64]  # (C,)
    order: NDArray[Any] | None = None  # the categories of an ordered categorical, if y is one

    def __post_init__(self) -> None:
        if len(self.names) > MOST_CLASSES:
            raise CoCoError(
                f"y has more than {MOST_CLASSES:,} different values ({len(self.names):,} so far); "
                f"it looks like an identifier or a quantity, not like classes"
            )

    @classmethod
    def of(cls, y: NDArray[Any], order: NDArray[Any] | None) -> Self:
        """Count the classes of one block."""
        names, counts = np.unique(y, return_counts=True)
        return cls(names, counts, order)

    def __add__(self, other: Self) -> Self:
        names, place = np.unique(_of_one_kind([self.names, other.names]), return_inverse=True)
        counts = np.bincount(place, weights=np.r_[self.counts, other.counts])
        orders = [each.order for each in (self, other) if each.order is not None]
        if orders and not np.array_equal(orders[0], orders[-1]):
            raise CoCoError(
                f"y is ordered in one way in one block, {orders[0].tolist()!r:.80}, and in another "
                f"in another, {orders[-1].tolist()!r:.80}; give all blocks the same categories"
            )
        return type(self)(names, counts.astype(np.int64), orders[0] if orders else None)

    def in_order(self, y: NDArray[Any]) -> Any:
        """Return classes as a target that tells their order, if there is one."""
        if self.order is None:
            return y
        return pd.Categorical(y, categories=self.order, ordered=True)

    @property
    def n_rows(self) -> int:
        """Rows seen, copies included."""
        return int(self.counts.sum())

    def sampled(self, y: NDArray[Any], most: int) -> NDArray[np.bool_]:
        """Return which of some rows, in the order of their priorities, stay in the sample."""
        C, label = len(self.names), np.searchsorted(self.names, y)
        most = max(most, C)
        each = min(PER_CLASS, max(FEWEST_PER_CLASS, most // C))
        by_class = np.argsort(label, kind="stable")
        starts = np.searchsorted(label[by_class], np.arange(C))
        rank = np.empty(len(label), dtype=np.intp)  # within the class
        rank[by_class] = np.arange(len(label)) - starts[label[by_class]]
        return (np.arange(len(y)) < most) | (rank < each)


@dataclass(frozen=True, eq=False)
class Numbers:
    """How many rows some blocks have, and what their numbers are like."""

    n_rows: int
    one_column: bool  # whether they are a column, rather than a table
    mean: NDArray[np.float64]  # (t,)
    scatter: NDArray[np.float64]  # (t,), sum of squared deviations from the mean
    least: NDArray[np.float64]  # (t,)
    most: NDArray[np.float64]  # (t,)

    @classmethod
    def of(cls, given: NDArray[np.float64]) -> Self:
        """Sum up the numbers of one block, (n,) or (n, t)."""
        y = given.reshape(len(given), -1)
        mean = y.mean(axis=0)
        scatter = np.square(y - mean).sum(axis=0)
        return cls(len(y), given.ndim == 1, mean, scatter, y.min(axis=0), y.max(axis=0))

    def __add__(self, other: Self) -> Self:
        if len(self.mean) != len(other.mean):
            raise CoCoError(
                f"y has {len(self.mean)} numbers a row in one block, and {len(other.mean)} in "
                f"another; give every row as many"
            )
        n, apart = self.n_rows + other.n_rows, other.mean - self.mean
        return type(self)(
            n,
            self.one_column and other.one_column,
            self.mean + apart * (other.n_rows / n),
            self.scatter + other.scatter + apart**2 * (self.n_rows * other.n_rows / n),
            np.minimum(self.least, other.least),
            np.maximum(self.most, other.most),
        )

    def sampled(self, y: NDArray[np.float64], most: int) -> NDArray[np.bool_]:
        """Return which of some rows, in the order of their priorities, stay in the sample."""
        return np.arange(len(y)) < most


@dataclass(frozen=True, eq=False)
class Look:
    """What the target of some blocks is like, and a sample of their rows.

    Every row has a priority that only its contents and the seed decide; those with the lowest are
    the sample, overall and of each class. So looks can be added in any order, and a row of the
    sample has been in that of every block where it occurs: its copies are counted exactly.
    """

    target: Any  # Classes or Numbers
    rows: Any  # n distinct ones, a table
    y: NDArray[Any]  # (n,) classes, or (n, t) numbers
    priority: NDArray[np.uint64]  # (n,), ascending
    copies: NDArray[np.int64]  # (n,)
    whole: bool  # whether these are all rows

    @property
    def n_rows(self) -> int:
        """Rows seen, copies included."""
        return int(self.target.n_rows)

    def __add__(self, other: Self) -> Self:
        target = self.target + other.target
        priority, first, of_row = np.unique(
            np.r_[self.priority, other.priority], return_index=True, return_inverse=True
        )
        copies = np.bincount(of_row, weights=np.r_[self.copies, other.copies])
        y = np.concatenate([self.y, other.y])[first]
        kept = np.flatnonzero(target.sampled(y, _most_of(self.rows)))
        return type(self)(
            target,
            _safe_indexing(_joined([self.rows, other.rows]), first[kept]),
            y[kept],
            priority[kept],
            copies[kept].astype(np.int64),
            self.whole and other.whole and len(kept) == len(first),
        )


@dataclass(frozen=True)
class LookAt:
    """A function of blocks: a look at each."""

    seed: int
    reader: str
    numbers: bool = False

    def __call__(self, X: Any, y: Any) -> Look | None:
        """Return a look at one block, or None if it is empty."""
        X = _as_rows(X)
        if not X.shape[0]:
            return None
        target: Classes | Numbers
        if self.numbers:
            y, _ = read_numbers(X, y, None, self.reader)
            target = Numbers.of(y)
            y = columns = y.reshape(len(y), -1)
        else:
            order = ordered_categories(y)
            y = _classes_of(X, y, self.reader)
            target, columns = Classes.of(y, order), _column(y)
        codes = row_codes(columns, self.reader) * np.uint64(0x9E3779B97F4A7C15)
        codes ^= row_codes(X, self.reader)
        priority, first, copies = np.unique(
            _mixed(codes ^ np.uint64(self.seed)), return_index=True, return_counts=True
        )
        y = y[first]
        kept = np.flatnonzero(target.sampled(y, _most_of(X)))
        rows, whole = _safe_indexing(X, first[kept]), len(kept) == len(first)
        return Look(target, rows, y[kept], priority[kept], copies[kept], whole)


def _classes_of(X: Any, y: Any, reader: str) -> NDArray[Any]:
    with warnings.catch_warnings():  # of many classes for so few rows: it is but a block
        warnings.simplefilter("ignore", UserWarning)
        return read_target(X, y, None, reader)[0]


def _column(y: NDArray[Any]) -> Any:
    return y[:, None] if y.dtype.kind in "iufb" else pd.DataFrame({"y": y})


def _mixed(codes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return codes whose order has nothing to do with theirs (the finaliser of splitmix64)."""
    codes = (codes ^ codes >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    codes = (codes ^ codes >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return codes ^ codes >> np.uint64(31)


def _most_of(X: Any) -> int:
    """Return how many rows of a table are sampled."""
    return int(min(SAMPLE, SAMPLED_CELLS // max(1, int(X.shape[1]))))


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
    columns = [set(getattr(table, "columns", range(table.shape[1]))) for table in tables]
    differing = set.union(*columns) - set.intersection(*columns)
    if differing:
        raise CoCoError(
            f"some blocks have no column {min(map(str, differing))!r}, which others have; "
            f"give all of them the same columns"
        )
    if isinstance(first, np.ndarray):
        return np.concatenate(tables)
    if is_sparse(first):
        return vstack(tables).tocsr()
    if is_polars(first):
        return sys.modules["polars"].concat(
            [table.select(first.columns) for table in tables], how="vertical_relaxed"
        )
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
class OfClasses:
    """The target point of each row, that of its class, and what the row weighs."""

    classes: NDArray[Any]  # (C,), sorted
    points: NDArray[np.float64]  # (C, q)
    scale: NDArray[np.float64]  # (C,)
    reader: str

    def __call__(self, X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return points, (n, q), and weights, (n,)."""
        y = _classes_of(X, y, self.reader)
        label = np.searchsorted(self.classes, y).clip(max=len(self.classes) - 1)
        if not np.array_equal(self.classes[label], y):
            raise not_the_same("classes that were not there the first time")
        return self.points[label], self.scale[label]


@dataclass(frozen=True, eq=False)
class OfNumbers:
    """The target points of each row, its standardised numbers; every row weighs one."""

    response: Response
    reader: str

    def __call__(self, X: Any, y: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return points, (n, t), and weights, (n,)."""
        y, _ = read_numbers(X, y, None, self.reader)
        return self.response.points(y.reshape(len(y), -1)), np.ones(len(y))


@dataclass(frozen=True, eq=False)
class SumsOf:
    """A function of blocks: their sums. It is sent to workers, and small."""

    kernels: tuple[Kernel, ...]
    landmarks: NDArray[np.float32]  # (m, d)
    preprocessor: Any  # fitted
    target: OfClasses | OfNumbers

    def __call__(self, X: Any, y: Any) -> BlockSums | None:
        """Return the sums of one block, or None if it is empty."""
        X = _as_rows(X)
        n = X.shape[0]
        if not n:
            return None
        points, weights = self.target(X, y)
        total = None
        for start in range(0, n, READ_ROWS):
            part = np.arange(start, min(start + READ_ROWS, n))
            inputs, strays = encoded(
                self.preprocessor, _safe_indexing(X, part) if len(part) < n else X
            )
            found = sums_of(self.kernels, self.landmarks, inputs, points[part], weights[part])
            sums = BlockSums(len(part), found, strays)
            total = sums if total is None else total + sums
        return total


def encoded(preprocessor: Any, X: Any) -> tuple[NDArray[np.float32], dict[str, str]]:
    """Return rows as numbers, and the columns of numbers that hold other text, taken for gaps."""
    strays: dict[str, str] = {}
    encoder = getattr(preprocessor, "encoder_", preprocessor)
    if isinstance(encoder, TableEncoder):
        strays = encoder.strays(X)
        encoder = encoder.lenient_in(strays)
    return as_inputs(encoder.transform(X), encoder, X), strays


def not_the_same(what: str) -> CoCoError:
    """Return what to say of blocks that change."""
    return CoCoError(
        f"the second pass over the blocks found {what}; they must be the same rows each time they "
        f"are read"
    )


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
