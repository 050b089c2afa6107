"""Where the rows lie after some epochs."""

import json

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits

from cocoloss.benchmark.analysis import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import load_experiment
from play import play, spec_of, table_of
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


@pytest.fixture(scope="module")
def parted(tumours):
    return result_of(tumours)


def test_two_classes_part_towards_opposite_points(parted):
    cosines = [row["cosine"] for row in parted.rows]
    assert cosines[-1] < -0.9
    assert cosines[-1] < cosines[0]
    assert parted.rows[-1]["dispersity"] < parted.rows[0]["dispersity"]
    assert 0.5 < parted.rows[-1]["smallest_norm"] <= parted.rows[-1]["largest_norm"] < 1.1
    assert parted.measures["cosine"] == cosines[-1]


def test_the_figures_are_those_of_the_points(parted):
    extra = parted.extra
    points, labels = np.array(extra["embeddings"]), np.array(extra["labels"])
    assert extra["epochs"] == [row["epoch"] for row in parted.rows] == [1, 10, 60]
    assert points.shape == (3, 569, 2)
    assert extra["classes"] == ["0", "1"]
    for row, h, centres in zip(parted.rows, points, extra["centres"], strict=True):
        a, b = (h[labels == c].mean(axis=0) for c in (0, 1))
        np.testing.assert_allclose(centres, [a, b], atol=1e-3)
        cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
        assert row["cosine"] == pytest.approx(cosine, abs=1e-2)
    json.dumps(extra)


def test_many_classes_share_the_circle_and_are_told_by_their_nearest_pair():
    table = table_of(*load_digits(n_class=6, return_X_y=True))
    result = result_of(table, epochs=[1])
    means = np.array(result.extra["centres"][0])
    assert means.shape == (6, 2)
    unit = means / np.linalg.norm(means, axis=1, keepdims=True)
    nearest = max(unit[i] @ unit[j] for i in range(6) for j in range(i))
    assert result.measures["cosine"] == pytest.approx(nearest, abs=1e-2)


def test_the_same_spec_gives_the_same_points_and_large_tables_are_thinned(tumours):
    first, again = (result_of(tumours, epochs=[2], max_points=50) for _ in range(2))
    assert first.extra == again.extra
    assert len(first.extra["labels"]) == len(first.extra["embeddings"][0]) == 50


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
