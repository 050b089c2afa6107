"""Long tables are predicted part by part: what comes late is read as `fit` would have read it."""

import numpy as np
import pandas as pd
import pytest

import cocoloss
from cocoloss import CoCoClassifier
from cocoloss.cli import predict
from cocoloss.tables import table_file

N = 300
FAST = ("--epochs", 2, "--members", 1)


@pytest.fixture(autouse=True)
def short_parts(monkeypatch):
    monkeypatch.setattr(predict, "CHUNK_NUMBERS", 1)
    monkeypatch.setattr(predict, "FEWEST_ROWS", 100)


@pytest.fixture(scope="module")
def long():
    rng = np.random.default_rng(0)
    kind = rng.choice(["ant", "bee"], N)
    size = 1000 + 100 * rng.normal(size=N) + 200 * (kind == "bee")
    return pd.DataFrame({"size": size.round(2), "age": rng.integers(1, 90, N), "kind": kind})


def fitted(run, table, folder):
    table.to_csv(folder / "long.csv", index=False)
    run("fit", folder / "long.csv", "--target", "kind", "--out", folder / "m.coco", *FAST)
    return folder / "m.coco"


@pytest.fixture(scope="module")
def model(run, long, tmp_path_factory):
    return fitted(run, long, tmp_path_factory.mktemp("long"))


def answers(run, model, path, *options):
    run("predict", model, path, "--out", path.with_suffix(".out.csv"), *options)
    return pd.read_csv(path.with_suffix(".out.csv"), dtype=str)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_that_the_model_does_not_use_may_hold_anything(run, long, model, tmp_path, suffix):
    plain = answers(run, model, model.with_name("long.csv"))
    ids = [*map(str, range(N - 1)), "A17"]
    path = tmp_path / f"ids{suffix}"
    table = long.drop(columns="kind").assign(id=ids)
    table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
    pd.testing.assert_frame_equal(answers(run, model, path), plain)
    kept = answers(run, model, path, "--keep", "id")
    assert kept["id"].tolist() == ids
    pd.testing.assert_frame_equal(kept[["prediction"]], plain)


def test_rows_that_are_cut_short_are_still_told(refused, long, model, tmp_path):
    table = pd.concat([long.assign(note="a text of some length")] * 30)
    lines = table.to_csv(index=False).splitlines()
    assert sum(map(len, lines)) > 2 * 2**16  # beyond what is looked at beforehand
    lines[-5] = lines[-5].rpartition(",")[0]
    (tmp_path / "cut.csv").write_text("\n".join(lines) + "\n")
    assert "3 cells where the first row has 4" in refused("predict", model, tmp_path / "cut.csv")


@pytest.mark.parametrize("cell", ["1,000.33", "unknown"])
def test_late_text_among_numbers_is_read_as_by_fit(run, long, tmp_path, cell):
    late = long.astype({"size": object})
    late.loc[N - 3 :, "size"] = cell
    model = fitted(run, late, tmp_path)
    given = answers(run, model, tmp_path / "long.csv", "--proba")
    value = 1000.33 if cell[0] == "1" else np.nan
    plain = long.assign(size=long["size"].where(long.index < N - 3, value))
    plain.to_csv(tmp_path / "plain.csv", index=False)
    pd.testing.assert_frame_equal(given, answers(run, model, tmp_path / "plain.csv", "--proba"))


def test_late_text_that_training_had_not_is_named(refused, long, model, tmp_path):
    late = long.astype({"size": object})
    late.loc[N - 3, "size"] = "huge"
    late.to_csv(tmp_path / "late.csv", index=False)
    said = refused("predict", model, tmp_path / "late.csv")
    assert "'size'" in said
    assert "'huge'" in said


def test_late_points_among_decimal_commas_are_not_read_in_two_ways(run, refused, long, tmp_path):
    late = pd.concat([long] * 50, ignore_index=True).astype({"size": object})
    late["size"] = [f"{1 + x / 1000:.3f}" for x in late["size"]]  # which may be thousands
    late.loc[len(late) - 3 :, "size"] = "1.234,50"
    late.to_csv(tmp_path / "late.csv", index=False, sep=";")
    assert (tmp_path / "late.csv").stat().st_size > 2 * 2**16
    options = ("--target", "kind", "--out", tmp_path / "m.coco", *FAST)
    run("fit", tmp_path / "late.csv", *options)
    assert cocoloss.load(tmp_path / "m.coco").preprocessor_.forms_ == {"size": "1.234,5"}
    assert "'1.234,50'" in refused("predict", tmp_path / "m.coco", tmp_path / "late.csv")


@pytest.mark.parametrize("command", ["predict", "embed"])
def test_models_without_preprocessing_answer_tables_by_name(run, long, tmp_path, command):
    X = long[["size", "age"]] / 1000
    CoCoClassifier(max_iter=2, n_members=1, preprocess=None, random_state=0).fit(
        X, long["kind"]
    ).save(tmp_path / "m.coco")
    X[["age", "size"]].assign(other="text").to_csv(tmp_path / "x.csv", index=False)
    X.to_csv(tmp_path / "y.csv", index=False)
    swapped, plain = (run(command, tmp_path / "m.coco", tmp_path / f"{n}.csv") for n in "xy")
    assert swapped.stdout == plain.stdout
    assert len(plain.stdout.splitlines()) == N + 1


def test_fit_and_predict_find_the_dialect_once_each(run, long, tmp_path, monkeypatch):
    calls = []
    find_dialect = table_file.find_dialect

    def counted(*args, **options):
        calls.append(args)
        return find_dialect(*args, **options)

    monkeypatch.setattr(table_file, "find_dialect", counted)
    model = fitted(run, long, tmp_path)
    assert len(calls) == 1
    run("predict", model, tmp_path / "long.csv", "--proba", "--keep", "kind")
    assert len(calls) == 2


def test_one_part_is_read_ahead_and_no_more():
    made = []

    def parts():
        for k in range(6):
            made.append(k)
            yield k

    for k in predict.read_ahead(parts()):
        assert len(made) <= k + 2
    assert made == list(range(6))
