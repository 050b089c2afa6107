"""From posteriors to decisions: other priors, costs of mistakes, a threshold.

Posteriors come as arrays, and what is asked of them by class. Deciding needs numpy alone; only a
:class:`Curve` to choose a threshold by asks scikit-learn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import as_float_array, check_option, check_priors, check_share, listed
from cocoloss.exceptions import CoCoError

# Of two classes that are called so, the second is the positive one; of others the user says it.
CONVENTIONAL = (("0", "1"), ("-1", "1"), ("false", "true"), ("no", "yes"))
MEASURES = ("balanced accuracy", "accuracy", "f1", "precision", "recall")


@dataclass(frozen=True)
class Threshold:
    """From which probability on a row is taken for a class, and how rows fare with it.

    Attributes
    ----------
    value : float
        The probability.
    positive : object
        The class.
    measures : dict of str to float
        Recall, precision and others, of the rows that the threshold was chosen on.
    """

    value: float
    positive: Any
    measures: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Decider:
    """What decisions need to know of a fit, beside its posteriors.

    Attributes
    ----------
    classes : array of shape (C,)
    shares : array of shape (C,)
        Class shares of the training rows.
    expected : array of shape (C,)
        Class shares where costs arise: those of the training rows, unless ``fit`` was told others.
    """

    classes: NDArray[Any]
    shares: NDArray[np.float64]
    expected: NDArray[np.float64]

    @classmethod
    def of(cls, classes: NDArray[Any], masses: NDArray[np.float64], priors: Any) -> "Decider":
        """Return that of a fit, given what the rows of each class weighed, and its ``priors``."""
        shares = masses / masses.sum()
        told = "empirical" if isinstance(priors, str) else priors
        return cls(classes, shares, read_priors(told, classes, shares))

    def model(self, model: Any, costs: Any = None, priors: Any = None) -> Any:
        """Return the model whose posteriors are to be decided by: under priors, if there are any.

        Costs arise row by row, so that classes count as often as they occur. A uniform prior, the
        default of a fit, stands for costs itself: of rare classes as much more as they are rarer.
        """
        if priors is None and (costs is None or not model.knows_its_prior):
            return model
        asked = self.expected if priors is None else priors
        return model.with_prior(read_priors(asked, self.classes, self.shares))

    def decide(
        self,
        proba: NDArray[np.float64],
        costs: Any = None,
        threshold: Any = None,
        positive: Any = None,
    ) -> NDArray[np.intp]:
        """Return the position of the class of each row, (n,), given its posteriors."""
        if costs is not None and threshold is not None:
            raise CoCoError("costs and threshold both decide; leave one of them out")
        if positive is not None and threshold is None:
            raise CoCoError(f"positive={positive!r} is for a threshold; give one, or leave it out")
        if costs is not None:
            return least_cost(proba, cost_matrix(costs, self.classes))
        if threshold is None:
            return np.asarray(proba.argmax(axis=1))
        if isinstance(threshold, Threshold):
            if positive not in (None, threshold.positive):
                raise CoCoError(
                    f"the threshold was chosen for {threshold.positive!r}, not for "
                    f"{positive!r:.80}; leave positive out, or choose another one"
                )
            positive, threshold = threshold.positive, threshold.value
        elif not _is_number(threshold) or not 0 <= threshold <= 1:
            raise CoCoError(f"threshold must be a probability, from 0 to 1, not {threshold!r:.80}")
        place = positive_position(positive, self.classes)
        return np.where(proba[:, place] >= threshold, place, 1 - place)


def read_priors(
    priors: Any, classes: NDArray[Any], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return priors, (C,), that were named, or given in the order of classes or by class.

    Examples
    --------
    >>> read_priors({"b": 0.9, "a": 0.1}, np.array(["a", "b"]), np.array([0.5, 0.5])).tolist()
    [0.1, 0.9]
    """
    if isinstance(priors, str):
        if check_option(priors, "priors", ("uniform", "empirical")) == "empirical":
            return shares
        return np.full(len(classes), 1 / len(classes))
    if hasattr(priors, "items"):  # a dict, or a series such as value_counts gives
        given, named = dict(priors.items()), classes.tolist()
        if set(given) != set(named):
            raise CoCoError(f"priors names the classes {list(given)}, but the model has {named}")
        priors = [given[name] for name in named]
    return check_priors(priors, len(classes), classes=classes.tolist())


def cost_matrix(costs: Any, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Return what it costs to take a row of a class, by row, for another one, by column, (C, C).

    Parameters
    ----------
    costs : array of shape (C, C), DataFrame or dict
        An array has true classes in rows and predicted ones in columns, both in the order of
        ``classes``; a DataFrame has them as its index and its columns, in any order. A dict has,
        for a class, what any mistake about its rows costs, or, for a pair (true, predicted), that
        mistake; right answers cost nothing unless they are named.
    classes : array of shape (C,)

    Examples
    --------
    >>> classes = np.array(["sick", "well"])
    >>> cost_matrix({"sick": 10, "well": 1}, classes).tolist()
    [[0.0, 10.0], [1.0, 0.0]]
    >>> cost_matrix({("sick", "well"): 10, ("well", "sick"): 1}, classes).tolist()
    [[0.0, 10.0], [1.0, 0.0]]
    """
    named = classes.tolist()
    C = len(named)
    if isinstance(costs, Mapping):
        matrix = _costs_by_name(costs, named)
    elif hasattr(costs, "loc") and hasattr(costs, "columns"):
        for axis, what in (("index", "true"), ("columns", "predicted")):
            labels = list(getattr(costs, axis))
            if set(labels) != set(named) or len(labels) != C:
                raise CoCoError(
                    f"the {axis} of costs must name the {what} classes, {listed(named)}, each "
                    f"once, not {listed(labels)}"
                )
        matrix = as_float_array(costs.loc[named, named], "costs")
    else:
        matrix = as_float_array(costs, "costs")
        if matrix.shape != (C, C):
            raise CoCoError(
                f"costs must be a matrix of {C} true by {C} predicted classes, or a dict by class, "
                f"such as {{{named[0]!r}: 5, {named[1]!r}: 1}}, but has shape {matrix.shape}"
            )
    if not np.isfinite(matrix).all():
        raise CoCoError("costs must be finite numbers; give a large one to what must not be")
    if (matrix == matrix[:, :1]).all():
        raise CoCoError("costs must differ: here every answer costs the same, whatever is true")
    return matrix


def _costs_by_name(costs: Mapping[Any, Any], named: list[Any]) -> NDArray[np.float64]:
    place = {name: k for k, name in enumerate(named)}
    matrix = np.full((len(named), len(named)), np.nan)
    pairs = {key: cost for key, cost in costs.items() if isinstance(key, tuple) and len(key) == 2}
    alone = {key: cost for key, cost in costs.items() if key not in pairs}
    unknown = [name for key in pairs for name in key if name not in place]
    unknown += [name for name in alone if name not in place]
    if unknown:
        raise CoCoError(f"costs names the class {unknown[0]!r}, but there are {listed(named)}")
    for name, cost in alone.items():
        matrix[place[name]] = _as_cost(cost, name)
    np.fill_diagonal(matrix, 0.0)
    for (true, predicted), cost in pairs.items():
        matrix[place[true], place[predicted]] = _as_cost(cost, (true, predicted))
    for a, b in np.argwhere(np.isnan(matrix)):
        raise CoCoError(
            f"costs does not say what it costs to take {named[a]!r} for {named[b]!r}; add "
            f"({named[a]!r}, {named[b]!r}), or {named[a]!r} for every mistake about it"
        )
    return matrix


def _as_cost(cost: Any, key: Any) -> float:
    if not _is_number(cost) or not np.isfinite(cost):
        raise CoCoError(f"the cost of {key!r} must be a finite number, not {cost!r:.80}")
    return float(cost)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_))


def least_cost(proba: NDArray[np.float64], costs: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the class of least expected cost, (n,), the first one of equals.

    What is compared is by how much each answer is cheaper than the dearest one: the same order, and
    exactly the probabilities where every mistake costs 1. Classes are added one by one, so that a
    row gets the same answer whatever rows it comes with.
    """
    gains = costs.max(axis=1, keepdims=True) - costs
    gained = np.zeros(proba.shape)
    for p, gain in zip(proba.T, gains, strict=True):
        gained += p[:, None] * gain
    return np.asarray(gained.argmax(axis=1))


def conventional_position(classes: NDArray[Any]) -> int | None:
    """Return which of two classes is positive by its name, such as 1, True or yes; None if none."""
    names = [str(name).casefold() for name in classes.tolist()]
    known = [pair for pair in CONVENTIONAL if sorted(pair) == sorted(names)]
    return names.index(known[0][1]) if known else None


def positive_position(positive: Any, classes: NDArray[Any]) -> int:
    """Return the position of the positive class of two."""
    named = classes.tolist()
    if len(named) != 2:
        raise CoCoError(
            f"a threshold is for two classes, and there are {len(named)}; say by costs which "
            f"mistakes are worse"
        )
    place = conventional_position(classes) if positive is None else None
    if positive is not None and positive in named:
        place = named.index(positive)
    if place is None:
        asked = "it is left out" if positive is None else f"it is {positive!r:.80}"
        raise CoCoError(
            f"positive must be the class that the threshold is about, {named[0]!r} or "
            f"{named[1]!r}, but {asked}"
        )
    return place


# Choosing a threshold ---------------------------------------------------------------------------


class Curve(NamedTuple):
    """What every threshold makes of rows, from none that are taken for positive to all of them."""

    thresholds: NDArray[np.float64]  # (m,), falling
    found: NDArray[np.float64]  # (m,), what share of all rows is positive, and taken for it
    alarmed: NDArray[np.float64]  # (m,), what share is negative, and taken for positive
    positive: float  # share of all rows

    @classmethod
    def of(
        cls, scores: NDArray[Any], is_positive: NDArray[np.bool_], weights: NDArray[np.float64]
    ) -> "Curve":
        """Return the curve of rows with these probabilities; thresholds are between them."""
        from sklearn.metrics import roc_curve  # noqa: PLC0415 - predicting does without

        share = float(weights[is_positive].sum() / weights.sum())
        if share in (0.0, 1.0):
            raise CoCoError("all rows have one class; a threshold needs rows of both")
        fpr, tpr, at = roc_curve(
            is_positive, scores, sample_weight=weights, drop_intermediate=False
        )
        at[0] = 1.0 if at[1] < 1 else np.nextafter(at[1], 2)  # takes none
        below = np.r_[at[1:], 0.0]
        middle = (at + below) / 2
        middle[-1] = 0.0
        return cls(np.where(middle > below, middle, at), share * tpr, (1 - share) * fpr, share)

    def measures(self) -> dict[str, NDArray[np.float64]]:
        """Return what is measured at each threshold, (m,); precision is NaN where none is taken."""
        negative, taken = 1 - self.positive, self.found + self.alarmed
        recall, rejected = self.found / self.positive, 1 - self.alarmed / negative
        with np.errstate(invalid="ignore"):
            precision = self.found / np.where(taken > 0, taken, np.nan)
        return {
            "balanced accuracy": (recall + rejected) / 2,
            "accuracy": self.found + negative - self.alarmed,
            "f1": 2 * self.found / (self.positive + taken),
            "precision": precision,
            "recall": recall,
        }

    def costs(self, costs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean cost of a row at each threshold, (m,); the second class is positive."""
        negative = 1 - self.positive
        missed, passed = self.positive - self.found, negative - self.alarmed
        parts = ((passed, self.alarmed), (missed, self.found))
        return np.asarray(sum(costs[a, b] * parts[a][b] for a in (0, 1) for b in (0, 1)))


def choose_threshold(
    curve: Curve,
    positive: Any,
    measure: str | None = None,
    *,
    recall: float | None = None,
    precision: float | None = None,
    costs: NDArray[np.float64] | None = None,
) -> Threshold:
    """Return the threshold of a curve that is best, among those that reach what is asked for.

    Costs, (2, 2), have the positive class second. Of equals the highest threshold is taken.
    """
    values = curve.measures()
    asked = {"recall": recall, "precision": precision}
    least = {name: check_share(v, name) for name, v in asked.items() if v is not None}
    if costs is not None and measure is not None:
        raise CoCoError("costs and measure both say what is best; leave one of them out")
    if costs is not None:
        goal = -curve.costs(costs)
        values = {**values, "cost": -goal}
    else:
        other = {("recall",): "precision", ("precision",): "recall", (): "balanced accuracy"}
        named = other.get(tuple(least), "f1") if measure is None else measure
        goal = values[check_option(named, "measure", MEASURES)]
    possible = np.ones(len(goal), dtype=bool)
    for name, share in least.items():
        possible &= np.nan_to_num(values[name], nan=-1) >= share
    if not possible.any():
        wanted = " and ".join(f"a {name} of {share:g}" for name, share in least.items())
        best = ", ".join(f"{name} {np.nanmax(values[name]):.3f}" for name in least)
        raise CoCoError(f"no threshold has {wanted} on these rows; the most there is: {best}")
    k = int(np.where(possible, np.nan_to_num(goal, nan=-np.inf), -np.inf).argmax())
    found = {name: float(value[k]) for name, value in values.items()}
    return Threshold(float(curve.thresholds[k]), positive, found)
