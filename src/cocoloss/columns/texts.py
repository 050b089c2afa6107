"""Columns of free text: parts of words, hashed and weighed by their rarity, as a few numbers.

By hand, because scikit-learn's HashingVectorizer would have to be there to predict. Its
TruncatedSVD learns what the numbers are; to apply it is a sum of rows.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import require, state_array, state_part
from cocoloss.columns.frames import MISSING, Column, Table
from cocoloss.columns.quantities import find_twins

BUCKETS = 2**12  # that parts of words share
SIZES = (3, 4, 5)  # characters of a part; the space on either side of a word is one
MOST_NUMBERS = 30  # that stand for a text
VARIANCE = 5.0  # of all of them together: a text weighs as much as so many columns of numbers
MOST_CHARACTERS = 5_000  # of a text that are read
BLOCK_CHARACTERS = 2**17  # of texts that are hashed at a time
SPACE = ord(" ")
# FNV's prime for the next character; multipliers of xxHash and MurmurHash3 to spread the result.
PRIME, SPREAD = np.uint32(0x01000193), (np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B))


class Parts(NamedTuple):
    """Which texts have parts in which buckets, and how much: (m,) each, sorted by text."""

    text: NDArray[np.int64]
    bucket: NDArray[np.int64]
    weight: NDArray[np.float64]  # 1 + log of how often


def find_parts(texts: Sequence[str]) -> Parts:
    """Return the parts of some texts, whatever their case and white space."""
    plain = [f" {' '.join(text[:MOST_CHARACTERS].casefold().split())} " for text in texts]
    lengths = np.array([len(text) for text in plain], dtype=np.int64)
    # (n_characters,), of all texts one after the other
    characters = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), np.uint32)
    text = np.repeat(np.arange(len(plain)), lengths)
    n_spaces = np.cumsum(characters == SPACE)
    keys = []
    hashes = characters
    for size in range(2, max(SIZES) + 1):
        hashes = hashes[:-1] * PRIME ^ characters[size - 1 :]
        if size in SIZES and hashes.size:
            begin, end = slice(None, hashes.size), slice(size - 1, None)
            one_word = n_spaces[size - 2 : -1] == n_spaces[begin]  # no space in between
            kept = (text[begin] == text[end]) & one_word
            keys.append(text[begin][kept] * BUCKETS + _spread(hashes[kept]) % BUCKETS)
    found, counts = np.unique(np.concatenate(keys), return_counts=True)
    return Parts(found // BUCKETS, found % BUCKETS, 1 + np.log(counts))


def _spread(hashes: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Let every bit of a hash decide the bucket."""
    for multiplier, shift in zip(SPREAD, (15, 13), strict=True):
        hashes = hashes * multiplier
        hashes ^= hashes >> np.uint32(shift)
    return hashes


def _blocks(texts: Sequence[str]) -> Iterator[slice]:
    """Give ranges of texts that are not too long together."""
    start = size = 0
    for stop, text in enumerate(texts):
        size += min(len(text), MOST_CHARACTERS)
        if size > BLOCK_CHARACTERS and stop > start:
            yield slice(start, stop)
            start, size = stop, min(len(text), MOST_CHARACTERS)
    if len(texts) > start:
        yield slice(start, len(texts))


@dataclass(frozen=True, eq=False)
class TextReducer:
    """What was learnt of a column of text: how rare parts are, and what their numbers are."""

    rarity: NDArray[np.float32]  # (BUCKETS,), inverse document frequencies
    components: NDArray[np.float32]  # (q, BUCKETS)
    has_missing: bool  # whether gaps have a column

    @classmethod
    def fit(cls, column: Column) -> Self | None:
        """Learn from a column; None if its texts do not differ. The order of rows has no say."""
        from scipy.sparse import csr_array, vstack  # noqa: PLC0415 - predicting does without

        from cocoloss.columns.sparse import learn_components  # noqa: PLC0415 - the same

        codes, values = column.distinct
        order = np.argsort(np.array([str(value) for value in values], dtype=object))
        texts, counts = [str(values[k]) for k in order], column.distinct.counts[order]
        n_with = np.zeros(BUCKETS)
        parts = [find_parts(texts[block]) for block in _blocks(texts)]
        for block, (text, bucket, _) in zip(_blocks(texts), parts, strict=True):
            n_with += np.bincount(bucket, weights=counts[block][text], minlength=BUCKETS)
        rarity = (1 + np.log((1 + counts.sum()) / (1 + n_with))).astype(np.float32)
        matrices = []
        for block, found in zip(_blocks(texts), parts, strict=True):
            weights = _weighed(found, rarity)
            shape = (len(texts[block]), BUCKETS)
            matrices.append(csr_array((weights, (found.text, found.bucket)), shape=shape))
        components = learn_components(vstack(matrices).tocsr(), MOST_NUMBERS, counts, VARIANCE)
        if components is None:
            return None
        return cls(rarity, components, bool((codes == MISSING).any()))

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return len(self.components) + self.has_missing

    def transform(self, column: Column, out: NDArray[np.float32]) -> None:
        """Write the numbers of each row's text, zeros in a gap, and the marks of gaps."""
        codes, values = column.distinct
        texts = [str(value) for value in values]
        q = len(self.components)
        numbers = np.zeros((len(texts) + 1, q), dtype=np.float32)  # the last row is that of gaps
        columns = np.ascontiguousarray(self.components.T)
        for block in _blocks(texts):
            parts = find_parts(texts[block])
            each = _weighed(parts, self.rarity).astype(np.float32)[:, None] * columns[parts.bucket]
            present, first = np.unique(parts.text, return_index=True)
            numbers[block.start + present] = np.add.reduceat(each, first, axis=0)
        out[:, :q] = numbers[codes]
        if self.has_missing:
            out[:, q] = codes == MISSING

    def names(self, name: str) -> list[str]:
        """Return the names of the result's columns."""
        names = [f"{name}_text_{k}" for k in range(1, len(self.components) + 1)]
        return [*names, f"{name}_missing"] if self.has_missing else names

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that its attributes described, or refuse it with a CoCoError."""
        components = state_array(state, "components", np.float32, (None, BUCKETS))
        require(0 < len(components) <= MOST_NUMBERS, "the numbers of its texts are too many")
        rarity = state_array(state, "rarity", np.float32, (BUCKETS,), positive=True)
        return cls(rarity, components, state_part(state, "has_missing", bool))


def _weighed(parts: Parts, rarity: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return how much each part counts in its text, which has norm one."""
    weights = parts.weight * rarity[parts.bucket]
    squares = np.bincount(parts.text, weights=np.square(weights))
    return np.asarray(weights / np.sqrt(squares)[parts.text])


def fit_texts(
    table: Table, names: Collection[str]
) -> tuple[dict[str, TextReducer], dict[str, str]]:
    """Learn columns of text; the second result says of those that are not in use why."""
    columns = {j: table.column(j) for j, name in enumerate(table.names) if name in names}
    reducers, dropped = {}, {}
    twins = find_twins(
        list(columns),
        signature=lambda j: len(columns[j].distinct.values),
        content=lambda j: (columns[j].distinct.codes.tobytes(), *columns[j].distinct.values),
    )
    for j, column in columns.items():
        reducer = None if j in twins else TextReducer.fit(column)
        if reducer is not None:
            reducers[column.name] = reducer
        else:
            dropped[column.name] = (
                f"duplicate of {table.names[twins[j]]!r}" if j in twins else "constant"
            )
    return reducers, dropped
