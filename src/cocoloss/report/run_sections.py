"""The tables of the run report, and the places of its pictures: test rows, classes, arguments."""

import math

import numpy as np
from numpy.typing import NDArray

from cocoloss.recording import RunRecord
from cocoloss.report.page import (
    MISSING,
    Markup,
    element,
    figure,
    name,
    percent,
    table,
)
from cocoloss.report.run_data import MANY, common_angle, prior_differs
from cocoloss.report.run_scope import mark_alone, mark_together, titled

ROOMY = 4  # up to so many classes make a large confusion matrix
DENSE = 14  # more classes than this make a small confusion matrix
UPRIGHT = 6  # more classes than this, or longer names of more than a few, are written upwards
SHORT_NAME = 10  # characters
MISTAKES = 6  # how many kinds of mistakes are listed


def confusion(record: RunRecord) -> Markup:
    """Return the confusion matrix of the test rows, and the most frequent mistakes."""
    if record.n_classes > MANY:
        matrix = element(
            "canvas", id_="matrix", class_="matrix", role="img", aria_label="Confusion"
        )
        caption = "Rows are true classes, columns predicted ones; point at a cell to read it."
    else:
        matrix = element("div", _confusion_table(record), class_="scroll")
        caption = (
            "Rows are true classes, columns predicted ones. The shade is the share of the row."
        )
    return figure("Confusion matrix", matrix, _mistakes(record), caption=caption)


def _confusion_table(record: RunRecord) -> Markup:
    names = record.class_names
    longest = max(map(len, names))
    upright = record.n_classes > UPRIGHT or (record.n_classes > ROOMY and longest > SHORT_NAME)
    top = element(
        "tr",
        element("td"),
        element("th", "predicted", class_="axis-name", colspan=len(names), scope="colgroup"),
    )
    header = [
        element("th", name(n), scope="col", class_="upright" if upright else None) for n in names
    ]
    rows = [
        element("tr", element("th", name(n), scope="row"), _confusion_cells(record, true))
        for true, n in enumerate(names)
    ]
    head = element("thead", top, element("tr", element("td"), header))
    size = "roomy" if record.n_classes <= ROOMY else "dense" if record.n_classes > DENSE else "even"
    return element("table", head, element("tbody", rows), class_=f"confusion {size}")


def _confusion_cells(record: RunRecord, true: int) -> list[Markup]:
    cells = []
    for predicted, count in enumerate(record.confusion[true].tolist()):
        level = math.ceil(10 * count / max(1, int(record.test_counts[true])))
        kind = "zero" if not count else f"{'right' if true == predicted else 'wrong'} s{level}"
        cells.append(
            element("td", str(count), class_=kind, data_true=true, data_predicted=predicted)
        )
    return cells


def _mistakes(record: RunRecord) -> Markup | None:
    wrong = record.confusion.copy()
    np.fill_diagonal(wrong, 0)
    if not wrong.any():
        return element("p", "Every test row is predicted right.", class_="about")
    order = np.argsort(-wrong, axis=None, kind="stable")[:MISTAKES]
    pairs = [(int(k) // record.n_classes, int(k) % record.n_classes) for k in order]
    rows = [
        (
            Markup(name(record.class_names[a]) + " taken for " + name(record.class_names[b])),
            str(wrong[a, b]),
            percent(wrong[a, b] / record.test_counts[a]),
        )
        for a, b in pairs
        if wrong[a, b]
    ]
    found = table(("class", "test rows", "of its class"), rows)
    return element("details", element("summary", "Most frequent mistakes"), found)


def reliability(record: RunRecord) -> Markup:
    """Return the place of the reliability curve, and its numbers."""
    curve = record.reliability
    if curve is None:
        text = "The head of this model gives no probabilities."
        return figure("Reliability", element("p", text, class_="about"))
    rows = [
        (
            f"{low:.0%} to {high:.0%}",
            str(count),
            percent(sure),
            percent(right),
        )
        for low, high, count, sure, right in zip(
            curve.edges[:-1],
            curve.edges[1:],
            curve.counts.tolist(),
            curve.confidence,
            curve.accuracy,
            strict=True,
        )
        if count
    ]
    numbers = table(("probability", "test rows", "mean", "right"), rows, class_="bins")
    caption = (
        f"Honest probabilities lie on the diagonal. Expected calibration error "
        f"{percent(curve.error)}; below, how many test rows there are."
    )
    if prior_differs(record) and record.reliability_at_prior:
        caption += (
            f" The probabilities are meant for other class shares than the test rows have: with "
            f"classes weighted to that prior the error is "
            f"{percent(record.reliability_at_prior.error)}. The argument priors='empirical', or "
            f"--priors empirical, is for shares as they come."
        )
    return figure(
        "Reliability",
        element("div", id_="chart-reliability"),
        element("details", element("summary", "Numbers"), numbers),
        caption=caption,
    )


def angles(record: RunRecord) -> Markup:
    """Return the place of the picture of the angles between class means."""
    shared = common_angle(record)
    if record.target is None:
        aim = "So few dimensions hold no simplex of so many classes: there is no target."
    elif shared is not None:
        aim = f"The target is {shared:.1f}° between all pairs."
    else:
        aim = "The strokes are the target of each pair."
    centre = " The class means are centred at their mean." if record.centred else ""
    if record.n_classes > MANY:
        seen = "All pairs of class means of the kept network."
    else:
        seen = (
            "A row for each class: a mark for each other class, at the angle between their means."
        )
    caption = f"{seen} {aim}{centre}"
    rows = [
        (
            _labelled(record, c),
            f"{np.linalg.norm(record.class_means[record.kept, c]):.2f}",
            _nearest(record, found),
        )
        for c, found in enumerate(record.angles(record.kept))
    ]
    numbers = table(("class", "norm of its mean", "nearest class"), rows, class_="means")
    return figure(
        titled("Angles between class means", mark_alone(record)),
        element("div", id_="chart-angles"),
        element("details", element("summary", "Numbers at the kept epoch"), numbers),
        caption=caption,
    )


def classes(record: RunRecord) -> Markup:
    """Return a table of the classes: how many rows, and how well they are told."""
    predicted = record.confusion.sum(axis=0)
    rows = []
    for c in range(record.n_classes):
        right, here, said = int(record.confusion[c, c]), int(record.test_counts[c]), predicted[c]
        rows.append(
            (
                _labelled(record, c),
                f"{int(record.train_counts[c]):,}",
                f"{here:,}",
                percent(right / here) if here else MISSING,
                percent(right / said) if said else MISSING,
            )
        )
    header = ("class", "learnt from", "tested on", "recall", "precision")
    untested = int(np.sum(record.test_counts == 0))
    caption = (
        "Recall: of the test rows of the class, the share that is found. Precision: of the test "
        "rows that are said to be of the class, the share that is."
    )
    if untested:
        have = "class has" if untested == 1 else "classes have"
        caption += f" {untested} {have} no test row."
    return figure(
        titled("Rows of each class", mark_together(record)),
        table(header, rows, class_="classes"),
        caption=caption,
    )


def _labelled(record: RunRecord, c: int) -> Markup:
    swatch = element("span", class_="swatch", data_swatch=c)
    return Markup(swatch + name(record.class_names[c]))


def _nearest(record: RunRecord, found: NDArray[np.float64]) -> str:
    if not np.isfinite(found).any():
        return MISSING
    other = int(np.nanargmin(found))
    return Markup(name(record.class_names[other]) + f" {found[other]:.1f}°")


def making(record: RunRecord) -> Markup:
    """Return the arguments and the versions."""
    rows = [
        element(
            "tr",
            element("th", element("code", argument), scope="row"),
            element("td", element("code", value)),
            class_="changed" if argument in record.changed else None,
        )
        for argument, value in sorted(
            record.arguments.items(), key=lambda item: item[0] not in record.changed
        )
    ]
    versions = ", ".join(f"{what} {which}" for what, which in record.versions.items())
    return element(
        "div",
        element("p", f"Made with {versions}."),
        element(
            "details",
            element("summary", f"Arguments ({len(record.changed)} not the default, in bold)"),
            element(
                "div", element("table", element("tbody", rows), class_="arguments"), class_="scroll"
            ),
        ),
        class_="panel",
    )
