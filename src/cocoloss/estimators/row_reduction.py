"""Few rows that stand for many: medoids of each class in the learnt metric, and what they weigh.

For tables that must be kept or sent small. Real rows, so that categories, dates and gaps stay what
they are. Training on them does not pay (docs/how-to/few-rows.md).
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss._checks import RandomState, as_generator, check_integer
from cocoloss.estimators.classifiers import CoCoClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import as_table
from cocoloss.fitting.model import as_inputs
from cocoloss.fitting.targets import encode_targets
from cocoloss.heads.fitted import blocks
from cocoloss.kernels.closed_form import SAMPLE
from cocoloss.kernels.kernel import distances, in_metric

MOST_CLUSTERED = 20_000  # rows of a class that clusters are looked for in


class ReducedRows(NamedTuple):
    """Rows that stand for a table.

    Attributes
    ----------
    rows : array of shape (m,)
        Their positions in the table, sorted; m is at most what was asked for.
    weights : array of shape (m,)
        How many rows each stands for: a ``sample_weight``.
    radius : float
        Root mean square distance of a row to the one that stands for it, in the learnt metric,
        whose columns have a mean weight of one: epsilon of the bound.
    """

    rows: NDArray[np.int64]
    weights: NDArray[np.int64]
    radius: float


def reduce_rows(X: Any, y: Any, n: int, random_state: RandomState = None) -> ReducedRows:
    r"""Choose at most n rows of a table that stand for all of them, and say for how many each.

    The rows are medoids: a closed-form fit learns which columns matter, k-means finds clusters of
    each class in that metric, and the row nearest to the mean of a cluster stands for those that it
    is nearest to. A class has as many as its share of the rows, and at least one.

    Parameters
    ----------
    X : DataFrame or array of shape (N, d)
        As for :class:`cocoloss.CoCoClassifier`.
    y : array of shape (N,)
        Classes.
    n : int
        At least as many as there are classes.
    random_state : int, numpy generator or None
        Seed of clusters and of the rows that find the metric.

    Returns
    -------
    ReducedRows
        ``rows``, ``weights`` and ``radius``.

    Notes
    -----
    Let :math:`\varepsilon` be the radius, and h an embedding that moves by at most
    :math:`\Lambda` times the distance in the learnt metric, with :math:`|h| \le B`. Row i and the
    row that stands for it have the same target, so that :math:`|h(x_i) - v_{y_i}|` differs by at
    most :math:`\Lambda\delta_i` between them, and an inner product of two rows by at most
    :math:`B\Lambda(\delta_i + \delta_j)`. By the triangle inequality of the mean square, with R
    the mean of :math:`|h(x_i) - v_{y_i}|^2` over rows, P that of
    :math:`(\langle h(x_i), h(x_j)\rangle - g_{y_i y_j})^2` over pairs, and a prime for the means
    over the chosen rows by their weights,

    .. math:: |\sqrt R - \sqrt{R'}| \le \Lambda\varepsilon, \qquad
              |\sqrt P - \sqrt{P'}| \le 2 B \Lambda\varepsilon.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from cocoloss import CoCoClassifier, reduce_rows
    >>> X, y = load_iris(return_X_y=True)
    >>> rows, weights, radius = reduce_rows(X, y, 15, random_state=0)
    >>> len(rows), int(weights.sum())
    (15, 150)
    >>> small = CoCoClassifier(random_state=0).fit(X[rows], y[rows], sample_weight=weights)
    >>> small.score(X, y) > 0.9
    True
    """
    generator = as_generator(random_state)
    learner = CoCoClassifier(solver="kernel", random_state=int(generator.integers(2**31)))
    table = as_table(learner, X)
    classes, labels, _ = encode_targets(table, y, None, "reduce_rows")
    check_integer(n, "n", minimum=1)
    C = len(classes)
    if n < C:
        raise CoCoError(f"n is {n}, but y has {C} classes; ask for at least one row of each")
    some = _some_of_each(labels, SAMPLE, generator)
    learner.fit(_safe_indexing(table, some), labels[some])
    preprocessor, machine = learner.preprocessor_, learner.model_.machine
    assert machine is not None
    metric = np.stack([kernel.metric for kernel in machine.kernels]).mean(axis=0)
    A = in_metric(as_inputs(preprocessor.transform(table), preprocessor, table), metric)
    chosen, weights, squares = [], [], 0.0
    for c, k in enumerate(shares(np.bincount(labels), n)):
        of_class = np.flatnonzero(labels == c)
        medoids, near, total = _medoids(A[of_class], k, generator)
        chosen.append(of_class[medoids])
        weights.append(near)
        squares += total
    rows = np.concatenate(chosen)
    order = np.argsort(rows)
    radius = float(np.sqrt(squares / len(labels)))
    return ReducedRows(rows[order], np.concatenate(weights)[order], radius)


def shares(counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Divide n among classes by their rows: at least one, at most all, and n in all if there are.

    Examples
    --------
    >>> shares(np.array([90, 9, 1]), 10)
    array([8, 1, 1])
    """
    given = np.ones(len(counts), dtype=np.int64)
    for _ in range(min(n, int(counts.sum())) - len(counts)):
        given[np.argmax(np.where(given < counts, counts / given, -1))] += 1
    return given


def _some_of_each(
    labels: NDArray[np.int64], n: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw about n rows by class shares, one of each class at least."""
    some = shares(np.bincount(labels), max(n, int(labels.max()) + 1))
    drawn = [generator.permutation(np.flatnonzero(labels == c))[:k] for c, k in enumerate(some)]
    return np.sort(np.concatenate(drawn))


def _medoids(
    A: NDArray[np.float32], k: int, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
    """Return at most k rows, how many rows each is nearest to, and all squared distances added."""
    from sklearn.cluster import KMeans  # noqa: PLC0415 - slow to import, seldom wanted

    seed = int(generator.integers(2**31))
    some = generator.permutation(len(A))[:MOST_CLUSTERED]
    different = np.unique(A[some], axis=0)
    centres = different
    if len(different) > k:
        centres = KMeans(k, n_init=1, random_state=seed).fit(A[some]).cluster_centers_
    medoids = np.unique(_nearest(centres.astype(np.float32), A)[0])
    near, squares = _nearest(A, A[medoids])
    weights = np.bincount(near, minlength=len(medoids))
    standing = weights > 0  # a row may be nearer to its twin
    return medoids[standing], weights[standing], float(squares.sum())


def _nearest(
    A: NDArray[np.float32], B: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the nearest row of B to each row of A, and the squared distance to it."""
    found, squares = np.empty(len(A), dtype=np.int64), np.empty(len(A))
    for part in blocks(len(A), len(B)):
        found[part] = distances("squared", A[part], B).argmin(axis=1)
        apart = A[part].astype(np.float64) - B[found[part]]
        squares[part] = np.square(apart).sum(axis=1)
    return found, squares
