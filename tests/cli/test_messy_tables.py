"""Tables as people keep them: decimal commas, currencies, codes, dates of either order."""

import csv
import json
from io import StringIO

import numpy as np
import pandas as pd
import pytest

import cocoloss
from cocoloss.benchmark.evaluation import score_folds

N = 90
N_ROWS = 150  # of the table of insects
FAST = ("--epochs", 2, "--members", 1)


def in_german(x, digits=2):
    return f"{x:,.{digits}f}".translate(str.maketrans(",.", ".,"))


@pytest.fixture(scope="module")
def german():
    """Return the cells of a table, as a program in Germany writes them."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["neu", "alt"], N)
    sales = rng.integers(1000, 9000, N) + 3000 * (kind == "neu")
    return pd.DataFrame(
        {
            "Nr": [f"{i:03}" for i in range(N)],
            "Umsatz": [in_german(x, 0) for x in sales],
            "Preis": [f"{in_german(x)} EUR" for x in rng.normal(1500, 300, N)],
            "Anteil": ["-" if i % 20 == 0 else in_german(x) for i, x in enumerate(rng.random(N))],
            "Filiale": rng.choice([1, 2, 3], N),
            "Tag": [f"{i % 12 + 1:02}/{i % 11 + 1:02}/2024" for i in range(N)],
            "Art": kind,
        }
    )


@pytest.fixture(scope="module")
def semicolons(german, tmp_path_factory):
    path = tmp_path_factory.mktemp("german") / "kunden.csv"
    german.to_csv(path, index=False, sep=";", encoding="cp1252")
    return path


@pytest.fixture(scope="module")
def fitted(run, semicolons):
    out = semicolons.with_name("kunden.coco")
    options = ("--target", "Art", "--drop", "Nr", "--out", out, "--day-first")
    return run("fit", semicolons, *options, *FAST), out


def test_thousands_and_currencies_of_a_german_table_are_numbers(fitted, german):
    result, out = fitted
    assert "thousands, as decimal marks are commas: 'Umsatz' (such as" in result.stderr
    assert "say --decimal . if they are decimal points" in result.stderr
    assert "\n          4 numbers, 1 date\n" in result.stdout
    preprocessor = cocoloss.load(out).preprocessor_
    assert preprocessor.kinds_ == {
        "Umsatz": "number",
        "Preis": "number",
        "Anteil": "number",
        "Filiale": "number",
        "Tag": "date",
    }
    assert preprocessor.forms_["Tag"] == "%d/%m/%Y"
    sales = german["Umsatz"].str.replace(".", "").astype(float)
    assert preprocessor.scaler_.center[0] == sales.median()


def test_the_decimal_mark_can_be_told(run, semicolons, tmp_path):
    out = tmp_path / "m.coco"
    result = run(
        *("fit", semicolons, "--target", "Art", "--out", out, "--decimal", ".", "--drop", "Nr"),
        *("--day-first", *FAST),
    )
    assert "thousands" not in result.stderr
    assert 1 < cocoloss.load(out).preprocessor_.scaler_.center[0] < 12


@pytest.mark.parametrize("writing", ["quoted commas", "points", "one row", "parquet"])
def test_the_same_numbers_predict_the_same_however_they_are_written(
    run, german, fitted, semicolons, tmp_path, writing
):
    expected = run("predict", fitted[1], semicolons, "--proba").stdout.splitlines()
    path = tmp_path / "other.csv"
    other = german.copy()
    if writing == "points":
        for name in ("Umsatz", "Preis", "Anteil"):
            other[name] = [cell.translate(str.maketrans(",.", ".,")) for cell in other[name]]
    elif writing == "one row":  # in which 7.730 alone does not tell what it is
        other = other[["Umsatz", "Preis", "Anteil", "Filiale", "Tag"]][:1]
        assert "," not in other["Umsatz"][0]
        assert "." in other["Umsatz"][0]
        expected = expected[:2]
    if writing == "parquet":
        path = tmp_path / "other.parquet"
        other["Umsatz"] = [float(cell.replace(".", "")) for cell in other["Umsatz"]]
        other.to_parquet(path)
    else:
        other.to_csv(path, index=False)
    result = run("predict", fitted[1], path, "--proba")
    assert result.stdout.splitlines() == expected
    assert result.stderr == ""


def test_columns_in_both_writings_keep_their_own_at_prediction(run, tmp_path):
    rows = [(f'"{i % 7},5{i % 3}"', f"{i % 5}.{i % 9}00", "ab"[i % 2]) for i in range(40)]
    path = tmp_path / "t.csv"
    path.write_text("a,b,y\n" + "".join(",".join(row) + "\n" for row in rows))
    out = tmp_path / "m.coco"
    run("fit", path, "--target", "y", "--out", out, *FAST)
    whole = run("predict", out, path, "--proba").stdout.splitlines()
    path.write_text("a,b\n" + ",".join(rows[7][:2]) + "\n")  # of which b may be thousands
    assert run("predict", out, path, "--proba").stdout.splitlines()[1] == whole[8]


def test_kept_columns_come_out_as_they_stood(run, german, fitted, semicolons, tmp_path):
    kept = ["Nr", "Umsatz", "Preis", "Anteil", "Filiale", "Tag"]
    out = tmp_path / "p.csv"
    options = [option for name in kept for option in ("--keep", name)]
    run("predict", fitted[1], semicolons, "--out", out, *options)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    for name in kept:
        assert [row[name] for row in rows] == german[name].astype(str).tolist()
    twice = ("--keep", "Filiale", "--keep", "Filiale")
    parts = run("embed", fitted[1], semicolons, *twice).stdout.splitlines()
    assert parts[0].startswith("Filiale,embedding_0,")
    assert parts[1].startswith(f"{german['Filiale'][0]},")


def test_codes_that_are_taken_for_categories_keep_their_zeros(run, german, tmp_path):
    table = german.assign(Nr=[f"00{i % 3}" for i in range(N)], Art=["a", "b", "c"] * (N // 3))
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    table[["Nr", "Art"]].to_csv(path, index=False)
    run("fit", path, "--target", "Art", "--out", out, "--categorical", "Nr", "--epochs", 30)
    assert cocoloss.load(out).preprocessor_.one_hots_["Nr"].categories == ["000", "001", "002"]
    assert run("predict", out, path).stdout.splitlines()[1:] == table["Art"].tolist()


@pytest.mark.parametrize("command", ["fit", "evaluate"])
def test_categories_that_are_not_there_are_named(refused, semicolons, tmp_path, command):
    out = ["--out", tmp_path / "m.coco"] if command == "fit" else []
    args = (command, semicolons, "--target", "Art", *out, "--categorical")
    assert "no column 'Filialen'; did you mean 'Filiale'?" in refused(*args, "Filialen")
    assert "--categorical Art: that is the target" in refused(*args, "Art")


def test_evaluate_reads_columns_as_fit_does(run, semicolons, monkeypatch):
    tables = []

    def listen(X, *args, **options):
        tables.append(X)
        return score_folds(X, *args, **options)

    monkeypatch.setattr("cocoloss.benchmark.evaluation.score_folds", listen)
    args = ("evaluate", semicolons, "--target", "Art", "--drop", "Nr", "--categorical", "Filiale")
    result = run(*args, "--month-first", "--folds", 2, "--model", "rf", "--json")
    assert {name: str(dtype) for name, dtype in tables[0].dtypes.items()} == {
        "Umsatz": "int64",
        "Preis": "float64",
        "Anteil": "float64",
        "Filiale": "category",
        "Tag": "datetime64[us]",
    }
    assert len(json.loads(result.stdout)[0]["folds"]["accuracy"]) == 2


def test_fewer_folds_than_asked_for_are_told(run, tmp_path):
    path = tmp_path / "t.csv"
    sizes = np.random.default_rng(0).normal(size=12)
    pd.DataFrame({"size": sizes, "kind": [*"ababababab", "a", "a"]}).to_csv(path, index=False)
    args = ("evaluate", path, "--target", "kind", "--model", "ksvm", "--folds")
    result = run(*args, 10)
    assert "note: 7 folds instead of 10: the largest class, a, has 7 rows" in result.stderr
    assert "classes with fewer rows than the 7 folds are not in each: b (5)" in result.stderr
    assert "fold" not in run(*args, 5).stderr


def test_classes_of_one_row_are_left_out_of_an_evaluation(run, refused, frame, tmp_path):
    path = tmp_path / "t.csv"
    kinds = frame["kind"].copy()
    kinds[[3, 70]] = ["moth", "wasp"]
    frame[["size", "kind"]].assign(kind=kinds).to_csv(path, index=False)
    asked = ("evaluate", path, "--target", "kind", "--model", "coco", "--epochs", 2, "--folds", 3)
    given = run(*asked)
    assert "note: left out, as a class of one row cannot be both learnt and judged" in given.stderr
    assert given.stderr.strip().endswith((": moth, wasp", ": wasp, moth"))
    assert f"{N_ROWS - 2} rows, kind" in given.stdout
    frame[["size"]].assign(kind=["ant"] * (N_ROWS - 1) + ["moth"]).to_csv(path, index=False)
    assert "leave its row out or join the class with another" in refused(*asked)


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "row"])
def test_the_number_of_a_row_is_not_learnt(run, frame, tmp_path, name):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    plain = frame[["size", "alive", "kind"]]
    counted = plain.assign(**{name: range(N_ROWS)})
    counted[[name, *plain.columns]].to_csv(path, index=False)
    asked = ("fit", path, "--target", "kind", "--out", out, *FAST)
    called = name or "column_1"
    fitted = run(*asked, "--json")
    assert f"note: left out, as it only counts the rows: {called}; say --use" in fitted.stderr
    facts = json.loads(fitted.stdout)
    assert facts["dropped_columns"] == {called: "counts the rows"}
    assert facts["columns"] == 3
    assert facts["kinds"] == {"size": "number", "alive": "category"}
    with_it = run("predict", out, path, "--proba", "--keep", called)
    plain.to_csv(path, index=False)
    without = run("predict", out, path, "--proba")
    assert [line.partition(",")[2] for line in with_it.stdout.splitlines()] == (
        without.stdout.splitlines()
    )


def test_the_number_of_a_row_can_be_asked_for(run, refused, frame, tmp_path):
    path = tmp_path / "t.csv"
    frame[["kind"]].assign(day=range(1, N_ROWS + 1)).to_csv(path, index=False)
    asked = ("fit", path, "--target", "kind", "--out", tmp_path / "m.coco", *FAST)
    assert "say --use COLUMN" in refused(*asked)
    used = run(*asked, "--use", "day", "--json")
    assert json.loads(used.stdout)["kinds"] == {"day": "number"}
    assert "counts the rows" not in used.stderr
    assert "no column 'night' to use" in refused(*asked, "--use", "night")


def test_text_among_numbers_is_not_said_to_be_against_the_style_of_training(
    refused, german, fitted, tmp_path
):
    path = tmp_path / "new.csv"
    english = german.assign(Preis="1,234.50 EUR", Anteil="0.5", Umsatz="7730")
    english.loc[3, "Umsatz"] = "viel"
    english.to_csv(path, index=False)
    said = refused("predict", fitted[1], path)
    assert "column 'Umsatz' held numbers in training and is to hold numbers (written as" in said
    assert "now, but holds 'viel'" in said


@pytest.mark.parametrize("word", ["NA", "None"])
def test_classes_may_be_called_like_gaps(run, frame, tmp_path, word):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    named = frame.assign(kind=frame["kind"].replace("ant", word), city="")
    named.loc[:9, "size"] = np.nan
    named.loc[:9, "alive"] = "?"
    named[["size", "alive", "city", "kind"]].to_csv(path, index=False)
    asked = ("fit", path, "--target", "kind", "--out", out, *FAST, "--json")
    untold, n = run(*asked), (frame["kind"] == "ant").sum()
    assert word in json.loads(untold.stdout)["classes"]
    assert f"kind: {word} ({n} rows) taken for a class; say --missing {word} if" in untold.stderr
    told = run(*asked, "--missing", word)
    assert word not in json.loads(told.stdout)["classes"]
    assert (
        f"left out {n} rows whose kind is not known: empty, or as --missing says {word}"
        in told.stderr
    )
    told = run(*asked, "--missing", "?")
    facts = json.loads(told.stdout)
    assert facts["classes"][word] == (frame["kind"] == "ant").sum()
    assert facts["kinds"] == {"size": "number", "alive": "category"}
    assert facts["dropped_columns"] == {"city": "no value"}
    answers = run("predict", out, path, "--missing", "?", "--keep", "alive").stdout.splitlines()
    assert answers[1].startswith("?,")
    predicted = [line.partition(",")[2] for line in answers[1:]]
    plain = named.replace("?", None).assign(size=named["size"])
    assert predicted == cocoloss.load(out).predict(plain).tolist()


def test_the_options_that_say_how_to_read_are_named(run, refused, frame, tmp_path):
    path = tmp_path / "t.csv"
    frame[["size", "kind"]].to_csv(path, index=False, sep=":")
    asked = ("fit", path, "--target", "kind", "--out", tmp_path / "m.coco", *FAST)
    assert "separated by ':', set separator to ':' if so" in refused(*asked)
    run(*asked, "--separator", ":")
    frame[["size", "kind"]].set_axis(["1990", "1980"], axis=1).to_csv(path, index=False)
    asked = ("fit", path, "--target", "1980", "--out", tmp_path / "m.coco", *FAST)
    line = refused(*asked)
    assert "(--no-header) if so, to True (--header) if these are names" in line
    run(*asked, "--header")
    with_row = refused(*asked, "--no-header")
    assert "the columns are 'column_1', 'column_2'" in with_row


@pytest.mark.parametrize(
    ("columns", "note", "answers"),
    [
        (
            {"Nr": [f"{37 * i % 97:03}" for i in range(N)]},
            "not read as numbers, because some values begin with 0: Nr; --use COLUMN",
            [("--categorical", "Nr"), ("--drop", "Nr")],
        ),
        (
            {"Tag": [f"{i % 12 + 1:02}/{i % 11 + 1:02}/2024" for i in range(N)]},
            "say --day-first or --month-first if they are dates",
            [("--day-first",), ("--month-first",)],
        ),
        (
            {"Kunden-Nr": range(10**5, 10**5 + N), "rowId": range(9, N + 9)},
            "no two values are equal: Kunden-Nr, rowId; --drop COLUMN",
            [("--drop", "Kunden-Nr", "--drop", "rowId")],
        ),
        ({"Preis": ["1,234", "2,500", "3,750"] * (N // 3)}, "(--decimal ,)", [("--decimal", ",")]),
    ],
    ids=["codes", "dates", "identifiers", "thousands"],
)
def test_what_can_be_read_in_two_ways_is_noted_until_it_is_said(
    run, german, tmp_path, columns, note, answers
):
    path = tmp_path / "t.csv"
    german[["Filiale", "Art"]].assign(**columns).to_csv(path, index=False, sep=";")
    asked = ("fit", path, "--target", "Art", "--out", tmp_path / "m.coco", *FAST)
    assert note in run(*asked).stderr
    for answer in answers:
        assert note not in run(*asked, *answer).stderr


def test_a_column_that_is_left_out_is_not_said_to_be_read(run, german, tmp_path):
    path = tmp_path / "t.csv"
    codes = [f"{i:03}" for i in range(N)]  # which only count the rows
    german[["Filiale", "Art"]].assign(Nr=codes).to_csv(path, index=False, sep=";")
    said = run("fit", path, "--target", "Art", "--out", tmp_path / "m.coco", *FAST).stderr
    assert "left out, as it only counts the rows: Nr" in said
    assert "read as numbers" not in said


@pytest.mark.parametrize("in_blocks", [False, True])
def test_a_class_is_what_stands_in_the_file_to_the_letter(run, tmp_path, in_blocks):
    labels = ["TRUE", "01", "1", "1E4", "10000", "None", "NA", "nan", "?", "1,5"]
    rows = [
        f'{10 * k + i % 7};{i % 5};"{label}"' for k, label in enumerate(labels) for i in range(9)
    ]
    parts = [rows[::2], rows[1::2]] if in_blocks else [rows]
    files = []
    for i, part in enumerate(parts):
        files.append(tmp_path / f"{i}.csv")
        files[-1].write_text("\n".join(["a;b;y", *part, "1;2;"]))
    out = tmp_path / "m.coco"
    result = run("fit", *files, "--target", "y", "--out", out, "--solver", "kernel", "--json")
    assert json.loads(result.stdout)["classes"] == dict.fromkeys(sorted(labels), 9)
    rows_left_out = "2 rows" if in_blocks else "1 row"
    assert f"left out {rows_left_out} whose y is not known: empty" in result.stderr
    _, *answers, _ = csv.reader(run("predict", out, files[0], "--keep", "y").stdout.splitlines())
    assert np.mean([truth == found for truth, found in answers]) > 0.9
    assert cocoloss.load(out).classes_.tolist() == sorted(labels)


def test_numbers_that_look_like_a_quantity_are_refused_though_they_are_read_as_text(
    refused, tmp_path
):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    path.write_text("\n".join(["a,y", *(f"{i % 3},{i / 7}" for i in range(60))]))
    said = refused("fit", path, "--target", "y", "--task", "classes", "--out", out)
    assert "a different value in each of its 60 rows" in said
    path.write_text("\n".join(["a,y", *(f"{i % 3},{i // 2 / 7}" for i in range(60))]))
    said = refused("fit", path, "--target", "y", "--task", "classes", "--out", out)
    assert "30 different numbers in 60 rows; it looks like a quantity" in said


def test_a_number_written_again_is_noted(run, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"{(i * 7) % 60},{i / 7:.3f},{-i},{i // 2}" for i in range(60)]
    path.write_text("\n".join(["a,y,again,rounded", *rows]))
    said = run("fit", path, "--target", "y", "--out", tmp_path / "m.coco").stderr
    assert "each value of again goes with one number of y" in said
    facts = json.loads(run("describe", path, "--target", "y", "--json").stdout)
    remarks = {column["column"]: column["remark"] for column in facts["columns"]}
    assert remarks["again"] == "is y written again?"
    assert remarks["rounded"] == "predicts y alone; is it known by then?"


def test_classes_and_columns_that_may_be_meant_otherwise_are_noted(run, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    asked = ("fit", path, "--target", "y", "--out", out)
    spellings = ["<=50K", "<=50k", ">50K"]
    rows = [f"{i % 7},{spellings[i % 3]},k{i % 3}" for i in range(90)]
    path.write_text("\n".join(["a,y,again", *rows]))
    said = run(*asked).stderr
    assert "y: <=50K, <=50k are different classes, though they differ only by capitals" in said
    assert "each value of again goes with one class of y" in said
    path.write_text("\n".join(["a,y", *(f"{i % 70},{i % 70}" for i in range(280))]))
    assert (
        "y: 70 different numbers are taken for classes"
        in run(*asked, "--task", "classes", *FAST).stderr
    )
    path.write_text("\n".join(["a,y", *(f"{i % 5},c{i % 3}" for i in range(280))]))
    assert run(*asked).stderr == ""


def test_whole_numbers_as_classes_have_their_order_and_their_letters(run, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    rng = np.random.default_rng(0)
    y = np.tile([2, 10, 100, -1, 0], 12)
    table = pd.DataFrame({"size": np.log2(y + 3) + rng.normal(scale=0.01, size=60), "y": y})
    table.to_csv(path, index=False)
    asked = ("fit", path, "--target", "y", "--task", "classes", "--out", out)
    facts = json.loads(run(*asked, "--json").stdout)
    assert list(facts["classes"]) == ["-1", "0", "2", "10", "100"]
    given = pd.read_csv(StringIO(run("predict", out, path, "--proba").stdout), dtype=str)
    assert list(given)[1:] == [f"probability_{label}" for label in (-1, 0, 2, 10, 100)]
    assert given["prediction"].tolist() == table["y"].astype(str).tolist()
    # 02 is not 2: then all of them are text.
    table.astype({"y": str}).replace({"y": {"2": "02"}}).to_csv(path, index=False)
    facts = json.loads(run(*asked, "--json").stdout)
    assert list(facts["classes"]) == ["-1", "0", "02", "10", "100"]
    assert "02" in run("predict", out, path).stdout.split()


def test_cells_of_several_values_are_told(run, refused, frame, tmp_path):
    path, out = tmp_path / "t.parquet", tmp_path / "m.coco"
    frame.assign(tags=[["a", "b"]] * N_ROWS).to_parquet(path)
    asked = ("fit", path, "--target", "kind", "--out", out, *FAST)
    line = refused(*asked)
    assert "column 'tags' holds several values in a cell, such as ['a' 'b']" in line
    assert "--drop tags" in line
    run(*asked, "--drop", "tags")
    assert "several values" in refused("fit", path, "--target", "tags", "--out", out)


def test_fit_prints_what_tuning_has_found(run, frame, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    frame[["size", "kind"]].to_csv(path, index=False)
    asked = ("fit", path, "--target", "kind", "--out", out, "--tune", 3, "--epochs", 2)
    facts = json.loads(run(*asked, "--members", 1, "--json").stdout)
    tuned = facts["tuned"]
    assert tuned["trials"] == 3
    found = cocoloss.load(out).get_params()
    assert {name: found[name] for name in tuned["params"]} == {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in tuned["params"].items()
    }
    lines = run(*asked, "--members", 1).stdout.splitlines()
    (at,) = (i for i, line in enumerate(lines) if line.startswith("tuned"))
    assert f"3 settings; balanced accuracy {tuned['balanced_accuracy']:.4f}" in lines[at]
    written = ", ".join(f"{name}={found[name]}" for name in tuned["params"])
    assert lines[at + 1].strip() == f"the best of them: {written or 'the default settings'}"


def test_a_table_of_two_rows_is_not_taken_for_identifiers(refused, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n1,yes\n2,no\n")
    line = refused("fit", path, "--target", "y", "--out", tmp_path / "m.coco")
    assert "a class is learnt from two rows or more" in line
    assert "identifier" not in line


def test_the_score_that_is_compared_is_said_where_there_are_several(run, tmp_path):
    path = tmp_path / "scores.csv"
    rows = [
        f"d{i},{model},{0.5 + i / 100 + (model == 'A') / 9},{i}" for i in range(8) for model in "AB"
    ]
    path.write_text("\n".join(["dataset,model,accuracy,rmse", *rows]))
    assert "compared by accuracy; --score rmse would compare by that" in run("compare", path).stderr
    assert "would compare" not in run("compare", path, "--score", "accuracy").stderr


@pytest.mark.parametrize("values", [(0, 1), (1, 2, 3, 4, 5), (1.0, 1.3, 2.7)])
@pytest.mark.parametrize("command", ["fit", "describe", "evaluate"])
def test_an_empty_cell_in_a_target_of_numbers_is_a_row_left_out(run, tmp_path, values, command):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    cells = [str(values[i % len(values)]) for i in range(60)]
    cells[7] = cells[31] = ""
    path.write_text(
        "\n".join(["a,y", *(f"{i % 7 + len(cell)},{cell}" for i, cell in enumerate(cells))])
    )
    rest = {"fit": ("--out", out), "describe": (), "evaluate": ("--folds", 2, "--model", "coco")}
    result = run(command, path, "--target", "y", *rest[command])
    assert "2 rows" in result.stderr + result.stdout
    assert "nan" not in result.stderr


def test_prices_with_an_empty_cell_are_numbers(run, tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    prices = ["", *(f"{100_000 + 37 * i}" for i in range(80))]
    path.write_text("\n".join(["a,price", *(f"{i % 50},{p}" for i, p in enumerate(prices))]))
    facts = json.loads(run("fit", path, "--target", "price", "--out", out, "--json").stdout)
    assert facts["task"] == "numbers"


@pytest.mark.parametrize("pair", [("01", "1"), ("1E4", "10000"), ("1.0", "1")])
def test_two_spellings_of_one_number_are_two_classes(run, tmp_path, pair):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    path.write_text("\n".join(["a,y", *(f"{i % 2},{pair[i % 2]}" for i in range(40))]))
    asked = ("fit", path, "--target", "y", "--task", "classes", "--out", out)
    assert json.loads(run(*asked, "--json").stdout)["classes"] == dict.fromkeys(pair, 20)
    assert set(run("predict", out, path).stdout.split()[1:]) == set(pair)


@pytest.mark.parametrize("levels", [None, "01,02,10", "1,2,10"])
def test_levels_are_written_as_in_the_file_in_the_order_of_their_numbers(run, tmp_path, levels):
    path, out = tmp_path / "t.csv", tmp_path / "m.coco"
    names = ["10", "02", "01"]
    path.write_text("\n".join(["a,y", *(f"{i % 3},{names[i % 3]}" for i in range(60))]))
    how = ("--task", "levels") if levels is None else ("--levels", levels)
    run("fit", path, "--target", "y", *how, "--out", out)
    assert cocoloss.load(out).classes_.tolist() == ["01", "02", "10"]
    assert set(run("predict", out, path).stdout.split()[1:]) == set(names)
