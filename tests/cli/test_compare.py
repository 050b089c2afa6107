"""``cocoloss compare``: anybody's table of scores in, ranks, tests and a diagram out."""

import json

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from cocoloss.cli.compare import compare
from cocoloss.cli.score_file import as_scores
from cocoloss.exceptions import CoCoError
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


def run(*args):
    return CliRunner().invoke(compare, [str(arg) for arg in args])


def refusal(*args):
    result = run(*args)
    assert isinstance(result.exception, CoCoError), result.output
    return str(result.exception)


@pytest.fixture
def csv(tmp_path):
    def write(frame, name="scores.csv", **options):
        path = tmp_path / name
        frame.to_csv(path, index=False, **options)
        return path

    return write


def test_prints_what_the_statistics_say(wide, csv):
    result = run(csv(wide))
    expected = compare_models(wide)
    assert result.exit_code == 0
    for model in MODELS:
        line = next(line for line in result.output.splitlines() if f" {model} " in line)
        assert f"{expected.average_ranks[model]:.2f}" in line
        assert f"{expected.mean_scores[model]:.4g}" in line
    assert f"critical distance {expected.critical_distance:.3f}" in result.output
    assert json.loads(run(csv(wide), "--json", "--lower").output)["models"][0]["model"] == "chance"
    for group in expected.cliques:
        assert f"Not different: {', '.join(group)}." in result.output


@pytest.mark.parametrize("test", ["nemenyi", "wilcoxon"])
def test_gives_machines_the_same_numbers(wide, csv, test):
    found = json.loads(run(csv(wide), "--json", "--test", test, "--rope", 0.01).output)
    expected = compare_models(wide, test=test, rope=0.01)
    assert [m["model"] for m in found["models"]] == list(expected.models)
    assert [m["rank"] for m in found["models"]] == pytest.approx(expected.average_ranks.tolist())
    assert isinstance(found["models"][0]["wins"], int)
    assert found["p_values"] == expected.p_values.to_dict()
    assert found["iman_davenport"]["p_value"] == expected.friedman.f_p_value
    assert found["bayes"] == expected.bayes.to_dict("records")
    assert [tuple(group) for group in found["not_different"]] == list(expected.cliques)


@pytest.mark.parametrize(
    "names",
    [
        {"dataset": "dataset", "model": "model", "score": "score", "fold": "fold"},
        {"dataset": "Task", "model": "Classifier", "score": "F1", "fold": "Seed"},
    ],
)
def test_reads_a_long_table_whatever_its_columns_are_called(long, csv, names):
    path = csv(long.rename(columns=names), sep=";", decimal=",")
    found = json.loads(run(path, "--json", "--ranking", "folds").output)
    expected = compare_models(long, ranking="folds")
    ranks = {m["model"]: m["rank"] for m in found["models"]}
    assert ranks == pytest.approx(expected.average_ranks.to_dict())


def test_reads_a_wide_table_with_folds(long):
    wide = long.pivot(index=["dataset", "fold"], columns="model", values="score").reset_index()
    expected = compare_models(long, ranking="folds").average_ranks
    found = compare_models(as_scores(wide), ranking="folds").average_ranks
    assert found.to_dict() == pytest.approx(expected.to_dict())


def test_asks_which_column_if_several_could_be_meant(long, csv):
    several = long.rename(columns={"score": "f1"}).assign(auc=0.5)
    path = csv(several)
    assert "--score with one of f1, auc" in refusal(path)
    assert run(path, "--score", "f1").exit_code == 0
    assert "no column 'f2'" in refusal(path, "--score", "f2")


def test_gaps_are_refused_or_counted(wide, csv):
    path = csv(wide.assign(theirs=wide["theirs"].where(wide.index > 0)))
    assert "'theirs' on 'table 0'" in refusal(path)
    assert "set `missing` to drop_datasets" in refusal(path)
    assert "rope needs a score in every cell" in refusal(path, "--missing", "worst", "--rope", 0.1)
    assert (
        "Left out, a result is missing: table 0." in run(path, "--missing", "drop_datasets").output
    )
    assert "theirs on table 0" in run(path, "--missing", "worst").output


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_draws_the_diagram(wide, csv, tmp_path, suffix, start):
    out = tmp_path / f"ranks{suffix}"
    assert f"wrote {out}" in run(csv(wide), "--out", out).output
    assert out.read_bytes().startswith(start)
    gif, nowhere = tmp_path / "ranks.gif", tmp_path / "none" / f"ranks{suffix}"
    assert "must end in .svg" in refusal("nothing.csv", "--out", gif)  # before it reads
    assert "no folder" in refusal("nothing.csv", "--out", nowhere)


def test_means_of_gappy_tables_are_over_the_datasets_that_all_models_have(wide, csv):
    path = csv(wide.assign(theirs=wide["theirs"].where(wide.index > 1)))
    shown = run(path, "--missing", "worst").output
    assert "mean score *" in shown
    assert "* mean scores are over the 10 of 12 datasets on which every model has a result." in (
        shown
    )
    found = json.loads(run(path, "--missing", "worst", "--json").output)
    assert found["mean_scores_over"] == [f"table {k}" for k in range(2, 12)]
    means = {m["model"]: m["score"] for m in found["models"]}
    assert means == pytest.approx(wide.loc[2:, MODELS].mean().to_dict())
    assert "mean score *" not in run(csv(wide)).output


def with_cell(frame, row, column, value):
    changed = frame.astype(object).reset_index(drop=True)
    changed.loc[row, column] = value
    return changed


FAULTS = [
    ("wide", lambda t: t[["dataset", "ours"]], "one model, 'ours'; a comparison needs two"),
    ("wide", lambda t: t.head(1), "one dataset, 'table 0'; a comparison over datasets needs two"),
    ("wide", lambda t: with_cell(t, 3, "theirs", "failed"), "'theirs' has 'failed' at table 3"),
    (
        "wide",
        lambda t: with_cell(t, 3, "theirs", "failed").drop(columns="dataset"),
        "model 'theirs' has 'failed' at row 4; leave a failed run empty",
    ),
    (
        "wide",
        lambda t: t.assign(notes="good"),
        "'notes' holds 'good' and no score at all; leave the column out, or name the others with",
    ),
    ("wide", lambda t: pd.concat([t, t.iloc[[2]]]), "must differ, but these come twice: 'table 2'"),
    ("wide", lambda t: with_cell(t, 2, "dataset", None), "row 3 has nothing in the column 'datase"),
    (
        "wide",
        lambda t: t.drop(columns="dataset").assign(fold=range(12)),
        "a column 'fold' but none that names datasets",
    ),
    ("long", lambda t: t[t["model"] == "ours"], "one model, 'ours'"),
    ("long", lambda t: with_cell(t, 5, "score", "timeout"), "column 'score' has 'timeout' at row "),
    ("long", lambda t: with_cell(t, 5, "model", None), "row 5 (counted from 0) has no model"),
    (
        "long",
        lambda t: t.reset_index(drop=True).drop(index=0),
        "1 result is missing: 'ours' on 'table 0' (1 of 8 folds). Run what is missing",
    ),
    ("long", lambda t: t.drop(columns="fold"), "252 scores repeat earlier ones, the first for dat"),
    ("long", lambda t: t.drop(columns="score"), "Say --score with one of dataset, model, fold"),
    ("long", lambda t: t[["model", "score"]], "--dataset names it if it is called otherwise"),
    ("long", lambda t: with_cell(t, 5, "fold", None), "row 5 (counted from 0) has no fold"),
]


@pytest.mark.parametrize(("form", "spoil", "said"), FAULTS)
def test_faults_of_tables_are_told_in_one_line(form, spoil, said, request, csv):
    message = refusal(csv(spoil(request.getfixturevalue(form))))
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--alpha", 2], "alpha must be a number between 0 and 1"),
        (["--rope", -1], "rope must be a finite number"),
        (["--ranking", "folds"], "ranking by folds needs the score of every fold"),
        (["--score", "ours"], "--score is for long tables"),
        (["--models", "our,theirs"], "--models names 'our', but the columns are ours, theirs"),
        (["--dataset", "here"], "--dataset: no column 'here'; it has dataset, ours"),
        (["--model-column", "whom"], "--model-column: no column 'whom'; it has dataset"),
        (["--model-column", "ours", "--dataset", "ours"], "are both 'ours'; name two columns"),
        (["--fold-test", "corrected_t"], "--fold-test is for --ranking folds"),
    ],
)
def test_options_that_cannot_be_used_are_told_by_name(wide, csv, options, said):
    assert said in refusal(csv(wide), *options)


@pytest.mark.parametrize("form", ["wide", "long"])
def test_a_model_without_any_score_is_left_out_and_named(form, request, csv):
    table = request.getfixturevalue(form)
    if form == "wide":
        table = table.assign(crashed=np.nan)
    else:
        table = pd.concat([table, table[:8].assign(model="crashed", score=np.nan)])
    result = run(csv(table))
    assert "left out crashed, which has no score at all" in result.stderr
    assert "3 models" in result.stdout


def test_names_are_not_taken_for_markup(wide, csv):
    result = run(csv(wide.rename(columns={"ours": "[red]ours[/]"})))
    assert "[red]ours[/]" in result.output


def test_rows_of_failed_runs_have_no_fold(long, csv):
    lost = (long["dataset"] == "table 3") & (long["model"] == "theirs")
    failed = long.assign(score=long["score"].mask(lost), fold=long["fold"].mask(lost))
    result = run(csv(failed), "--missing", "worst", "--json")
    assert "8 rows have neither fold nor score" in result.stderr
    found, expected = json.loads(result.stdout), compare_models(long[~lost], missing="worst")
    lost = long["dataset"] == "table 3"  # a dataset on which all failed is not forgotten
    nothing = long.assign(score=long["score"].mask(lost), fold=long["fold"].mask(lost))
    dropped = run(csv(nothing, "nothing.csv"), "--missing", "drop_datasets", "--json")
    assert json.loads(dropped.stdout)["dropped"] == ["table 3"]
    assert found["filled"] == [["table 3", "theirs"]]
    assert found["p_values"]["ours"] == pytest.approx(expected.p_values["ours"].to_dict())
    assert "'theirs' on 'table 3'" in refusal(csv(failed))


def models_of(result):
    return {m["model"] for m in json.loads(result.stdout)["models"]}


@pytest.mark.parametrize("name", ["", "id", "index", "did", "benchmark"])
def test_numbers_of_rows_are_no_model(wide, csv, name):
    numbered = wide.drop(columns="dataset")
    numbered.insert(0, name, range(100, 112))
    result = run(csv(numbered), "--json")
    assert models_of(result) == set(MODELS)
    assert f"the column {name or 'column_1'!r} numbers the rows" in result.stderr
    expected = compare_models(wide).average_ranks.to_dict()
    ranks = {m["model"]: m["rank"] for m in json.loads(result.stdout)["models"]}
    assert ranks == pytest.approx(expected)
    beside = run(csv(numbered.assign(dataset=wide["dataset"])), "--json")
    assert models_of(beside) == set(MODELS)
    assert f"left out {name or 'column_1'!r}, which numbers the rows" in beside.stderr


def test_whole_scores_stay_scores(wide, csv):
    points = (wide[MODELS] * 1000).round().astype(int)
    points["ours"] = np.arange(12)
    result = run(csv(points), "--json")
    assert models_of(result) == set(MODELS)
    assert result.stderr == ""


def test_columns_can_be_chosen(wide, csv):
    more = wide.rename(columns={"dataset": "where"}).assign(notes="good", id=range(12))
    path = csv(more.assign(dataset=[f"other {k}" for k in range(12)]))
    result = run(path, "--dataset", "where", "--models", "ours, id", "--missing", "worst", "--json")
    assert models_of(result) == {"ours", "id"}
    found = json.loads(result.stdout)
    assert found["mean_scores_over"][0] == "table 0"


def test_a_long_table_may_number_its_datasets(long, csv):
    numbered = long.assign(did=long["dataset"].str[6:].astype(int)).drop(columns="dataset")
    assert "needs a column 'dataset' too" in refusal(csv(numbered))
    found = json.loads(run(csv(numbered), "--dataset", "did", "--json").stdout)
    assert found["n_datasets"] == 12


def test_percents_are_read(wide, csv):
    percents = wide.assign(**{m: (100 * wide[m]).map("{:.2f}%".format) for m in MODELS[:2]})
    for table in (percents, percents.drop(columns="dataset")):
        result = run(csv(table), "--json")
        expected = compare_models(wide)
        scores = {m["model"]: m["score"] for m in json.loads(result.stdout)["models"]}
        assert scores == pytest.approx(expected.mean_scores.to_dict())
        assert "63.7% as 0.637: ours, theirs" in result.stderr
    failed = percents.assign(ours=[*percents["ours"][:-1], "failed"])
    assert "model 'ours' has 'failed' at table 11" in refusal(csv(failed))


def test_two_benchmarks_in_one_table_are_told_apart(long, csv):
    both = pd.concat([long.assign(spec="mine", spec_hash=text) for text in ("abcdef1", "0123456")])
    said = refusal(csv(both))
    assert "has rows of 2 benchmarks, mine@abcdef, mine@012345" in said
    assert "bench export --name mine@abcdef" in said
    apart = both[(both["spec_hash"] == "0123456") == (both["model"] == "ours")]
    result = run(csv(apart), "--json")
    assert models_of(result) == set(MODELS)
    assert "2 benchmarks" in result.stderr


def test_the_column_of_models_can_be_named(long, csv):
    # As in a results file of the AutoML benchmark, and with a word that nobody can guess.
    amlb = long.rename(columns={"model": "framework", "dataset": "task", "score": "result"})
    expected = models_of(run(csv(long), "--models", "ours,chance", "--json"))
    assert expected == {"ours", "chance"}
    asked = ("--score", "result", "--models", "ours,chance", "--json")
    assert models_of(run(csv(amlb), *asked)) == expected
    path = csv(amlb.rename(columns={"framework": "who"}).assign(seed=1, version="1.0"))
    assert "--score is for long tables" in refusal(path, "--score", "result")
    assert models_of(run(path, "--model-column", "who", *asked)) == expected


@pytest.mark.parametrize("test", ["nemenyi", "wilcoxon"])
def test_prints_the_p_value_of_every_pair(wide, csv, test):
    expected = compare_models(wide, test=test)
    shown = run(csv(wide), "--test", test).output.partition("p-values of pairs")[2]
    for i, model in enumerate(expected.models):
        cells = next(line for line in shown.splitlines() if f" {model} " in line).split("│")[3:-1]
        numbers = [cell.strip() for cell in cells if cell.strip()]
        p_values = expected.p_values.loc[model].iloc[:i]
        assert numbers == [f"{p:.3f}" if p >= 0.001 else "<0.001" for p in p_values]
