"""Whatever the bytes, the answer is a table or one clear line."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError
from cocoloss.tables import iter_tables, read_table

CSV = "name,größe,ok\nx,1.5,True\n\"a\nb\",2,False\n?,3e5,\n'q',-7,True\n".encode()
ARFF = b"""@relation r
@attribute a numeric
@attribute 'b c' {x,'y z'}
@attribute d date "yyyy-MM-dd"
@data
1,x,2020-01-01
?,'y z',?
{0 5, 1 x}
"""
PARQUET = io.BytesIO()
pd.DataFrame({"a": np.arange(50), "b": list("xy") * 25}).to_parquet(PARQUET)
SEEDS = [CSV, ARFF, gzip.compress(CSV), PARQUET.getvalue(), CSV.decode().encode("utf-16")]


@st.composite
def damaged(draw):
    """Give a good file with some bytes changed, cut out or put in."""
    data = bytearray(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        n_out = draw(st.integers(0, 12))
        data[at : at + n_out] = draw(
            st.binary(max_size=6) | st.sampled_from([b",", b"\n", b'"', b"'"])
        )
    return bytes(data)


def check(path, content):
    path.write_bytes(content)
    answers = []
    for read in (read_table, lambda path: pd.concat(iter_tables(path, rows=2), ignore_index=True)):
        try:
            answers.append(read(path))
        except CoCoError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 1000
        else:
            assert len(answers[-1])
            assert answers[-1].columns.is_unique
            assert all(isinstance(name, str) for name in answers[-1].columns)
    if len(answers) == 2:
        assert answers[0].shape == answers[1].shape


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("bytes") / "table"


@settings(deadline=None, max_examples=100)
@given(content=st.binary(max_size=200))
def test_random_bytes(path, content):
    check(path, content)


@pytest.mark.filterwarnings("ignore:.*passed over")
@settings(deadline=None, max_examples=100)
@given(content=st.text("ab1.,;|\t \"'\r\n?%@{}é", max_size=60).map(str.encode))
def test_random_cells(path, content):
    check(path, content)


@pytest.mark.filterwarnings("ignore:.*passed over")  # a row that has lost its cells
@settings(deadline=None, max_examples=200)
@given(content=damaged())
def test_damaged_files(path, content):
    check(path, content)
