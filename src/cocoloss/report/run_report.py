"""The run report: one HTML file that shows what a network has learnt, epoch by epoch.

Every number was measured before, see :class:`cocoloss.estimators.run_record.RunRecord`; here it
is only laid out.
"""

import os
from pathlib import Path

import numpy as np

from cocoloss.estimators.run_record import RunRecord
from cocoloss.files import write_whole
from cocoloss.report import run_sections as sections
from cocoloss.report.page import Markup, element, figure, page, percent
from cocoloss.report.projection import Projection, project
from cocoloss.report.run_data import run_data
from cocoloss.report.run_heading import heading

STYLES = ("page.css", "run.css")
SCRIPTS = (
    *("draw.js", "curves.js", "embedding.js", "reliability.js", "angles.js", "confusion.js"),
    "run.js",
)
SPHERE_SEEN = 1.08  # a circle of so many times the picture's extent is hardly cut off


def write_run_report(record: RunRecord, path: str | os.PathLike[str]) -> Path:
    """Write the report of a run: one HTML file that fetches nothing.

    Parameters
    ----------
    record : RunRecord
        From :func:`cocoloss.estimators.recording.record_fit`.
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
    >>> from cocoloss.estimators.recording import record_fit
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
    body = [
        element("header", heading(record)),
        element("h2", "The embedding, epoch by epoch"),
        element("p", _what_is_seen(record, projection), class_="about"),
        _movie(record, projection),
        element("h2", "Learning"),
        element("p", _learning(record), class_="about"),
        element("div", _curves(record), class_="grid"),
        element("h2", "Test rows"),
        element("p", _testing(record), class_="about"),
        element("div", sections.confusion(record), sections.reliability(record), class_="grid"),
        element("h2", "Classes"),
        element("div", sections.angles(record), sections.classes(record), class_="grid wide"),
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
    many = f"all {record.n_members} networks together say"
    who = many if record.n_members > 1 else "the network says"
    return f"What {who} of the {record.n_test:,} rows that were kept apart."


def _movie(record: RunRecord, projection: Projection) -> Markup:
    last = len(record.epochs) - 1
    stage = element(
        "div",
        element("canvas", aria_label="Embedded rows", role="img"),
        Markup('<svg aria-hidden="true"></svg>'),
        id_="stage",
        class_="stage",
        data_kind=projection.kind,
    )
    now = element("p", id_="now", class_="now")
    controls = element(
        "div",
        element("button", "▶ Play", id_="play", type="button", class_="play", aria_pressed="false"),
        element(
            "input",
            id_="epoch",
            type="range",
            min=0,
            max=last,
            step=1,
            value=record.kept,
            aria_label="Epoch",
            autocomplete="off",
        ),
        class_="controls",
    )
    side = element(
        "div",
        _numbers(record),
        element(
            "div",
            element("h3", "Classes"),
            element(
                "div",
                element("button", "All", id_="show-all", type="button"),
                element("button", "None", id_="hide-all", type="button"),
            ),
            class_="legend-head",
        ),
        element("ul", id_="legend", class_="legend"),
        _symbols(record),
    )
    return element(
        "div",
        element("div", stage, now, controls, _options(record, projection)),
        side,
        class_="panel movie",
    )


def _options(record: RunRecord, projection: Projection) -> Markup:
    def box(option: str, text: str, *, checked: bool = True) -> Markup:
        tick = element(
            "input", type="checkbox", data_option=option, checked=checked, autocomplete="off"
        )
        return element("label", tick, text)

    parts = [box("train", "training rows"), box("test", "test rows")]
    if record.target is not None:
        parts.append(box("target", "target"))
    if projection.radius is not None and projection.radius * SPHERE_SEEN > projection.extent:
        parts.append(box("wide", "whole sphere", checked=False))
    if projection.kind == "projected":
        parts.append(
            element(
                "span",
                element("button", "2-D", type="button", data_solid="false", aria_pressed="true"),
                element("button", "3-D", type="button", data_solid="true", aria_pressed="false"),
                class_="group",
                role="group",
                aria_label="Dimensions seen; drag or use the arrow keys to turn the third",
            )
        )
    return element("div", parts, class_="options controls")


def _symbols(record: RunRecord) -> Markup:
    def symbol(shape: Markup, text: str) -> Markup:
        picture = element("svg", shape, viewBox="-7 -7 14 14", aria_hidden="true")
        return element("li", picture, text)

    parts = [
        symbol(element("circle", r=2.6, fill="var(--muted)", opacity=0.6), "training row"),
        symbol(element("circle", r=4, fill="var(--muted)"), "test row"),
        symbol(
            element("circle", r=4, fill="var(--muted)", stroke="var(--ink)", stroke_width=2),
            "predicted wrong",
        ),
        symbol(element("circle", r=6, fill="var(--muted)"), "class mean"),
    ]
    if record.target is not None:
        corner = element(
            "path", d="M0,-6L6,0L0,6L-6,0Z", fill="none", stroke="var(--muted)", stroke_width=2
        )
        parts.append(symbol(corner, "target"))
    return element("ul", parts, class_="symbols")


def _numbers(record: RunRecord) -> Markup:
    """Return the table of the epoch's numbers, which the script fills."""

    def row(title: str, *measures: str | None, part: bool = False) -> Markup:
        cells = [
            element("td", class_="number", data_measure=m) if m else element("td") for m in measures
        ]
        return element(
            "tr", element("th", title, scope="row"), cells, class_="part" if part else None
        )

    head = element(
        "tr",
        element("td"),
        [element("th", h, scope="col", class_="number") for h in ("test", "training")],
    )
    rows = [
        row("balanced accuracy", "test_balanced_accuracy", "train_balanced_accuracy"),
        row("dispersity", "test_dispersity", "dispersity"),
    ]
    if np.isfinite(record.measures["loss"]).any():
        rows += [
            row("CoCo loss", None, "loss"),
            row("class means off target (NC2)", None, "nc2_part", part=True),
            row("spread within classes (NC1)", None, "nc1_part", part=True),
        ]
        if not record.normalized:
            rows.append(row("norms of single rows", None, "norm_part", part=True))
    body = element("tbody", rows)
    return element("table", element("thead", head), body, class_="numbers")


def _curves(record: RunRecord) -> list[Markup]:
    split = np.isfinite(record.measures["loss"]).any()
    norms = "" if record.normalized else ", and norms of single rows"
    loss = (
        f"The loss is a sum: class means that do not have the target angles and lengths yet "
        f"(NC2), rows that stray from their class mean (NC1){norms}."
        if split
        else "Mean over the batches of each epoch."
    )
    collapse = (
        "NC1: spread within classes in units of that between them. "
        "NC2: how far the class means are from a simplex. "
        "NC3: how far a linear classifier is from the class means, if there is one. "
        "NC4: share of training rows that are nearer to another class mean."
    )
    return [
        figure(
            "Balanced accuracy",
            element("div", id_="chart-accuracy"),
            caption="Of the first network, by a head fitted to training rows at each epoch shown.",
        ),
        figure(
            "Loss and its parts" if split else "Training loss",
            element("div", id_="chart-loss"),
            caption=loss,
        ),
        figure(
            "Dispersity",
            element("div", id_="chart-dispersity"),
            caption="How wide the classes are, measured by how far apart they are; 0 is collapse.",
        ),
        figure("Neural collapse", element("div", id_="chart-collapse"), caption=collapse),
    ]
