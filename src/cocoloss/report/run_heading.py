"""What the run report says first: how the model does on rows that it has never seen."""

import math

import numpy as np

from cocoloss.estimators.run_record import RunRecord
from cocoloss.report.page import Markup, card, element, name, percent, significant

BY_HEART = 0.1  # a gap between training and test rows that deserves a word


def heading(record: RunRecord) -> list[Markup]:
    """Return title, verdict and cards: what the test rows say comes first."""
    on = [" on ", name(record.data_name)] if record.data_name else []
    poor = _may_be_guessing(record)
    members = (
        f"The pictures show the first of {record.n_members} networks; predictions are those of all "
        f"together."
        if record.n_members > 1
        else "One network was trained."
    )
    rows = (
        f"{record.n_train:,} rows to learn from, {record.n_test:,} kept apart to test on, "
        f"{record.n_features:,} columns, {record.n_classes} classes. Layers of "
        f"{', '.join(map(str, record.layer_sizes))} units. {members}"
    )
    return [
        element("p", "cocoloss · run report", class_="kicker"),
        element("h1", record.model, on),
        element("p", verdict(record), class_="lead verdict-poor" if poor else "lead"),
        element("p", rows, class_="about"),
        element("dl", cards(record), class_="cards"),
    ]


def verdict(record: RunRecord) -> str:
    """Say in plain words how good the model is."""
    guess = 1 / record.n_classes
    text = (
        f"On rows it has never seen, the model finds the right class for "
        f"{percent(record.balanced_accuracy)} if every class counts the same; guessing finds "
        f"{percent(guess)}."
    )
    if _may_be_guessing(record):
        text += " These test rows cannot tell it from guessing."
    gap = record.train_balanced_accuracy - record.balanced_accuracy
    if gap > BY_HEART:
        text += (
            f" It knows its training rows better ({percent(record.train_balanced_accuracy)}); "
            f"the difference does not carry over."
        )
    return text


def _may_be_guessing(record: RunRecord) -> bool:
    """Say whether balanced accuracy is within two standard errors of guessing."""
    counts = record.test_counts
    recall = np.diagonal(record.confusion)[counts > 0] / counts[counts > 0]
    spread = np.sqrt(np.sum(recall * (1 - recall) / counts[counts > 0])) / len(recall)
    return bool(record.balanced_accuracy - 2 * spread <= 1 / record.n_classes)


def cards(record: RunRecord) -> list[Markup]:
    """Return the numbers of the run, those of test rows first."""
    spread = record.measures["test_dispersity"][record.kept]
    learnt = significant(record.measures["dispersity"][record.kept])
    error = record.reliability.error if record.reliability else math.nan
    planned = f"trained {record.n_epochs_done} of {record.n_epochs}"
    epoch = int(record.epochs[record.kept])
    return [
        card(
            "Balanced accuracy",
            percent(record.balanced_accuracy),
            f"test; training {percent(record.train_balanced_accuracy)}",
            key="balanced_accuracy",
            raw=record.balanced_accuracy,
        ),
        card("Accuracy", percent(record.accuracy), "test", key="accuracy", raw=record.accuracy),
        card(
            "Log loss",
            significant(record.log_loss),
            f"test; guessing {significant(math.log(record.n_classes))}",
            key="log_loss",
            raw=record.log_loss,
        ),
        card("Calibration error", percent(error), "test", key="calibration_error", raw=error),
        card(
            "Dispersity",
            significant(spread),
            f"test; training {learnt}",
            key="test_dispersity",
            raw=float(spread),
        ),
        card("Epoch kept", str(epoch), planned, key="epoch", raw=epoch),
        card("Rows", f"{record.n_test:,}", f"test; learnt from {record.n_train:,}"),
        card("Seconds to fit", significant(record.seconds), key="seconds", raw=record.seconds),
    ]
