"""The movie of the run report: the embedding, its slider and switches, the numbers of an epoch."""

import numpy as np

from cocoloss.recording import RunRecord
from cocoloss.report.page import Markup, element, percent
from cocoloss.report.projection import Projection
from cocoloss.report.run_scope import mark_alone, mark_together

SPHERE_SEEN = 1.08  # a circle of so many times the picture's extent is hardly cut off


def movie(record: RunRecord, projection: Projection) -> Markup:
    """Return the picture of the embedding with all that moves it, and what is read beside it."""
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
            "predicted wrong" + (" by all together" if record.n_members > 1 else ""),
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
        element("td", mark_alone(record)),
        [element("th", h, scope="col", class_="number") for h in ("test", "training")],
    )
    rows = [
        row("balanced accuracy", "test_balanced_accuracy", "train_balanced_accuracy"),
        row("dispersity", "test_dispersity", "dispersity"),
    ]
    if np.isfinite(record.measures["loss"]).any():
        rows += [
            row("CoCo loss", None, "loss"),
            row("class means off target", None, "nc2_part", part=True),
            row("spread within classes", None, "nc1_part", part=True),
        ]
        if not record.normalized:
            rows.append(row("norms of single rows", None, "norm_part", part=True))
    body = element("tbody", rows)
    return element("table", element("thead", head), body, _the_model(record), class_="numbers")


def _the_model(record: RunRecord) -> Markup | None:
    """Return what all networks reach together, which no slider moves; nothing for a single one."""
    if record.n_members == 1:
        return None
    scores = (record.balanced_accuracy, record.train_balanced_accuracy)
    return element(
        "tfoot",
        element(
            "tr",
            element("th", "balanced accuracy of ", mark_together(record), scope="row"),
            [element("td", percent(score), class_="number") for score in scores],
        ),
    )
