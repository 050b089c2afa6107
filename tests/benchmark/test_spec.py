from pathlib import Path

import pytest
from bench_cli import bench, refusal

from cocoloss.benchmark.spec import Spec, load_spec
from cocoloss.exceptions import CoCoError

SMALL = """
name = "small"
kind = "accuracy"
[data]
source = "sklearn"
[models]
names = ["coco", "rf"]
"""


def read(text, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(text)
    return load_spec(path)


def test_what_is_left_out_is_the_paper(tmp_path):
    spec = read(SMALL, tmp_path)
    assert (spec.folds.outer, spec.folds.inner, spec.folds.seed) == (10, 3, 0)
    assert (spec.tuning.trials_per_hyperparameter, spec.tuning.mode) == (10, "first")
    assert spec.training.epochs == 500
    assert spec.limits.seconds_per_task == 0
    assert spec.data.datasets == ()
    assert spec.folder == tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (SMALL + "[folds]\nouter = 'ten'", "folds.outer must be a whole number .*, not 'ten'"),
        (SMALL + "[folds]\nouter = 1", "folds.outer must be at least 2, but is 1"),
        (SMALL + "[folds]\nouter = true", "folds.outer must be a whole number"),
        (SMALL + "[folds]\nouterr = 5", "unknown key folds.outerr; did you mean 'outer'?"),
        (SMALL + "[fold]\nouter = 5", "unknown key fold; did you mean 'folds'?"),
        (SMALL + "[weather]\nrain = 1", "unknown key weather; there are name, kind, .*"),
        (SMALL + "[tuning]\nmode = 'all'", "tuning.mode must be one of 'first', 'each', not 'all'"),
        (SMALL + "[tuning]\ntrials = 7", "tuning.trials must be a table of model = number, not 7"),
        (SMALL + "[tuning.trials]\nrf = -1", "tuning.trials.rf must be at least 0"),
        (SMALL + "[tuning.trials]\nrf = 'many'", "tuning.trials.rf must be"),
        (SMALL + "[training]\nepochs = 0", "training.epochs must be at least 1"),
        (SMALL + "[limits]\nseconds_per_task = 'soon'", "limits.seconds_per_task must be a number"),
        (SMALL + "[limits]\nmemory_per_task = -1", "limits.memory_per_task must be a number"),
        (SMALL + "[options]\nday = 2026-01-01", "options must hold numbers, texts, lists"),
        (SMALL.replace('"accuracy"', '"a speed"'), "kind must name an experiment"),
        (SMALL.replace('name = "small"', ""), "name is missing"),
        (SMALL.replace('source = "sklearn"', ""), "data.source is missing"),
        (SMALL.replace('["coco", "rf"]', '"coco"'), "models.names must be a list of texts"),
        (SMALL.replace('["coco", "rf"]', "[]"), "models.names is missing"),
        (SMALL.replace('"rf"', '"coco"'), "models.names has 'coco' twice"),
        (SMALL + "[models.own]\nmine = 'my_models'", "models.own.mine must be 'package.module:fac"),
        (SMALL.replace("[data]", "[data"), "not valid TOML: .*line"),
        ("folds = 3\n" + SMALL, "folds must be a section"),
    ],
)
def test_a_broken_spec_is_refused_with_its_name_and_the_key(text, message, tmp_path):
    with pytest.raises(CoCoError, match=f"small.toml: {message}") as refusal:
        read(text, tmp_path)
    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(CoCoError, match=r"there is no spec .*none\.toml"):
        load_spec(tmp_path / "none.toml")
    (tmp_path / "picture.toml").write_bytes(b"\x89PNG\xff\xfe")
    with pytest.raises(CoCoError, match=r"picture\.toml: no text in UTF-8"):
        load_spec(tmp_path / "picture.toml")
    with pytest.raises(CoCoError, match="cannot read"):
        load_spec(tmp_path)


def test_the_hash_covers_what_changes_numbers_and_nothing_else(tmp_path):
    same = [
        SMALL.replace('"small"', '"another name"'),
        SMALL.replace('"sklearn"', '"sklearn"\ndatasets = ["iris"]'),
        SMALL.replace('["coco", "rf"]', '["hgb"]'),
        SMALL + "[limits]\nseconds_per_task = 5",
        'deviations = ["fewer folds"]\n' + SMALL,
        SMALL + "[folds]\nouter = 10",  # as it is by default
        SMALL + "[tuning.trials]\n[training]\nmax_units = 0",  # keys that were added later
    ]
    other = [
        SMALL + "[folds]\nouter = 9",
        SMALL + "[folds]\nseed = 1",
        SMALL + "[tuning]\nparallel = 4",
        SMALL + "[tuning.trials]\nrf = 10",
        SMALL + "[training]\nmax_units = 256",
        SMALL + "[training]\nepochs = 100",
        SMALL + "[options]\nn_terms = [64]",
        SMALL.replace('"sklearn"', '"sklearn"\nmax_rows = 500'),
        SMALL.replace('"accuracy"', '"imbalance"'),
    ]
    plain = read(SMALL, tmp_path).hash
    assert {read(text, tmp_path).hash for text in same} == {plain}
    hashes = {read(text, tmp_path).hash for text in other}
    assert len(hashes | {plain}) == len(other) + 1


def test_limits_are_as_people_write_them_and_the_command_line_changes_a_spec(tmp_path):
    text = SMALL + "[limits]\nseconds_per_task = '2h'\nmemory_per_task = '1.5 GB'"
    spec = read(text, tmp_path)
    assert (spec.limits.seconds_per_task, spec.limits.memory_per_task) == (7200, 1_500_000_000)
    spec = spec.changed(datasets=["wine"], seconds_per_task=3, own={"mine": "my_models:make"})
    assert (spec.data.datasets, spec.limits.seconds_per_task) == (("wine",), 3)
    assert spec.models.names == ("coco", "rf", "mine")
    assert spec.models.own == {"mine": "my_models:make"}
    assert spec.folder == tmp_path
    only = SMALL.replace('names = ["coco", "rf"]', "[models.own]\nmine = 'a.b:c'")
    assert read(only, tmp_path).models.names == ("mine",)


def test_content_is_what_it_was_made_from(tmp_path):
    spec = read(SMALL + "[options]\nn_terms = [64, 128]", tmp_path)
    assert Spec.from_dict(spec.content()) == spec


SPEC = """
name = "mine"
kind = "accuracy"
data = { source = "sklearn", datasets = ["iris"] }
models = { names = ["ksvm"] }
folds = { outer = 3 }
tuning = { trials_per_hyperparameter = 0 }
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(*changes):
    text = SPEC
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    Path("mine.toml").write_text(text)


NO_TUNING = "tuning = { trials_per_hyperparameter = 0 }"
WRONG = {  # what is changed, into what -> what is told
    ('"ksvm"', '"kvsm"'): "models.names: there is no model 'kvsm'; did you mean 'ksvm'",
    (NO_TUNING, "tuning.trials.kvsm = 3"): "tuning.trials: there is no model 'kvsm'; did you mean",
    ('"iris"', '"irs"'): "data.datasets: ",
    ('"sklearn"', '"sklearm"'): "data.source: ",
    (NO_TUNING, "options.speed = 3"): "options: an experiment of kind 'accuracy' has none, but got",
    ('"ksvm"', '"coco-s0.5", "coco-s0.50"'): "models.names: 'coco-s0.5' and 'coco-s0.50' are one",
    ("outer = 3", "outer = 200"): "data.datasets: iris: 150 rows cannot be split into folds.outer",
    (
        f"outer = 3 }}\n{NO_TUNING}",
        "inner = 140 }",
    ): "data.datasets: iris: 150 rows cannot be split",
}


@pytest.mark.parametrize(("change", "told"), WRONG.items())
def test_what_cannot_be_is_told_with_file_and_key(change, told):
    write(change)
    for command in ("plan", "run"):
        assert refusal(command, "mine.toml").startswith(f"error: mine.toml: {told}")
    assert not Path("mine.sqlite").exists()


def test_small_tables_of_a_folder_are_left_out_before_anything_runs():
    Path("tables").mkdir()
    for name, n in (("large", 10), ("small", 2)):
        Path(f"tables/{name}.csv").write_text("a,target\n" + "1,x\n2,y\n" * n)
    write(('"sklearn", datasets = ["iris"]', '"folder:tables"'), ("outer = 3", "outer = 5"))
    plan = bench("plan", "mine.toml")
    assert "left out: small: 4 rows cannot be split into folds.outer = 5" in plan.stderr
    assert "on 1 tables" in plan.stdout


def test_trials_of_a_model_that_is_not_run_are_noted():
    write((NO_TUNING, "tuning.trials = { rf = 3, ksvm = 2 }"))
    plan = bench("plan", "mine.toml")
    assert "mine.toml: tuning.trials has rf, not among models.names: no effect" in plan.stderr


def test_a_name_with_a_slash_makes_a_file_in_the_current_folder():
    write(('name = "mine"', 'name = "mine/one"'))
    bench("run", "mine.toml", "--workers", 0)
    assert Path("mine-one.sqlite").exists()
