"""Quality of out-of-sample predictions, with standard errors, beside guessing, from arrays.

Standard errors are those of means over independent rows: every measure is a smooth function of
means, and its influence function (the infinitesimal jackknife; for the AUC that is DeLong's) says
how much each row moves it. That fits err together, since a row left out of one is in the others,
:func:`with_shared_rows` adds.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import amount

TINY = np.finfo(np.float64).tiny
SHARED = 30.0  # rows of a class, with which sharing them adds as much variance as there is without


class Measure(NamedTuple):
    """A number, its standard error, and what guessing would have."""

    value: float
    error: float
    guess: float


@dataclass(frozen=True)
class Quality:
    """How good a fit is, by rows that what predicts them has not learnt from.

    Attributes
    ----------
    how : str
        Which rows: "left out", each by fits without it, or "held out" by networks, which stop and
        are calibrated by them, so that they flatter a little.
    n_rows : int
        How many.
    measures : dict of str to Measure
        Each a value, its standard error, and what guessing has.
    """

    how: str
    n_rows: int
    measures: dict[str, Measure]

    def __getitem__(self, name: str) -> Measure:
        return self.measures[name]

    def __str__(self) -> str:
        words = "guessing "
        parts = []
        for name, (value, error, guess) in self.measures.items():
            write = amount if name == "RMSE" else "{:.3f}".format
            parts.append(f"{name} {write(value)} ± {write(error)} ({words}{write(guess)})")
            words = ""
        rows = {"left out": "leave-one-out", "held out": "held-out rows"}[self.how]
        return f"{rows}: {', '.join(parts)}"


def with_shared_rows(measures: dict[str, Measure], rows_of_a_class: float) -> dict[str, Measure]:
    """Return measures whose errors count that fits share their rows, and err together.

    No formula is known to be unbiased; this one was measured (docs/decisions/calibration.md).
    """
    times = float(np.sqrt(1 + SHARED / rows_of_a_class))
    return {name: each._replace(error=each.error * times) for name, each in measures.items()}


def class_measures(
    labels: NDArray[np.int64],
    proba: NDArray[np.float64],
    weights: NDArray[np.float64],
    prior: NDArray[np.float64] | None,
    *,
    ordered: bool = False,
) -> dict[str, Measure]:
    """Return balanced accuracy, log loss and AUC; of levels how far they are off, and kappa.

    Parameters
    ----------
    labels : array of int of shape (n,)
    proba : array of shape (n, C)
    weights : array of shape (n,)
        How often each row counts.
    prior : array of shape (C,), optional
        For which the probabilities are meant: rows are weighted until their classes have it, or
        taken as they come if None.
    ordered : bool
        Whether classes are levels.
    """
    C, predicted = proba.shape[1], proba.argmax(axis=1)
    measures = {"balanced accuracy": _balanced_accuracy(labels, predicted, weights, C)}
    if ordered:
        return measures | _of_levels(labels, predicted, weights)
    shares = np.bincount(labels, weights=weights, minlength=C) / weights.sum()
    meant = shares if prior is None else prior
    weights = weights * (meant / np.where(shares > 0, shares, 1.0))[labels]
    losses = -np.log(np.maximum(proba[np.arange(len(labels)), labels], TINY))
    guessed = -np.log(meant[labels])
    value = float(np.average(losses, weights=weights))
    measures["log loss"] = Measure(
        value, _error(losses - value, weights), float(np.average(guessed, weights=weights))
    )
    return measures | {"AUC": _mean_auc(labels, proba, weights)}


def number_measures(
    y: NDArray[np.float64], predicted: NDArray[np.float64], weights: NDArray[np.float64]
) -> dict[str, Measure]:
    """Return RMSE and R2 of numbers (n, t), averaged over the t targets."""
    squares = np.square(y - predicted)
    spread = np.square(y - np.average(y, axis=0, weights=weights))
    mse, variance = (np.average(part, axis=0, weights=weights) for part in (squares, spread))
    rmse = np.sqrt(mse)
    moved = (squares - mse) / (2 * np.where(rmse > 0, rmse, 1.0))
    root = Measure(
        float(rmse.mean()), _error(moved.mean(axis=1), weights), float(np.sqrt(variance).mean())
    )
    if (np.ptp(y, axis=0) == 0).any():  # nothing to explain; the mean of equal numbers is rounded
        return {"RMSE": root}
    moved = (mse / variance * (spread - variance) - (squares - mse)) / variance
    r2 = Measure(float(np.mean(1 - mse / variance)), _error(moved.mean(axis=1), weights), 0.0)
    return {"R2": r2, "RMSE": root}


def auc(
    scores: NDArray[np.float64], is_positive: NDArray[np.bool_], weights: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """Return the area under the ROC curve, and how much each row moves it, (n,).

    It is the share of pairs in which the positive row has the higher score, equal ones by half.
    """
    moved = np.zeros(len(scores))
    total, value = weights.sum(), 0.0
    for mine, sign in ((is_positive, 1.0), (~is_positive, -1.0)):
        others, mass = scores[~mine] * sign, weights[~mine]
        order = np.argsort(others)
        below = np.r_[0.0, np.cumsum(mass[order])] / mass.sum()
        sides = [np.searchsorted(others[order], scores[mine] * sign, s) for s in ("left", "right")]
        placed = (below[sides[0]] + below[sides[1]]) / 2
        value = float(np.average(placed, weights=weights[mine]))
        moved[mine] = (placed - value) * total / weights[mine].sum()
    return value, moved


def _mean_auc(
    labels: NDArray[np.int64], proba: NDArray[np.float64], weights: NDArray[np.float64]
) -> Measure:
    """Return the mean AUC of each class against the others; of two classes there is one.

    For its error each side gets one more row that is above, and one that is below all others:
    classes that are told apart without a slip would be taken for perfect.
    """
    present = np.unique(labels)
    if len(present) < 2:
        return Measure(np.nan, np.nan, 0.5)
    chosen = present[-1:] if proba.shape[1] == 2 else present
    values, moved, more = [], np.zeros(len(labels)), 0.0
    for c in chosen:
        value, by_row = auc(proba[:, c], labels == c, weights)
        values.append(value)
        for side in (labels == c, labels != c):
            mass = weights[side].sum()
            moved[side] += by_row[side] * mass / (mass + 2)
            more += (value**2 + (1 - value) ** 2) / (mass + 2) ** 2
    variance = (_error(moved, weights) ** 2 + more) / len(chosen) ** 2
    return Measure(float(np.mean(values)), float(np.sqrt(variance)), 0.5)


def _balanced_accuracy(
    labels: NDArray[np.int64], predicted: NDArray[np.intp], weights: NDArray[np.float64], C: int
) -> Measure:
    """Return the mean recall; for its error a right and a wrong row are added to each class.

    Without them a class whose rows are all right would be taken for perfect.
    """
    masses = np.bincount(labels, weights=weights, minlength=C)
    right = np.bincount(labels, weights=weights * (labels == predicted), minlength=C)
    right, masses = right[masses > 0], masses[masses > 0]
    cautious = (right + 1) / (masses + 2)
    variance = cautious * (1 - cautious) / (masses + 2)
    error = float(np.sqrt(variance.sum()) / len(masses))
    return Measure(float(np.mean(right / masses)), error, 1 / C)


def _of_levels(
    labels: NDArray[np.int64], predicted: NDArray[np.intp], weights: NDArray[np.float64]
) -> dict[str, Measure]:
    """Return how many levels predictions are off, and Cohen's kappa with quadratic weights."""
    a, b = labels.astype(np.float64), predicted.astype(np.float64)

    def mean(values: NDArray[np.float64]) -> float:
        return float(np.average(values, weights=weights))

    off = np.abs(a - b)
    order = np.argsort(a)
    median = a[order][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)]
    measures = {
        "levels off": Measure(mean(off), _error(off - mean(off), weights), mean(np.abs(a - median)))
    }
    squares = np.square(a - b)
    # By chance: true and predicted levels have their shares, and nothing to do with each other.
    chance = mean(a**2) + mean(b**2) - 2 * mean(a) * mean(b)
    if chance == 0:
        return measures
    moved_chance = (a**2 - mean(a**2)) + (b**2 - mean(b**2))
    moved_chance -= 2 * ((a - mean(a)) * mean(b) + mean(a) * (b - mean(b)))
    ratio = mean(squares) / chance
    moved = (ratio * moved_chance - (squares - mean(squares))) / chance
    return measures | {"kappa": Measure(1 - ratio, _error(moved, weights), 0.0)}


def _error(moved: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """Return the standard error of a measure that each row moves by so much."""
    return float(np.sqrt(np.sum(np.square(weights * moved))) / weights.sum())
