"""Tables of the OpenML-CC18 suite, where a copy lies beside the checkout."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cocoloss.columns import TablePreprocessor

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "openml-cc18"
TABLES = ["credit-g", "sick", "cylinder-bands", "eucalyptus", "dresses-sales", "MiceProtein"]


def read(name):
    path = FOLDER / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"no copy of {name}")
    listed = json.loads((FOLDER / "schema.json").read_text())[name]["categorical"]
    frame = pd.read_csv(
        path,
        dtype=dict.fromkeys([*listed, "target"], str),
        keep_default_na=False,
        na_values=[""],
    )
    X = frame.drop(columns="target")
    return X.astype(dict.fromkeys(listed, "category")), listed


@pytest.mark.parametrize("name", TABLES)
def test_a_real_table_is_encoded_without_a_word(name):
    X, listed = read(name)
    half = len(X) // 2
    preprocessor = TablePreprocessor().fit(X[:half])
    for part in (X[:half], X[half:]):
        matrix = preprocessor.transform(part)
        assert matrix.shape == (len(part), preprocessor.n_features_out_)
        assert np.isfinite(matrix).all()
    kinds = preprocessor.kinds_
    assert {column for column in kinds if kinds[column] == "category"} <= set(listed)
    assert len(kinds) + len(preprocessor.dropped_columns_) == X.shape[1]
    assert len(kinds) > X.shape[1] / 2
    assert preprocessor.transform(X[:half]).std(axis=0).min() > 0
