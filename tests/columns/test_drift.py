"""What a table has that training had not, and that nothing is said of a table like training's."""

import numpy as np
import pandas as pd
import pytest

from cocoloss import CoCoClassifier
from cocoloss.columns import TablePreprocessor
from cocoloss.columns.drift import Drift, drift_of
from cocoloss.tables import load_source


def table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    seen = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 365, n), "D")
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 90, n).astype(float),
            "income": np.where(rng.random(n) < 0.2, np.nan, rng.lognormal(10, 1, n)),
            "city": rng.choice(["Bern", "Oslo", "Rome"], n),
            "seen": seen,
        }
    )
    frame["tax"] = frame["income"] / 3  # whose gaps are those of the income
    return frame


@pytest.fixture(scope="module")
def encoder():
    return TablePreprocessor().fit(table()).encoder_


def test_nothing_is_said_of_a_table_like_that_of_training(encoder):
    assert drift_of(encoder, table(seed=1)).notes() == []
    assert drift_of(encoder, table().iloc[[3]]).notes() == []


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_nothing_is_said_of_the_other_half_of_a_table(name):
    X = load_source("sklearn").load(name).X.sample(frac=1, random_state=0)
    half = len(X) // 2
    assert not drift_of(TablePreprocessor().fit(X[:half]).encoder_, X[half:]).notes()


def test_each_sort_is_one_line_with_counts(encoder):
    new = table(seed=1)
    new.loc[:29, "age"] += 100
    new.loc[:19, "seen"] += pd.Timedelta(days=3000)
    new.loc[50:89, "city"] = "Atlantis"
    new.loc[100:139, "age"] = np.nan
    new.loc[100:139, ["income", "tax"]] = 1e4, 1e4 / 3
    ranges, categories, gaps = drift_of(encoder, new).notes()
    assert ranges.startswith("values out of the range of training: age (")
    assert "where training had 18 to 89); seen (20 of 200 rows, such as 203" in ranges
    assert (
        categories == "categories that training had not: city (40 of 200 rows, such as 'Atlantis')"
    )
    assert gaps == "gaps where training had none: age (40 of 200 rows)"
    lines = ["200 rows compared with training", ranges, categories, gaps]
    assert repr(drift_of(encoder, new)).splitlines() == lines
    counts = drift_of(encoder, new).counts()
    assert counts["new_categories"] == {"city": 40}
    assert counts["new_gaps"] == {"age": 40}
    assert set(counts["out_of_range"]) == {"age", "seen"}


def test_one_value_far_out_is_told_and_few_nearby_are_not(encoder):
    new = table(seed=1)
    new.loc[0, "age"] = 1e9
    (line,) = drift_of(encoder, new).notes()
    assert "age (1 of 200 rows, such as 1,000,000,000 where training had 18 to 89)" in line
    new.loc[0, "age"] = 120
    new.loc[1, "city"] = "Atlantis"
    assert not drift_of(encoder, new).notes()


def test_parts_add_up(encoder):
    new = table(seed=1)
    new.loc[50:89, "city"] = "Atlantis"
    drift = Drift(encoder)
    for start in range(0, 200, 30):
        drift.see(new[start : start + 30])
    assert drift.notes() == drift_of(encoder, new).notes()


def test_gaps_that_come_with_marked_ones_are_known(encoder):
    new = table(seed=1)
    assert new["tax"].isna().sum() > 20
    assert "tax" not in drift_of(encoder, new).found["new_gaps"]


def test_an_estimator_tells(encoder):
    X, y = table(), np.arange(200) % 2
    classifier = CoCoClassifier(max_iter=1, n_members=1, random_state=0).fit(X, y)
    assert classifier.drift(X).notes() == []
    assert "city" in classifier.drift(X.assign(city="Atlantis")).counts()["new_categories"]
    numbers = CoCoClassifier(max_iter=1, preprocess=None).fit(X[["age"]], y)
    assert numbers.drift(X[["age"]] + 10**6).notes() == []  # an encoder that knows no columns
