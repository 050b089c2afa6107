"""Splits, raw tables, tuning and own models of every kind, as specs say it."""

import itertools
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bench_cli import bench, refusal

from cocoloss.benchmark import Store, accuracy, fold_table, models, numbers_and_levels
from cocoloss.benchmark.accuracy import Rows
from cocoloss.benchmark.analysis import WEIGHTED
from cocoloss.benchmark.spec import Spec, load_spec
from cocoloss.columns import RawFrame
from cocoloss.exceptions import CoCoError
from play import info_of, iris, play, spec_of, table_of

PAPER = Path(__file__).parents[2] / "paper"
BEFORE = {  # hashes that stores have, from before specs had measures, splits and tuned numbers
    "accuracy": "e312e67c1e72aab0d681a15612c50510ea878fbe20ecc5418d2046eb3f337da7",
    "accuracy-each": "7b62a48bca3bc31a3d9e555f51ff4ee626791a1e4eb9231af3d2cb6dcbd2b1de",
    "convergence": "52b5eb6ce10d1233ff2c918048d4c1f3a0f3e08fb01c8c4cfe18cf6d970df057",
    "imbalance-lite": "6813f6059e608181f1ed160be1b363705f26169555eed8e93bbf5bb604aae05a",
    "mixture": "bd511b2fa66706a00ba56cafc8c34ce97c7774c5046ccef20ac49dda9884c47b",
    "ordinal": "32d298f97287a0dc3321e2d462ce90347eb57a8f339da09aad91a92207a8b9ae",
    "regression": "2a22082c76e58bcf7338905de390e3c009bf45b9b0560dfe5f0f0718008a7d90",
}
CONTENT = {
    "name": "x",
    "kind": "accuracy",
    "data": {"source": "sklearn"},
    "models": {"names": ["rf"]},
}
MODELS = """
import os
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor


def tree(**params):
    return DecisionTreeRegressor(**params)


def space(trial, n_samples, n_features, n_classes):
    return {"min_samples_leaf": trial.suggest_int("min_samples_leaf", 1, 20, log=True)}


tree.search_space = space


class Looks:  # no estimator of scikit-learn's
    def fit(self, X, y):
        Path("seen.txt").write_text(" ".join(f"{c}:{X[c].dtype}" for c in X))
        self.mean = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean)


def looks():
    return Looks()


looks.reads_tables = True


class Text(Looks):
    def predict(self, X):
        return np.array(["one"] * len(X))


def text():
    return Text()


text.reads_tables = True
"""


@pytest.fixture(autouse=True)
def few_trees(monkeypatch):
    """Let forests have 20 trees, and CatBoost 30."""
    for module in (models, numbers_and_levels):
        monkeypatch.setattr(module, "TREES", 20)
    few = partial(models.catboost_model, iterations=30)
    monkeypatch.setattr(models, "catboost_model", few)


def test_specs_that_use_no_new_key_have_the_hashes_that_stores_know():
    for name, known in BEFORE.items():
        assert load_spec(PAPER / f"{name}.toml").hash == known, name


@pytest.mark.parametrize(
    "change",
    [
        {"measures": ["f1"]},
        {"optimise": "roc_auc"},
        {"folds": {"repeats": 2}},
        {"folds": {"group": "g"}},
        {"folds": {"time": "t"}},
        {"folds": {"given": "f"}},
        {"folds": {"judged": 1}},
    ],
)
def test_a_key_that_changes_numbers_makes_another_benchmark(change):
    plain, other = Spec.from_dict(CONTENT), Spec.from_dict(CONTENT | change)
    assert plain.hash != other.hash
    assert Spec.from_dict(other.content()) == other
    assert other.changed(datasets=["iris"]).hash == other.hash


def test_keeping_predictions_changes_no_number_and_no_hash():
    kept = Spec.from_dict(CONTENT | {"keep_predictions": True})
    assert kept.hash == Spec.from_dict(CONTENT).hash
    assert kept.changed(datasets=["iris"]).keep_predictions
    assert Spec.from_dict(CONTENT | {"folds": {"repeats": 1}}).hash == kept.hash


def test_numbers_are_tuned_only_if_the_spec_says_so():
    content = CONTENT | {"kind": "regression"}
    plain = Spec.from_dict(content)
    assert not plain.tunes
    assert not plain.changed(datasets=["a"]).tunes
    by_trials = Spec.from_dict(content | {"tuning": {"trials_per_hyperparameter": 10}})
    by_measure = Spec.from_dict(content | {"optimise": "mae"})
    assert by_trials.tunes
    assert by_measure.tunes
    assert by_trials.changed(datasets=["a"]).tunes
    assert len({plain.hash, by_trials.hash, by_measure.hash}) == 3
    assert not Spec.from_dict(content | {"tuning": {"trials_per_hyperparameter": 0}}).tunes
    assert Spec.from_dict(CONTENT).tunes


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"folds": {"group": "a", "time": "b"}}, "folds.group and folds.time are two ways"),
        ({"folds": {"given": "a", "repeats": 2}}, "folds.given has nothing to shuffle"),
        ({"folds": {"repeats": 0}}, "folds.repeats"),
        ({"measures": "f1"}, "measures must be a list of texts"),
        ({"keep_predictions": 1}, "keep_predictions must be true or false"),
        ({"measure": ["f1"]}, "did you mean 'measures'"),
    ],
)
def test_what_cannot_be_is_refused(change, said):
    with pytest.raises(CoCoError, match=said):
        Spec.from_dict(CONTENT | change)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"measures": ["f2"]}, "measures: there is no measure 'f2'"),
        ({"optimise": "rocauc"}, "optimise: there is no measure 'rocauc'; did you mean 'roc_auc'"),
        ({"kind": "regression", "measures": ["auc"]}, "needs probabilities, which numbers have"),
        ({"kind": "regression", "models": {"names": ["ksvm"]}}, "there is no model 'ksvm'"),
    ],
)
def test_a_plan_refuses_measures_that_are_none(change, said):
    spec = Spec.from_dict(CONTENT | {"models": {"names": ["rf"]}} | change)
    with pytest.raises(CoCoError, match=said):
        accuracy.plan(spec, [])


def test_other_experiments_refuse_keys_that_they_do_not_look_at(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (PAPER / "convergence-smoke.toml").read_text()
    Path("c.toml").write_text('measures = ["f1"]\n' + text)
    line = refusal("plan", "c.toml", "--experiments", PAPER, "--data", "sklearn")
    assert "measures: an experiment of kind 'convergence' does not use it" in line


# Splits.


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    X["who"] = [f"p{k}" for k in rng.integers(0, 15, 120)]
    X["day"] = pd.date_range("2024-01-01", periods=120)[rng.permutation(120)]
    return table_of(X, (X["a"] > 0).astype(int))


def rows_of(table, kind="accuracy", **folds):
    return Rows.of("t", table, spec_of(kind, ["rf"], folds={"outer": 3, "inner": 2, **folds}))


def test_the_first_repeat_is_what_there_was_without_repeats(table):
    once, thrice = rows_of(table).outer_folds(), rows_of(table, repeats=3).outer_folds()
    assert len(thrice) == 9
    tests = [fold.test.tolist() for fold in thrice]
    assert tests[:3] == [fold.test.tolist() for fold in once]
    assert len({tuple(test) for test in tests}) == 9
    for start in (0, 3, 6):
        assert sorted(itertools.chain(*tests[start : start + 3])) == list(range(120))


def test_of_folds_only_the_first_are_judged_if_the_spec_says_so(table):
    rows, few = rows_of(table), rows_of(table, judged=2)
    assert [f.test.tolist() for f in few.outer_folds()] == [
        f.test.tolist() for f in rows.outer_folds()[:2]
    ]
    done = play(accuracy, spec_of("accuracy", ["ksvm"], folds={"outer": 3, "judged": 1}), table)
    (row,) = done[-1][1].rows
    assert row["fold"] == 0
    assert row["processor_seconds"] > 0


@pytest.mark.parametrize("kind", ["accuracy", "regression", "ordinal"])
def test_outer_and_inner_folds_keep_groups_together_and_time_in_order(table, kind):
    grouped, timed = rows_of(table, kind, group="who"), rows_of(table, kind, time="day")
    assert "who" not in grouped.X.columns
    assert "day" not in timed.X.columns
    who, day = table.X["who"].to_numpy(), table.X["day"].to_numpy()
    for fold in grouped.outer_folds():
        assert not set(who[fold.train]) & set(who[fold.test])
        for inner in grouped.at(fold.train).inner_folds():
            assert not set(who[fold.train][inner.train]) & set(who[fold.train][inner.test])
    for fold in timed.outer_folds():
        assert day[fold.train].max() < day[fold.test].min()
        for inner in timed.at(fold.train).inner_folds():
            learnt, tested = day[fold.train][inner.train], day[fold.train][inner.test]
            assert learnt.max() < tested.min()


SPLIT = """
name = "split"
kind = "accuracy"
keep_predictions = true
data = { source = "folder:tables" }
models = { names = ["coco-default"], own = { bayes = "sklearn.naive_bayes:GaussianNB" } }
folds = { FOLDS }
tuning = { trials_per_hyperparameter = 0 }
"""


@pytest.fixture
def folder(tmp_path, monkeypatch, table):
    monkeypatch.chdir(tmp_path)
    Path("tables").mkdir()
    frame = table.X.assign(part=np.arange(120) % 4, target=table.y)
    frame.to_csv("tables/one.csv", index=False)
    frame.iloc[:60].to_csv("tables/two.csv", index=False)
    return tmp_path


def run_split(folds, tables=2):
    Path("split.toml").write_text(SPLIT.replace("FOLDS", folds))
    bench("run", "split.toml", "--workers", 0, "--store", "split.sqlite")
    with Store("split.sqlite", create=False) as store:
        scores = fold_table(store)
    assert scores["dataset"].nunique() == tables
    assert (scores["status"] == "ok").all()
    return scores


def rows_of_fold(fold):
    """Return the rows of a fold of the first table, as the predictions that were kept have them."""
    files = Path("split.predictions").glob("one-bayes-*.parquet")
    frames = pd.concat([pd.read_parquet(file) for file in files])
    return sorted(frames.loc[frames["fold"] == fold, "row"])


def test_given_folds_are_a_column_and_as_many_as_it_has(folder):
    scores = run_split('given = "part"')
    assert scores.groupby(["dataset", "model"])["fold"].nunique().eq(4).all()
    assert rows_of_fold(2) == list(range(2, 120, 4))


def test_given_folds_of_a_file_are_part_of_the_table(folder):
    lines = [("one", row, row % 2) for row in range(100)] + [("two", r, r % 3) for r in range(60)]
    given = pd.DataFrame(lines, columns=["dataset", "row", "fold"])
    given.to_csv("folds.csv", index=False)
    scores = run_split('given = "folds.csv"')
    n_folds = scores.groupby("dataset")["fold"].nunique()
    assert n_folds.to_dict() == {"one": 2, "two": 3}
    assert rows_of_fold(1) == list(range(1, 100, 2))  # rows without a fold are never tested
    # Another file of folds is another table: both are run again.
    given.assign(fold=(given["row"] // 10) % 2).to_csv("folds.csv", index=False)
    again = run_split('given = "folds.csv"')
    assert len(again) == 2 * 2 * 2
    assert set(again["key"]).isdisjoint(scores["key"])


def test_repeats_are_judged_by_a_test_that_knows_of_shared_rows(folder):
    scores = run_split("outer = 3, repeats = 2")
    assert sorted(scores["fold"].unique()) == list(range(6))
    assert (scores["repeat"] == scores["fold"] // 3).all()
    bench("report", "split.sqlite", "--out", "report")
    text = Path("report/report.md").read_text()
    assert "3 outer folds, 2 times" in text
    assert "Folds of several repeats share rows" in text


def test_networks_train_folds_of_unequal_size_in_lockstep(folder):
    Path("split.toml").write_text(
        SPLIT.replace("FOLDS", 'outer = 3, time = "day"').replace("coco-default", "ce")
        + "training = { epochs = 2 }\n"
    )
    bench("run", "split.toml", "--workers", 0)


@pytest.mark.parametrize(
    ("folds", "said"),
    [
        ('group = "whom"', "folds.group: there is no column 'whom'; did you mean 'who'"),
        ('group = "part"', "folds.group: column 'part' has 4 groups; folds.outer = 10"),
        ('time = "who"', "folds.time: column 'who' holds neither numbers nor dates"),
        ('given = "none.csv"', "folds.given: there is no file"),
    ],
)
def test_tables_that_cannot_be_split_so_are_refused_in_the_plan(folder, folds, said):
    Path("split.toml").write_text(SPLIT.replace("FOLDS", folds))
    assert said in refusal("plan", "split.toml")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("row,part\n1,2\n", "has no column 'fold'"),
        ("row,fold\n1,2\n1,0\n", "each once at most"),
        ("row,fold\n500,2\n1,0\n", "rows 0 to 119"),
        ("row,fold\nx,2\n", "cannot read folds.csv"),
    ],
)
def test_files_of_folds_that_do_not_fit_are_refused(folder, lines, said):
    Path("folds.csv").write_text(lines)
    Path("split.toml").write_text(SPLIT.replace("FOLDS", 'given = "folds.csv"'))
    assert said in refusal("plan", "split.toml")


# Raw tables.


@pytest.fixture
def raw():
    rng = np.random.default_rng(1)
    n = 240
    X = pd.DataFrame({'a "b": [c]': rng.normal(size=n), "size": rng.normal(size=n)})
    X.loc[::5, "size"] = None
    X["city"] = rng.choice(["Oslo", "Rome", None], n)
    X["day"] = [f"{day:02d}.01.2024" for day in rng.integers(1, 29, n)]
    X["yes"] = rng.choice([True, False], n)
    return X


def test_a_raw_frame_has_categories_and_gaps(raw):
    reader = RawFrame().fit(raw.iloc[:200])
    frame = reader.transform(raw)
    assert [str(dtype) for dtype in frame.dtypes] == ["float64"] * 2 + ["category"] + [
        "float64"
    ] * 2
    assert frame["size"].isna().tolist() == raw["size"].isna().tolist()
    assert frame["city"].isna().tolist() == raw["city"].isna().tolist()
    other = raw.iloc[200:].assign(city="Bonn")
    assert reader.transform(other)["city"].isna().all()  # a category that training had not
    assert reader.transform(other)["city"].cat.categories.tolist() == ["Oslo", "Rome"]
    swapped = reader.transform(raw[raw.columns[::-1]])
    pd.testing.assert_frame_equal(swapped, frame)


@pytest.mark.parametrize("name", ["hgb-raw", "lightgbm", "lightgbm-w", "catboost", "catboost-w"])
def test_models_that_read_tables_get_them(raw, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    y = np.where(raw["city"].isna(), "c", np.where(raw["city"] == "Oslo", "a", "b"))
    found = {}
    for trials in (0, 1):
        tuning = {"trials": {name: trials}}
        folds = {"outer": 2, "inner": 2}
        spec = spec_of("accuracy", [name], folds=folds, tuning=tuning, measures=["auc"])
        found[trials] = play(accuracy, spec, table_of(raw, y))
        assert all(result.ok for _, result in found[trials]), found[trials][-1][1].error
    assert np.mean([result.measures["auc"] for _, result in found[0]]) > 0.9  # by the city alone
    assert [task.stage for task, _ in found[1]] == ["trial", "fold", "fold"]
    assert not list(tmp_path.iterdir())  # no catboost_info
    seen = models.find_model(name)
    assert seen.raw
    assert (name.endswith("-w")) == (name in WEIGHTED)


def test_a_class_weight_moves_predictions_to_the_rare_class():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200)})
    y = (X["x"] + rng.normal(size=200) > 1.8).astype(int)
    found = {}
    for name in ("lightgbm", "lightgbm-w", "catboost", "catboost-w", "hgb-raw", "hgb-raw-w"):
        model = models.find_model(name).make(1, {}, 0).fit(X, y)
        found[name] = model.predict_proba(X)[:, 1].mean()
    for name in ("lightgbm", "catboost", "hgb-raw"):
        assert found[f"{name}-w"] > found[name]


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(models, "find_spec", lambda _: None)
    with pytest.raises(CoCoError, match="'catboost' needs catboost, which is not installed"):
        models.find_model("catboost")
    with pytest.raises(CoCoError, match=r"cocoloss\[bench\]"):
        numbers_and_levels.find_for_benchmark(numbers_and_levels.TASKS["numbers"], "lightgbm")


# Numbers and levels: tuned, raw and one's own.


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own_models.py").write_text(MODELS)
    monkeypatch.delitem(sys.modules, "own_models", raising=False)
    return {name: f"own_models:{name}" for name in ("tree", "looks", "text")}


@pytest.mark.parametrize("kind", ["regression", "ordinal"])
@pytest.mark.parametrize("mode", ["first", "each"])
def test_models_of_numbers_and_levels_are_tuned(raw, kind, mode, own):
    y = raw["size"].fillna(0) + raw['a "b": [c]']
    y = y if kind == "regression" else np.digitize(y, [-0.5, 0.5])
    names = ["hgb", "rf", "tree", *(["svr", "lightgbm"] if kind == "regression" else [])]
    for name in names:
        spec = spec_of(
            kind,
            [name] if name != "tree" else [],
            models={"names": [] if name == "tree" else [name], "own": {"tree": own["tree"]}},
            folds={"outer": 2, "inner": 2},
            tuning={"trials": {name: 2}, "trials_per_hyperparameter": 0, "mode": mode},
        )
        done = play(accuracy, spec, table_of(raw, y))
        assert all(result.ok for _, result in done), (name, done[-1][1].error)
        studies = 1 if mode == "first" else 2
        assert [task.stage for task, _ in done] == ["trial"] * 2 * studies + ["fold"] * 2
        error = "rmse" if kind == "regression" else "mae"
        trials = [result for task, result in done if task.stage == "trial"]
        assert all(t.measures["score"] == -t.measures[error] for t in trials)
        best = max(trials[:2], key=lambda t: t.measures["score"])
        task, result = done[2 * studies]
        assert task.params["point"] == best.params
        assert result.rows[0]["inner_score"] == best.measures["score"]
        (unit,) = accuracy.plan(spec, [info_of(table_of(raw, y))])[:1]
        assert unit.tasks == len(done)


def test_own_models_of_numbers_may_read_tables_and_need_no_base_class(raw, own):
    spec = spec_of(
        "regression",
        [],
        models={"own": {"looks": own["looks"]}},
        folds={"outer": 2},
        measures=["neg_mean_absolute_error"],
    )
    done = play(accuracy, spec, table_of(raw, np.arange(240.0)))
    assert all(result.ok for _, result in done), done[-1][1].error
    assert "city:category" in Path("seen.txt").read_text()
    row = done[0][1].rows[0]
    assert row["neg_mean_absolute_error"] == pytest.approx(-row["mae"])
    assert row["relative_rmse"] == pytest.approx(1)


def test_own_models_that_predict_no_numbers_are_refused(raw, own):
    spec = spec_of("ordinal", [], models={"own": {"text": own["text"]}}, folds={"outer": 2})
    (_, result), *_ = play(accuracy, spec, table_of(raw, np.arange(240) % 3))
    assert "expected are finite numbers, one per row" in result.error
    with pytest.raises(CoCoError, match="has the name of a model that cocoloss has"):
        accuracy.plan(spec_of("ordinal", [], models={"own": {"rf": own["tree"]}}), [])


def test_measures_of_levels_are_those_of_their_ranks():
    y = np.repeat([0, 1, 2], 20)
    X = pd.DataFrame({"x": y + np.random.default_rng(0).normal(size=60)})
    spec = spec_of("ordinal", ["rf"], folds={"outer": 2}, measures=["roc_auc", "accuracy", "rmse"])
    for _, result in play(accuracy, spec, table_of(X, y)):
        row = result.rows[0]
        assert 0.5 < row["roc_auc"] <= 1
        assert row["rmse"] >= row["mae"]
        assert row["accuracy"] == pytest.approx(row["balanced_accuracy"])


def test_a_classifier_of_ours_has_the_same_measures_in_lockstep():
    spec = spec_of("accuracy", ["coco-default"], folds={"outer": 2}, measures=["auc", "accuracy"])
    ((_, result),) = play(accuracy, spec, iris())
    plain = spec_of("accuracy", ["coco-default"], folds={"outer": 2})
    ((_, without),) = play(accuracy, plain, iris())
    for row, other in zip(result.rows, without.rows, strict=True):
        assert row["auc"] > 0.95
        assert {k: v for k, v in row.items() if k != "auc" and not k.endswith("_seconds")} == {
            k: v for k, v in other.items() if not k.endswith("_seconds")
        }
