"""The moments of classes: from chunks, from all ranks, or from rows at hand."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import as_array
from cocoloss.exceptions import CoCoError
from cocoloss.metrics.ranks import Ranks
from cocoloss.metrics.rows import LabelledRows, namespace, on_device, stays_on_device
from cocoloss.threads import threads_for

EPSILON = float(np.finfo(np.float64).eps)
BLOCK_NUMBERS = 2**19  # float64 numbers of one block of rows: 4 MB, however many rows there are
MIN_BLOCK_ROWS = 64


@dataclass(frozen=True)
class ClassMeans:
    """Means of classes, never changed in place.

    A mean is the sum of two numbers, the second one what rounding took from the first: differences
    of means, on which merging and Sigma_B rest, then keep their digits however far the rows are
    from zero, or the first row from the others. Both are arrays, or tensors on one device.
    """

    classes: list[Any]  # in order of discovery
    counts: NDArray[np.int64]  # (C,)
    masses: NDArray[np.float64]  # (C,)
    means: Any  # (C, q), rounded
    rests: Any  # (C, q), what the rounding left

    @classmethod
    def of(cls, rows: LabelledRows) -> Self:
        """Add up rows in two looks: the second one at what the means of the first miss."""
        n_classes = len(rows.classes)
        counts = np.bincount(rows.codes, minlength=n_classes).astype(np.int64, copy=False)
        masses = np.bincount(rows.codes, rows.weights, n_classes).astype(np.float64, copy=False)
        origin = next(rows.blocks()).h[0]
        sums, left = (on_device(np.zeros(rows.shape), origin) for _ in range(2))
        for block in rows.blocks(check=True):
            block.add_to_(sums, block.h - origin)
        divisor = on_device(masses, sums)[:, None]
        means = origin + sums / divisor
        for block in rows.blocks():
            block.add_to_(left, block.h - means[block.codes])
        return cls(rows.classes, counts, masses, means, left / divisor)

    @property
    def relative(self) -> NDArray[np.float64]:
        """The means as seen from one of them."""
        relative: NDArray[np.float64] = as_array((self.means - self.means[0]) + self.rests)
        return relative

    @property
    def centred(self) -> NDArray[np.float64]:
        """The means as seen from that of all rows, mu_G."""
        relative = self.relative
        centred: NDArray[np.float64] = relative - self.masses @ relative / self.masses.sum()
        return centred

    @property
    def order(self) -> list[int]:
        """Where the sorted classes are."""
        return sorted(range(len(self.classes)), key=self.classes.__getitem__)

    @property
    def in_order(self) -> "ClassMeans":
        """The same, sorted by their labels."""
        order = self.order
        classes = [self.classes[row] for row in order]
        counts, masses = self.counts[order], self.masses[order]
        return ClassMeans(classes, counts, masses, self.means[order], self.rests[order])

    def coincide(self, squares_within: float) -> bool:
        """Say whether the means differ by no more than rounding, beside Tr(N Sigma_W)."""
        # A mean of N rows carries an error of about sqrt(N) epsilon times their spread.
        rounding = 64 * int(self.counts.sum()) * EPSILON**2
        squares = np.sum(self.centred**2, axis=1)
        total = (squares_within + self.masses @ squares) / self.masses.sum()
        return bool(squares.mean() <= rounding * total)


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
        self._class_means: ClassMeans | None = None  # before the first row
        self._scatter: Any = None  # (q, q), N Sigma_W

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
        return self.add(LabelledRows.read(embeddings, labels, sample_weight))

    def add(self, rows: LabelledRows) -> Self:
        """Add rows that are checked already."""
        q = rows.values.shape[1]
        self._check_dimension(q)
        if len(rows):
            means = ClassMeans.of(rows)
            scatter = None
            few = q // 2  # a product of fewer rows is all overhead
            with threads_for(rows.step(few) * q**2):
                for block in rows.blocks(few):
                    d = block.h - means.means[block.codes]
                    d -= means.rests[block.codes]
                    if rows.weights is not None:
                        d *= namespace(d).sqrt(block.weights)[:, None]
                    own = d.T @ d
                    scatter = own if scatter is None else scatter + own
                self._absorb(means, scatter)
        return self

    def merge(self, other: "ClassMoments") -> Self:
        """Add everything another accumulator has seen; the other one stays as it is."""
        if not isinstance(other, ClassMoments):
            raise CoCoError(
                f"only another ClassMoments can be merged, not {type(other).__name__}; give rows "
                f"and their labels to update"
            )
        means = other._class_means  # noqa: SLF001 - one of our own kind
        if means is not None:
            self._check_dimension(means.means.shape[1])
            self._absorb(means, other._scatter)  # noqa: SLF001
        return self

    def to(self, device: Any) -> Self:
        """Keep what was seen on another device of torch; "cpu" is numpy's memory.

        Without it moments are where the first chunk was. Devices without float64 count as "cpu".
        """
        if self._class_means is not None:
            torch = importlib.import_module("torch")
            means, rests, scatter = (
                torch.as_tensor(x).to(device)
                if stays_on_device(torch.empty(0, device=device))
                else as_array(x)
                for x in (self._class_means.means, self._class_means.rests, self._scatter)
            )
            self._class_means = replace(self._class_means, means=means, rests=rests)
            self._scatter = scatter
        return self

    def reduce_over_ranks(self, process_group: Any = "world") -> "ClassMoments":
        """Return the moments of all ranks of ``torch.distributed``, the same on each of them.

        Every rank of the group must call it, also one without rows. Besides their labels ranks
        exchange C (2q + 2) + q^2 numbers, however many rows and ranks there are.

        Parameters
        ----------
        process_group : torch.distributed.ProcessGroup or "world"
            Whose ranks.

        Returns
        -------
        ClassMoments
            A new one; this one stays as it is.
        """
        ranks = Ranks.of(process_group)
        own = self._class_means
        q = None if own is None else own.means.shape[1]
        gathered = ranks.gather(None if own is None else (own.classes, as_array(own.means[0])))
        found = [(classes, origin) for classes, origin in filter(None, gathered)]
        joined = ClassMoments()
        if not found:
            return joined
        dimensions = sorted({len(origin) for _, origin in found})
        if len(dimensions) > 1:
            raise CoCoError(
                f"ranks have embeddings of dimensions {dimensions}; moments of one embedding are "
                f"needed on all of them"
            )
        q, origin = dimensions[0], found[0][1]
        place: dict[Any, int] = {}
        for classes, _ in found:
            for label in classes:
                place.setdefault(label, len(place))
        check_sortable(list(place))
        # Local moments in the rows of all classes, and as seen from a point that ranks share.
        counts, masses = np.zeros((2, len(place)))
        away, scatter = np.zeros((len(place), q)), np.zeros((q, q))
        if own is not None:
            mine = [place[label] for label in own.classes]
            counts[mine], masses[mine] = own.counts, own.masses
            away[mine] = as_array((own.means - on_device(origin, own.means)) + own.rests)
            scatter = as_array(self._scatter)
        table = ranks.sum(np.column_stack([counts, masses, masses[:, None] * away]))
        divisor = table[:, 1:2]
        common = table[:, 2:] / divisor
        away -= common
        away[masses == 0] = 0
        left = ranks.sum(masses[:, None] * away) / divisor  # what rounding took from the means
        away -= left
        away *= np.sqrt(masses)[:, None]
        rests = _rounding_of_sum(origin, common) + left
        joined._class_means = ClassMeans(
            list(place), table[:, 0].astype(np.int64), table[:, 1], origin + common, rests
        )
        joined._scatter = ranks.sum(scatter + away.T @ away)
        return joined

    def __repr__(self) -> str:
        seen = self._class_means
        n_classes, embedding_dim = (0, 0) if seen is None else seen.means.shape
        return (
            f"ClassMoments(n_samples={self.n_samples}, n_classes={n_classes}, "
            f"embedding_dim={embedding_dim})"
        )

    @property
    def n_samples(self) -> int:
        """Number of rows seen so far; a row of weight zero counts as not seen."""
        return 0 if self._class_means is None else int(self._class_means.counts.sum())

    @property
    def classes(self) -> NDArray[Any]:
        """Sorted labels, of shape (C,); every other result has its rows in this order."""
        labels = sorted(self.class_means.classes)
        if isinstance(labels[0], bool | int | float | str):
            return np.asarray(labels)
        return np.fromiter(labels, dtype=object, count=len(labels))  # a tuple is one label

    @property
    def counts(self) -> NDArray[np.int64]:
        """Rows per class, of shape (C,)."""
        return self.class_means.counts[self.class_means.order]

    @property
    def masses(self) -> NDArray[np.float64]:
        """Summed weights per class, m_c, of shape (C,); numbers of rows without weights."""
        return self.class_means.masses[self.class_means.order]

    @property
    def means(self) -> NDArray[np.float64]:
        """Class means, mu_c, of shape (C, q)."""
        seen = self.class_means
        means: NDArray[np.float64] = as_array(seen.means + seen.rests)[seen.order]
        return means

    @property
    def global_mean(self) -> NDArray[np.float64]:
        """Mean of all rows, mu_G, of shape (q,)."""
        seen = self.class_means
        mean: NDArray[np.float64] = (
            as_array(seen.means[0]) + seen.masses @ seen.relative / seen.masses.sum()
        )
        return mean

    @property
    def within(self) -> NDArray[np.float64]:
        """Within-class covariance Sigma_W, of shape (q, q)."""
        masses = self.class_means.masses
        within: NDArray[np.float64] = as_array(self._scatter) / masses.sum()
        return within

    @property
    def between(self) -> NDArray[np.float64]:
        """Between-class covariance Sigma_B, of shape (q, q)."""
        centred = self.class_means.centred
        return (centred.T @ centred) / len(centred)

    @property
    def total(self) -> NDArray[np.float64]:
        """Covariance of all rows around their mean, Sigma_T, of shape (q, q)."""
        centred, masses = self.class_means.centred, self.class_means.masses
        centred *= np.sqrt(masses / masses.sum())[:, None]
        return self.within + centred.T @ centred

    @property
    def means_coincide(self) -> bool:
        """Whether the class means differ by no more than rounding."""
        seen = self.class_means
        return seen.coincide(float(np.trace(as_array(self._scatter))))

    @property
    def class_means(self) -> ClassMeans:
        """The means in the order of discovery, in full; refused before the first row."""
        if self._class_means is None:
            raise CoCoError("no rows seen yet; call update with embeddings and labels first")
        return self._class_means

    def _absorb(self, other: ClassMeans, scatter: Any) -> None:
        """Add moments of other rows.

        Two parts of one class, a and b, join as Chan, Golub and LeVeque (1983) have it:
        mu = mu_a + (m_b / m) delta and S = S_a + S_b + (m_a m_b / m) delta delta^T,
        with delta = mu_b - mu_a. Both terms of S are non-negative: nothing cancels.
        """
        own = self._class_means
        if own is None:
            self._class_means, self._scatter = other, scatter
            return
        place = {label: row for row, label in enumerate(own.classes)}
        new = [label for label in other.classes if label not in place]
        if new:
            check_sortable(own.classes, new)
        place.update(zip(new, count(len(place)), strict=False))
        rows = np.asarray([place[label] for label in other.classes])
        theirs, their_rests, scatter = (
            on_device(x, own.means) for x in (other.means, other.rests, scatter)
        )
        counts, masses, means, rests = (  # copies, with a row of zeros for each new class
            namespace(old).concatenate([old, namespace(old).zeros_like(coming[: len(new)])])
            for old, coming in [
                (own.counts, other.counts),
                (own.masses, other.masses),
                (own.means, theirs),
                (own.rests, their_rests),
            ]
        )
        before = masses[rows]
        after = before + other.masses
        share = other.masses / after
        masses[rows] = after
        counts[rows] += other.counts
        xp = namespace(means)
        rows, is_new, parts, factor = (
            on_device(x, means)
            for x in (rows, before[:, None] == 0, share[:, None], np.sqrt(before * share)[:, None])
        )
        delta = (theirs - means[rows]) + (their_rests - rests[rows])  # (c, q)
        step = rests[rows] + delta * parts
        rests[rows] = xp.where(is_new, their_rests, _rounding_of_sum(means[rows], step))
        means[rows] = xp.where(is_new, theirs, means[rows] + step)
        delta *= factor
        self._scatter = self._scatter + scatter + delta.T @ delta
        self._class_means = ClassMeans(list(place), counts, masses, means, rests)

    def _check_dimension(self, embedding_dim: int) -> None:
        seen = self._class_means
        if seen is not None and seen.means.shape[1] != embedding_dim:
            raise CoCoError(
                f"embeddings of dimension {embedding_dim} cannot join those of dimension "
                f"{seen.means.shape[1]} seen before; use one ClassMoments per embedding"
            )


def check_sortable(classes: list[Any], new: list[Any] | None = None) -> None:
    """Refuse labels of several kinds, whose order nobody knows."""
    try:
        sorted([*classes, *(new or [])])
    except TypeError as error:
        odd = new[0] if new else next(x for x in classes if type(x) is not type(classes[0]))
        raise CoCoError(
            f"the new class {odd!r} cannot be sorted among the earlier ones, such as "
            f"{classes[0]!r}; give labels of one kind in every chunk"
        ) from error


def _rounding_of_sum(a: Any, b: Any) -> Any:
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
