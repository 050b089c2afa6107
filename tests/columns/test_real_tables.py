"""Tables of the OpenML-CC18 suite, where a copy lies beside the checkout."""

from pathlib import Path

import numpy as np
import pytest

from cocoloss.columns import TablePreprocessor
from cocoloss.tables import FolderSource

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "openml-cc18"
TABLES = ["credit-g", "sick", "cylinder-bands", "eucalyptus", "dresses-sales", "MiceProtein"]


@pytest.mark.skipif(not FOLDER.exists(), reason="no copy of the tables")
@pytest.mark.parametrize("name", TABLES)
def test_a_real_table_is_encoded_without_a_word(name):
    X = FolderSource(FOLDER).load(name).X
    half = len(X) // 2
    preprocessor = TablePreprocessor().fit(X[:half])
    for part in (X[:half], X[half:]):
        matrix = preprocessor.transform(part)
        assert matrix.shape == (len(part), preprocessor.n_features_out_)
        assert np.isfinite(matrix).all()
    kinds = preprocessor.kinds_
    categories = {column for column in kinds if kinds[column] == "category"}
    assert categories <= {*X.select_dtypes("category")}
    assert len(kinds) + len(preprocessor.dropped_columns_) == X.shape[1]
    assert len(kinds) > X.shape[1] / 2
    assert preprocessor.transform(X[:half]).std(axis=0).min() > 0
