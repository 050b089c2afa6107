"""What the run report says first: how the model does on rows that it has never seen."""

import math

import numpy as np

from cocoloss.recording import RunRecord
from cocoloss.report.page import Markup, card, element, name, percent, significant
from cocoloss.report.run_scope import mark_alone, mark_together, together, what_the_marks_mean

BY_HEART = 0.1  # a gap between training and test rows that deserves a word
FEW = 5  # test rows of a class: fewer say little about it


def heading(record: RunRecord) -> list[Markup]:
    """Return title, verdict and cards: what the test rows say comes first."""
    on = [" on ", name(record.data_name)] if record.data_name else []
    poor = _may_be_guessing(record)
    rows = (
        f"{record.n_train:,} rows to learn from, {record.n_test:,} kept apart to test on, "
        f"{record.n_features:,} columns, {record.n_classes} classes. Layers of "
        f"{', '.join(map(str, record.layer_sizes))} units."
    )
    if record.n_left_out:
        were = "row was" if record.n_left_out == 1 else "rows were"
        rows += f" {record.n_left_out:,} more {were} left out for want of a class."
    return [
        element("p", "cocoloss · run report", class_="kicker"),
        element("h1", record.model, on),
        element("p", verdict(record), class_="lead verdict-poor" if poor else "lead"),
        element("p", rows, class_="about"),
        what_the_marks_mean(record),
        element("dl", cards(record), class_="cards"),
    ]


def verdict(record: RunRecord) -> list[str]:
    """Say in plain words how good the model is, a sentence a part."""
    found = (
        f"On rows it has never seen, the model finds the right class for "
        f"{percent(record.balanced_accuracy)} if every class counts the same; guessing finds "
        f"{percent(1 / record.n_classes)}."
    )
    parts: list[str] = [found]
    if _may_be_guessing(record):
        parts.append(" These test rows cannot tell it from guessing.")
    tested = np.where(record.test_counts > 0, record.test_counts, record.n_test)
    rarest = int(tested.argmin())
    if tested[rarest] < FEW:
        few = "one test row" if tested[rarest] == 1 else f"{tested[rarest]} test rows"
        parts += [
            " Class ",
            name(record.class_names[rarest]),
            f" has but {few}: take it with care.",
        ]
    gap = record.train_balanced_accuracy - record.balanced_accuracy
    if gap > BY_HEART:
        parts.append(
            f" It knows its training rows better ({percent(record.train_balanced_accuracy)}); "
            f"the difference does not carry over."
        )
    return parts


def _may_be_guessing(record: RunRecord) -> bool:
    """Say whether balanced accuracy is within two standard errors of guessing."""
    counts = record.test_counts
    recall = np.diagonal(record.confusion)[counts > 0] / counts[counts > 0]
    spread = np.sqrt(np.sum(recall * (1 - recall) / counts[counts > 0])) / len(recall)
    return bool(record.balanced_accuracy - 2 * spread <= 1 / record.n_classes)


def _guess(record: RunRecord) -> float:
    """Return the log loss of who only knows the class prior."""
    return float(-(record.test_counts @ np.log(record.prior)) / record.test_counts.sum())


def cards(record: RunRecord) -> list[Markup]:
    """Return the numbers of the run, those of test rows first."""
    spread = record.measures["test_dispersity"][record.kept]
    learnt = significant(record.measures["dispersity"][record.kept])
    error = record.reliability.error if record.reliability else math.nan
    planned = f"trained {record.n_epochs_done} of {record.n_epochs}"
    epoch = int(record.epochs[record.kept])
    model, first = mark_together(record), mark_alone(record)
    return [
        card(
            "Balanced accuracy",
            percent(record.balanced_accuracy),
            f"test; training {percent(record.train_balanced_accuracy)}",
            key="balanced_accuracy",
            raw=record.balanced_accuracy,
            mark=model,
        ),
        card(
            "Accuracy",
            percent(record.accuracy),
            "test",
            key="accuracy",
            raw=record.accuracy,
            mark=model,
        ),
        card(
            "Log loss",
            significant(record.log_loss),
            f"test; guessing {significant(_guess(record))}",
            key="log_loss",
            raw=record.log_loss,
            mark=model,
        ),
        card(
            "Calibration error",
            percent(error),
            "test",
            key="calibration_error",
            raw=error,
            mark=model,
        ),
        card(
            "Dispersity",
            significant(spread),
            f"test; training {learnt}",
            key="test_dispersity",
            raw=float(spread),
            mark=first,
        ),
        card("Epoch kept", str(epoch), planned, key="epoch", raw=epoch, mark=first),
        card("Rows", f"{record.n_test:,}", f"test; learnt from {record.n_train:,}"),
        card(
            "Seconds to fit",
            significant(record.seconds),
            together(record) if record.n_members > 1 else "",
            key="seconds",
            raw=record.seconds,
        ),
    ]
