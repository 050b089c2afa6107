"""The run report: one HTML file that shows what a network has learnt, epoch by epoch.

Every number was measured before, see :class:`cocoloss.recording.RunRecord`; here it is only laid
out.
"""

import os
from pathlib import Path

import numpy as np

from cocoloss.files import write_whole
from cocoloss.recording import RunRecord
from cocoloss.report import run_sections as sections
from cocoloss.report.page import Markup, element, page, percent
from cocoloss.report.projection import Projection, project
from cocoloss.report.run_columns import columns
from cocoloss.report.run_curves import curves
from cocoloss.report.run_data import run_data
from cocoloss.report.run_heading import heading
from cocoloss.report.run_movie import movie
from cocoloss.report.run_scope import mark_alone, mark_together, titled, together

STYLES = ("page.css", "run.css")
SCRIPTS = (
    *("draw.js", "curves.js", "embedding.js", "reliability.js", "angles.js", "confusion.js"),
    "run.js",
)


def write_run_report(record: RunRecord, path: str | os.PathLike[str]) -> Path:
    """Write the report of a run: one HTML file that fetches nothing.

    Parameters
    ----------
    record : RunRecord
        From :func:`cocoloss.recording.record_fit`.
    path : path
        The file; replaced if it exists.

    Returns
    -------
    Path
        Where it is.

    Raises
    ------
    CoCoError
        If the place cannot be written to.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> from cocoloss.recording import record_fit
    >>> X, y = load_wine(return_X_y=True)
    >>> record = record_fit(CoCoClassifier(max_iter=5, random_state=0), X, y, data_name="wine")
    >>> with TemporaryDirectory() as folder:
    ...     write_run_report(record, Path(folder) / "wine.html").stat().st_size > 10_000
    True
    """
    with write_whole(path) as aside:
        aside.write_bytes(run_report(record).encode())
    return Path(path)


def run_report(record: RunRecord) -> str:
    """Return the report of a run as HTML."""
    projection = project(record)
    on = f" on {record.data_name}" if record.data_name else ""
    one, all_of_them = mark_alone(record), mark_together(record)
    body = [
        element("header", heading(record)),
        *_section("The embedding, epoch by epoch", _what_is_seen(record, projection), one),
        movie(record, projection),
        *_section("Learning", _learning(record), one),
        element("div", curves(record), class_="grid"),
        *_section("Test rows", _testing(record), all_of_them),
        element("div", sections.confusion(record), sections.reliability(record), class_="grid"),
        element("h2", "Classes"),
        element("div", sections.classes(record), sections.angles(record), class_="grid wide"),
        element("h2", "Columns"),
        columns(record),
        element("h2", "How it was made"),
        sections.making(record),
    ]
    return page(
        f"{record.model}{on}",
        body,
        styles=STYLES,
        scripts=SCRIPTS,
        data=run_data(record, projection),
    )


def _section(title: str, about: str, mark: Markup | None) -> list[Markup]:
    return [element("h2", titled(title, mark)), element("p", about, class_="about")]


def _what_is_seen(record: RunRecord, projection: Projection) -> str:
    q = record.embedding_dim
    if projection.kind == "line":
        text = "The embedding has one dimension; rows are spread sideways only to be seen."
    elif projection.kind == "plane":
        text = "The embedding has two dimensions and is drawn as it is."
    else:
        text = (
            f"The embedding has {q} dimensions. All epochs are seen in one plane, in which the "
            f"closest two classes end up farthest apart; {percent(projection.share)} of the "
            f"variance lies in it."
        )
    if record.target is not None:
        shape = "simplex" if record.centred or _is_simplex(record) else "target"
        text += f" Diamonds are the corners of the {shape}, turned to fit the class means."
    if projection.radius is not None:
        text += " The circle has radius 1." if q == 2 else " The circle is the unit sphere."
    return text


def _is_simplex(record: RunRecord) -> bool:
    C = record.n_classes
    simplex = np.eye(C) * C / (C - 1) - 1 / (C - 1)
    return record.target is not None and bool(np.allclose(record.target, simplex, atol=1e-5))


def _learning(record: RunRecord) -> str:
    text = (
        "Click or drag in a picture to choose the epoch; the dashed line is the one that was kept"
    )
    if record.kept < len(record.epochs) - 1:
        return f"{text}: the best by rows held out of training."
    return f"{text}, the last."


def _testing(record: RunRecord) -> str:
    return (
        f"What {together(record)} {'say' if record.n_members > 1 else 'says'} of the "
        f"{record.n_test:,} rows that were kept apart."
    )
