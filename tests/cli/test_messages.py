"""Notes and JSON: what commands say beside their results."""

import json
import warnings

import numpy as np
import pytest

from cocoloss.cli import messages


class AboutColumns(UserWarning):
    def __init__(self, what, about):
        super().__init__(f"{what}. Say so in Python")
        self.what, self.about = what, about


def notes(capsys, *found, **options):
    with messages.notes_for_warnings(**options):
        for warning in found:
            warnings.warn(warning, stacklevel=1)
    return capsys.readouterr().err.splitlines()


def test_notes_that_begin_alike_are_all_shown_and_the_same_one_once(capsys):
    start = "read with points between thousands, as decimal marks are commas: "
    assert len(start) > 30
    given = [UserWarning(start + name) for name in ("'a'", "'b'", "'a'")]
    assert notes(capsys, *given) == [f"note: {start}'a'", f"note: {start}'b'"]


def test_a_note_gives_the_advice_of_the_command(capsys):
    given = [AboutColumns("dropped 'a'", "text"), AboutColumns("read 'b'", "thousands")]
    assert notes(capsys, *given, advice=messages.ADVICE, but=("text",)) == [
        "note: read 'b'; say --decimal . if they are decimal points"
    ]
    assert notes(capsys, given[0]) == ["note: dropped 'a'; leave such a column out with --drop"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({1: np.float64("nan")}, {"1": None}),
        ((np.int64(3), np.array([1.5, np.inf])), [3, [1.5, None]]),
        ({"seen": np.datetime64("2024-05-01")}, {"seen": "2024-05-01"}),
        ([True, None, "Łódź"], [True, None, "Łódź"]),
    ],
)
def test_json_has_no_values_that_json_lacks(capsys, value, expected):
    messages.print_json(value)
    assert json.loads(capsys.readouterr().out) == expected
