import json
import math

import numpy as np
import pytest
from cocoloss.estimators.plain import pack, unpack
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from cocoloss.exceptions import CoCoError


class Part:
    def __init__(self, value):
        self.value = value


class Stranger:
    pass


CLASSES = {"Part": Part}

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.booleans(), inner)
    ),
    max_leaves=20,
)
arrays = hnp.arrays(
    st.sampled_from(["<f4", "<f8", "<f2", ">f8", "<i8", "<i4", "<i2", "u1", "?", "<M8[ns]"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


def there_and_back(value):
    tree, found = pack(value, CLASSES)
    return unpack(json.loads(json.dumps(tree, allow_nan=False)), found, CLASSES)


@given(plain)
def test_plain_values_come_back_as_they_were(value):
    assert repr(there_and_back(value)) == repr(value)


@given(arrays)
def test_arrays_come_back_with_their_kind_and_shape(array):
    back = there_and_back([array])[0]
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)


@given(st.lists(st.text() | st.none() | st.integers() | st.floats(allow_nan=False)))
def test_arrays_of_objects_come_back(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    back = there_and_back(array)
    assert back.dtype == object
    assert back.tolist() == items


def test_arrays_of_text_and_numpy_numbers_come_back():
    back = there_and_back([np.array(["a", "ünlich"]), np.float32(0.5), np.int8(3), np.str_("x")])
    assert back[0].dtype == "<U6"
    assert back[0].tolist() == ["a", "ünlich"]
    assert back[1:] == [0.5, 3, "x"]


def test_objects_of_known_classes_are_their_attributes():
    back = there_and_back({"part": Part((1, math.nan))})
    assert type(back["part"]) is Part
    assert back["part"].value[0] == 1
    assert math.isnan(back["part"].value[1])


@pytest.mark.parametrize("value", [Stranger(), print, {1, 2}, b"bytes", 1j, np.zeros(2, "c8")])
def test_anything_else_is_refused_with_its_place(value):
    with pytest.raises(CoCoError, match=r"the model\['head'\]\[0\]"):
        pack({"head": [value]}, CLASSES)


@pytest.mark.parametrize(
    "tree",
    [
        [],
        {},
        ["eval", "1"],
        ["float", "1e999"],
        ["array", 0],
        ["array", -1],
        ["array", True],
        ["object", "Stranger", {}],
        ["object", "Part", []],
        ["object", "Part", {"__class__": 1}],
        ["object", "Part", {"a b": 1}],
        ["items", "<U3", ["tuple", "a"]],
        ["items", "<U3", ["list", 1]],
        ["items", "<i8", ["list", "a"]],
        ["items", "<U99", ["list", "a" * 99, *["b"] * 200_000]],
        ["cast", "O", ["items", "object", ["list", 1]]],
        ["cast", "<f4", ["list", 1]],
        ["times", "x" * 100, ["list", 1]],
    ],
)
def test_trees_that_nobody_packs_are_refused(tree):
    with pytest.raises(CoCoError):
        unpack(tree, [], CLASSES)


def test_text_is_as_wide_as_its_longest_item():
    assert unpack(["items", "<U99999999", ["list", "a", "bc"]], [], {}).dtype == "<U2"
    wide = np.array(["abc", "d"])[1:]
    assert wide.dtype == "<U3"
    back = there_and_back(wide)
    assert back.dtype == "<U1"
    assert back.tolist() == ["d"]


def test_no_array_is_taken_twice():
    array = np.zeros(3)
    assert unpack(["list", ["array", 0]], [array], {})[0] is array
    with pytest.raises(CoCoError, match="taken before"):
        unpack(["list", ["array", 0], ["array", 0]], [array], {})


def test_all_that_is_made_shares_one_measure():
    text = ["items", "<U60", ["list", *["x" * 60] * 100_000]]  # 24 MB of 64
    pair = ["list", text, text]
    assert len(unpack(pair, [], {})) == 2
    for third in (text, ["cast", "<f8", text], ["items", "object", ["list", *[1] * 4_000_000]]):
        with pytest.raises(CoCoError, match=r"more than a model needs|no array"):
            unpack([*pair, third], [], {})
    numbers = [np.zeros(2_000_000, dtype=bool) for _ in range(6)]
    casts = [["cast", "<f8", ["array", i]] for i in range(6)]  # of 64 MB and 4 times 12 MB
    assert len(unpack(["list", *casts], numbers, {})) == 6
    with pytest.raises(CoCoError, match="more than a model needs"):
        unpack([*pair, text, *casts], numbers, {})


def test_what_could_not_be_read_back_is_not_packed():
    text = np.array(["x" * 60] * 100_000)
    pack([text, text], {})
    with pytest.raises(CoCoError, match="too many for a model file"):
        pack([text, text, text], {})
