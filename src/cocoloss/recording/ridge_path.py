"""The ridge path of a fit in closed form: from everything alike to collapse, a frame for a ridge.

One eigendecomposition gives the first kernel's function for every ridge, at the rows of the fit as
they were fitted and by fits without them. Knows matrices and classes, no tables and no estimators.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocoloss.estimators.model import EmbeddingModel, FittedModel
from cocoloss.kernels import Recipe, RidgePath, fit_recipe
from cocoloss.kernels.classes import ClosedForm
from cocoloss.kernels.search import USUAL
from cocoloss.metrics import ClassMoments, balanced_accuracy, dispersity
from cocoloss.recording.measure import shape_measures
from cocoloss.recording.record import MEASURES, RidgePathRecord

ALIKE = 10.0  # times the largest eigenvalue: a ridge that leaves a tenth of the target at most
COLLAPSED = 1e-5  # a ridge just above what is left of a kernel's rounding to float32
ROUNDING = 1e-6


class Film(NamedTuple):
    """What a kernel makes of rows at each of S ridges: training rows as fitted, then test rows."""

    ridges: NDArray[np.float64]  # (S,)
    kept: int  # position of the ridge that the search has chosen
    embeddings: NDArray[np.float32]  # (S, n, q)
    class_means: NDArray[np.float64]  # (S, C, q), of the training rows
    measures: dict[str, NDArray[np.float64]]  # (S,) each


def film_ridges(chosen: float, largest: float, n: int) -> tuple[NDArray[np.float64], int]:
    """Return n ridges from large to small, evenly spaced on a log scale but for the chosen one.

    That one is among them, at the position that comes second.
    """
    high, low = max(ALIKE * largest, 10 * chosen), min(COLLAPSED, chosen / 10)
    kept = round((n - 1) * np.log(high / chosen) / np.log(high / low))
    kept = int(np.clip(kept, 1, n - 2)) if n > 2 else 1
    above = np.geomspace(high, chosen, kept + 1)
    return np.r_[above[:-1], chosen, np.geomspace(chosen, low, n - kept)[1:]], kept


def make_film(
    found: ClosedForm,
    drawn: NDArray[np.intp],
    test_inputs: NDArray[np.float32],
    test_labels: NDArray[np.int64],
    n_ridges: int,
) -> Film:
    """Fit the first kernel for every ridge, to the rows that found it, and measure what comes out.

    Parameters
    ----------
    found : ClosedForm
        The fit.
    drawn : array of int
        Pairs of a row and a class that are shown, of those that found the settings; one that stands
        for several rows may come several times.
    test_inputs, test_labels
        Rows that were kept apart.
    n_ridges : int
        At least two.

    Notes
    -----
    A row is said to be of the class whose corner is at the smallest angle. Anything that is fitted
    to rows that are left out could learn their classes: leaving a row out moves it away from its
    own corner, and under a large ridge by more than rows differ.
    """
    rows, kernel = found.criterion.rows, found.machine.kernels[0]
    chosen, targets, weights = rows.problem()
    X = rows.X[chosen]
    path = RidgePath.of(kernel(X).astype(np.float64), targets, weights)
    to_test = kernel(test_inputs, X).astype(np.float64)
    ridges, kept = film_ridges(found.recipe.members[0].ridge, path.values[-1], n_ridges)
    weigh = rows.scale[rows.label] * rows.mass
    corners, labels = rows.points[rows.label], rows.label[drawn]
    embeddings, means, measured = [], [], []

    def score(h: NDArray[Any], y: NDArray[Any]) -> float:
        return balanced_accuracy(y, (h @ rows.points.T).argmax(axis=1))

    for ridge in ridges:
        solution = path.solution(ridge)
        left_out, fitted = found.criterion.left_out(solution), solution.fitted[rows.row]
        test = to_test @ solution.alpha
        moments = ClassMoments().update(fitted[drawn], labels)
        measures = shape_measures(moments, fitted[drawn], labels, test, test_labels)
        measures |= {
            "left_out_dispersity": dispersity(left_out[drawn], labels),
            "left_out_log_loss": found.criterion(solution),
            "error": _mean_square(fitted - corners, weigh),
            "left_out_error": _mean_square(left_out - corners, weigh),
            "train_balanced_accuracy": score(fitted[drawn], labels),
            "left_out_balanced_accuracy": score(left_out[drawn], labels),
            "test_balanced_accuracy": score(test, test_labels),
        }
        embeddings.append(np.concatenate([fitted[drawn], test]).astype(np.float32))
        means.append(moments.means)
        measured.append(measures)
    return Film(
        ridges,
        kept,
        np.stack(embeddings),
        np.stack(means),
        {name: np.array([each[name] for each in measured]) for name in MEASURES},
    )


def _mean_square(differences: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    return float(np.average(np.square(differences).sum(axis=1), weights=weights))


def path_record(found: ClosedForm, model: FittedModel, ridges: NDArray[Any]) -> RidgePathRecord:
    """Return what there is to say of a fit in closed form, beside its film."""
    rows, recipe = found.criterion.rows, found.recipe
    return RidgePathRecord(
        ridges=ridges,
        searched=(USUAL.ridges[0], USUAL.ridges[-1]),
        corners=rows.points,
        n_rows=len(rows.X),
        is_sample=rows.mass.sum() < (1 - ROUNDING) * len(found.honest),
        chosen=recipe.members[: len(found.machine.kernels)],
        tried=recipe.tried,
        metrics=metrics_by_round(found.criterion.rows, found.recipe, model),
    )


def metrics_by_round(
    rows: Any, recipe: Recipe, model: EmbeddingModel
) -> dict[str, tuple[float, ...]]:
    """Return what share of squared distances each column of the table has, round by round."""
    # The metric of a round is that of a member in it: one of each round is fitted.
    first = recipe.members[0]
    every = tuple(replace(first, round=r) for r in range(len(recipe.path) + 1))
    chosen, targets, weights = rows.problem()
    members = fit_recipe(Recipe(recipe.path, every), rows.X[chosen], targets, weights)
    variance = rows.X[chosen].var(axis=0, dtype=np.float64)
    shares = []
    for member in members:
        share = member.kernel.metric * variance
        shares.append(model.by_column(share / max(share.sum(), np.finfo(np.float64).tiny)))
    return {name: tuple(share[name] for share in shares) for name in shares[0]}
