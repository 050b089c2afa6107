"""Costs, priors and thresholds on the command line: the decisions of Python, from a file."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import cocoloss
from cocoloss.cli.decisions import read_costs
from cocoloss.columns import settle_kinds


@pytest.fixture(scope="module")
def patients(frame):
    """Return two classes of different size, told apart by halves."""
    rng = np.random.default_rng(0)
    sick = np.where(rng.random(len(frame)) < 0.3, "sick", "well")
    size = rng.normal(size=len(frame)) + 1.2 * (sick == "sick")
    return frame.drop(columns=["kind", "id"]).assign(size=size, state=sick)


@pytest.fixture(scope="module")
def table_of_two(patients, tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "patients.csv"
    patients.to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def model_of_two(run, table_of_two, tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "patients.coco"
    run("fit", table_of_two, "--target", "state", "--out", path)
    return path


@pytest.fixture(scope="module")
def said(run, table_of_two, model_of_two):
    """Return what is predicted with some options, and what was noted."""

    def predict(*options):
        done = run("predict", model_of_two, table_of_two, *options)
        return pd.read_csv(io.StringIO(done.stdout)), done.stderr

    return predict


@pytest.fixture(scope="module")
def python(model_of_two, patients):
    """Return what the same model predicts in Python."""
    model, X = cocoloss.load(model_of_two), settle_kinds(patients.drop(columns="state"))
    return lambda **asked: model.predict(X, **asked).tolist()


@pytest.mark.parametrize(
    "text", ["sick=10,well=1", "sick:well=10, well:sick=1", "csv", "semicolons"]
)
def test_costs_are_those_of_python_in_every_form(said, python, tmp_path, text):
    if text == "csv":
        text = tmp_path / "costs.csv"
        text.write_text("true,well,sick\nwell,0,1\nsick,10,0\n")
    elif text == "semicolons":
        text = tmp_path / "costs.csv"
        text.write_text(";sick;well\nsick;0;10\nwell;1,0;0\n")
    predicted, notes = said("--costs", text)
    expected = python(costs={"sick": 10, "well": 1})
    assert predicted["prediction"].tolist() == expected
    assert expected != python()
    assert "costs are counted for classes as frequent as in training, sick " in notes


def test_priors_and_thresholds_are_those_of_python(said, python):
    rare = {"sick": 0.02, "well": 0.98}
    for options, asked in [
        (["--priors", "empirical"], {"priors": "empirical"}),
        (["--priors", "sick=0.02,well=0.98"], {"priors": rare}),
        (["--threshold", "0.2", "--positive", "sick"], {"threshold": 0.2, "positive": "sick"}),
        (
            ["--costs", "sick=9,well=1", "--priors", "sick=0.02,well=0.98"],
            {"costs": {"sick": 9, "well": 1}, "priors": rare},
        ),
    ]:
        predicted, notes = said(*options)
        assert predicted["prediction"].tolist() == python(**asked) != python()
        assert notes == ""


def test_probabilities_are_those_that_decided(said):
    predicted, _ = said("--costs", "sick=9,well=1", "--proba")
    sick = predicted["probability_sick"] > 1 / 10
    assert (predicted["prediction"] == np.where(sick, "sick", "well")).all()
    usual, _ = said("--proba")
    assert (predicted["probability_sick"] < usual["probability_sick"]).mean() > 0.9


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--costs", "sick=10"], "costs does not say what it costs to take 'well' for 'sick'"),
        (["--costs", "sick=10,wel=1"], "--costs: there is no class 'wel'; there are sick, well"),
        (["--costs", "sick=dear,well=1"], "'sick=dear' is not CLASS=NUMBER"),
        (["--costs", "sick=1,sick=2"], "'sick' is there twice"),
        (["--costs", "lost.csv"], "there is no such file; name one, or write 'sick=5,well=1'"),
        (["--threshold", "0.2"], "positive must be the class that the threshold is about"),
        (["--threshold", "0.2", "--positive", "ill"], "--positive: there is no class 'ill'"),
        (["--positive", "sick"], "is for a threshold"),
        (["--priors", "half"], "--priors must be empirical, uniform, or shares such as"),
        (["--priors", "sick=1,well=3"], "priors must sum to one"),
        (["--costs", "sick=2,well=1", "--threshold", "0.2"], "costs and threshold both decide"),
        (["--rule", "mean", "--costs", "sick=2,well=1"], "--rule is for a model of levels"),
    ],
)
def test_what_decides_nothing_is_refused_before_the_table_is_read(
    refused, model_of_two, tmp_path, options, words
):
    missing = tmp_path / "there-is-none.csv"
    assert words in refused("predict", model_of_two, missing, *options)


def test_a_file_of_costs_must_name_the_classes(refused, model_of_two, table_of_two, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("true,sick,fine\nsick,0,1\nwell,1,0\n")
    words = refused("predict", model_of_two, table_of_two, "--costs", costs)
    assert "header: there is no class 'fine'; there are sick, well" in words
    costs.write_text("true,sick,well\nsick,0,1\n")
    words = refused("predict", model_of_two, table_of_two, "--costs", costs)
    assert "the index of costs must name the true classes" in words


def test_colons_and_numbers_may_be_in_the_names_of_classes():
    odd = np.array(["a", "a:b", "b"])
    costs = read_costs("a=1,a:b=5,b=2,a:b:a=7", odd)
    assert costs.tolist() == [[0, 1, 1], [7, 0, 5], [2, 2, 0]]
    assert read_costs("0=1,1=5", np.array([0, 1])).tolist() == [[0, 1], [5, 0]]


def test_numbers_have_no_costs_and_levels_have_rules(run, refused, frame, tmp_path):
    path, numbers = tmp_path / "t.csv", tmp_path / "n.coco"
    sizes = frame.drop(columns="id").assign(size=frame["size"].fillna(0))
    sizes.to_csv(path, index=False)
    run("fit", path, "--target", "size", "--out", numbers)
    said = refused("predict", numbers, path, "--costs", "a=1,b=2")
    assert said.startswith("error: --costs is for classes, and ")
    assert said.endswith("predicts numbers; say --interval 0.9 to know how sure it is")
    levels = tmp_path / "l.coco"
    run("fit", path, "--target", "kind", "--levels", "ant,bee,cicada", "--out", levels)
    options = ("--rule", "median", "--priors", "ant=0.9,bee=0.05,cicada=0.05")
    made = pd.read_csv(io.StringIO(run("predict", levels, path, *options).stdout))
    X = settle_kinds(sizes.drop(columns="kind"))
    model = cocoloss.load(levels)
    expected = model.predict(X, rule="median", priors=[0.9, 0.05, 0.05])
    assert made["prediction"].tolist() == expected.tolist()
    both = refused("predict", levels, path, "--rule", "median", "--costs", "ant=1,bee=1,cicada=2")
    assert "--rule and --costs both decide" in both


def test_fit_says_how_good_it_is_in_numbers_too(run, patients, table_of_two, tmp_path):
    out = tmp_path / "m.coco"
    fit = ("fit", table_of_two, "--target", "state", "--out", out)
    facts = json.loads(run(*fit, "--json").stdout)["quality"]
    X = settle_kinds(patients.drop(columns="state"))
    model = cocoloss.CoCoClassifier(random_state=0).fit(X, patients["state"])
    assert facts["text"] == str(model.quality_)
    assert facts["measures"]["AUC"]["value"] == pytest.approx(model.quality_["AUC"].value)
    assert facts["rows"] == len(patients)
    network = run(*fit, "--epochs", 5, "--members", 2).stdout
    assert "quality   held-out rows: balanced accuracy 0." in network
