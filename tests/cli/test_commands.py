"""What each command does when all is well."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from sklearn.ensemble import RandomForestClassifier

import cocoloss
from cocoloss.benchmark.evaluation import evaluate_models
from cocoloss.cli import evaluate, main
from cocoloss.columns import settle_kinds

FAST = ("--epochs", 3)


def test_fit_says_what_it_did_and_saves_a_model(run, table, tmp_path):
    out = tmp_path / "m.coco"
    result = run("fit", table, "--target", "kind", "--out", out, *FAST, "--drop", "id")
    for words in ("rows      150", "columns   4 used", "ant (", "6 networks, 3 epochs", str(out)):
        assert words in result.output
    assert "\n          1 number, 2 categories, 1 date\n" in result.output


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("coco", "CoCoClassifier"),
        ("dr", "DotRegressionClassifier"),
        ("ce", "CrossEntropyClassifier"),
    ],
)
def test_fit_knows_three_models(run, table, tmp_path, name, cls):
    out = tmp_path / "m.coco"
    args = ("fit", table, "--target", "kind", "--model", name, "--out", out, "--json", *FAST)
    facts = json.loads(run(*args, "--members", 1, "--priors", "empirical").stdout)
    assert facts["class"] == cls
    assert facts["members"] == 1
    assert facts["rows"] == 150
    assert facts["kinds"] == {
        "id": "number",
        "size": "number",
        "city": "category",
        "seen": "date",
        "alive": "category",
    }
    assert sum(facts["classes"].values()) == 150
    assert facts["bytes"] == out.stat().st_size
    assert cocoloss.load(out).priors == "empirical"


def test_kernels_are_fitted_and_say_how_good_they_are(run, refused, table, tmp_path):
    out, p = tmp_path / "m.coco", tmp_path / "p.csv"
    asked = ("fit", table, "--target", "kind", "--out", out, "--drop", "id", "--solver", "kernel")
    printed = run(*asked).output
    assert re.search(r"fitted    \d kernels?, .* s\n", printed)
    said = (
        r"quality   leave-one-out: balanced accuracy 0\.\d{3} ± 0\.\d{3} \(guessing 0\.333\), log"
    )
    assert re.search(said, printed)
    assert "it contains 150 rows of the table" in printed
    run("predict", out, table, "--proba", "--out", p)
    model, frame = cocoloss.load(out), pd.read_csv(table)
    assert pd.read_csv(p)["prediction"].tolist() == model.predict(frame).tolist()
    assert "--tune is for networks" in refused(*asked, "--tune", 2)
    assert "--solver is for --model coco" in refused(*asked, "--model", "ce")


def test_the_same_seed_gives_the_same_file(run, table, tmp_path):
    paths = [tmp_path / f"{i}.coco" for i in range(3)]
    for path, seed in zip(paths, (1, 1, 2), strict=True):
        run("fit", table, "--target", "kind", "--out", path, *FAST, "--seed", seed)
    first, again, other = (path.read_bytes() for path in paths)
    assert first == again
    assert first != other


def test_tuning_tries_settings_and_keeps_the_best(run, table, tmp_path):
    args = ("fit", table, "--target", "kind", "--out", tmp_path / "m.coco", "--tune", 2, "--json")
    facts = json.loads(run(*args, "--epochs", 2, "--members", 1).stdout)
    assert facts["tuned"]["trials"] == 2
    model = cocoloss.load(tmp_path / "m.coco")
    for name, value in facts["tuned"]["params"].items():
        np.testing.assert_equal(
            getattr(model, name), tuple(value) if name.startswith("hidden") else value
        )


def test_predict_gives_what_the_model_says(run, table, frame, model, tmp_path):
    expected = cocoloss.load(model)
    out = tmp_path / "p.csv"
    run("predict", model, table, "--out", out, "--proba", "--outliers", "--keep", "id")
    found = pd.read_csv(out)
    assert found["id"].tolist() == frame["id"].tolist()
    assert found["prediction"].tolist() == expected.predict(frame).tolist()
    columns = [f"probability_{label}" for label in expected.classes_]
    np.testing.assert_allclose(found[columns], expected.predict_proba(frame), atol=1e-8)
    np.testing.assert_allclose(found["outlier_score"], expected.outlier_score(frame), rtol=1e-9)
    lines = run("predict", model, table).stdout.splitlines()  # without --out
    assert lines == ["prediction", *found["prediction"]]


def test_predict_says_which_columns_count(run, table, frame, model, tmp_path):
    out = tmp_path / "p.csv"
    run("predict", model, table, "--out", out, "--proba", "--explain", "2", "--keep", "id")
    found = pd.read_csv(out)
    added = ["column_1", "contribution_1", "column_2", "contribution_2"]
    assert list(found)[-4:] == added
    expected = cocoloss.load(model).explain(frame).top(2)
    assert found["column_1"].tolist() == expected["column_1"].tolist()
    np.testing.assert_allclose(found["contribution_1"], expected["contribution_1"], atol=1e-8)
    assert found["column_1"].value_counts().idxmax() == "size"
    all_of_them = run("predict", model, table, "--explain", "99").stdout.splitlines()[0]
    n_columns = len(cocoloss.load(model).feature_names_in_)
    assert all_of_them.count("contribution_") == n_columns


def test_long_tables_are_answered_part_by_part(run, table, frame, model, tmp_path, monkeypatch):
    whole, parts = tmp_path / "whole.csv", tmp_path / "parts.csv"
    run("predict", model, table, "--out", whole, "--proba", "--explain", 1)
    monkeypatch.setattr("cocoloss.cli.predict.CHUNK_NUMBERS", 1)
    monkeypatch.setattr("cocoloss.cli.predict.FEWEST_ROWS", 7)
    run("predict", model, table, "--out", parts, "--proba", "--explain", 1)
    assert parts.read_text() == whole.read_text()


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_columns_that_tell_a_model_nothing_are_told(run, table, frame, model, tmp_path, command):
    path = tmp_path / "new.csv"
    frame.assign(city="Atlantis", size="").to_csv(path, index=False)
    said = run(command, model, path).stderr
    assert "note: no row has a category that training had: city (such as 'Atlantis')\n" in said
    assert "note: no row has a value of what the model uses: size\n" in said
    assert run(command, model, table).stderr == ""
    frame[:1].assign(size="").to_csv(path, index=False)
    assert run(command, model, path).stderr == ""


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".tsv", ".csv.gz"])
def test_embed_writes_the_embedding_in_any_format(run, table, frame, model, tmp_path, suffix):
    out = tmp_path / f"e{suffix}"
    run("embed", model, table, "--out", out)
    separator = "\t" if suffix == ".tsv" else ","
    found = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, sep=separator)
    expected = cocoloss.load(model)
    assert found.columns.tolist() == [f"embedding_{j}" for j in range(16)]
    np.testing.assert_allclose(found, expected.transform(frame), rtol=1e-5, atol=1e-7)


FORMS = {  # of the same table -> (name, how it is written)
    "parquet": ("t.parquet", lambda table, path: table.to_parquet(path)),
    "gz": ("t.csv.gz", lambda table, path: table.to_csv(path, index=False)),
    "semicolon": (
        "t.csv",
        lambda table, path: table.to_csv(path, index=False, sep=";", decimal=","),
    ),
    "latin": ("t.csv", lambda table, path: table.to_csv(path, index=False, encoding="latin-1")),
    "shuffled": (
        "t.csv",
        lambda table, path: table.iloc[:, ::-1].assign(more=1).to_csv(path, index=False),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_table_in_another_form_gets_the_same_answer(run, frame, model, tmp_path, form):
    name, write = FORMS[form]
    table = frame.assign(city=frame["city"].where(frame["city"] != "Łódź", "Bern"))
    table.to_csv(tmp_path / "plain.csv", index=False)
    write(table, tmp_path / name)
    expected = run("predict", model, tmp_path / "plain.csv").stdout
    assert run("predict", model, tmp_path / name).stdout == expected


def test_evaluate_prints_what_cross_validation_gives(run, table, frame):
    args = ("evaluate", table, "--target", "kind", "--drop", "id", "--folds", 3, *FAST)
    found = json.loads(run(*args, "--model", "coco", "--model", "ksvm", "--json").stdout)
    X, y = settle_kinds(frame.drop(columns=["id", "kind"])), frame["kind"]
    expected = evaluate_models(X, y, ["coco", "ksvm"], n_folds=3, network_options={"max_iter": 3})
    for ours, theirs in zip(found, expected, strict=True):
        assert ours["model"] == theirs.model
        assert ours["balanced_accuracy"] == pytest.approx(theirs.mean("balanced_accuracy"))
        assert len(ours["folds"]["accuracy"]) == 3
    assert found[1]["log_loss"] is None
    assert found[0]["dispersity"] > 0


def test_evaluate_knows_the_solver(run, table, frame):
    args = ("evaluate", table, "--target", "kind", "--drop", "id", "--folds", 2)
    found = json.loads(run(*args, "--model", "coco", "--solver", "network", "--json").stdout)
    X, y = settle_kinds(frame.drop(columns=["id", "kind"])), frame["kind"]
    (expected,) = evaluate_models(X, y, ["coco"], n_folds=2, solver="network")
    (default,) = evaluate_models(X, y, ["coco"], n_folds=2)
    assert found[0]["log_loss"] == pytest.approx(expected.mean("log_loss"))
    assert found[0]["log_loss"] != pytest.approx(default.mean("log_loss"))


@pytest.fixture
def small_forest(monkeypatch):
    """Let the random forest have few trees."""
    few = "cocoloss.benchmark.evaluation.RandomForestClassifier"
    monkeypatch.setattr(few, lambda _, **options: RandomForestClassifier(10, **options))


@pytest.mark.usefixtures("small_forest")
def test_demo_compares_six_models_on_three_data_sets(run, tmp_path, monkeypatch):
    monkeypatch.setattr("cocoloss.benchmark.models.TREES", 20)
    out = tmp_path / "pages"
    output = run("demo", "--out", out, "--folds", 2, "--epochs", 2, "--threads", 1).stdout
    assert "breast cancer: 569 rows" in output
    assert "digits: 1,797 rows" in output
    assert output.count("random forest  ") == 3
    pages = ["bands.html", "breast-cancer.html", "digits.html"]
    assert sorted(path.name for path in out.iterdir()) == pages
    last = output.splitlines()[-3:]
    for line, page in zip(last, ["breast-cancer", "digits", "bands"], strict=True):
        name, _, verdict = line.partition(": ")
        assert page == name.replace(" ", "-")
        assert verdict in (out / f"{page}.html").read_text()
    assert "thresholds of single columns" in last[2]


@pytest.mark.parametrize(
    ("ours", "single_tree", "said"),
    [
        ([0.9, 0.8, 0.9], 0.7, "better than the best other model, kernel SVM: 0.8667 against 0.83"),
        ([0.9, 0.8, 0.9], 0.7, "better in 2 and worse in 1 of 3 folds. A decision tree has 0.7"),
        ([0.8, 0.9, 0.8], 0.7, "about as good as the best other model, kernel SVM"),
        ([0.81, 0.91, 0.7], 0.7, "about as good as the best"),  # won more folds, lower mean
        ([0.8, 0.9, 0.7], 0.7, "worse than the best other model, kernel SVM: 0.8000 against 0.83"),
        ([0.8, 0.9, 0.7], 0.7, "classes differ in combinations of columns, which suits kernels."),
        ([0.8, 0.9, 0.7], 0.9, "classes differ in thresholds of single columns, which suits trees"),
    ],
)
def test_the_demo_says_where_it_is_better_and_why_by_the_numbers(ours, single_tree, said):
    scores = {"coco": ours, "hgb": [0.5, 0.6, 0.5], "ksvm": [0.8, 0.9, 0.8]}
    arrays = {model: np.array(of_folds) for model, of_folds in scores.items()}
    assert said in evaluate.better_or_worse(arrays, single_tree)


def test_the_best_other_model_of_the_made_up_table_is_a_tree():
    ((_, X, y, _),) = [table for table in evaluate.demo_tables() if table[0] == "bands"]
    models = evaluate_models(X, y, ("coco", "hgb", "ksvm"), n_folds=2)
    coco, trees, svm = (one.mean("balanced_accuracy") for one in models)
    assert trees > coco > svm


def test_notes_go_to_standard_error_and_results_to_standard_output(run, frame, tmp_path):
    path = tmp_path / "gaps.csv"
    frame.assign(kind=frame["kind"].where(frame.index > 4)).to_csv(path, index=False)
    result = run("fit", path, "--target", "kind", "--out", tmp_path / "m.coco", "--json", *FAST)
    assert "note: left out 5 rows whose kind is not known" in result.stderr
    assert json.loads(result.stdout)["rows"] == 145


def test_rows_without_a_target_are_learnt_from_if_that_is_asked_for(run, refused, frame, tmp_path):
    path, out = tmp_path / "gaps.csv", tmp_path / "m.coco"
    frame.assign(kind=frame["kind"].where(frame.index % 5 == 0)).to_csv(path, index=False)
    said = "fit", path, "--target", "kind", "--out", out
    result = run(*said, "--unlabelled", "soft")
    assert "rows      30, and 120 without a label" in result.stdout
    assert "not known" not in result.stderr
    facts = json.loads(run(*said, "--unlabelled", "soft", "--json").stdout)
    assert (facts["rows"], facts["unlabelled_rows"]) == (30, 120)
    assert sum(facts["classes"].values()) == 30
    left_out = json.loads(run(*said, "--unlabelled", "ignore", "--json").stdout)
    assert left_out == json.loads(run(*said, "--json").stdout) | {"seconds": left_out["seconds"]}
    assert facts["rows_in_file"] > left_out["rows_in_file"]
    line = refused(*said, "--unlabelled", "soft", "--model", "ce")
    assert "--unlabelled soft is for --model coco" in line


def test_help_tells_every_command(run):
    output = run("--help").stdout
    for command in ("fit", "predict", "embed", "evaluate", "report", "demo"):
        assert f"\n  {command} " in output
        assert "Usage" in run(command, "--help").stdout
    assert run().stdout == output
    assert cocoloss.__version__ in run("--version").stdout


@pytest.mark.usefixtures("small_forest")
@pytest.mark.parametrize("width", [80, 125])
def test_nothing_of_the_table_is_cut(run, table, monkeypatch, width):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as in a terminal
    monkeypatch.setenv("COLUMNS", str(width))
    args = ("evaluate", table, "--target", "kind", "--drop", "id", "--folds", 3, *FAST)
    output = re.sub(r"\x1b\[[0-9;]*m", "", run(*args).stdout)
    assert "…" not in output
    assert max(map(len, output.splitlines())) <= width
    for words in ("balanced accuracy", "AUC", "log loss", "dispersity", "NC4", "s/fit"):
        assert output.count(words) == 1
    for name in ("CoCo", "dot regression", "cross-entropy", "boosted trees", "kernel SVM"):
        assert output.count(name) == (2 if width == 80 else 1)
    assert "3 folds; all models weight classes equally" in output
    assert " ± 0." in output


def test_a_terminal_without_the_characters_gets_others(frame, tmp_path):
    path = tmp_path / "[bold]ünd.csv"  # whose name is no markup either
    frame.assign(kind=frame["kind"].replace("ant", "Łódź")).to_csv(path, index=False)
    runner = CliRunner(charset="ascii")
    options = ["--target", "kind", "--drop", "id", "--folds", "2", "--epochs", "1"]
    result = runner.invoke(main, ["evaluate", str(path), *options, "--model", "coco"])
    assert result.exit_code == 0, result.output
    assert " +- 0." in result.stdout
    assert r"[bold]\xfcnd.csv" in result.stdout
    fit = [str(path), *options[:4], "--epochs", "1", "--members", "1", "--json"]
    result = runner.invoke(main, ["fit", *fit, "--out", str(tmp_path / "m.coco")])
    assert result.exit_code == 0, result.output
    assert "Łódź" in json.loads(result.stdout)["classes"]
