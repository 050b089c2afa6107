"""The curves over the epochs in the run report: their places, and what they mean in words."""

import numpy as np

from cocoloss.recording import RunRecord
from cocoloss.report.page import Markup, element, figure
from cocoloss.report.run_scope import mark_alone, titled, together


def curves(record: RunRecord) -> list[Markup]:
    """Return the places of the four pictures, which the scripts fill."""
    split = np.isfinite(record.measures["loss"]).any()
    return [
        figure(
            titled("Balanced accuracy", mark_alone(record)),
            element("div", id_="chart-accuracy"),
            caption=_accuracy(record),
        ),
        figure(
            "Loss and its parts" if split else "Training loss",
            element("div", id_="chart-loss"),
            caption=_loss(record) if split else "Mean over the batches of each epoch.",
        ),
        figure(
            "Dispersity",
            element("div", id_="chart-dispersity"),
            caption="How wide the classes are, measured by how far apart they are; 0 is collapse.",
        ),
        figure(
            "Neural collapse",
            element("div", id_="chart-collapse"),
            _collapse(record),
            caption="All are 0 in full collapse, and are measured on training rows.",
        ),
    ]


def _accuracy(record: RunRecord) -> str:
    n_seen = int(record.is_test.sum())
    sample = f", tested on {n_seen:,} of the {record.n_test:,} test rows"
    text = (
        f"By a head that is fitted to training rows at each epoch shown"
        f"{sample if n_seen < record.n_test else ''}."
    )
    if record.n_members > 1:
        text += f" The level line is what {together(record)} reach together on test rows."
    return text


def _loss(record: RunRecord) -> str:
    norms = "" if record.normalized else ", and single rows whose norm is not the target's"
    joined = " and" if record.normalized else ","
    return (
        f"The loss is a sum: class means that do not have the target angles and lengths yet"
        f"{joined} rows that stray from their class mean{norms}. The first part vanishes with "
        f"NC2, the second with NC1."
    )


def _collapse(record: RunRecord) -> Markup:
    """Say in a sentence each what the measures of neural collapse are."""
    linear = np.isfinite(record.measures["nc3"]).any()
    meanings = {
        "NC1": "How wide the classes are, in units of the distances between their means.",
        "NC2": "How far the class means are from the corners of a simplex, each as far from every "
        "other."
        if record.n_classes > 2
        else "Not drawn: the means of two classes are always a simplex.",
    }
    if linear:
        meanings["NC3"] = (
            "How far the class vectors of the linear classifier are from the class means, both "
            "scaled to the same size."
        )
        meanings["NC4"] = (
            "Share of rows for which the linear classifier and the nearest class mean name "
            "different classes."
        )
    else:
        meanings["NC4"] = "Share of rows that lie nearer to the mean of another class."
    items = [Markup(element("dt", what) + element("dd", text)) for what, text in meanings.items()]
    return element("dl", items, class_="meanings")
