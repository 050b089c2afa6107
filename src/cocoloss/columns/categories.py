"""Columns of categories and booleans: their codes, and one column per category.

Gaps have their own, rare and unseen categories share one. By hand, because scikit-learn's
OneHotEncoder refuses columns that mix text and numbers, sorts Python objects, cannot tell an unseen
value of a binary column from its first category, and keeps its grouping of rare categories in
private attributes that could not be saved.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss.columns.column_kinds import BOOLEAN
from cocoloss.columns.frames import MISSING, UNSEEN, Column, Table
from cocoloss.columns.quantities import find_twins

NEITHER = 0.5  # a binary column where the value is missing or unseen
MIN_COUNT = 2  # once there are too many categories, those seen once are never kept
TRUTHS = {"false": 0, "0": 0, "true": 1, "1": 1}
TRUTH_KEYS = ["False", "True"]
TOO_RARE = "too many categories, and none occurs twice"


@dataclass(frozen=True)
class OneHot:
    """The categories of one column; two without rare ones share a single column of 0 and 1."""

    categories: list[str]  # those with a column of their own
    has_infrequent: bool  # whether rare and unseen ones share a column; else the unseen are zero
    has_missing: bool  # whether gaps have a column

    @classmethod
    def fit(cls, codes: NDArray[np.intp], keys: Sequence[str], max_categories: int) -> Self:
        """Learn which categories there are, and which are rare if there are too many.

        Codes are positions in the keys, MISSING in a gap, (n_rows,).
        """
        counts = np.bincount(codes[codes >= 0], minlength=len(keys))
        kept = [key for key, count in zip(keys, counts, strict=True) if count > 0]
        has_infrequent = len(kept) > max_categories
        if has_infrequent:
            by_count = sorted(range(len(keys)), key=lambda j: (-counts[j], keys[j]))
            kept = [keys[j] for j in by_count[: max_categories - 1] if counts[j] >= MIN_COUNT]
        if len(kept) + has_infrequent == 1:  # constant apart from gaps
            kept, has_infrequent = [], False
        return cls(sorted(kept), has_infrequent, bool((codes == MISSING).any() and counts.any()))

    @property
    def binary(self) -> bool:
        """Whether a single column of 0 and 1 says it all."""
        return len(self.categories) == 2 and not self.has_infrequent

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        n_values = 1 if self.binary else len(self.categories) + self.has_infrequent
        return n_values + self.has_missing

    def codes(self, column: Column, kind: str) -> NDArray[np.intp]:
        """Return the position of each row's category, MISSING in a gap, UNSEEN where it is new."""
        if kind != BOOLEAN:
            return category_codes(column, self.categories)
        codes = truth_codes(column)
        if not self.categories:  # training saw one of the two only, and gaps
            codes = np.where(codes >= 0, UNSEEN, codes)
        return codes

    def transform(self, codes: NDArray[np.intp], out: NDArray[np.float32]) -> None:
        """Write the columns of codes, which are those of :meth:`codes`; they are zero before."""
        if self.binary:
            out[:, 0] = np.where(codes >= 0, codes, NEITHER)
        else:
            rows = np.flatnonzero(codes >= 0)
            out[rows, codes[rows]] = 1
        is_gap = codes == MISSING
        if self.has_infrequent:
            is_other = codes < 0
            out[:, len(self.categories)] = is_other & ~is_gap if self.has_missing else is_other
        if self.has_missing:
            out[:, -1] = is_gap

    def names(self, name: str) -> list[str]:
        """Return the names of the result's columns."""
        shown = self.categories[1:] if self.binary else self.categories
        names = [f"{name}_{category}" for category in shown]
        if self.has_infrequent:
            names.append(f"{name}_infrequent")
        if self.has_missing:
            names.append(f"{name}_missing")
        return names


def fit_one_hots(
    table: Table, kinds: Mapping[str, str], max_categories: int
) -> tuple[dict[str, OneHot], dict[str, str]]:
    """Learn the categories of the columns that are of a kind; the rarest of too many are grouped.

    The second result says of columns that are not in use why.
    """
    one_hots, dropped, contents = {}, {}, {}
    for j, name in enumerate(table.names):
        if name not in kinds:
            continue
        column = table.column(j)
        if kinds[name] == BOOLEAN:
            keys, codes = TRUTH_KEYS, truth_codes(column)
        else:
            keys = sorted({category_key(value) for value in column.distinct.values})
            codes = category_codes(column, keys)
        one_hot = OneHot.fit(codes, keys, max_categories)
        if one_hot.width == 0:
            n_categories = np.unique(codes[codes >= 0]).size
            dropped[name] = {0: "no value", 1: "constant"}.get(n_categories, TOO_RARE)
        else:
            one_hots[name] = one_hot
            contents[j] = (tuple(keys), codes.tobytes())
    twins = find_twins(list(contents), lambda j: contents[j][0], lambda j: contents[j][1])
    for j, twin in twins.items():
        dropped[table.names[j]] = f"duplicate of {table.names[twin]!r}"
        del one_hots[table.names[j]]
    return one_hots, dropped


def truth_codes(column: Column) -> NDArray[np.intp]:
    """Return 0 and 1 for false and true, MISSING in a gap."""
    codes, values = column.distinct
    truths = [TRUTHS.get(category_key(value).lower(), UNSEEN) for value in values]
    column.refuse(np.array(truths) == UNSEEN, "true and false (or 1 and 0)")
    return np.array([*truths, MISSING], dtype=np.intp)[codes]


def category_codes(column: Column, categories: Sequence[str]) -> NDArray[np.intp]:
    """Return the position of each row's category, MISSING in a gap, UNSEEN where it is new."""
    codes, values = column.distinct
    position = {key: index for index, key in enumerate(categories)}
    found = [position.get(category_key(value), UNSEEN) for value in values]
    return np.array([*found, MISSING], dtype=np.intp)[codes]


def category_key(value: Any) -> str:
    """Return the name of a category, without the white space around it.

    1, 1.0 and '1' are one, as gaps turn integers to floats.
    """
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real) and float(value).is_integer():
        return str(int(float(value)))
    return str(value)
