"""What a benchmark's report shows is what its rows say."""

import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sqlalchemy as sa

from cocoloss.benchmark.analysis import (
    PAPER_MODELS,
    WEIGHTED,
    Leads,
    NotRanked,
    printed_ranks,
    rank,
    read_findings,
)
from cocoloss.benchmark.store import COLUMNS, Store
from cocoloss.benchmark.tasks import Result
from cocoloss.exceptions import CoCoError
from cocoloss.report.bench_report import read_chapters
from cocoloss.stats import compare
from synthetic_store import PAPER, analyse, begin, fill_accuracy, infos_of, make_spec, put

PRINTED = printed_ranks([PAPER])
HOLES = {
    "failed": {("table-01", "ce")},
    "timed_out": {("table-02", "rf")},
    "left_open": {("table-03", "dr")},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("store") / "results.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def accuracy(store):
    fill_accuracy(store, make_spec(), infos_of(12), **HOLES)
    return read_findings(store, ("accuracy-made-up",))[0]


def test_findings_hold_every_fold_count_the_trials_and_know_the_tables(accuracy):
    there = 12 * 5 - 3
    assert len(accuracy.rows) == there * 10
    assert accuracy.units["n_trials"].sum() == there * 2
    assert accuracy.n_tasks == there * 3 + 2
    assert accuracy.core_seconds == pytest.approx(1.5 * accuracy.n_tasks)
    unit = accuracy.units.iloc[0]
    assert unit["tuning_seconds"] == pytest.approx(3.0)
    assert unit["params"] == [{"learning_rate_init": 0.00123456, "hidden_layer_sizes": [64, 64]}]
    assert unit["n_folds"] == 10
    info = infos_of(12)[5]
    line = accuracy.characters.loc[info.name]
    for name in ("n_rows", "class_ratio", "categorical_share"):
        assert line[name] == getattr(info, name)


def test_findings_say_what_is_missing_and_why(accuracy):
    found = {(m.dataset, m.model): (m.status, m.reason) for m in accuracy.missing.itertuples()}
    assert found == {
        ("table-01", "ce"): ("failed", "LinAlgError: <singular> & failed"),
        ("table-02", "rf"): ("timeout", "LinAlgError: <singular> & timeout"),
        ("table-03", "dr"): ("open", "not finished yet"),
    }


def test_folds_with_their_own_arguments_are_all_kept(tmp_path):
    spec = make_spec(models=["rf"], folds=3)
    with Store(tmp_path / "s.sqlite") as store:
        unit = begin(store, spec, infos_of(1))["table-00", "rf"]
        for k in range(3):
            row = {"fold": k, "balanced_accuracy": 0.5}
            result = Result({}, [row], {"feature_share": k / 2})
            put(store, spec, unit, "fold", f"{k}", result)
        findings = read_findings(store)[0]
    assert findings.units["params"][0] == [{"feature_share": k / 2} for k in range(3)]


def test_a_store_without_the_benchmark_is_told_so(store, accuracy, tmp_path):
    with pytest.raises(CoCoError, match="no benchmark 'x'; it has accuracy-made-up"):
        read_findings(store, ("x",))
    with Store(tmp_path / "s.sqlite") as empty, pytest.raises(CoCoError, match="is empty"):
        read_findings(empty)


def test_ranks_are_those_of_the_statistics(accuracy):
    ranking = analyse(accuracy).rankings[0]
    rows = accuracy.rows.rename(columns={"balanced_accuracy": "score"})
    whole = {"missing": "drop_datasets", "ranking": "folds"}
    competition = compare(rows[["dataset", "model", "fold", "score"]], **whole)
    averaged = compare(rows[["dataset", "model", "fold", "score"]], ties="average", **whole)
    expected = competition.average_ranks.to_dict()
    assert ranking.comparison.average_ranks.to_dict() == pytest.approx(expected)
    assert ranking.averaged.average_ranks.to_dict() == averaged.average_ranks.to_dict()
    assert ranking.by_score.ranking == "scores"
    assert set(ranking.comparison.dropped) == {"table-01", "table-02", "table-03"}
    assert any("3 of 12 datasets are left out" in note for note in ranking.notes)


def test_missing_results_can_count_as_the_worst(accuracy):
    ranking = analyse(accuracy, "worst").rankings[0]
    assert ranking.comparison.n_datasets == 12
    assert set(ranking.comparison.filled) == {("table-01", "ce"), ("table-02", "rf")} | {
        ("table-03", "dr")
    }


def test_dispersity_is_ranked_lowest_first_among_networks(accuracy):
    (ranking,) = analyse(accuracy).dispersity
    assert set(ranking.comparison.models) == {"coco", "dr", "ce"}
    assert ranking.comparison.models[0] == "coco"
    assert not ranking.comparison.higher_is_better
    assert ranking.printed.ranks == PRINTED["dispersity"].ranks


def made_up_rows(models, n_datasets=8, n_folds=10, step=0.02):
    """Return scores that grow from model to model, and so do dispersities."""
    rng = np.random.default_rng(0)
    lines = [
        (f"d{d}", model, k, 0.7 + step * place + 0.01 * rng.normal(), 1.0 + place + rng.random())
        for d in range(n_datasets)
        for place, model in enumerate(models)
        for k in range(n_folds)
    ]
    columns = ["dataset", "model", "fold", "balanced_accuracy", "dispersity"]
    return pd.DataFrame(lines, columns=columns)


@pytest.mark.parametrize(
    ("models", "scores", "dispersities"),
    [
        (
            ["dr-sphere", "coco", "ce", "dr", "ce-w"],
            {"paper": {"coco", "ce", "dr"}, "sphere": {"coco", "dr-sphere", "ce"}},
            ["dispersity-paper", "dispersity-sphere", "dispersity-all"],
        ),
        (
            ["coco", "dr", "ce", "ce-w"],
            {"paper": {"coco", "dr", "ce"}},
            ["dispersity-paper", "dispersity-all"],
        ),
        (  # it stands for dot regression that is not there
            ["coco", "dr-sphere", "ce", "hgb"],
            {"paper": {"coco", "ce"}, "sphere": {"coco", "dr-sphere", "ce"}},
            ["dispersity-paper", "dispersity-sphere", "dispersity-all"],
        ),
        (
            ["coco", "dr-sphere", "ce"],
            {"paper": {"coco", "ce"}},
            ["dispersity-paper", "dispersity-all"],
        ),
    ],
)
def test_the_sphere_is_ranked_where_it_is_there_and_not_all(accuracy, models, scores, dispersities):
    spec = {**accuracy.spec, "models": {"names": models, "own": {}}}
    found = analyse(replace(accuracy, rows=made_up_rows(models), spec=spec))
    members = {ranking.name: set(ranking.comparison.models) for ranking in found.rankings}
    assert {name: members.get(name) for name in ("paper", "sphere")} == {"sphere": None} | scores
    rankings = {ranking.name: ranking for ranking in found.dispersity}
    assert list(rankings) == dispersities
    sphere = rankings.get("dispersity-sphere")
    if sphere is not None:
        first = [model for model in models if model in ("dr-sphere", "coco", "ce")]
        assert list(sphere.comparison.models) == first  # lowest first, as made up
        assert sphere.measure == "dispersity"
        assert sphere.printed is None  # the paper's numbers are of other models


@pytest.mark.parametrize(("n_models", "n_folds"), [(11, 10), (3, 3)])
def test_where_wilcoxon_could_say_nothing_another_test_ranks(n_models, n_folds):
    models = [f"m{j}" for j in range(n_models)]
    ranking = rank(made_up_rows(models, n_folds=n_folds), models, name="all", title="All")
    assert ranking.comparison.ranking == "folds"
    assert ranking.fold_test == "corrected_t"
    assert any("corrected t-test" in note for note in ranking.notes)


def test_what_cannot_be_compared_is_said():
    one_fold = rank(made_up_rows(["a", "b"], n_folds=1), ["a", "b"], name="all", title="All")
    assert one_fold.comparison.ranking == "scores"
    assert "one fold only" in one_fold.notes[0]
    lacking = rank(made_up_rows(["a", "b"]), ["a", "b", "c"], name="all", title="All")
    assert "Without c" in lacking.notes[0]
    assert lacking.comparison.n_models == 2
    one_table = rank(made_up_rows(["a", "b"], n_datasets=1), ["a", "b"], name="all", title="All")
    assert isinstance(one_table, NotRanked)
    assert "two or more" in one_table.reason


def test_printed_numbers_stand_beside_the_same_models_only():
    rows = made_up_rows([*PAPER_MODELS, "hgb"])
    theirs = PRINTED["balanced_accuracy"]
    same = rank(rows, PAPER_MODELS, name="p", title="", printed=theirs)
    more = rank(rows, [*PAPER_MODELS, "hgb"], name="a", title="", printed=theirs)
    assert same.printed is theirs
    assert more.printed is None


def test_without_the_file_nothing_printed_stands_beside(accuracy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert printed_ranks([tmp_path]) == {}
    (ranking,) = read_chapters([accuracy])[0].analysis.rankings
    assert ranking.printed is None


def test_groups_name_models_that_there_are():
    from cocoloss.benchmark.models import MODELS  # noqa: PLC0415 - heavy

    assert set(PAPER_MODELS) | set(WEIGHTED) <= set(MODELS)


@pytest.mark.parametrize(
    ("models", "reference"),
    [
        (["rf", "coco-w", "coco"], "coco"),
        (["rf-w", "coco-plain", "coco-w"], "coco-w"),
        (["coco-s1", "coco-plain"], "coco-plain"),
        (["a", "b"], "a"),
    ],
)
def test_coco_is_what_others_are_compared_with_and_else_the_best(models, reference):
    rows = made_up_rows(models, n_folds=6, step=-0.1)
    assert rank(rows, models, name="x", title="X").reference == reference


def test_wins_by_character_are_counted_one_by_one():
    rng = np.random.default_rng(0)
    names = [f"d{k}" for k in range(40)]
    scores = pd.DataFrame(rng.integers(0, 4, size=(40, 3)) / 4, names, ["coco", "a", "b"])
    scores.iloc[3, 1] = np.nan
    known = pd.DataFrame({"n_classes": rng.integers(2, 15, size=40).astype(float)}, names)
    known.iloc[7] = np.nan
    found = Leads("coco", scores, known).wins()
    for line in found.itertuples():
        low, high = {"below 3": (0, 3), "3 to under 10": (3, 10), "10 or more": (10, 99)}[line.bin]
        inside = [d for d in names if low <= known.loc[d, "n_classes"] < high]
        pairs = [(scores.loc[d, "coco"], scores.loc[d, line.other]) for d in inside]
        assert line.wins == sum(ours > theirs for ours, theirs in pairs)
        assert line.losses == sum(ours < theirs for ours, theirs in pairs)
        assert line.ties == sum(ours == theirs for ours, theirs in pairs)
        assert line.n_datasets == line.wins + line.ties + line.losses
    assert found.groupby("other")["n_datasets"].sum().to_dict() == {"a": 38, "b": 39}
    assert found.groupby("other")["n_tables"].sum().to_dict() == {"a": 39, "b": 39}


def test_a_hundred_thousand_results_are_read_in_seconds(tmp_path):
    spec = make_spec(models=["coco", "rf", "ksvm", "ce"])
    with Store(tmp_path / "s.sqlite") as store:
        units = begin(store, spec, infos_of(50)).values()
        for unit in units:
            put(store, spec, unit, "trial", "0", Result({"score": 0.5}, [], {"x": 0.1}))
            for k in range(4):
                rows = [{"fold": k, "balanced_accuracy": 0.5 + 0.01 * k}]
                put(store, spec, unit, "fold", str(k), Result({}, rows, {"x": 0.1}))
        others = ", ".join(name for name in COLUMNS if name not in ("key", "part"))
        many = f"""
            with recursive n(n) as (select 1 union all select n + 1 from n where n < 499)
            insert into results (key, part, {others})
            select key || '/' || n, part || '/' || n, {others} from results, n
            where stage = 'trial'
        """  # noqa: S608 - our own names
        store.database.writing(lambda connection: connection.execute(sa.text(many)))
        started = time.process_time()
        findings = read_findings(store)[0]
        took = time.process_time() - started
    assert findings.n_tasks == 200 * 504
    assert len(findings.rows) == 200 * 4
    assert findings.units["n_trials"].tolist() == [500] * 200
    assert took < 3
