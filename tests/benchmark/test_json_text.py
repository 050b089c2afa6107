import math

import fake
import numpy as np
import pytest
from bench_helpers import FakeTables, fake_spec
from hypothesis import given
from hypothesis import strategies as st

from cocoloss.benchmark.json_text import dump_json, load_json, plain
from cocoloss.benchmark.plan import make_plan
from cocoloss.benchmark.worker import run_task

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
    made = plain(
        {"a": np.float32(0.5), "b": np.arange(2), "c": (np.bool_(True), np.float64("nan"))}
    )
    assert repr(made) == "{'a': 0.5, 'b': [0, 1], 'c': [True, nan]}"
    with pytest.raises(TypeError, match="a result holds a set"):
        plain({"a": [{1}]})


def test_a_task_answers_with_numbers_that_json_has_not(monkeypatch):
    monkeypatch.setattr(fake, "number_from", lambda *_: -math.inf)
    spec, tables = fake_spec("good"), FakeTables()
    (unit,) = make_plan(spec, tables.infos(["a"])).units
    task = unit.task("fold", 0, {"x": 0.5})
    finished = run_task(task, tables.load("a"), spec)
    assert finished.result.measures["balanced_accuracy"] == -math.inf
    assert finished.result.rows[0]["log_loss"] == math.inf
