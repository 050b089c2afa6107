"""Parts of the page of results that are about imbalance."""

import statistics
from dataclasses import replace

import pytest

from cocoloss.benchmark.analysis import analyse
from cocoloss.benchmark.findings import read_findings
from cocoloss.benchmark.store import Store
from cocoloss.report.document import MISSING, Grid, Picture
from synthetic_store import fill_accuracy, infos_of, make_spec

MODELS = ["coco-plain", "coco-balanced", "coco-s1"]
N_TABLES, N_FOLDS = 10, 4


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Findings of an accuracy and an imbalance experiment on the same tables."""
    specs = [
        make_spec(name="accuracy-lite", models=["coco", "rf"], folds=N_FOLDS),
        make_spec("imbalance", name="imbalance-lite", models=MODELS, folds=N_FOLDS),
    ]
    with Store(tmp_path_factory.mktemp("store") / "results.sqlite") as store:
        for seed, spec in enumerate(specs):
            fill_accuracy(store, spec, infos_of(N_TABLES), seed=seed)
        return tuple(read_findings(store))


def test_every_measure_has_its_parts(script, both):
    rows = both[1].rows
    found = replace(both[1], rows=rows.assign(balanced_accuracy_uniform=rows["balanced_accuracy"]))
    parts = dict(script("page").parts_of(found, analyse(found)))
    for measure in ("balanced_accuracy", "balanced_accuracy_uniform", "inner_score"):
        where = f"imbalance-lite/{measure}"
        assert isinstance(parts[f"{where}/scatter"], Picture)
        for part in ("trend", "slopes", "gains"):
            assert isinstance(parts[f"{where}/{part}"], Grid)
        assert [row[0].text for row in parts[f"{where}/slopes"].rows] == MODELS[1:]


def test_without_the_papers_pair_there_is_no_scatter(script, both):
    rows = both[1].rows
    found = replace(both[1], rows=rows[rows["model"] != "coco-balanced"])
    parts = dict(script("page").parts_of(found, analyse(found)))
    where = "imbalance-lite/balanced_accuracy"
    assert {f"{where}/slopes", f"{where}/gains"} <= set(parts)
    assert not {f"{where}/scatter", f"{where}/trend"} & set(parts)


def test_noise_is_there_if_both_experiments_are(script, both):
    page, (accuracy, imbalance) = script("page"), both
    together = page.parts_of_several({"accuracy-lite": accuracy, "imbalance-lite": imbalance})
    assert list(together) == ["imbalance-lite/noise"]
    assert page.parts_of_several({"imbalance-lite": imbalance}) == {}


def noise_by_hand(accuracy, imbalance):
    """Return coco minus the model that it is the same as, by dataset, with the class ratio."""
    found = {}
    for info in infos_of(N_TABLES):
        same = "coco-plain" if info.class_ratio < 3 else "coco-balanced"
        scores = []
        for rows, model in ((accuracy.rows, "coco"), (imbalance.rows, same)):
            chosen = (rows["dataset"] == info.name) & (rows["model"] == model)
            scores.append(rows.loc[chosen, "balanced_accuracy"].tolist())
        if all(len(each) == N_FOLDS for each in scores):
            apart = statistics.mean(scores[0]) - statistics.mean(scores[1])
            found[info.name] = (info.class_ratio, apart)
    return found


def expected_line(values):
    return [
        str(len(values)),
        f"{statistics.mean(values):+.4f}",
        f"{statistics.stdev(values):.4f}",
        f"{statistics.mean(map(abs, values)):.4f}",
    ]


@pytest.mark.parametrize("lacking", [(), ("accuracy", "coco"), ("imbalance", "coco-balanced")])
def test_noise_is_the_difference_of_two_runs_of_the_same_model(script, both, lacking):
    accuracy, imbalance = both
    kept = {"accuracy": accuracy.rows, "imbalance": imbalance.rows}
    if lacking:  # a fold on a table of high ratio
        kind, model = lacking
        (name, *_) = [info.name for info in infos_of(N_TABLES) if info.class_ratio >= 3]
        rows = kept[kind]
        gone = (rows["dataset"] == name) & (rows["model"] == model) & (rows["fold"] == 1)
        assert gone.any()
        kept[kind] = rows[~gone]
    accuracy = replace(accuracy, rows=kept["accuracy"])
    imbalance = replace(imbalance, rows=kept["imbalance"])
    pairs = noise_by_hand(accuracy, imbalance).values()
    assert len(pairs) == N_TABLES - bool(lacking)
    grid = script("noise").noise_grid(accuracy, imbalance)
    assert [[cell.text for cell in row] for row in grid.rows] == [
        ["below 3: coco-plain", *expected_line([gain for ratio, gain in pairs if ratio < 3])],
        ["3 or more: coco-balanced", *expected_line([gain for ratio, gain in pairs if ratio >= 3])],
        ["all", *expected_line([gain for _, gain in pairs])],
    ]


def test_noise_of_nothing_is_empty(script, both):
    accuracy, imbalance = both
    begun = replace(imbalance, rows=imbalance.rows.head(0)[["dataset", "model", "fold"]])
    without = replace(accuracy, rows=accuracy.rows[accuracy.rows["model"] == "rf"])
    for pair in ((accuracy, begun), (without, imbalance)):
        for row in script("noise").noise_grid(*pair).rows:
            assert [cell.text for cell in row[1:]] == ["0", MISSING, MISSING, MISSING]


def test_one_dataset_has_no_standard_deviation(script, both):
    accuracy, imbalance = both
    one = imbalance.rows[imbalance.rows["dataset"] == "table-00"]
    grid = script("noise").noise_grid(accuracy, replace(imbalance, rows=one))
    whole = [cell.text for cell in grid.rows[-1]]
    assert whole[:2] == ["all", "1"]
    assert whole[3] == MISSING
