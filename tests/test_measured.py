"""Tables of few labels and of the learnt metric say what their rows say."""

import json
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cocoloss.report.document import MISSING

ROOT = Path(__file__).parents[1]


@pytest.fixture
def measured(script):
    return script("measured")


@pytest.fixture
def bench(monkeypatch):
    pytest.importorskip("lightgbm")
    monkeypatch.syspath_prepend(ROOT / "bench")
    import learnt_metric  # noqa: PLC0415 - found by the path that was just added

    return learnt_metric


def written(folder, lines):
    file = folder / "rows.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    return file


def cells_of(grid):
    return {
        row[0].text: dict(zip(grid.columns[1:], [cell.text for cell in row[1:]], strict=True))
        for row in grid.rows
    }


def few(table, way, score, *, draw=0, chose=False):
    return {
        "table": table,
        "labels": 5,
        "draw": draw,
        "way": way,
        "chose": chose,
        "balanced accuracy": score,
        "log loss": 1 - score,
        "seconds": 1.0,
    }


def test_gains_are_over_the_supervised_fit_of_the_same_draws(measured, tmp_path):
    lines = [few(table, way, 0.5, chose=True) for table in "yz" for way in ("ignore", "soft")]
    lines += [few("a", "ignore", 0.6), few("a", "soft", 0.7)]
    lines += [few("b", "ignore", 0.5), few("b", "ignore", 0.9, draw=1)]
    lines += [few("b", "soft", 0.48)]  # of one draw only, which is the only one that counts
    lines += [few("a", "networks, ignore", 0.2), few("a", "networks, soft", 0.25)]
    parts = measured.few_label_parts(written(tmp_path, lines))
    gains = cells_of(parts["few-labels/gains-others"])
    error = statistics.stdev([0.1, -0.02]) / 2**0.5
    assert gains == {
        "soft": {
            "5 labels per class": f"+0.040 ± {error:.3f}",
            "better at 5": "1 of 2",
            "verdict at 5": "too few tables",
        },
        "networks, soft": {
            "5 labels per class": f"+0.050 ± {MISSING}",
            "better at 5": "1 of 1",
            "verdict at 5": "too few tables",
        },
    }
    assert cells_of(parts["few-labels/tables-others"]) == {
        "a": {"soft, 5": "+0.100"},
        "b": {"soft, 5": "-0.020"},
    }
    assert cells_of(parts["few-labels/gains-chose"])["soft"]["better at 5"] == "0 of 2"
    assert len(parts["few-labels/gains"].figure.axes) == 1


def test_means_are_over_draws_that_all_ways_have(measured, tmp_path):
    lines = [few("a", "ignore", 0.6), few("a", "soft", 0.7), few("a", "ignore", 0.1, draw=1)]
    lines += [few("z", way, 0.5, chose=True) for way in ("ignore", "soft")]
    parts = measured.few_label_parts(written(tmp_path, lines))
    means = cells_of(parts["few-labels/means-others"])
    assert means["ignore"] == {"5 labels per class": f"0.600 ± {MISSING}", "seconds": "1.00"}


def metric_line(table, model, added, score, *, split=0, **more):
    return {
        "table": table,
        "model": model,
        "added": added,
        "split": split,
        "columns": 4 + added,
        "balanced accuracy": score,
        "log loss": 1 - score,
        "fit seconds": 1.0,
        "shuffling seconds": 2.0,
    } | more


def test_importances_are_compared_by_ranks_and_by_the_first_three(measured, tmp_path):
    own, turned, last = [4, 3, 2, 1], [1, 2, 3, 4], [3, 4, 2, 1]
    lines = [
        metric_line("a", model, 0, 0.8, split=split, **{"own": own, "by shuffling": shuffled})
        for model, shuffled in (("closed form", last), ("LightGBM", turned))
        for split in (0, 1)
    ]
    lines += [metric_line("a", "LightGBM", 10, 0.7, **{"share of noise": 0.25})]
    lines += [metric_line("a", "closed form", 10, 0.8, **{"share of noise": 0.0})]
    lines += [metric_line("m", "closed form", 0, 0.5)]
    parts = measured.metric_parts(written(tmp_path, lines))
    alike = cells_of(parts["learnt-metric/importances"])
    assert alike["closed form: own, shuffled"] == {
        "rank correlation": f"0.80 ± {MISSING}",
        "least of a table": "0.80",
        "shared of the top 3": f"3.00 ± {MISSING}",
    }
    assert alike["LightGBM: own, shuffled"]["rank correlation"] == f"-1.00 ± {MISSING}"
    assert alike["LightGBM: own, shuffled"]["shared of the top 3"] == f"2.00 ± {MISSING}"
    assert (
        alike["closed form: own, one split and the other"]["rank correlation"]
        == f"1.00 ± {MISSING}"
    )
    curve = cells_of(parts["learnt-metric/noise-balanced-accuracy"])
    assert curve["LightGBM"] == {"0": "0.800", "10": "0.700", "0 to 10": f"-0.100 ± {MISSING}"}
    assert cells_of(parts["learnt-metric/share-of-noise"])["LightGBM"]["10"] == "0.25"
    assert cells_of(parts["learnt-metric/as-it-is"])["closed form"]["balanced accuracy"] == "0.500"
    assert len(parts["learnt-metric/curves"].figure.axes) == 3


def test_curves_are_of_columns_and_splits_that_all_models_have(measured, tmp_path):
    lines = [
        metric_line("a", model, added, 0.9 - added / 100, split=split)
        for model in ("closed form", "LightGBM")
        for added in (0, 10, 30)
        for split in (0, 1)
        if (model, added, split) not in {("LightGBM", 30, 0), ("LightGBM", 30, 1)}
    ]
    rows = measured.complete(pd.DataFrame(lines))
    assert set(rows["added"]) == {0, 10}
    assert set(rows["split"]) == {0, 1}
    fewer = measured.complete(pd.DataFrame([line for line in lines if line["split"] == 0]))
    assert set(fewer["added"]) == {0, 10}
    rows = measured.complete(pd.DataFrame([*lines, metric_line("a", "LightGBM", 30, 0.5)]))
    assert set(rows["added"]) == {0, 10, 30}
    assert set(rows["split"]) == {0}


def test_columns_of_noise_are_the_first_of_more_and_every_second_is_a_shuffled_copy(bench):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.random(20), "b": pd.Categorical(list("xy") * 10)})
    some, more = bench.with_noise(X, 3, seed=1), bench.with_noise(X, 6, seed=1)
    pd.testing.assert_frame_equal(more.iloc[:, :5], some)
    pd.testing.assert_frame_equal(some[["a", "b"]], X)
    for name in ("noise 1", "noise 3", "noise 5"):
        values = sorted(more[name])
        assert values in (sorted(X["a"]), sorted(X["b"]))
        assert list(more[name]) not in (list(X["a"]), list(X["b"]))


def test_the_closed_form_without_a_metric_has_one_weight_for_all_columns(bench):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    plain, learnt = (bench.MODELS[name]().fit(X, y) for name in (bench.PLAIN, bench.KERNELS))
    assert all(np.ptp(kernel.metric) == 0 for kernel in plain.model_.machine.kernels)
    assert any(np.ptp(kernel.metric) > 0 for kernel in learnt.model_.machine.kernels)
