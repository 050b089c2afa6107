"""Fits to tables in blocks: the answer of one table, whatever the blocks are and who reads them."""

import os
import signal
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris, load_wine

from cluster import Processes
from cocoloss import CoCoClassifier, CoCoOrdinalClassifier, CoCoRegressor
from cocoloss.columns.column_kinds import ColumnsWarning
from cocoloss.exceptions import CoCoError, OrderHint
from cocoloss.fitting import blocks
from cocoloss.fitting.blocks import LookAt
from cocoloss.geometry import target_points
from cocoloss.kernels import LandmarkPath, Landmarks, closed_form
from cocoloss.kernels.classes import Lesson, merge
from cocoloss.kernels.numbers import SEARCH
from cocoloss.kernels.search import USUAL

SMALL = {blocks: {"SAMPLE": 400, "PER_CLASS": 20}}
SMALL[closed_form] = {"SAMPLE": 120, "LANDMARKS": 60, "JUDGED": 200, "MOST_TREES": 1}


@pytest.fixture(scope="module", autouse=True)
def _small():
    """A sample of some hundred rows, so that a table of some thousand is a large one."""
    with pytest.MonkeyPatch.context() as patch:
        for module, numbers in SMALL.items():
            for name, number in numbers.items():
                patch.setattr(module, name, number)
        yield


def made_up(n=3000, seed=0):
    """Rows of which two columns matter, some of them twice, and three classes, one of them rare."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(2)
    X[n // 2 : n // 2 + 200] = X[:200]
    y = np.where(X[:, 0] * X[:, 1] + rng.normal(size=n) / 4 > 0, "above", "below")
    y[X[:, 2] > 2.5] = "far"
    return pd.DataFrame(X, columns=list("abcd")).assign(y=y)


TABLE = made_up()
ROWS = TABLE.drop(columns="y")


def fit(X, y="y", **arguments):
    return CoCoClassifier(solver="kernel", random_state=0, **arguments).fit(X, y)


@pytest.fixture(scope="module")
def at_once():
    """The fit to one block that is the table."""
    return fit([TABLE])


def same(one, other, rows=ROWS, atol=1e-6):
    np.testing.assert_allclose(one.predict_proba(rows), other.predict_proba(rows), atol=atol)
    assert one.loo_score_ == pytest.approx(other.loo_score_, abs=1e-9)


def cut(frame, cuts):
    edges = [0, *sorted(cuts), len(frame)]
    return [frame[a:b] for a, b in pairwise(edges)]


# One answer -------------------------------------------------------------------------------------


def test_is_the_fit_to_all_rows_on_the_same_landmarks():
    """The oracle: all distinct rows in memory, with the landmarks and kernels that were chosen."""
    classifier = fit(cut(TABLE, [700, 701, 2000]), class_weight={"above": 1, "below": 2, "far": 1})
    machine, classes = classifier.model_.networks, classifier.classes_
    points = target_points("simplex", 3)
    X = classifier.preprocessor_.transform(ROWS)
    labels = np.searchsorted(classes, TABLE.y)
    weighed = np.array([1.0, 2.0, 1.0])
    merged, _ = merge(Lesson(X, labels, np.ones(len(X)), weighed, points, np.full(3, 1 / 3)))
    assert len(merged.X) < len(X)
    _, targets, weights = merged.problem()
    assert len(machine.rows) == 60
    for kernel, alpha in zip(machine.kernels, machine.alphas, strict=True):
        landmarks = Landmarks(kernel, machine.rows)
        path = LandmarkPath.of(landmarks, landmarks.sums(merged.X, targets, weights))
        K = kernel(X[:200], machine.rows).astype(np.float64)
        off = [
            np.abs(K @ (len(machine.kernels) * alpha - path.alpha(ridge))).max()
            for ridge in USUAL.landmark_ridges
        ]
        assert min(off) < 1e-6 < sorted(off)[1]


@settings(
    max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cuts=st.lists(st.integers(0, len(TABLE)), max_size=6),
    seed=st.integers(0, 9),
)
def test_size_and_order_of_blocks_change_nothing(at_once, cuts, seed):
    parts = cut(TABLE, cuts)
    order = np.random.default_rng(seed).permutation(len(parts))
    same(fit(lambda: (parts[i] for i in order)), at_once)


def test_is_as_good_as_the_fit_to_the_table():
    test = made_up(2000, seed=1)
    whole = CoCoClassifier(solver="kernel", random_state=0).fit(ROWS, TABLE.y)
    parts = fit(cut(TABLE, [1000]))
    X, y = test.drop(columns="y"), test.y
    assert parts.score(X, y) > whole.score(X, y) - 0.03
    assert parts.loo_score_ == pytest.approx(parts.score(X, y), abs=0.07)  # of 400 rows
    with pytest.raises(AttributeError, match="fitted to a table in memory"):
        _ = parts.loo_proba_
    np.testing.assert_array_equal(parts.history_.class_masses, whole.history_.class_masses)
    np.testing.assert_allclose(parts.feature_importances_.sum(), 1)


def test_a_small_table_in_blocks_is_the_table():
    X, y = load_iris(return_X_y=True, as_frame=True)
    parts = fit(cut(X.assign(y=y), [40, 90]))
    whole = CoCoClassifier(solver="kernel", random_state=0).fit(X, y)
    np.testing.assert_allclose(parts.predict_proba(X), whole.predict_proba(X), atol=1e-6)
    assert parts.loo_score_ == whole.loo_score_


def test_a_class_of_one_block_is_learnt(tmp_path):
    rng = np.random.default_rng(0)
    late = pd.DataFrame(rng.normal(size=(5, 4)) / 4 + [6, 6, 0, 0], columns=list("abcd"))
    classifier = fit([*cut(TABLE, [1500]), late.assign(y="late")])
    assert classifier.classes_.tolist() == ["above", "below", "far", "late"]
    assert classifier.history_.class_masses[-1] == 5
    assert (classifier.predict(late) == "late").all()
    classifier.save(tmp_path / "m.coco")
    loaded = CoCoClassifier.load(tmp_path / "m.coco")
    np.testing.assert_array_equal(loaded.predict_proba(late), classifier.predict_proba(late))


# The sample -------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 1199), max_size=5, unique=True),
    seed=st.integers(0, 5),
    n_values=st.sampled_from([8, 40, 1000]),
)
def test_a_sample_is_drawn_by_contents_and_counts_exactly(cuts, seed, n_values):
    rng = np.random.default_rng(seed)
    X = np.c_[rng.integers(0, n_values, size=1200), rng.integers(0, 3, size=1200)]
    y = (rng.random(1200) < 0.02).astype(int)
    look_at = LookAt(seed, "test")
    whole = look_at(X, y)
    pieces = zip(cut(X, cuts), cut(y, cuts), strict=True)
    looks = [look_at(*piece) for piece in pieces]
    rng.shuffle(looks)
    added = sum(looks[1:], start=looks[0])
    for name in ("rows", "y", "priority", "copies", "whole"):
        np.testing.assert_array_equal(getattr(added, name), getattr(whole, name))
    for name in ("names", "counts"):
        np.testing.assert_array_equal(getattr(added.target, name), getattr(whole.target, name))
    pairs, counts = np.unique(np.c_[X, y], axis=0, return_counts=True)
    drawn = np.c_[added.rows, added.y]
    for pair, copies in zip(drawn, added.copies, strict=True):
        assert copies == counts[(pairs == pair).all(axis=1)].item()
    assert added.whole == (len(drawn) == len(pairs))
    for c in (0, 1):
        assert (added.y == c).sum() >= min(20, (pairs[:, 2] == c).sum())
    assert len(drawn) <= 400 + 20


def test_a_sample_is_like_the_table():
    X = np.random.default_rng(0).normal(size=(20_000, 1))
    means = [LookAt(seed, "test")(X, X[:, 0] > 0).rows.mean() for seed in range(30)]
    assert abs(np.mean(means)) < 3 / np.sqrt(30 * 400)
    assert np.std(means) == pytest.approx(1 / np.sqrt(400), rel=0.4)


# Where blocks come from -------------------------------------------------------------------------


class Twice:
    """Something that can be iterated again and again."""

    def __init__(self, parts):
        self.parts = parts

    def __len__(self):
        return len(self.parts)

    def __iter__(self):
        return iter(self.parts)


def test_anything_that_can_be_read_twice_will_do(at_once):
    polars = pytest.importorskip("polars")
    parts = cut(TABLE, [1000, 1000, 2200])  # one of them empty
    pairs = [(part.drop(columns="y"), part.y) for part in parts]
    same(fit(Twice(parts)), at_once)
    same(fit(pairs, None), at_once)
    same(fit(lambda: iter(pairs), None), at_once)
    frames = [polars.DataFrame(part.to_dict("list")) for part in parts if len(part)]
    same(fit(frames), at_once)
    arrays = fit([(X.to_numpy(), y.to_numpy()) for X, y in pairs], None)
    found = arrays.predict_proba(ROWS.to_numpy())
    np.testing.assert_allclose(found, at_once.predict_proba(ROWS), atol=1e-6)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Parquet files of a table with a messy column, in folders that are a column."""
    rng = np.random.default_rng(0)
    n = len(TABLE)
    messy = TABLE.assign(
        price=[f"${v:,.2f}" for v in rng.lognormal(7, 1, n)],
        city=pd.Categorical(rng.choice(["Bonn", "Köln"], n)),
        day=pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 500, n), "D"),
    )
    messy.loc[rng.random(n) < 0.1, "a"] = np.nan
    messy.loc[17, "price"] = None
    messy["city"] = messy.city.cat.add_categories("Ulm")
    place = tmp_path_factory.mktemp("parquet")
    for k, part in enumerate(cut(messy, [900, 2100])):
        part = part.copy()  # noqa: PLW2901
        if k == 1:  # what the sample need not have seen
            part.iloc[3, part.columns.get_loc("price")] = "on request"
            part.iloc[4, part.columns.get_loc("city")] = "Ulm"
        part["city"] = part.city.cat.remove_unused_categories()
        (place / f"year={2020 + k}").mkdir()
        part.to_parquet(place / f"year={2020 + k}" / "part.parquet", row_group_size=500)
    return place


def test_parquet_folders_globs_lists_and_datasets_are_one_table(folder):
    import pyarrow.dataset as ds  # noqa: PLC0415 - an extra

    with pytest.warns(ColumnsWarning, match=r"other text as gaps: 'price' \(such as 'on request'"):
        first = fit(folder)
    assert first.preprocessor_.kinds_["price"] == "number"
    assert first.preprocessor_.kinds_["city"] == "category"
    assert first.preprocessor_.kinds_["day"] == "date"
    assert "year" in first.feature_names_in_
    rows = ds.dataset(folder, partitioning="hive").to_table().to_pandas()
    assert first.score(rows.drop(columns="y"), rows.y) > 0.75  # 'on request' is a gap to it
    files = sorted(folder.rglob("*.parquet"))
    for source in (str(folder / "*" / "*.parquet"), files[::-1]):
        with pytest.warns(ColumnsWarning, match="other text as gaps"):
            same(fit(source), first, rows.drop(columns="y"))
    with pytest.warns(ColumnsWarning, match="other text as gaps"):
        without_year = fit(ds.dataset(files))
    assert without_year.feature_names_in_.tolist() == [*"abcd", "price", "city", "day"]


# A cluster --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Two worker processes, of which nannies start new ones where one dies."""
    distributed = pytest.importorskip("distributed")
    processes = Processes(tmp_path_factory.mktemp("cluster"))
    processes.start_workers(2)
    with distributed.Client(processes.address) as client:
        client.wait_for_workers(2)
        yield client
    processes.stop()


@pytest.mark.cluster
def test_a_cluster_gives_the_answer_of_one_machine(client, at_once):
    import dask.dataframe as dd  # noqa: PLC0415 - an extra

    frame = dd.from_pandas(TABLE, npartitions=9)
    same(fit(frame), at_once)
    same(fit(frame.drop(columns="y"), frame.y), at_once)


@pytest.mark.cluster
def test_a_worker_that_dies_costs_its_block(client, at_once, tmp_path):
    import dask.dataframe as dd  # noqa: PLC0415 - an extra

    def frail(part, folder):  # dies where the third partition is read for the second time
        if part.index[0] == 1000:
            (Path(folder) / f"read-{len(os.listdir(folder))}").touch()
            if len(os.listdir(folder)) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        return part

    frame = dd.from_pandas(TABLE, npartitions=6)
    assert frame.divisions[2] == 1000
    same(fit(frame.map_partitions(frail, str(tmp_path), meta=frame._meta)), at_once)  # noqa: SLF001
    assert len(os.listdir(tmp_path)) == 3  # once for the sample, and twice for the sums


def test_without_a_cluster_dask_reads_part_by_part(at_once, monkeypatch):
    dd = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(blocks, "_client", lambda: None)
    frame = dd.from_pandas(TABLE, npartitions=4)
    same(fit(frame), at_once)
    same(fit(frame.drop(columns="y"), frame.y), at_once)


def test_a_target_and_rows_of_the_same_files_have_the_same_partitions(
    at_once, monkeypatch, tmp_path
):
    """Where Dask reads one column of eight, it takes several files at once."""
    dd = pytest.importorskip("dask.dataframe")
    monkeypatch.setattr(blocks, "_client", lambda: None)
    for start in range(0, len(TABLE), 500):
        TABLE[start : start + 500].to_parquet(tmp_path / f"{start:05}.parquet")
    frame = dd.read_parquet(tmp_path)
    same(fit(frame.drop(columns="y"), frame.y), at_once)


# Means instead of rows --------------------------------------------------------------------------


@pytest.mark.parametrize("n", [178, 3000])
def test_means_take_the_place_of_rows(n):
    if n == 178:
        X, y = load_wine(return_X_y=True, as_frame=True)
    else:
        X, y = ROWS, TABLE.y
    classifier = CoCoClassifier(solver="kernel", landmarks="kmeans", random_state=0).fit(X, y)
    machine = classifier.model_.networks
    assert not machine.trees
    assert 10 < len(machine.rows) <= 60
    held = {row.tobytes() for row in classifier.preprocessor_.transform(X)}
    assert not held & {row.tobytes() for row in machine.rows}
    assert classifier.score(X, y) > (0.95 if n == 178 else 0.75)
    assert classifier.loo_score_ == pytest.approx(classifier.score(X, y), abs=0.1)


def test_blocks_have_means_too(at_once):
    classifier = fit(cut(TABLE, [1200]), landmarks="kmeans")
    assert not classifier.model_.networks.trees
    assert classifier.score(ROWS, TABLE.y) > at_once.score(ROWS, TABLE.y) - 0.1


def test_no_mean_is_that_of_a_row_alone():
    X = np.r_[np.zeros((40, 2)), [[50.0, 50.0]]].astype(np.float32)
    X[:40] += np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    means = closed_form.mean_rows(X, np.ones(2, np.float32), 30, np.random.default_rng(0))
    assert np.abs(means).max() < 20
    alone = closed_form.mean_rows(X[:2], np.ones(2, np.float32), 30, np.random.default_rng(0))
    np.testing.assert_allclose(alone, X[:2].mean(axis=0, keepdims=True), rtol=1e-6)


# Levels and numbers -----------------------------------------------------------------------------


def test_levels_of_blocks_have_the_order_that_is_given():
    levels = ["far", "below", "above"]
    arguments = {"solver": "kernel", "random_state": 0, "levels": levels}
    ordinal = CoCoOrdinalClassifier(**arguments).fit(cut(TABLE, [900, 2100]), "y")
    assert ordinal.classes_.tolist() == levels
    counts = TABLE.y.value_counts()[levels]
    np.testing.assert_array_equal(ordinal.history_.class_masses, counts)
    assert ordinal.score(ROWS, TABLE.y) > 0.8
    with pytest.raises(CoCoError, match="must know the order of the levels"):
        CoCoOrdinalClassifier(solver="kernel").fit([TABLE], "y")


@pytest.mark.parametrize("n", [300, 3000])
def test_the_order_of_an_ordered_categorical_is_known_in_blocks(n):
    levels = ["none", "far", "below", "above"]
    y = pd.Categorical(TABLE.y, categories=levels, ordered=True)
    parts = cut(TABLE.assign(y=y)[:n], [100, 200])
    ordinal = CoCoOrdinalClassifier(solver="kernel", random_state=0).fit(parts, "y")
    assert ordinal.classes_.tolist() == levels[1:]
    with pytest.warns(OrderHint):
        fit(parts)
    other = TABLE.assign(y=pd.Categorical(TABLE.y, levels[::-1], ordered=True))
    with pytest.raises(CoCoError, match="ordered in one way in one block"):
        CoCoOrdinalClassifier(solver="kernel").fit([parts[0], other], "y")


def numbers(n=3000, seed=0):
    """Rows of which some occur twice, and skewed numbers."""
    rng = np.random.default_rng(seed)
    frame = made_up(n, seed).drop(columns="y")
    return frame.assign(y=np.exp(frame.a * frame.b + rng.normal(size=n) / 5).round(3))


NUMBERS = numbers()


def regress(X, y="y", **arguments):
    return CoCoRegressor(solver="kernel", random_state=0, **arguments).fit(X, y)


@pytest.fixture(scope="module")
def regressed():
    """The fit to one block that is the table of numbers."""
    return regress([NUMBERS])


def test_numbers_are_the_fit_to_all_rows_on_the_same_landmarks(regressed):
    model = regressed.model_
    assert model.readout.response.powers < 1  # they are skewed
    machine, X = model.networks, regressed.preprocessor_.transform(ROWS)
    V = model.readout.response.points(NUMBERS[["y"]].to_numpy())
    for kernel, alpha in zip(machine.kernels, machine.alphas, strict=True):
        landmarks = Landmarks(kernel, machine.rows)
        path = LandmarkPath.of(landmarks, landmarks.sums(X, V, np.ones(len(X))))
        K = kernel(X[:200], machine.rows).astype(np.float64)
        off = [
            np.abs(K @ (len(machine.kernels) * alpha - path.alpha(ridge))).max()
            for ridge in SEARCH.landmark_ridges
        ]
        assert min(off) < 1e-6 < sorted(off)[1]


@pytest.mark.parametrize("cuts", [[1], [700, 701, 2000]])
def test_size_and_order_of_blocks_of_numbers_change_nothing(regressed, cuts):
    other = regress(lambda: iter(cut(NUMBERS, cuts)[::-1]))
    np.testing.assert_allclose(other.predict(ROWS), regressed.predict(ROWS), rtol=1e-6, atol=1e-6)
    ends = (each.predict_interval(ROWS) for each in (other, regressed))
    np.testing.assert_allclose(*ends, rtol=1e-5, atol=1e-5)
    assert other.loo_score_ == pytest.approx(regressed.loo_score_, abs=1e-6)
    seen = other.loo_.numbers
    assert (seen.n_rows, seen.least, seen.most) == (3000, NUMBERS.y.min(), NUMBERS.y.max())
    assert seen.mean == pytest.approx(NUMBERS.y.mean())
    assert seen.scatter / 3000 == pytest.approx(NUMBERS.y.var(ddof=0))


def test_numbers_of_blocks_are_as_good_as_those_of_the_table(regressed, tmp_path):
    test = numbers(2000, seed=1)
    X, y = test.drop(columns="y"), test.y
    whole = CoCoRegressor(solver="kernel", random_state=0).fit(ROWS, NUMBERS.y)
    assert regressed.score(X, y) > whole.score(X, y) - 0.1
    low, high = regressed.predict_interval(X).T
    assert 0.85 < np.mean((low <= y) & (y <= high)) < 0.95
    assert regressed.quality_["R2"].value == pytest.approx(regressed.loo_score_)
    assert not hasattr(regressed, "loo_prediction_")
    regressed.save(tmp_path / "m.coco")
    loaded = CoCoRegressor.load(tmp_path / "m.coco")
    np.testing.assert_array_equal(loaded.predict(X), regressed.predict(X))
    means = regress([NUMBERS], landmarks="kmeans")
    held = regressed.preprocessor_.transform(ROWS)
    for machine in (means.model_.networks, means.model_.readout.spread.machine):
        assert not (machine.rows[:, None] == held).all(axis=2).any()


def test_a_few_numbers_in_blocks_are_the_table():
    some, y = NUMBERS[:150], NUMBERS.y[:150]
    whole = CoCoRegressor(random_state=0).fit(ROWS[:150], y)
    parts = CoCoRegressor(random_state=0).fit(cut(some, [40, 90]), "y")
    np.testing.assert_allclose(parts.predict(ROWS), whole.predict(ROWS), rtol=1e-6)
    assert parts.loo_score_ == pytest.approx(whole.loo_score_)
    two = CoCoRegressor(random_state=0).fit([(ROWS[:150], np.c_[y, -y])], None)
    assert two.predict(ROWS[:7]).shape == (7, 2)


def test_a_constant_in_blocks_is_predicted_as_it_is():
    constant = regress(cut(NUMBERS.assign(y=5.0), [1000]))
    np.testing.assert_allclose(constant.predict(ROWS), 5)


@pytest.mark.parametrize("estimator", [CoCoRegressor(), CoCoClassifier()])
def test_a_table_in_memory_has_no_named_target(estimator):
    with pytest.raises(CoCoError, match="only a table in blocks takes; give the column itself"):
        estimator.fit(NUMBERS, "y")


def test_numbers_that_the_sample_lacks_are_finite():
    odd = NUMBERS.assign(y=NUMBERS.y + 1)
    odd.loc[1234, "y"] = -1e3
    assert np.isfinite(regress([odd]).predict(ROWS)).all()


REFUSED_NUMBERS = {
    "networks": ([NUMBERS], "y", {"solver": "both"}, "by solver='kernel' .--solver kernel.$"),
    "text": ([TABLE], "y", {}, "y must hold numbers for CoCoRegressor"),
    "gaps": ([NUMBERS.assign(y=np.nan)], "y", {}, "y contains NaN or infinity"),
    "a limit": ([NUMBERS], "y", {"time_limit": 9}, "time_limit is not for a table in blocks"),
    "more and less": (
        [(ROWS, NUMBERS.y), (ROWS, NUMBERS[["y", "a"]])],
        None,
        {},
        "1 numbers a row in one block, and 2 in another",
    ),
}


@pytest.mark.parametrize(
    ("X", "y", "arguments", "message"), REFUSED_NUMBERS.values(), ids=REFUSED_NUMBERS
)
def test_numbers_that_cannot_be_are_refused(X, y, arguments, message):
    with pytest.raises(CoCoError, match=message):
        CoCoRegressor(**arguments).fit(X, y)


# Refusals ---------------------------------------------------------------------------------------


def changing():
    """Blocks that are other ones each time."""
    changing.n += 1
    return [TABLE, TABLE[: 10 * changing.n]]


changing.n = 0
REFUSED = {
    "a generator": ((part for part in [TABLE]), "y", {}, "can be read once.*give the function"),
    "networks": ([TABLE], "y", {"solver": "network"}, "networks need all rows at once; fit by"),
    "both": ([TABLE], "y", {"solver": "both"}, "networks need all rows at once; fit by"),
    "a limit": ([TABLE], "y", {"time_limit": 9}, "time_limit is not for a table in blocks"),
    "no such column": ([TABLE], "z", {}, "there is no column 'z'"),
    "a target beside blocks": ([TABLE], TABLE.y, {}, "y must be the name of the target column"),
    "neither": ([TABLE.to_numpy()], "y", {}, "has no column 'y'"),
    "pairs and a name": ([(ROWS, TABLE.y)], "y", {}, "a block is a tuple, but y is 'y'"),
    "other rows": (
        changing,
        "y",
        {},
        "second pass over the blocks found 3,020 rows, the first",
    ),
    "one class": ([TABLE[TABLE.y == "far"]], "y", {}, "at least two classes"),
    "no rows": ([TABLE[:0]], "y", {}, "X has no rows"),
    "gaps in y": ([TABLE.assign(y=None)], "y", {}, "y contains NaN"),
    "other columns": (
        [TABLE, TABLE.rename(columns={"a": "z"})],
        "y",
        {},
        "some blocks have no column 'a', which others have; give all",
    ),
    "a column less": (
        [(ROWS[["a", "b"]].to_numpy(), TABLE.y), (ROWS[["a"]].to_numpy(), TABLE.y)],
        None,
        {},
        "no column '1'",
    ),
    "mixed": ([TABLE, TABLE.assign(y=1)], "y", {}, "y mixes kinds of classes"),
    "quantities": ([TABLE.assign(y=TABLE.a)], "y", {}, "continuous|Unknown label"),
    "files and classes": (
        "x.parquet",
        TABLE.y,
        {},
        "y must be the name of the target column",
    ),
    "no files": ("no/such/*.parquet", "y", {}, "no file is called like"),
    "no file": ("no/such.parquet", "y", {}, "there is no file no/such.parquet"),
    "landmarks": ([TABLE], "y", {"landmarks": "median"}, "landmarks must be one of 'rows'"),
}


@pytest.mark.parametrize(("X", "y", "arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_with_the_way_out(X, y, arguments, message):
    with pytest.raises(CoCoError, match=message):
        CoCoClassifier(**{"solver": "kernel", "random_state": 0} | arguments).fit(X, y)


def test_weights_and_other_collections_are_refused(monkeypatch):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    with pytest.raises(CoCoError, match="sample_weight is not for a table in blocks; leave out"):
        CoCoClassifier(solver="kernel").fit([TABLE], "y", sample_weight=np.ones(len(TABLE)))
    with pytest.raises(CoCoError, match="from_dask_array"):
        fit(da.ones((10, 2)))
    frame = dd.from_pandas(TABLE, npartitions=2)
    other = dd.from_pandas(TABLE, npartitions=3)
    with pytest.raises(CoCoError, match="a Dask Series with its 2 partitions"):
        fit(frame, other.y)
    monkeypatch.setattr(blocks, "MOST_CLASSES", 100)
    with pytest.raises(CoCoError, match="more than 100 different values"):
        fit(cut(TABLE.assign(y=np.arange(len(TABLE))), range(60, 3000, 60)))
    with pytest.raises(CoCoError, match="landmarks='kmeans' is for kernels"):
        CoCoClassifier(landmarks="kmeans", max_iter=5).fit(ROWS, TABLE.y)
