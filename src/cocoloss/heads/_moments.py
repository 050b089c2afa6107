"""Class means and scatter of labelled rows, in float64 and in the memory of one block."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError
from cocoloss.heads.base import LabelledRows
from cocoloss.heads.fitted import blocks


class Moments(NamedTuple):
    """Weighted moments of the classes."""

    masses: NDArray[np.float64]  # (C,)
    means: NDArray[np.float64]  # (C, q)
    scatter: NDArray[np.float64]  # (C, q, q), or (C, q) its diagonals, or (1, q, q) of all classes

    @property
    def pooled(self) -> NDArray[np.float64]:
        """The within-class covariance by maximum likelihood, (q, q) or its diagonal (q,)."""
        pooled: NDArray[np.float64] = self.scatter.sum(axis=0) / self.masses.sum()
        return pooled

    @property
    def scale(self) -> float:
        """The variance of all rows around their mean, averaged over the q dimensions.

        Where there is no variance, because all rows are the same, their mean square instead;
        1 if they are all zero. So it is positive.
        """
        share = self.masses / self.masses.sum()
        between = share @ (self.means - share @ self.means) ** 2  # (q,)
        pooled = self.pooled
        within = np.diagonal(pooled) if pooled.ndim == 2 else pooled
        for candidate in ((within + between).mean(), (share @ self.means**2).mean()):
            if candidate > 0:
                return float(candidate)
        return 1.0


def class_moments(rows: LabelledRows, *, diagonal: bool, pooled: bool = False) -> Moments:
    """Return the moments of each class: means first, then the scatter around them.

    Parameters
    ----------
    rows : LabelledRows
        Rows of positive weight.
    diagonal : bool
        Whether only the diagonals of the scatter matrices are wanted.
    pooled : bool
        Whether only their sum over the classes is wanted.
    """
    n_classes, q = len(rows.masses), rows.X.shape[1]
    means = np.zeros((n_classes, q))
    n_scatters = 1 if pooled else n_classes
    scatter = np.zeros((n_scatters, q) if diagonal else (n_scatters, q, q))
    by_class = np.split(
        np.argsort(rows.codes, kind="stable"),
        np.bincount(rows.codes, minlength=n_classes).cumsum()[:-1],
    )
    with np.errstate(over="ignore", invalid="ignore"):
        for c, members in enumerate(by_class):
            # Seen from its first row, a class of equal rows has a spread of exactly zero.
            origin = rows.X[members[0]].astype(np.float64)
            for h, w in _chunks(rows, members):
                means[c] += w @ (h - origin)
            means[c] = origin + means[c] / rows.masses[c]
            for h, w in _chunks(rows, members):
                d = h - means[c]
                scatter[c % n_scatters] += w @ d**2 if diagonal else (w[:, None] * d).T @ d
    if not np.isfinite(scatter).all():
        raise CoCoError(
            "the squares of the embeddings overflow; rescale them, or look for a training run "
            "that diverged"
        )
    return Moments(rows.masses, means, scatter)


def _chunks(
    rows: LabelledRows, members: NDArray[np.intp]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    for block in blocks(len(members), rows.X.shape[1]):
        chosen = members[block]
        yield rows.X[chosen].astype(np.float64, copy=False), rows.weights[chosen]
