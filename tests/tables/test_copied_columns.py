"""Columns that are copied as they stand in a file."""

import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.tables import iter_columns, iter_tables, write_table

CELLS = ["007", "43", "43.0", "NA", "", "?", "1e5", " x", "2,50", 'say "x"', "True", "0x1F"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("rows", [1, 5, 100])
def test_every_cell_is_to_the_letter(tmp_path, separator, rows):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"id": CELLS, "size": range(len(CELLS)), "other": CELLS[::-1]})
    frame.to_csv(path, index=False, sep=separator)
    copied = pd.concat(iter_columns(path, ["other", "id"], rows=rows))
    assert list(copied.columns) == ["other", "id"]
    assert copied["id"].tolist() == CELLS
    assert copied["other"].tolist() == CELLS[::-1]


def test_the_chunks_are_those_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("cocoloss.tables.delimited.MOST_CELLS", 12)
    frame = pd.DataFrame({"id": range(20), "size": 1.5, "other": "x"})
    for name in ("t.csv", "t.parquet"):
        write_table(frame, tmp_path / name)
        lengths = [len(chunk) for chunk in iter_tables(tmp_path / name, rows=7)]
        assert [len(c) for c in iter_columns(tmp_path / name, ["id"], rows=7)] == lengths


def test_parquet_keeps_its_types(tmp_path):
    path = tmp_path / "t.parquet"
    frame = pd.DataFrame({"id": pd.array([43, None, 7], dtype="Int64"), "size": [1.5, 2, 3]})
    frame.to_parquet(path)
    copied = pd.concat(iter_columns(path, ["id"], rows=2))
    assert copied.to_csv(index=False) == 'id\n43\n""\n7\n'


def test_whole_numbers_of_arff_have_no_point(tmp_path):
    path = tmp_path / "t.arff"
    path.write_text(
        "@relation t\n@attribute id numeric\n@attribute x numeric\n@data\n43,1.5\n?,2\n7,3\n"
    )
    copied = pd.concat(iter_columns(path, ["id", "x"], rows=2))
    assert copied.to_csv(index=False) == "id,x\n43,1.5\n,2.0\n7,3.0\n"


def test_a_column_that_is_not_there_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("id,size\n1,2\n")
    with pytest.raises(CoCoError, match="no column 'idd'; did you mean 'id'"):
        iter_columns(tmp_path / "t.csv", ["idd"])
