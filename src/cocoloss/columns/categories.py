"""One column per category; gaps have their own, rare and unseen categories share one.

By hand, because scikit-learn's OneHotEncoder refuses columns that mix text and numbers, sorts
Python objects, cannot tell an unseen value of a binary column from its first category, and
keeps its grouping of rare categories in private attributes that could not be saved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from cocoloss.columns.values import MISSING

NEITHER = 0.5  # a binary column where the value is missing or unseen
MIN_COUNT = 2  # once there are too many categories, those seen once are never kept


@dataclass(frozen=True)
class OneHot:
    """The categories of one column.

    Attributes
    ----------
    categories : list of str
        Those with a column of their own; two without rare ones share a single column of 0 and 1.
    has_infrequent : bool
        Whether rare and unseen categories have a column together. If not, unseen ones are zero
        throughout.
    has_missing : bool
        Whether gaps have a column.
    """

    categories: list[str]
    has_infrequent: bool
    has_missing: bool

    @classmethod
    def fit(cls, codes: NDArray[np.intp], keys: Sequence[str], max_categories: int) -> Self:
        """Learn which categories there are, and which of them are rare.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,)
            Position in ``keys``, MISSING in a gap.
        keys : sequence of str
            Names of the categories, all different.
        max_categories : int
            With more categories than this, the rarest are grouped.
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

    def transform(self, codes: NDArray[np.intp], out: NDArray[np.float32]) -> None:
        """Write the columns of one feature.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,)
            Position in ``categories``, MISSING or UNSEEN.
        out : ndarray of shape (n_rows, width)
            Where the result goes; zero before.
        """
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
