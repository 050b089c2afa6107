"""An experiment is found by the kind of a spec: built in, a file of the user's, or a module."""

import sys
from pathlib import Path

import pytest
from bench_cli import bench, refusal

from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import experiment_files, load_experiment
from cocoloss.exceptions import CoCoError

MINE = """
from cocoloss.benchmark.tasks import Result, Unit
from {module}_numbers import SCORE

def plan(spec, infos):
    return [Unit.of(spec, i, m, tasks=1, seconds=1) for i in infos for m in spec.models.names]

def drive(unit, spec, parallel=1):
    yield [unit.task("score", "all")]

def run(task, table, spec):
    return Result({{"score": SCORE}}, [{{"fold": 0, "balanced_accuracy": SCORE}}])
"""
SPEC = """
name = "own"
kind = "{kind}"
data = {{ source = "sklearn", datasets = ["iris"] }}
models = {{ names = ["any"] }}
"""


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in [name for name in sys.modules if name.startswith(("minelab", "second", "labs"))]:
        del sys.modules[name]


def write_experiment(folder, kind):
    Path(folder).mkdir(exist_ok=True)
    (Path(folder) / f"{kind}.py").write_text(MINE.format(module=kind))
    (Path(folder) / f"{kind}_numbers.py").write_text("SCORE = 0.75")


def write_spec(folder, kind):
    Path(folder).mkdir(exist_ok=True)
    path = Path(folder) / "own.toml"
    path.write_text(SPEC.format(kind=kind))
    return path


@pytest.mark.parametrize(
    ("where", "options"),
    [("../specs", []), ("../else", ["--experiments", "../else"]), (".", [])],
    ids=["beside the spec", "in a folder that is given", "in the current folder"],
)
def test_a_file_of_ones_own_is_found(where, options):
    write_experiment(where, "minelab")
    spec = write_spec("../specs", "minelab")
    bench("run", spec, "--workers", 0, *options)
    with Store("own.sqlite", create=False) as store:
        assert [row["measures"] for row in store.rows()] == [{"score": 0.75}]


def test_a_module_is_found_by_its_place():
    Path("labs").mkdir()
    write_experiment("labs", "second")
    sys.path[:0] = [str(Path.cwd()), str(Path("labs").resolve())]
    assert load_experiment("labs.second").plan


def test_the_spec_hash_does_not_know_where_the_file_lies():
    spec = load_spec(write_spec(".", "minelab"))
    assert load_spec(write_spec("../other", "minelab"), experiments=["."]).hash == spec.hash


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("import nothing_of_that_name", "fails on import: ModuleNotFoundError"),
        ("raise SystemExit(2)", "fails on import: SystemExit"),
        ("def plan(spec, infos): ...", "is no experiment: it has no drive and no run"),
        (None, "there is no experiment 'minelab'; if it is a file of your own, minelab.py, give"),
    ],
)
def test_what_is_no_experiment_is_told_in_one_line(content, told):
    if content:
        Path("minelab.py").write_text(content)
    line = refusal("plan", write_spec(".", "minelab"))
    assert line.startswith("error: own.toml: kind: ")
    assert told in line


def test_a_misspelt_kind_is_told_with_the_one_that_was_meant():
    assert "did you mean 'accuracy'?" in refusal("plan", write_spec(".", "acuracy"))


def test_a_file_does_not_take_the_name_of_another_module():
    Path("json.py").write_text("")
    with pytest.raises(CoCoError, match="the name of another module"):
        load_experiment("json", [Path()])


def test_workers_elsewhere_get_the_file_after_what_it_imports():
    write_experiment(".", "minelab")
    files = experiment_files(load_spec(write_spec(".", "minelab")))
    assert [Path(file).name for file in files] == ["minelab_numbers.py", "minelab.py"]
    assert not experiment_files(load_spec(write_spec(".", "accuracy")))


@pytest.mark.cluster
def test_workers_of_this_machine_find_it():
    write_experiment("../specs", "minelab")
    bench("run", write_spec("../specs", "minelab"), "--workers", 1)
    with Store("own.sqlite", create=False) as store:
        assert [row["status"] for row in store.rows()] == ["ok"]
