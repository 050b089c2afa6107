"""What results/costs.py makes of the rows of bench/seconds.py and bench/scaling.py."""

import importlib
import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.report.figures import figure_bytes
from synthetic_store import fill_accuracy, infos_of, make_spec

MODELS = ("coco-default", "coco-w", "ksvm-w", "rf-w")
N_TABLES = 12
INNER, TRIALS = 3, 2  # of the made-up benchmark


@pytest.fixture
def findings_of(tmp_path):
    """Findings of a made-up benchmark that lacks some (table, model)."""

    def make(**options):
        with Store(tmp_path / "results.sqlite") as store:
            fill_accuracy(store, make_spec(models=MODELS), infos_of(N_TABLES), **options)
            return read_findings(store)[0]

    return make


def lines_in(file, lines):
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def seconds_in(file, seconds, *, n_tables=N_TABLES):
    return lines_in(
        file,
        [
            {"table": f"table-{k:02}", "model": model, "fit seconds": of_fit * 4 ** (k % 2)}
            for k in range(n_tables)
            for model, of_fit in seconds.items()
        ],
    )


def test_a_tuned_model_takes_its_trials_times_the_inner_folds_and_a_fit(
    script, findings_of, tmp_path
):
    findings = findings_of()
    file = seconds_in(tmp_path / "seconds.jsonl", dict.fromkeys(MODELS, 0.5), n_tables=4)
    costs = script("costs").costs_of_one_table(findings, file)
    assert costs["fit"].to_list() == pytest.approx([1.0] * len(MODELS))  # of 0.5 and 2
    assert costs["seconds"].to_list() == pytest.approx([1 + TRIALS * INNER] * len(MODELS))
    means = findings.rows.groupby("model")["balanced_accuracy"].mean()
    assert costs["quality"].to_dict() == pytest.approx(means.to_dict())
    assert costs.attrs == {"n_tables": N_TABLES, "n_timed": 4, "left_out": []}


def test_models_join_when_they_have_quality_and_seconds(script, findings_of, tmp_path):
    gone = {("table-03", "rf-w"), ("table-05", "ksvm-w"), ("table-06", "ksvm-w")}
    findings = findings_of(timed_out=gone)
    made = script("costs").costs_of_one_table
    file = seconds_in(tmp_path / "seconds.jsonl", {"coco-default": 1, "rf-w": 2, "catboost-w": 3})
    costs = made(findings, file)
    assert list(costs.index) == ["coco-default", "rf-w"]
    assert costs.attrs["n_tables"] == N_TABLES - 1  # without that which the forest lacks
    assert costs.attrs["left_out"] == ["ksvm-w"]  # which lacks two of twelve
    assert made(findings, seconds_in(file, {"coco-default": 1, "ksvm-w": 2})) is None


def test_large_tables_come_in_classes_of_their_training_rows(script, findings_of):
    findings = findings_of()
    by_size, notes = script("costs").costs_by_size(findings)
    assert notes == ["5,000 to 15,000 rows: not drawn, 0 tables have all models."]
    n_train = findings.characters["n_rows"] * 0.9
    assert {name: costs.attrs["n_tables"] for name, costs in by_size.items()} == {
        "up to 5,000": (n_train <= 5000).sum(),
        "more than 15,000": (n_train > 15_000).sum(),
    }
    assert not by_size["up to 5,000"]["fits"].any()
    picture = script("costs").by_size_picture(by_size, notes)
    assert picture.caption.endswith(notes[0])
    assert figure_bytes(picture.figure, ".svg") == figure_bytes(picture.draw(), ".svg")


def test_a_size_of_which_few_tables_have_all_models_is_not_drawn(script, findings_of, tmp_path):
    large = [f"table-{k:02}" for k in range(2, N_TABLES, 3)]  # of 20,000 rows
    gone = {(name, "rf-w") for name in large[:-2]}
    by_size, notes = script("costs").costs_by_size(findings_of(timed_out=gone))
    assert set(by_size) == {"up to 5,000"}
    assert notes[-1].startswith("More than 15,000 rows: not drawn, 2 tables have all models (")
    assert notes[-1].endswith(f"{large[-3]}: a model is missing).")


def test_tables_that_lack_a_model_do_not_count(script, findings_of):
    by_size, notes = script("costs").costs_by_size(findings_of(timed_out={("table-02", "rf-w")}))
    assert by_size["more than 15,000"].attrs["n_tables"] == 3
    assert notes[-1] == (
        "More than 15,000 rows: some tables are left out (table-02: a model is missing)."
    )


def overlap(one, other):
    return all(max(one[k], other[k]) < min(one[k + 2], other[k + 2]) for k in (0, 1))


def test_names_cover_neither_each_other_nor_points(script):
    costs, rng = script("costs"), np.random.default_rng(0)
    room, panel = 5.0, (0.0, 0.0, 700.0, 400.0)
    for _ in range(4):
        points = np.vstack(
            [rng.uniform((60, 40), (640, 360), size=(8, 2)), [[300, 200], [306, 203]]]
        )
        taken = [(x - room, y - room, x + room, y + room) for x, y in points]
        boxes = costs.places_beside(points, [(60, 14)] * len(points), taken, panel, room)
        crowded = sum(overlap(*pair) for pair in combinations(boxes, 2))
        assert crowded + sum(overlap(box, point) for box in boxes for point in taken) == 0
        assert np.min(boxes) >= 0
        assert (np.array(boxes)[:, 2:] <= panel[2:]).all()


def test_slopes_are_powers_of_what_grows(script, tmp_path):
    costs = script("costs")
    powers = {"rows": 1.0, "columns": 0.5, "classes": 2.0}
    lines = [
        {"axis": axis, "size": size, "model": model, "fit seconds": 1e-3 * size**power}
        | {"fit megabytes": 0.5, "predict seconds": 0.25}
        | {"predict megabytes": 2.0, "balanced accuracy": 0.75}
        for axis, power in powers.items()
        for size in costs.TICKS[axis]
        for model in costs.CONTENDERS
    ]
    parts = costs.scaling_parts(lines_in(tmp_path / "scaling.jsonl", lines))
    for row in parts["slopes"].rows:
        assert [cell.text for cell in row[1:]] == ["1.00", "0.50", "2.00", *["0.00"] * 3]
    assert [cell.text for cell in parts["fit"].rows[0]] == ["1,000 rows", *["1.00"] * 3, *["0"] * 3]
    assert [c.text for c in parts["predict"].rows[-1]][1::3] == ["0.25", "2", "0.750"]
    assert {cell.text for row in parts["ratios"].rows for cell in row[1:]} == {"1.0"}
    assert figure_bytes(parts["growth"].figure, ".svg").startswith(b"<?xml")


def test_a_made_up_table_only_grows(monkeypatch):
    bench = Path(__file__).parents[1] / "bench"
    monkeypatch.syspath_prepend(bench)
    scaling = importlib.import_module("scaling")
    X, y = scaling.made_up(12_000, 20, 5)
    X_few, y_few = scaling.made_up(500, 20, 5)
    np.testing.assert_array_equal(X[:500], X_few)
    np.testing.assert_array_equal(y[:500], y_few)
    assert np.bincount(y, minlength=5).min() > 600  # none of the five is rare
