"""Tables of the OpenML-CC18 suite, where a copy lies beside the checkout."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor
from cocoloss.tables import FolderSource, iter_tables, read_table, split_target

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "openml-cc18"
# Class "None", gaps, integer codes as categories, many columns, many classes.
TABLES = ["analcatdata_dmft", "sick", "car", "cylinder-bands", "semeion", "letter", "credit-g"]


@pytest.fixture(scope="module")
def source():
    if not (FOLDER / "schema.json").exists():
        pytest.skip("no copy of the suite")
    return FolderSource(FOLDER)


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_figures_of_openml(source, name):
    known = pd.read_csv(FOLDER / "index.csv").set_index("name").loc[name]
    table = source.load(name)
    assert table.n_rows == known["rows"]
    assert table.n_features == known["features"]
    assert table.n_classes == known["classes"]
    assert len(table.categorical) == known["n_categorical"]
    assert table.X.isna().to_numpy().sum() == known["n_missing"]
    assert table.class_ratio == pytest.approx(known["imbalance_ratio"], abs=1e-3)
    assert not any(table.X[column].cat.ordered for column in table.categorical)


@pytest.mark.parametrize("name", ["sick", "credit-g"])
def test_a_table_is_read_without_its_schema_too(source, name):
    path = FOLDER / f"{name}.csv.gz"
    whole = read_table(path)
    X, y = split_target(whole, "target")
    assert (len(y), X.shape[1]) == (source.load(name).n_rows, source.load(name).n_features)
    assert sum(len(chunk) for chunk in iter_tables(path, rows=500)) == len(y)


@pytest.mark.parametrize("name", ["sick", "cylinder-bands", "eucalyptus", "MiceProtein"])
def test_a_table_is_encoded_without_a_word(source, name):
    X = source.load(name).X
    half = len(X) // 2
    preprocessor = TablePreprocessor().fit(X[:half])
    for part in (X[:half], X[half:]):
        matrix = preprocessor.transform(part)
        assert matrix.shape == (len(part), preprocessor.n_features_out_)
        assert np.isfinite(matrix).all()
    kinds = preprocessor.kinds_
    assert {n for n in kinds if kinds[n] == "category"} <= {*X.select_dtypes("category")}
    assert len(kinds) + len(preprocessor.dropped_columns_) == X.shape[1] < 2 * len(kinds)
    assert preprocessor.transform(X[:half]).std(axis=0).min() > 0
