import itertools
import subprocess
import sys
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from cocoloss.exceptions import CoCoError
from cocoloss.report.cd_diagram import cd_diagram
from cocoloss.stats import cliques, compare

LONG = "HistGradientBoosting (class_weight='balanced', 500 trees, learning rate 0.1)"


def shaped(ranks, different, *, names=None, test="wilcoxon"):
    """Return a comparison with these average ranks and these differences."""
    ranks, different = np.sort(np.asarray(ranks, dtype=float)), np.asarray(different, dtype=bool)
    names = names or [f"model {j}" for j in range(len(ranks))]
    scores = np.linspace(0.9, 0.1, len(ranks)) + np.zeros((30, 1))
    base = compare(pd.DataFrame(scores, columns=names), test=test)
    return replace(
        base,
        models=tuple(names),
        average_ranks=pd.Series(ranks, index=names),
        different=pd.DataFrame(different, names, names),
        cliques=tuple(tuple(names[j] for j in group) for group in cliques(different)),
    )


def by_distance(ranks, distance, **options):
    ranks = np.sort(np.asarray(ranks, dtype=float))
    different = np.abs(np.subtract.outer(ranks, ranks)) > distance
    base = shaped(ranks, different, test="nemenyi", **options)
    return replace(base, critical_distance=distance)


@st.composite
def comparisons(draw, most=20):
    k = draw(st.integers(2, most))
    rank = st.one_of(st.integers(1, k).map(float), st.floats(1, k), st.floats(2, 2.01))
    ranks = draw(st.lists(rank, min_size=k, max_size=k))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    density = draw(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    upper = np.triu(rng.random((k, k)) < density, k=1)
    return shaped(np.clip(ranks, 1, k), upper | upper.T)


def lines_of(figure, kind):
    (axes,) = figure.axes
    return [line for line in axes.lines if line.get_gid().split("-")[0] == kind]


def line_of(figure, place):
    return next(x for x in lines_of(figure, "model") if x.get_gid() == f"model-{place}")


def rank_of(figure, place):
    """Return the x at which a model's line leaves the axis and runs down past the bars."""
    return line_of(figure, place).get_xdata()[0]


def lane_of(figure, place):
    """Return the x at which a model's line runs down to the height of its name."""
    return line_of(figure, place).get_xdata()[-2]


def text_boxes(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    (axes,) = figure.axes
    return {t.get_text(): t.get_window_extent(renderer) for t in axes.texts}, figure.bbox


def assert_texts_are_apart_and_inside(figure, n_models):
    boxes, page = text_boxes(figure)
    assert len(boxes) > n_models
    for (one, a), (other, b) in itertools.combinations(boxes.items(), 2):
        assert not a.overlaps(b), f"{one!r} overlaps {other!r}"
    for text, box in boxes.items():
        assert page.x0 <= box.x0, text
        assert box.x1 <= page.x1, text
        assert page.y0 <= box.y0, text
        assert box.y1 <= page.y1, text


def members_of(figure, comparison):
    """Return which models each bar and each dotted line joins, as they are seen."""
    starts = [rank_of(figure, place) for place in range(comparison.n_models)]
    lanes = [lane_of(figure, place) for place in range(comparison.n_models)]
    groups = []
    for bar in lines_of(figure, "bar"):
        left, right = bar.get_xdata()
        groups.append([j for j, x in enumerate(starts) if left - 0.03 <= x <= right + 0.03])
    dotted = [[lanes.index(x) for x in dots.get_xdata()] for dots in lines_of(figure, "dots")]
    return groups + dotted


def lines_meet(figure, bars):
    """Say whether two bars share a place, or one leaves the room between axis and names."""
    turns = [line.get_ydata()[-1] for line in lines_of(figure, "model")]
    inside = all(max(turns) < bar.get_ydata()[0] < 0 for bar in bars)
    for one, other in itertools.combinations(bars, 2):
        (a, b), (c, d) = one.get_xdata(), other.get_xdata()
        same_row = one.get_ydata()[0] == pytest.approx(other.get_ydata()[0])
        inside &= not same_row or b < c or d < a
    return not inside


def assert_bars_span_their_ranks(figure, comparison):
    length = lines_of(figure, "axis")[0].get_xdata()[1]
    ranks = comparison.average_ranks
    groups = {(ranks[group[0]], ranks[group[-1]]): group for group in comparison.cliques}
    bars = lines_of(figure, "bar")
    for bar in bars:
        ends = 1 + np.asarray(bar.get_xdata()) * (comparison.n_models - 1) / length
        assert any(ends == pytest.approx(pair) for pair in groups), ends
    return bars


@settings(deadline=None, max_examples=40)
@given(comparisons())
def test_every_pair_that_does_not_differ_is_shown_and_no_other(comparison):
    figure = cd_diagram(comparison)
    groups = members_of(figure, comparison)
    shown = {pair for group in groups for pair in itertools.combinations(group, 2)}
    for a, b in itertools.combinations(range(comparison.n_models), 2):
        assert ((a, b) in shown) == (not comparison.different.iloc[a, b])
    assert_bars_span_their_ranks(figure, comparison)
    assert not lines_meet(figure, [*lines_of(figure, "bar"), *lines_of(figure, "dotted")])
    lanes = [lane_of(figure, place) for place in range(comparison.n_models)]
    assert all(b - a > 0.1 for a, b in itertools.pairwise(lanes))  # in the order of the ranks


def test_a_bar_of_a_crowded_diagram_spans_from_its_first_to_its_last_rank():
    comparison = by_distance([1.0, *np.linspace(2.0, 2.6, 9), 10.0], 1.5)
    assert len(assert_bars_span_their_ranks(cd_diagram(comparison), comparison)) == 2


def test_models_leave_the_axis_at_their_ranks():
    figure = cd_diagram(by_distance([1.0, 2.5, 2.5, 4.0], 0.7))
    starts = [line.get_xdata()[0] for line in lines_of(figure, "model")]
    length = lines_of(figure, "axis")[0].get_xdata()[1]
    assert starts == pytest.approx([0, length / 2, length / 2, length])


def test_the_ruler_is_as_long_as_the_critical_distance():
    figure = cd_diagram(by_distance([1.0, 2.0, 3.0, 4.0, 5.0], 0.719))
    length = lines_of(figure, "axis")[0].get_xdata()[1]
    (ruler,) = lines_of(figure, "critical")
    assert np.ptp(ruler.get_xdata()) == pytest.approx(0.719 / 4 * length)
    assert "CD = 0.719" in text_boxes(figure)[0]
    assert not lines_of(cd_diagram(shaped([1, 2, 3], np.zeros((3, 3)))), "critical")


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize(
    "ranks",
    [
        np.linspace(1, 20, 20),
        np.full(20, 10.5),
        np.full(20, 1.0),
        np.full(20, 20.0),
        np.repeat([1, 4, 10.5, 17, 20], 4),
        10.5 + np.linspace(0, 1e-3, 20),
    ],
    ids=["even", "equal", "all first", "all last", "tied in fours", "nearly equal"],
)
def test_labels_never_overlap_with_20_models(ranks, long):
    names = [f"{LONG} {j}" if long and j % 3 == 0 else f"gjpq{j}" for j in range(20)]
    for comparison in (
        by_distance(ranks, 3.8, names=names),
        shaped(ranks, np.zeros((20, 20)), names=names),
    ):
        assert_texts_are_apart_and_inside(cd_diagram(comparison), 20)


@settings(deadline=None, max_examples=25)
@given(comparisons(), st.floats(1, 8))
def test_labels_never_overlap_at_any_size(comparison, axis_width):
    figure = cd_diagram(comparison, axis_width=axis_width)
    assert_texts_are_apart_and_inside(figure, comparison.n_models)


LONGER = [(2, 1.4), (3, 2.4), (10, 9.6)]  # distances longer than the axis


@pytest.mark.parametrize(("k", "distance"), [*((k, k / 7) for k in (3, 13, 21, 50, 150)), *LONGER])
def test_any_number_of_models_is_drawn_with_any_distance(k, distance):
    figure = cd_diagram(by_distance(np.linspace(1, k, k), distance))
    (ruler,) = lines_of(figure, "critical")
    assert max(ruler.get_xdata()) < figure.axes[0].get_xlim()[1]
    assert_texts_are_apart_and_inside(figure, k)


def test_the_best_model_is_on_the_top_left_with_its_rank():
    figure = cd_diagram(by_distance([1.2, 2.4, 2.9, 3.5], 0.7, names=["a", "b", "c", "d"]))
    boxes, _ = text_boxes(figure)
    assert {"a  1.20", "b  2.40", "2.90  c", "3.50  d"} <= set(boxes)
    assert boxes["a  1.20"].y0 > boxes["b  2.40"].y0
    assert boxes["3.50  d"].y0 > boxes["2.90  c"].y0
    assert boxes["a  1.20"].x1 < boxes["3.50  d"].x0
    assert "average rank (1 is best)" in boxes


def test_the_caption_says_what_was_tested_and_dots_are_explained_even_without():
    comparison = by_distance([1, 2, 3, 4], 0.7)
    said = " ".join(text_boxes(cd_diagram(comparison))[0])
    assert "Nemenyi, alpha = 0.05, 30 datasets; Friedman p =" in said
    assert "with a dot" not in said
    gap = shaped([1, 2, 3], [[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    said = " ".join(text_boxes(cd_diagram(gap, caption=False))[0])
    assert "with a dot" in said
    assert "Wilcoxon" not in said


def test_a_dollar_in_a_name_is_a_dollar():
    figure = cd_diagram(by_distance([1, 2], 0.5, names=["$x^2$", "a\n  b"]))
    boxes, _ = text_boxes(figure)
    assert "$x^2$  1.00" in boxes
    assert "2.00  a b" in boxes
    assert not figure.axes[0].texts[0].get_parse_math()


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf", ".SVG"])
def test_the_same_comparison_gives_the_same_file(tmp_path, suffix):
    scores = np.random.default_rng(0).normal(size=(20, 6))
    for name in ("one", "two"):
        cd_diagram(compare(scores), tmp_path / f"{name}{suffix}")
    one, two = ((tmp_path / f"{name}{suffix}").read_bytes() for name in ("one", "two"))
    assert one == two
    assert len(one) > 1000
    starts = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}
    assert one.startswith(starts[suffix.lower()])


def test_the_style_of_the_user_neither_changes_the_file_nor_is_changed(tmp_path):
    comparison = by_distance([1, 2, 3], 0.7)
    cd_diagram(comparison, tmp_path / "plain.svg")
    with mpl.rc_context({"font.size": 30, "savefig.bbox": "tight", "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        cd_diagram(comparison, tmp_path / "styled.svg")
        assert dict(mpl.rcParams) == before
    assert (tmp_path / "plain.svg").read_bytes() == (tmp_path / "styled.svg").read_bytes()


def test_pyplot_is_not_touched(tmp_path):
    code = (
        "import sys\n"
        "from cocoloss.report.cd_diagram import cd_diagram\n"
        "from cocoloss.stats import compare\n"
        f"cd_diagram(compare([[1, 2], [2, 3]]), {str(tmp_path / 'a.png')!r})\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        *((name, {}, r"must end in \.svg, \.png, \.pdf") for name in ("a.jpg", "a", "a.svg.txt")),
        ("a.svg", {"axis_width": -1}, "must be a positive number"),
        ("nowhere/a.svg", {}, "there is no folder"),
    ],
)
def test_refuses_what_cannot_be_drawn(tmp_path, name, options, said):
    with pytest.raises(CoCoError, match=said):
        cd_diagram(by_distance([1, 2], 0.5), tmp_path / name, **options)


def test_says_how_to_get_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.backends", None)
    with pytest.raises(CoCoError, match="needs matplotlib; install it"):
        cd_diagram(by_distance([1, 2], 0.5))
