"""The report of an imbalance experiment answers its question, and shows first what decides it."""

import json
from dataclasses import replace

import pytest

from cocoloss.benchmark.experiments import load_experiment
from cocoloss.benchmark.findings import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.json_text import as_json_text
from cocoloss.report.document import (
    MISSING,
    Folded,
    Grid,
    Heading,
    Picture,
    Text,
    fixed,
    p_value,
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
    blocks = gain_blocks(list(gains.values()), "x")
    shown = [b.title for b in open_blocks(blocks) if isinstance(b, Grid | Picture)]
    assert shown == [
        *trend,
        "Slopes by weight: balanced accuracy",
        "Gains by class ratio: balanced accuracy",
        "Gains by class ratio: balanced accuracy under uniform priors",
    ]
    uniform, inner = [block for block in blocks if isinstance(block, Folded)]
    assert [block.title for block in uniform.blocks] == [
        *trend,
        "Slopes by weight: balanced accuracy under uniform priors",
    ]
    assert "optimistic by selection" in inner.title
    assert [block.title for block in inner.blocks] == [
        *trend,
        "Slopes by weight: score of the tuning",
        "Gains by class ratio: score of the tuning",
    ]


def test_the_section_comes_before_the_ranks(findings):
    headings = [
        block.text
        for block in imbalance.blocks(findings, analyse(findings), "x")
        if isinstance(block, Heading) and block.level == 2
    ]
    assert headings[:2] == [
        "What weighing the classes gains, over their imbalance",
        "Balanced accuracy",
    ]


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
            low, high = trend.theil_sen_interval
            least, most = trend.leave_one_out
            assert line[1:] == [
                str(N_TABLES),
                f"{trend.slope:+.5f}",
                f"{trend.hc3_error:.5f}",
                p_value(trend.hc3_p_value).text,
                f"{trend.theil_sen:+.5f}",
                f"{low:+.5f} to {high:+.5f}",
                f"{least:+.5f} to {most:+.5f}",
                fixed(trend.spearman, 2).text,
                p_value(trend.p_value).text,
            ]


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


def test_every_form_of_the_report_holds_them(findings):
    analysis = analyse(findings)
    document = build_document([findings], [analysis], ["x"])
    markdown = as_markdown(document, "figures")
    for part in ("Slopes by weight", "Gains by class ratio"):
        assert markdown.count(f"**{part}: ") == 3
    assert len([p for p in document.pictures() if p.name.startswith("x-imbalance-")]) == 3
    found = json.loads(as_json_text(analysis))["gains"]
    assert [each["trends"][1]["hc3_error"] for each in found] == [
        pytest.approx(each.paper.hc3_error) for each in analysis.gains
    ]
