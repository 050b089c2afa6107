"""``cocoloss compare``: anybody's table of scores in, ranks, tests and a diagram out."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cocoloss.cli.compare import as_scores, compare
from cocoloss.exceptions import CoCoError
from cocoloss.stats import against
from cocoloss.stats import compare as compare_models

MODELS = ["ours", "theirs", "chance"]


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    base = rng.uniform(0.6, 0.9, size=(12, 1))
    scores = base + [0.03, 0.0, -0.2] + 0.01 * rng.normal(size=(12, 3))
    frame = pd.DataFrame(scores.round(4), columns=MODELS)
    frame.insert(0, "dataset", [f"table {k}" for k in range(12)])
    return frame


@pytest.fixture(scope="module")
def long(wide):
    rng = np.random.default_rng(1)
    folds = wide.melt(id_vars="dataset", var_name="model", value_name="score")
    folds = pd.concat([folds.assign(fold=k) for k in range(8)])
    return folds.assign(score=folds["score"] + 0.01 * rng.normal(size=len(folds)))


@pytest.fixture
def run(tmp_path):
    """Return what compares the models of a table, kept as CSV."""

    def invoke(frame, *args, **writing):
        frame.to_csv(tmp_path / "scores.csv", index=False, **writing)
        return CliRunner().invoke(compare, [str(tmp_path / "scores.csv"), *map(str, args)])

    return invoke


@pytest.fixture
def found(run):
    """Return what gives the JSON of a comparison, its models by name, and what was noted."""

    def read(*args, **writing):
        result = run(*args, "--json", **writing)
        known = json.loads(result.stdout)
        return known | {"models": {m["model"]: m for m in known["models"]}, "said": result.stderr}

    return read


@pytest.fixture
def refusal(run):
    def said(*args):
        result = run(*args)
        assert isinstance(result.exception, CoCoError), result.output
        assert "\n" not in str(result.exception)
        return str(result.exception)

    return said


def ranks_of(found):
    return {name: model["rank"] for name, model in found["models"].items()}


@pytest.mark.parametrize("test", ["nemenyi", "wilcoxon"])
def test_people_and_machines_get_what_the_statistics_say(wide, run, found, test):
    expected = compare_models(wide, test=test, rope=0.01)
    shown = run(wide, "--test", test).output
    ranks, _, pairs = shown.partition("p-values of pairs")
    for i, model in enumerate(expected.models):
        line = next(line for line in ranks.splitlines() if f" {model} " in line)
        assert f"{expected.average_ranks[model]:.2f}" in line
        assert f"{expected.mean_scores[model]:.4g}" in line
        cells = next(line for line in pairs.splitlines() if f" {model} " in line).split("│")[3:-1]
        p_values = expected.p_values.loc[model].iloc[:i]
        assert [cell.strip() for cell in cells if cell.strip()] == [
            f"{p:.3f}" if p >= 0.001 else "<0.001" for p in p_values
        ]
    for group in expected.cliques:
        assert f"Not different: {', '.join(group)}." in ranks
    if test == "nemenyi":
        assert f"critical distance {expected.critical_distance:.3f}" in shown
    known = found(wide, "--test", test, "--rope", 0.01)
    assert list(known["models"]) == list(expected.models)
    assert ranks_of(known) == pytest.approx(expected.average_ranks.to_dict())
    assert isinstance(known["models"]["ours"]["wins"], int)
    assert known["p_values"] == expected.p_values.to_dict()
    assert known["iman_davenport"]["p_value"] == expected.friedman.f_p_value
    assert known["bayes"] == expected.bayes.to_dict("records")
    assert [tuple(group) for group in known["not_different"]] == list(expected.cliques)
    assert next(iter(found(wide, "--lower")["models"])) == "chance"


@pytest.mark.parametrize(
    "names",
    [
        {"dataset": "dataset", "model": "model", "score": "score", "fold": "fold"},
        {"dataset": "Task", "model": "Classifier", "score": "F1", "fold": "Seed"},
    ],
)
def test_reads_a_long_table_whatever_its_columns_are_called(long, found, names):
    expected = compare_models(long, ranking="folds").average_ranks.to_dict()
    table = long.rename(columns=names)
    known = found(table, "--ranking", "folds", sep=";", decimal=",")
    assert ranks_of(known) == pytest.approx(expected)
    wide = long.pivot(index=["dataset", "fold"], columns="model", values="score").reset_index()
    by_folds = compare_models(as_scores(wide), ranking="folds").average_ranks
    assert by_folds.to_dict() == pytest.approx(expected)


def test_gaps_are_refused_or_counted_and_means_are_over_what_all_have(wide, run, found, refusal):
    gappy = wide.assign(theirs=wide["theirs"].where(wide.index > 1))
    assert "'theirs' on 'table 0'" in refusal(gappy)
    dropped = run(gappy, "--missing", "drop_datasets").output
    assert "Left out, a result is missing: table 0, table 1." in dropped
    shown = run(gappy, "--missing", "worst").output
    assert "theirs on table 0" in shown
    assert "mean score *" in shown
    assert "* mean scores are over the 10 of 12 datasets on which every model has a r" in shown
    assert "mean score *" not in run(wide).output
    known = found(gappy, "--missing", "worst")
    assert known["mean_scores_over"] == [f"table {k}" for k in range(2, 12)]
    means = {name: model["score"] for name, model in known["models"].items()}
    assert means == pytest.approx(wide.loc[2:, MODELS].mean().to_dict())


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_draws_the_diagram(wide, run, refusal, tmp_path, monkeypatch, suffix, start):
    out = tmp_path / f"ranks{suffix}"
    assert f"wrote {out}" in run(wide, "--out", out).output
    assert out.read_bytes().startswith(start)
    monkeypatch.setattr("cocoloss.tables.read_table", lambda *_, **__: 1 / 0)
    assert "must end in .svg" in refusal(wide, "--out", tmp_path / "ranks.gif")  # before it reads
    assert "no folder" in refusal(wide, "--out", tmp_path / "none" / f"ranks{suffix}")


def with_cell(frame, row, column, value):
    changed = frame.astype(object).reset_index(drop=True)
    changed.loc[row, column] = value
    return changed


@pytest.mark.parametrize(
    ("form", "spoil", "said"),
    [
        ("wide", lambda t: t.head(1), "one dataset, 'table 0'; a comparison over datasets needs"),
        ("wide", lambda t: with_cell(t, 3, "theirs", "failed"), "'theirs' has 'failed' at table 3"),
        (
            "wide",
            lambda t: with_cell(t, 3, "theirs", "failed").drop(columns="dataset"),
            "model 'theirs' has 'failed' at row 4; leave a failed run empty",
        ),
        ("wide", lambda t: t.assign(notes="good"), "'notes' holds 'good' and no score at all; lea"),
        ("wide", lambda t: pd.concat([t, t.iloc[[2]]]), "but these come twice: 'table 2'"),
        ("wide", lambda t: with_cell(t, 2, "dataset", None), "row 3 has nothing in the column 'da"),
        (
            "wide",
            lambda t: t.drop(columns="dataset").assign(fold=range(12)),
            "a column 'fold' but none that names datasets",
        ),
        ("long", lambda t: with_cell(t, 5, "score", "timeout"), "'score' has 'timeout' at row "),
        ("long", lambda t: with_cell(t, 5, "model", None), "row 5 (counted from 0) has no model"),
        ("long", lambda t: with_cell(t, 5, "fold", None), "row 5 (counted from 0) has no fold"),
        (
            "long",
            lambda t: t.reset_index(drop=True).drop(index=0),
            "1 result is missing: 'ours' on 'table 0' (1 of 8 folds). Run what is missing",
        ),
        ("long", lambda t: t.drop(columns="fold"), "252 scores repeat earlier ones, the first for"),
        ("long", lambda t: t.drop(columns="score"), "--score with one of dataset, model, fold"),
        (
            "long",
            lambda t: t.rename(columns={"score": "f1"}).assign(auc=0.5),
            "--score with one of f1, auc",
        ),
        ("long", lambda t: t[["model", "score"]], "--dataset names it if it is called otherwise"),
    ],
)
def test_faults_of_tables_are_told_in_one_line(form, spoil, said, request, refusal):
    assert said in refusal(spoil(request.getfixturevalue(form)))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--alpha", 2], "alpha must be a number between 0 and 1"),
        (["--score", "ours"], "--score is for long tables"),
        (["--models", "our,theirs"], "--models names 'our', but the columns are ours, theirs"),
        (["--dataset", "here"], "--dataset: no column 'here'; it has dataset, ours"),
        (["--model-column", "whom"], "--model-column: no column 'whom'; it has dataset"),
        (["--model-column", "ours", "--dataset", "ours"], "are both 'ours'; name two columns"),
        (["--fold-test", "corrected_t"], "--fold-test is for --ranking folds"),
    ],
)
def test_options_that_cannot_be_used_are_told_by_name(wide, refusal, options, said):
    assert said in refusal(wide, *options)


@pytest.mark.parametrize("form", ["wide", "long"])
def test_a_model_without_any_score_is_left_out_and_named(form, request, run):
    table = request.getfixturevalue(form)
    if form == "wide":
        table = table.assign(crashed=np.nan).rename(columns={"ours": "[red]ours[/]"})
    else:
        table = pd.concat([table, table[:8].assign(model="crashed", score=np.nan)])
    result = run(table)
    assert "left out crashed, which has no score at all" in result.stderr
    assert "3 models" in result.stdout
    assert ("[red]ours[/]" in result.stdout) == (form == "wide")  # a name is no markup


def test_rows_of_failed_runs_have_no_fold(long, found, refusal):
    def failing(lost):
        return long.assign(score=long["score"].mask(lost), fold=long["fold"].mask(lost))

    lost = (long["dataset"] == "table 3") & (long["model"] == "theirs")
    known = found(failing(lost), "--missing", "worst")
    expected = compare_models(long[~lost], missing="worst")
    assert "8 rows have neither fold nor score" in known["said"]
    assert known["filled"] == [["table 3", "theirs"]]
    assert known["p_values"]["ours"] == pytest.approx(expected.p_values["ours"].to_dict())
    assert "'theirs' on 'table 3'" in refusal(failing(lost))
    nowhere = found(failing(long["dataset"] == "table 3"), "--missing", "drop_datasets")
    assert nowhere["dropped"] == ["table 3"]  # a dataset on which all failed is not forgotten


@pytest.mark.parametrize("name", ["", "id", "index", "did"])
def test_numbers_of_rows_are_no_model(wide, found, name):
    numbered = wide.drop(columns="dataset")
    numbered.insert(0, name, range(100, 112))
    known = found(numbered)
    assert f"the column {name or 'column_1'!r} numbers the rows" in known["said"]
    assert ranks_of(known) == pytest.approx(compare_models(wide).average_ranks.to_dict())
    beside = found(numbered.assign(dataset=wide["dataset"]))
    assert set(beside["models"]) == set(MODELS)
    assert f"left out {name or 'column_1'!r}, which numbers the rows" in beside["said"]


def test_whole_scores_stay_scores(wide, found):
    points = (wide[MODELS] * 1000).round().astype(int)
    points["ours"] = np.arange(12)
    known = found(points)
    assert set(known["models"]) == set(MODELS)
    assert known["said"] == ""


def test_columns_can_be_chosen(wide, long, found, refusal):
    more = wide.rename(columns={"dataset": "where"}).assign(notes="good", id=range(12))
    more["dataset"] = [f"other {k}" for k in range(12)]
    known = found(more, "--dataset", "where", "--models", "ours, id", "--missing", "worst")
    assert set(known["models"]) == {"ours", "id"}
    assert known["mean_scores_over"][0] == "table 0"
    numbered = long.assign(did=long["dataset"].str[6:].astype(int)).drop(columns="dataset")
    assert "needs a column 'dataset' too" in refusal(numbered)
    assert found(numbered, "--dataset", "did")["n_datasets"] == 12
    # As in a results file of the AutoML benchmark, and with a word that nobody can guess.
    amlb = long.rename(columns={"model": "framework", "dataset": "task", "score": "result"})
    asked = ("--score", "result", "--models", "ours,chance")
    assert set(found(amlb, *asked)["models"]) == {"ours", "chance"}
    other = amlb.rename(columns={"framework": "who"}).assign(seed=1, version="1.0")
    assert "--score is for long tables" in refusal(other, "--score", "result")
    assert set(found(other, "--model-column", "who", *asked)["models"]) == {"ours", "chance"}


@pytest.mark.parametrize("name", ["missing='worst'", "ranking='folds'", "or another test"])
def test_a_refusal_names_a_model_as_the_table_does(wide, refusal, name):
    odd = wide.astype(object).rename(columns={"theirs": name})
    odd.loc[3, name] = "failed"
    assert name in refusal(odd)


def test_percents_are_read(wide, found, refusal):
    percents = wide.assign(**{m: (100 * wide[m]).map("{:.2f}%".format) for m in MODELS[:2]})
    expected = compare_models(wide).mean_scores.to_dict()
    for table in (percents, percents.drop(columns="dataset")):
        known = found(table)
        means = {name: model["score"] for name, model in known["models"].items()}
        assert means == pytest.approx(expected)
        assert "63.7% as 0.637: ours, theirs" in known["said"]
    failed = percents.assign(ours=[*percents["ours"][:-1], "failed"])
    assert "model 'ours' has 'failed' at table 11" in refusal(failed)


def test_two_benchmarks_in_one_table_are_told_apart(long, found, refusal):
    both = pd.concat([long.assign(spec="mine", spec_hash=text) for text in ("abcdef1", "0123456")])
    said = refusal(both)
    assert "has rows of 2 benchmarks, mine@abcdef, mine@012345" in said
    assert "bench export --name mine@abcdef" in said
    apart = both[(both["spec_hash"] == "0123456") == (both["model"] == "ours")]
    known = found(apart)
    assert set(known["models"]) == set(MODELS)
    assert "2 benchmarks" in known["said"]


@pytest.mark.parametrize(
    "name", ["rmse", "MAE", "log_loss", "fit_seconds", "training_duration", "test rmse"]
)
def test_errors_are_better_if_they_are_less(run, long, name):
    errors = long.assign(score=1 - long["score"]).rename(columns={"score": name})
    done = run(errors, "--score", name, "--json")
    assert f"less {name} is taken for better; say --higher" in done.stderr
    by_errors = json.loads(done.stdout)
    by_scores = json.loads(run(long, "--json").stdout)
    assert by_errors["higher_is_better"] is False
    assert by_scores["higher_is_better"] is True
    assert [m["model"] for m in by_errors["models"]] == [m["model"] for m in by_scores["models"]]
    for ours, theirs in zip(by_errors["models"], by_scores["models"], strict=True):
        assert [ours[k] for k in ("wins", "losses")] == [theirs[k] for k in ("wins", "losses")]
        assert ours["rank"] == theirs["rank"]
    told = run(errors, "--score", name, "--higher", "--json")
    assert json.loads(told.stdout)["models"][0]["model"] == "chance"
    assert told.stderr == ""


def test_names_that_merely_resemble_errors_are_scores(run, long):
    for name in ("lossless", "r2", "kappa", "coverage"):
        done = run(long.rename(columns={"score": name}), "--score", name, "--json")
        assert json.loads(done.stdout)["models"][0]["model"] == "ours"


@pytest.mark.parametrize("test", ["nemenyi", "wilcoxon"])
def test_a_control_is_tested_against_all_others_and_put_into_words(wide, run, found, test):
    expected = against(compare_models(wide, test=test), "theirs")
    shown = run(wide, "--control", "theirs", "--test", test).output
    assert "theirs against each other, with intervals of 95 %" in shown
    paragraph = shown.strip().splitlines()[-1]  # one line, to be pasted
    assert paragraph.startswith("We compared 3 models on 12 datasets by score")
    assert "The control, theirs, leads on average over ours by" in paragraph
    known = found(wide, "--control", "theirs", "--test", test)
    assert known["prose"] == paragraph
    assert known["against"]["is_control"]
    for other in known["against"]["others"]:
        for name in ("p_value", "lead", "lead_low", "rank_biserial", "cliffs_delta_high"):
            assert other[name] == pytest.approx(expected.table.loc[other["model"], name])


def test_without_a_control_the_best_has_its_leads_and_no_tests(wide, run, found, refusal):
    shown = run(wide).output
    assert "ours against each other" in shown
    assert "adjusted p" not in shown
    assert not found(wide)["against"]["is_control"]
    assert "no model 'thiers' to compare with; did you mean 'theirs'" in refusal(
        wide, "--control", "thiers"
    )
