"""Labelled rows, checked, and the moments of their classes: from chunks, or from rows at hand."""

from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array

from cocoloss._checks import as_array, as_float_array, check_weights
from cocoloss.exceptions import CoCoError

EPSILON = float(np.finfo(np.float64).eps)
BLOCK_NUMBERS = 2**19  # float64 numbers of one block of rows: 4 MB, however many rows there are
MIN_BLOCK_ROWS = 64


class _Part(NamedTuple):
    """Moments of some rows, never changed in place.

    A mean is the sum of two numbers, the second one what rounding took from the first: differences
    of means, on which merging and Sigma_B rest, then keep their digits however far the rows are
    from zero, or the first row from the others.
    """

    classes: list[Any]  # in order of discovery
    counts: NDArray[np.int64]  # (C,)
    masses: NDArray[np.float64]  # (C,)
    means: NDArray[np.float64]  # (C, q), rounded
    rests: NDArray[np.float64]  # (C, q), what the rounding left
    scatter: NDArray[np.float64]  # (q, q), N Sigma_W


class ClassMoments:
    r"""Counts, means and covariances of labelled embeddings, accumulated in float64.

    Feed it chunks with :meth:`update`, join accumulators of different workers with
    :meth:`merge`. Chunk sizes, order and grouping do not change the result beyond rounding,
    and a large common offset of the embeddings costs no digits. Memory is one mean per class
    and one q x q matrix, whatever the number of rows.

    Notes
    -----
    With N the number of rows, or their summed weight,

    .. math::

        \Sigma_W = \frac1N \sum_c \sum_i (h_{i,c} - \mu_c)(h_{i,c} - \mu_c)^\top, \quad
        \Sigma_B = \frac1C \sum_c (\mu_c - \mu_G)(\mu_c - \mu_G)^\top, \quad
        \Sigma_T = \frac1N \sum_c \sum_i (h_{i,c} - \mu_G)(h_{i,c} - \mu_G)^\top.

    Every class weighs the same in :math:`\Sigma_B`, every row in :math:`\mu_G`: so
    :math:`\Sigma_T = \Sigma_W + \Sigma_B` holds for balanced classes only.

    Examples
    --------
    >>> from cocoloss.metrics import ClassMoments
    >>> moments = ClassMoments()
    >>> moments.update([[1.0, 0.0], [3.0, 0.0]], ["cat", "cat"])
    ClassMoments(n_samples=2, n_classes=1, embedding_dim=2)
    >>> moments.update([[0.0, 1.0]], ["ant"]).classes
    array(['ant', 'cat'], dtype='<U3')
    >>> moments.means
    array([[0., 1.],
           [2., 0.]])
    """

    def __init__(self) -> None:
        self._part: _Part | None = None  # before the first row

    def update(self, embeddings: Any, labels: Any, sample_weight: Any = None) -> Self:
        """Add a chunk of rows.

        Parameters
        ----------
        embeddings : array-like or tensor of shape (n, q)
            Rows of finite numbers in any floating type; n may be zero.
        labels : array-like or tensor of shape (n,)
            The class of each row: integers, strings, or anything else that sorts.
        sample_weight : array-like or tensor of shape (n,), optional
            Non-negative weights; 1 each by default.

        Returns
        -------
        ClassMoments
            This accumulator; as it was before, if the chunk cannot be used.
        """
        rows = as_embeddings(embeddings)  # (n, q)
        labels = as_labels(labels, len(rows))
        weights = check_weights(sample_weight, len(rows))
        self._check_dimension(rows.shape[1])
        present = weights > 0  # a class of weight zero has no mean, so such rows are left out
        if not present.all():
            rows, labels, weights = rows[present], labels[present], weights[present]
        if not len(rows):
            return self
        classes, codes = encode_labels(labels)
        # One non-zero per column: class sums in O(n q) without an (n, C) array.
        membership = csc_array(
            (weights, codes, np.arange(len(rows) + 1)), shape=(len(classes), len(rows))
        )
        masses = np.bincount(codes, weights=weights).astype(np.float64, copy=False)
        deviations = rows - rows[0]  # (n, q); a new array, which spares the caller's
        means = rows[0] + (membership @ deviations) / masses[:, None]  # (C, q)
        of_class = means[codes]  # (n, q)
        np.subtract(rows, of_class, out=deviations)
        rests = (membership @ deviations) / masses[:, None]
        deviations -= np.take(rests, codes, axis=0, out=of_class, mode="clip")  # clip: in place
        deviations *= np.sqrt(weights)[:, None]
        scatter = deviations.T @ deviations
        counts = np.bincount(codes).astype(np.int64, copy=False)
        self._absorb(_Part(classes, counts, masses, means, rests, scatter))
        return self

    def merge(self, other: "ClassMoments") -> Self:
        """Add everything another accumulator has seen; the other one stays as it is."""
        if not isinstance(other, ClassMoments):
            raise CoCoError(
                f"only another ClassMoments can be merged, not {type(other).__name__}; give rows "
                f"and their labels to update"
            )
        part = other._part  # noqa: SLF001 - one of our own kind
        if part is not None:
            self._check_dimension(part.means.shape[1])
            self._absorb(part)
        return self

    def __repr__(self) -> str:
        n_classes, embedding_dim = (0, 0) if self._part is None else self._part.means.shape
        return (
            f"ClassMoments(n_samples={self.n_samples}, n_classes={n_classes}, "
            f"embedding_dim={embedding_dim})"
        )

    @property
    def n_samples(self) -> int:
        """Number of rows seen so far; a row of weight zero counts as not seen."""
        return 0 if self._part is None else int(self._part.counts.sum())

    @property
    def classes(self) -> NDArray[Any]:
        """Sorted labels, of shape (C,); every other result has its rows in this order."""
        labels = sorted(self._seen.classes)
        if isinstance(labels[0], bool | int | float | str):
            return np.asarray(labels)
        return np.fromiter(labels, dtype=object, count=len(labels))  # a tuple is one label

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows per class, of shape (C,)."""
        return self._seen.counts[self._order]

    @property
    def masses(self) -> NDArray[np.float64]:
        """Summed weights per class, m_c, of shape (C,); numbers of rows without weights."""
        return self._seen.masses[self._order]

    @property
    def means(self) -> NDArray[np.float64]:
        """Class means, mu_c, of shape (C, q)."""
        means: NDArray[np.float64] = (self._seen.means + self._seen.rests)[self._order]
        return means

    @property
    def global_mean(self) -> NDArray[np.float64]:
        """Mean of all rows, mu_G, of shape (q,)."""
        masses, relative = self._seen.masses, self._relative_means()
        mean: NDArray[np.float64] = self._seen.means[0] + masses @ relative / masses.sum()
        return mean

    @property
    def within(self) -> NDArray[np.float64]:
        """Within-class covariance Sigma_W, of shape (q, q)."""
        within: NDArray[np.float64] = self._seen.scatter / self._seen.masses.sum()
        return within

    @property
    def between(self) -> NDArray[np.float64]:
        """Between-class covariance Sigma_B, of shape (q, q)."""
        centred = self._centred_means()
        return (centred.T @ centred) / len(centred)

    @property
    def total(self) -> NDArray[np.float64]:
        """Covariance of all rows around their mean, Sigma_T, of shape (q, q)."""
        centred = self._centred_means()
        masses = self._seen.masses
        centred *= np.sqrt(masses / masses.sum())[:, None]
        return self.within + centred.T @ centred

    @property
    def means_coincide(self) -> bool:
        """Whether the class means differ by no more than rounding."""
        # A mean of N rows carries an error of about sqrt(N) epsilon times their spread.
        rounding = 64 * self.n_samples * EPSILON**2
        return bool(np.trace(self.between) <= rounding * np.trace(self.total))

    @property
    def _seen(self) -> _Part:
        if self._part is None:
            raise CoCoError("no rows seen yet; call update with embeddings and labels first")
        return self._part

    @property
    def _order(self) -> list[int]:
        """Where the sorted classes are stored."""
        labels = self._seen.classes
        return sorted(range(len(labels)), key=labels.__getitem__)

    def _absorb(self, part: _Part) -> None:
        """Add moments of other rows.

        Two parts of one class, a and b, join as Chan, Golub and LeVeque (1983) have it:
        mu = mu_a + (m_b / m) delta and S = S_a + S_b + (m_a m_b / m) delta delta^T,
        with delta = mu_b - mu_a. Both terms of S are non-negative: nothing cancels.
        """
        if self._part is None:
            self._part = part
            return
        classes, *own, scatter = self._part
        place = {label: row for row, label in enumerate(classes)}
        new = [label for label in part.classes if label not in place]
        if new:
            try:
                sorted([*classes, *new])
            except TypeError as error:
                raise CoCoError(
                    f"the new class {new[0]!r} cannot be sorted among the earlier ones, such as "
                    f"{classes[0]!r}; give labels of one kind in every chunk"
                ) from error
        place.update(zip(new, count(len(place)), strict=False))
        rows = [place[label] for label in part.classes]
        counts, masses, means, rests = (  # copies, with a row of zeros for each new class
            np.concatenate([array, np.zeros((len(new), *array.shape[1:]), dtype=array.dtype)])
            for array in own
        )
        before = masses[rows]
        after = before + part.masses
        share = part.masses / after
        delta = (part.means - means[rows]) + (part.rests - rests[rows])  # (c, q)
        is_new = (before == 0)[:, None]
        step = rests[rows] + delta * share[:, None]
        rests[rows] = np.where(is_new, part.rests, _rounding_of_sum(means[rows], step))
        means[rows] = np.where(is_new, part.means, means[rows] + step)
        masses[rows] = after
        counts[rows] += part.counts
        delta *= np.sqrt(before * share)[:, None]
        scatter = scatter + part.scatter + delta.T @ delta
        self._part = _Part(list(place), counts, masses, means, rests, scatter)

    def _relative_means(self) -> NDArray[np.float64]:
        """Return the class means as seen from one of them, in the order of discovery."""
        means = self._seen.means
        relative: NDArray[np.float64] = (means - means[0]) + self._seen.rests
        return relative

    def _centred_means(self) -> NDArray[np.float64]:
        """Return the class means as seen from the mean of all rows, in the order of discovery."""
        masses, relative = self._seen.masses, self._relative_means()
        centred: NDArray[np.float64] = relative - masses @ relative / masses.sum()
        return centred

    def _check_dimension(self, embedding_dim: int) -> None:
        if self._part is not None and self._part.means.shape[1] != embedding_dim:
            raise CoCoError(
                f"embeddings of dimension {embedding_dim} cannot join those of dimension "
                f"{self._part.means.shape[1]} seen before; use one ClassMoments per embedding"
            )


def _rounding_of_sum(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a + b less what float64 makes of it, exactly (Knuth's two-sum)."""
    total = a + b
    of_b = total - a
    return (a - (total - of_b)) + (b - of_b)


class ClassScatter(NamedTuple):
    """Weighted moments of the classes, with a scatter of each."""

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
        """The variance of all rows, averaged over dimensions: positive, if need be by other means.

        Of rows that are all the same the mean square instead; 1 if they are all zero.
        """
        share = self.masses / self.masses.sum()
        between = share @ (self.means - share @ self.means) ** 2  # (q,)
        pooled = self.pooled
        within = np.diagonal(pooled) if pooled.ndim == 2 else pooled
        for candidate in ((within + between).mean(), (share @ self.means**2).mean()):
            if candidate > 0:
                return float(candidate)
        return 1.0


def class_scatter(
    X: NDArray[Any],
    codes: NDArray[np.intp],
    weights: NDArray[np.float64],
    masses: NDArray[np.float64],
    *,
    diagonal: bool,
    pooled: bool = False,
) -> ClassScatter:
    """Return the moments of each class: means first, then the scatter around them.

    In two passes over rows at hand, in the memory of one block; :class:`ClassMoments` is for
    chunks, and has the summed scatter only. The caller has checked the rows X (n, q) and the
    positions of their classes, codes (n,); weights (n,) and their sums, masses (C,), are positive.
    ``diagonal`` asks for the diagonals of the scatter matrices only, ``pooled`` for their sum.
    """
    n_classes, q = len(masses), X.shape[1]
    means = np.zeros((n_classes, q))
    n_scatters = 1 if pooled else n_classes
    scatter = np.zeros((n_scatters, q) if diagonal else (n_scatters, q, q))
    by_class = np.split(
        np.argsort(codes, kind="stable"), np.bincount(codes, minlength=n_classes).cumsum()[:-1]
    )

    def blocks(members: NDArray[np.intp]) -> Iterator[tuple[NDArray[Any], NDArray[np.float64]]]:
        step = max(MIN_BLOCK_ROWS, BLOCK_NUMBERS // q)
        for start in range(0, len(members), step):
            chosen = members[start : start + step]
            yield X[chosen].astype(np.float64, copy=False), weights[chosen]

    with np.errstate(over="ignore", invalid="ignore"):
        for c, members in enumerate(by_class):
            # Seen from its first row, a class of equal rows has a spread of exactly zero.
            origin = X[members[0]].astype(np.float64)
            for h, w in blocks(members):
                means[c] += w @ (h - origin)
            means[c] = origin + means[c] / masses[c]
            for h, w in blocks(members):
                d = h - means[c]
                scatter[c % n_scatters] += w @ d**2 if diagonal else (w[:, None] * d).T @ d
    if not np.isfinite(scatter).all():
        raise CoCoError(
            "the squares of the embeddings overflow; rescale them, or look for a training run "
            "that diverged"
        )
    return ClassScatter(masses, means, scatter)


def as_embeddings(embeddings: Any) -> NDArray[np.float64]:
    """Return embeddings as a finite float64 array of shape (n, q)."""
    rows = as_float_array(embeddings, "embeddings")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise CoCoError(
            f"embeddings must be a matrix of shape (n_samples, embedding_dim), "
            f"but has shape {rows.shape}; reshape it to one row per sample"
        )
    check_finite(rows, "embeddings")
    return rows


def check_finite(values: NDArray[np.float64], name: str) -> None:
    """Refuse NaN and infinity, and say where the first one is."""
    finite = np.isfinite(values)
    if not finite.all():
        first = int(np.argwhere(~finite)[0, 0])
        raise CoCoError(
            f"{name} must be finite, but row {first} holds NaN or infinity; "
            f"drop such rows, or look for a training run that diverged"
        )


def at_unit_scale(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers over a power of two, the largest about one: their squares fit into float64.

    A power of two changes no digit, so that whatever does not depend on scale stays as it is.
    """
    _, exponent = np.frexp(np.abs(rows).max(initial=0))
    scaled: NDArray[np.float64] = np.ldexp(rows, -exponent)
    return scaled


def as_labels(labels: Any, n_rows: int) -> NDArray[Any]:
    """Return labels of any kind as a vector with one entry per row."""
    try:
        vector: NDArray[Any] = np.asarray(as_array(labels))
    except (TypeError, ValueError, RuntimeError) as error:
        raise CoCoError(f"labels must be a vector that numpy can read: {error}") from error
    if vector.ndim != 1:
        raise CoCoError(
            f"labels must be a vector with one class per row, but has shape {vector.shape}; "
            f"flatten it, or take the argmax of one-hot rows"
        )
    if len(vector) != n_rows:
        raise CoCoError(f"{len(vector)} labels came with {n_rows} embeddings; give one label each")
    return vector


def encode_labels(labels: NDArray[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the sorted classes among the labels, and the position of every label in them."""
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise CoCoError(
            f"labels must be of one kind that can be sorted, such as all integers or all strings; "
            f"convert them first ({error})"
        ) from error
    found = classes.tolist()
    missing = classes.dtype.kind in "mM" and np.isnat(classes).any()  # in the list it is None
    if missing or any(_is_missing(label) for label in found):
        raise CoCoError("labels hold NaN, NaT or None; drop the rows that have no class")
    return found, codes


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)  # noqa: PLR0124 - NaN differs from itself
    except TypeError:  # pandas' NA is neither true nor false
        return True
