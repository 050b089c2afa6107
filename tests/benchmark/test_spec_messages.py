"""What a spec asks for in vain is told before anything runs, with the file and the key."""

from pathlib import Path

import pytest
from bench_cli import bench, refusal

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
@pytest.mark.parametrize("command", ["plan", "run"])
def test_what_cannot_be_is_told_with_file_and_key(change, told, command):
    write(change)
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
