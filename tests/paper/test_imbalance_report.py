"""The report of an imbalance experiment answers its question, and shows first what decides it."""

import json
from dataclasses import replace

import pytest

from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import load_experiment
from cocoloss.json_text import as_json_text
from cocoloss.report.document import (
    MISSING,
    Folded,
    Grid,
    Heading,
    Picture,
    Text,
    significant,
)
from cocoloss.report.markup import as_markdown
from synthetic_store import PAPER, build_document, fill_accuracy, infos_of, make_spec

imbalance = load_experiment("imbalance", [PAPER])
analyse, gains_grid, gain_blocks = imbalance.analyse, imbalance.gains_grid, imbalance.gain_blocks
scatter, slopes_grid, trend_grid = imbalance.scatter, imbalance.slopes_grid, imbalance.trend_grid
NO_TREND = imbalance.NO_TREND
MODELS = ["coco-plain", "coco-s0.25", "coco-balanced", "coco-balanced-printed"]
WEIGHTED = MODELS[1:]
N_TABLES = 12


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("store") / "results.sqlite") as store:
        fill_accuracy(store, make_spec("imbalance", models=MODELS), infos_of(N_TABLES))
        found = read_findings(store)[0]
    rows = found.rows
    return replace(
        found, rows=rows.assign(balanced_accuracy_uniform=rows["balanced_accuracy"] ** 2)
    )


@pytest.fixture(scope="module")
def gains(findings):
    return {each.measure: each for each in analyse(findings).gains}


def texts(grid):
    return [[cell.text for cell in row] for row in grid.rows]


def open_blocks(blocks):
    return [block for block in blocks if not isinstance(block, Folded)]


def test_test_rows_come_first_then_priors_and_what_is_secondary_folds(gains):
    trend = ["Improvement over class ratio", "The trend, beside the printed one"]
    slopes, groups = "Slopes by weight: ", "Gains by class ratio: "
    blocks = gain_blocks(list(gains.values()), "x")
    shown = [b.title for b in open_blocks(blocks) if isinstance(b, Grid | Picture)]
    uniform = "balanced accuracy under uniform priors"
    first = [f"{slopes}balanced accuracy", f"{groups}balanced accuracy", f"{groups}{uniform}"]
    assert shown == [*trend, *first]
    priors, inner = [block for block in blocks if isinstance(block, Folded)]
    assert [block.title for block in priors.blocks] == [*trend, f"{slopes}{uniform}"]
    assert "optimistic by selection" in inner.title
    of_tuning = [f"{slopes}score of the tuning", f"{groups}score of the tuning"]
    assert [block.title for block in inner.blocks] == [*trend, *of_tuning]


def test_the_papers_pair_stands_beside_the_printed_numbers(gains):
    trend = gains["balanced_accuracy"].paper
    assert trend.model == "coco-balanced"
    grid = trend_grid(trend)
    assert texts(grid) == [
        ["slope of the line", significant(trend.slope), "0.0022"],
        ["standard error of the slope", significant(trend.slope_error), ""],
        ["p-value of the slope", significant(trend.slope_p_value), ""],
        ["Spearman's rho", significant(trend.spearman), "0.2"],
        ["p-value of rho", significant(trend.p_value), "0.14"],
    ]
    assert imbalance.printed.IMBALANCE.place in grid.caption
    assert "class shares as priors" not in grid.caption
    assert "class shares as priors" in trend_grid(gains["balanced_accuracy_uniform"].paper).caption


def test_the_scatter_has_a_point_for_every_dataset(gains):
    picture = scatter(gains["balanced_accuracy"].paper, "x")
    assert picture.name == "x-imbalance-balanced-accuracy"
    (points,) = [line for line in picture.figure.axes[0].lines if line.get_gid() == "points-0"]
    assert len(points.get_xdata()) == N_TABLES
    assert f"of coco-balanced over coco-plain in balanced accuracy on {N_TABLES}" in picture.caption


def test_slopes_have_a_line_for_each_model(gains):
    for each in gains.values():
        lines = texts(slopes_grid(each))
        assert [line[0] for line in lines] == WEIGHTED
        for line, trend in zip(lines, each.trends, strict=True):
            assert line[1:3] == [str(N_TABLES), f"{trend.slope:+.5f}"]
            least, most = (float(end) for end in line[7].split(" to "))
            assert (least, most) == pytest.approx(trend.leave_one_out, abs=1e-5)


def test_a_slope_that_cannot_be_told_is_a_dash(findings):
    same = findings.rows.assign(class_ratio=2.0)
    (first, *_) = analyse(replace(findings, rows=same)).gains
    for line in texts(slopes_grid(first)):
        assert line[2:] == [MISSING] * 8


def test_gains_have_a_line_for_each_model_and_a_column_for_each_group(gains):
    for each in gains.values():
        grid = gains_grid(each)
        groups = ["below 1.5", "1.5 to under 3", "3 or more", "all"]
        assert list(grid.columns) == ["model", *groups]
        assert [line[0] for line in texts(grid)] == WEIGHTED
        for expected in each.by_ratio.itertuples():
            row = grid.rows[WEIGHTED.index(expected.model)]
            cell = row[1 + groups.index(expected.ratio)]
            assert expected.wins + expected.ties + expected.losses == expected.n_datasets
            counts = f"({expected.wins} / {expected.ties} / {expected.losses})"
            assert cell.value == expected.mean
            error = f" ± {expected.error:.4f}" if expected.n_datasets > 1 else ""
            assert cell.text == f"{expected.mean:+.4f}{error} {counts}"


def test_without_the_papers_pair_there_are_slopes_and_no_scatter(findings):
    rows = findings.rows[findings.rows["model"] != "coco-balanced"]
    spec = findings.spec | {"models": {"names": ["coco-plain", "coco-s0.25"], "own": {}}}
    analysis = analyse(replace(findings, rows=rows, spec=spec))
    blocks = gain_blocks(analysis.gains, "x")
    titles = [block.title for block in open_blocks(blocks) if isinstance(block, Grid | Picture)]
    assert titles[0] == "Slopes by weight: balanced accuracy"


def test_two_datasets_have_gains_and_it_is_said_that_a_trend_needs_more(findings):
    two = findings.rows["dataset"].isin(["table-00", "table-01"])
    analysis = analyse(replace(findings, rows=findings.rows[two]))
    blocks = gain_blocks(analysis.gains, "x")
    assert blocks[0] == Text(NO_TREND, "warning")
    grids = [block.title for block in blocks if isinstance(block, Grid)]
    assert grids == [
        "Gains by class ratio: balanced accuracy",
        "Gains by class ratio: balanced accuracy under uniform priors",
    ]


def test_every_form_of_the_report_holds_them_before_the_ranks(findings):
    analysis = analyse(findings)
    blocks = imbalance.blocks(findings, analysis, "x")
    headings = [b.text for b in blocks if isinstance(b, Heading) and b.level == 2]
    gained = "What weighing the classes gains, over their imbalance"
    assert headings[:2] == [gained, "Balanced accuracy"]
    document = build_document([findings], [analysis], ["x"])
    markdown = as_markdown(document, "figures")
    for part in ("Slopes by weight", "Gains by class ratio"):
        assert markdown.count(f"**{part}: ") == 3
    assert len([p for p in document.pictures() if p.name.startswith("x-imbalance-")]) == 3
    found = json.loads(as_json_text(analysis))["gains"]
    assert [each["trends"][1]["hc3_error"] for each in found] == [
        pytest.approx(each.paper.hc3_error) for each in analysis.gains
    ]
