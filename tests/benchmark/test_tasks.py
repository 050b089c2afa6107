import math
from dataclasses import replace
from pathlib import Path

import fake
import numpy as np
import pytest
from bench_helpers import fake_spec
from fake_tables import FakeTables
from hypothesis import given
from hypothesis import strategies as st

import cocoloss
from cocoloss.benchmark.plan import make_plan
from cocoloss.benchmark.tasks import (
    SOURCE,
    Task,
    Unit,
    digest_of,
    environment,
    seed_of,
    source_digest,
)
from cocoloss.benchmark.workers import run_task
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import dump_json, json_value, load_json

NAMES = st.text("a/%2F", min_size=1, max_size=4)
TASKS = st.builds(
    Task,
    experiment=NAMES,
    dataset=NAMES,
    model=NAMES,
    stage=st.sampled_from(["trial", "fold"]),
    part=st.sampled_from(["", "0", "1", "0/1"]),
    params=st.dictionaries(st.sampled_from("xy"), st.integers(0, 2)),
    context=st.sampled_from(["", "c"]),
    root=st.integers(0, 1),
)


@given(TASKS, TASKS)
def test_two_tasks_have_the_same_key_only_if_they_are_the_same(one, other):
    assert (one.key == other.key) == (one == other)


@given(TASKS)
def test_the_key_tells_people_what_it_is_and_that_of_a_trial_has_no_point(task):
    assert f"/{task.stage}/" in task.key
    assert task.key.count("/") == 4 + (task.part.count("/") + 1 if task.part else 0)
    number = replace(task, params_in_key=False)
    assert number.key == replace(number, params={"x": 7}).key


@given(TASKS)
def test_seeds_follow_from_names_and_not_from_params(task):
    assert task.seed == replace(task, params={"x": 9}, context="other").seed
    assert 0 <= task.seed < 2**31


def test_seeds_differ_between_tasks_and_between_seeds_of_the_spec():
    task = Task("accuracy", "iris", "rf", "fold", "0")
    others = [replace(task, part="1"), replace(task, model="hgb"), replace(task, root=1)]
    assert len({t.seed for t in [task, *others]}) == 4


def test_the_key_of_a_unit_changes_with_spec_table_and_own_model():
    spec = fake_spec("good", "mine", models={"names": ["good"], "own": {"mine": "m:f"}})
    (info,) = FakeTables().infos(["a"])

    def key(spec=spec, info=info, model="mine"):
        return Unit.of(spec, info, model, tasks=1, seconds=1).key

    other_own = spec.changed(own={"mine": "m:g"})
    other_info = replace(info, fingerprint="other content")
    keys = [key(), key(fake_spec("mine", outer=4)), key(info=other_info), key(other_own)]
    assert len(set(keys)) == 4
    assert key(other_own, model="good") == key(model="good")


def test_digests_do_not_care_for_order_or_for_numpy():
    assert digest_of({"a": 1, "b": [0.5]}) == digest_of({"b": (np.float64(0.5),), "a": np.int8(1)})
    assert digest_of(1) != digest_of(1.5)
    assert seed_of("a", "b") != seed_of("ab")
    with pytest.raises(CoCoError, match="numbers, texts, lists and dicts"):
        digest_of({"model": object()})


def test_the_same_files_elsewhere_are_the_same_source(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder / "part").mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("x = 1")
        (tmp_path / folder / "part" / "b.py").write_text("y = 2")
    (tmp_path / "two" / "__pycache__").mkdir()
    (tmp_path / "two" / "__pycache__" / "a.pyc").write_bytes(b"compiled")
    assert source_digest(tmp_path / "one") == source_digest(tmp_path / "two")
    (tmp_path / "two" / "a.py").rename(tmp_path / "two" / "c.py")
    assert source_digest(tmp_path / "one") != source_digest(tmp_path / "two")
    assert source_digest(tmp_path / "package.zip" / "package") == ""
    versions = environment().versions
    assert versions["cocoloss"] == cocoloss.__version__
    assert versions[SOURCE] == source_digest(Path(cocoloss.__file__).parent)


NUMBERS = st.floats() | st.integers(-(2**60), 2**60) | st.booleans() | st.none()
TEXTS = st.text(max_size=8).filter(lambda text: text not in {"NaN", "Infinity", "-Infinity"})
VALUES = st.recursive(
    NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(VALUES)
def test_every_value_is_read_as_it_was_written(value):
    assert repr(load_json(dump_json(value))) == repr(value)  # NaN is not equal to itself


def test_numbers_of_numpy_become_those_of_python():
    made = json_value(
        {"a": np.float32(0.5), "b": np.arange(2), "c": (np.bool_(True), np.float64("nan"))}
    )
    assert repr(made) == "{'a': 0.5, 'b': [0, 1], 'c': [True, nan]}"
    with pytest.raises(TypeError, match="a result holds a set"):
        json_value({"a": [{1}]})


def test_a_task_answers_with_numbers_that_json_has_not(monkeypatch):
    monkeypatch.setattr(fake, "number_from", lambda *_: -math.inf)
    spec, tables = fake_spec("good"), FakeTables()
    (unit,) = make_plan(spec, tables.infos(["a"])).units
    task = unit.task("fold", 0, {"x": 0.5})
    finished = run_task(task, tables.load("a"), spec)
    assert finished.result.measures["balanced_accuracy"] == -math.inf
    assert finished.result.rows[0]["log_loss"] == math.inf
