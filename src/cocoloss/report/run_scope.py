"""Whose numbers a part of the run report shows: of all networks together, or of the first alone.

The model is all networks together; what is looked into, epoch by epoch, is the first. Every part
of the page that has numbers carries one of two marks, so that nobody takes one for the other.
"""

from cocoloss.recording import RunRecord
from cocoloss.report.page import Markup, element


def together(record: RunRecord) -> str:
    """Name the model: all its networks."""
    return f"all {record.n_members} networks" if record.n_members > 1 else "the network"


def alone(record: RunRecord) -> str:
    """Name the network that is looked into."""
    return f"network 1 of {record.n_members}" if record.n_members > 1 else "the network"


def mark_together(record: RunRecord) -> Markup | None:
    """Return the mark of what all networks do together; none is needed for a single network."""
    if record.n_members == 1:
        return None
    return element("span", together(record), class_="scope together")


def mark_alone(record: RunRecord) -> Markup | None:
    """Return the mark of what the first network does alone."""
    if record.n_members == 1:
        return None
    return element("span", alone(record), class_="scope alone")


def titled(title: str, mark: Markup | None) -> Markup:
    """Return a title with its mark behind it."""
    return Markup(f"{element('span', title)} {mark}" if mark else element("span", title))


def what_the_marks_mean(record: RunRecord) -> Markup:
    """Say once, at the top, what the two marks are for."""
    if record.n_members == 1:
        return element("p", "One network was trained.", class_="about")
    return element(
        "p",
        mark_together(record),
        f" is the model: {record.n_members} networks that decide together. ",
        mark_alone(record),
        " is the first of them, which the movie and the curves look into. Alone it does not do "
        "the same: its numbers are not those of the model.",
        class_="about",
    )
