"""Where the rows lie after some epochs."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from cocoloss.benchmark.experiments import load_experiment
from cocoloss.benchmark.findings import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import TableInfo
from cocoloss.exceptions import CoCoError
from play import iris, play, spec_of, table_of
from synthetic_store import PAPER, fill_evolution, infos_of, make_spec

evolution = load_experiment("evolution", [PAPER])
OPTIONS = {"epochs": [1, 10, 60], "hidden_units": 32, "learning_rate": 3e-4, "batch_size": 32}


@pytest.fixture(scope="module")
def tumours():
    return table_of(*load_breast_cancer(return_X_y=True), name="tumours")


def result_of(table, model="coco", **options):
    spec = spec_of("evolution", [model], options=OPTIONS | options)
    ((_, result),) = play(evolution, spec, table)
    assert result.ok, result.error
    return result


def test_two_classes_part_towards_opposite_points(tumours):
    result = result_of(tumours)
    cosines = [row["cosine"] for row in result.rows]
    assert cosines[-1] < -0.9
    assert cosines[-1] < cosines[0]
    assert result.rows[-1]["dispersity"] < result.rows[0]["dispersity"]
    assert 0.5 < result.rows[-1]["smallest_norm"] <= result.rows[-1]["largest_norm"] < 1.1
    assert result.measures["cosine"] == cosines[-1]


def test_the_figures_are_those_of_the_points(tumours):
    result = result_of(tumours)
    points = np.array(result.extra["embeddings"])
    labels = np.array(result.extra["labels"])
    assert result.extra["epochs"] == [row["epoch"] for row in result.rows] == [1, 10, 60]
    assert points.shape == (3, 569, 2)
    assert result.extra["classes"] == ["0", "1"]
    for row, h, centres in zip(result.rows, points, result.extra["centres"], strict=True):
        a, b = (h[labels == c].mean(axis=0) for c in (0, 1))
        np.testing.assert_allclose(centres, [a, b], atol=1e-3)
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert row["cosine"] == pytest.approx(cosine, abs=1e-2)
    json.dumps(result.extra)


def test_three_classes_are_told_by_their_nearest_pair():
    result = result_of(iris(), epochs=[60], batch_size=16)
    means = np.array(result.extra["centres"][0])
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    nearest = max(unit[i] @ unit[j] for i in range(3) for j in range(i))
    assert result.measures["cosine"] == pytest.approx(nearest, abs=1e-2)


def test_many_classes_share_the_circle():
    table = table_of(*load_digits(n_class=6, return_X_y=True))
    result = result_of(table, epochs=[1])
    assert np.array(result.extra["centres"]).shape == (1, 6, 2)


def test_the_same_spec_gives_the_same_points(tumours):
    first, again = (result_of(tumours, epochs=[3]) for _ in range(2))
    assert first.extra == again.extra


def test_large_tables_are_thinned(tumours):
    result = result_of(tumours, epochs=[1], max_points=50)
    assert len(result.extra["labels"]) == len(result.extra["embeddings"][0]) == 50


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epoch": [5]}, "unknown key options.epoch; did you mean 'epochs'?"),
        ({"epochs": 5}, "options.epochs must be a list"),
        ({"epochs": [0]}, "each of options.epochs must be at least 1"),
        ({"hidden_units": "many"}, "options.hidden_units must be a whole number"),
        ({"learning_rate": -1}, "options.learning_rate must be a number that is not negative"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(CoCoError, match=message):
        evolution.check_options(options)


def test_a_forest_has_no_embedding():
    with pytest.raises(CoCoError, match=r"the models of an evolution are coco, .* not 'rf'"):
        evolution.plan(spec_of("evolution", ["rf"]), [TableInfo("iris", 150, 4, 3, "")])


def test_evolution_keeps_what_was_measured(tmp_path):
    spec = make_spec("evolution", models=["coco", "dr"])
    with Store(tmp_path / "s.sqlite") as store:
        fill_evolution(store, spec, infos_of(1, ["credit-g"]), n=50)
        (findings,) = read_findings(store)
    run, _ = evolution.analyse(findings).runs
    assert (run.dataset, run.model, run.epochs) == ("credit-g", "coco", (50, 150, 250, 500))
    assert run.embeddings.shape == (4, 50, 2)
    ends = run.centres[3]
    cosine = ends[0] @ ends[1] / np.linalg.norm(ends, axis=1).prod()
    assert run.measures["cosine"][3] == pytest.approx(cosine)
    assert np.isnan(run.measures["largest_norm"]).all()  # not measured
