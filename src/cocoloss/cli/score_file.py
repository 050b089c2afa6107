"""Anybody's table of scores, wide or long, in a form that :mod:`cocoloss.stats` reads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cocoloss.cli.messages import listed, note
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

NAMES = {  # what columns are called, in small letters
    "dataset": {"dataset", "data", "data set", "data_set", "task", "problem", "table"},
    "model": {"model", "classifier", "method", "algorithm", "estimator", "learner", "framework"},
    "fold": {"fold", "split", "repeat", "seed", "run"},
    "score": {"score", "value", "balanced_accuracy", "balanced accuracy", "accuracy"},
}
DATASET_NUMBERS = {"did", "tid", "data_id", "dataset_id", "task_id", "openml_id"}
ROW_NUMBERS = DATASET_NUMBERS | {  # what columns are called that number rows, in small letters
    *("", "column_1", "unnamed: 0", "#", "no", "no.", "nr", "nr.", "number", "row"),
    *("id", "index", "idx"),
}
PERCENT = r"\s*([-+]?\d+(?:[.,]\d+)?)\s*%\s*"


def as_scores(
    frame: "pd.DataFrame",
    score: str | None = None,
    *,
    dataset: str | None = None,
    model_column: str | None = None,
    models: str | None = None,
) -> "pd.DataFrame":
    """Return a table in one of the two forms that :func:`cocoloss.stats.compare` reads.

    Parameters
    ----------
    frame : DataFrame
        Wide or long, with names as people give them.
    score, model_column : str, optional
        Columns of a long table; found if left out.
    dataset : str, optional
        Column with the names of the datasets; found if left out.
    models : str, optional
        Names of those to compare, with commas between; all if left out.

    Raises
    ------
    CoCoError
        If it is neither, or a long one with several columns that could be meant; if a cell that
        should hold a score or a name does not; if there is too little to compare.
    """
    if not len(frame):
        raise CoCoError("the table has no rows; give one row for each dataset, or for each score")
    given = {"dataset": dataset, "model": model_column}
    for option, column in (("--dataset", dataset), ("--model-column", model_column)):
        if column is not None and column not in frame.columns:
            raise CoCoError(f"{option}: no column {column!r}; it has {listed(frame.columns)}")
    if dataset is not None and dataset == model_column:
        raise CoCoError(f"--dataset and --model-column are both {dataset!r}; name two columns")
    frame = _without_percent_signs(frame)
    found = {role: given.get(role) or _column(frame, names) for role, names in NAMES.items()}
    if found["model"] is not None and found["model"] != dataset:
        if found["dataset"] == found["model"]:
            found["dataset"] = None
        return _long(frame, found, score, models)
    if score is not None:
        raise CoCoError(
            f"--score is for long tables, which have a column 'model'; this one has "
            f"{listed(frame.columns)}; --model-column names it if it is called otherwise"
        )
    return _wide(frame, found, models)


def _long(
    frame: "pd.DataFrame", found: dict[str, str | None], score: str | None, models: str | None
) -> "pd.DataFrame":
    """Return one row per score, with the columns dataset, model, score and perhaps fold."""
    model, fold = found["model"], found["fold"] if found["fold"] != found["model"] else None
    dataset = found["dataset"] or _first_text(frame, {model}) or _numbered_datasets(frame)
    if dataset is None:
        raise CoCoError(
            f"a table with a column {model!r} needs a column 'dataset' too; it has "
            f"{listed(frame.columns)}"
        )
    chosen = score or found["score"] or _score_column(frame, {dataset, model, fold})
    if chosen not in frame.columns:
        raise CoCoError(f"no column {chosen!r}; it has {listed(frame.columns)}")
    if chosen in {dataset, model, fold}:
        raise CoCoError(f"the column {chosen!r} holds names, no scores; say --score with another")
    roles = {dataset: "dataset", model: "model", chosen: "score"}
    if fold is not None:
        roles[fold] = "fold"
    failed = frame[chosen].isna()  # `bench export` gives the fold of finished tasks only
    for column, role in roles.items():
        if role != "score":
            _check_named(frame, str(column), but=failed if role == "fold" else None)
    frame = frame.reset_index(drop=True)
    if models is not None:
        there = list(map(str, frame[model].unique()))
        frame = frame[frame[model].astype(str).isin(_chosen(models, there, "models"))]
    _check_one_benchmark(frame, [str(c) for c, role in roles.items() if role != "score"])
    rows = [f"row {row + 1}" for row in frame.index]
    scores = frame[list(roles)].assign(**{chosen: _numbers(frame, chosen, rows)})
    scores = scores.rename(columns=roles)
    counts = scores.groupby("model", sort=False)["score"].count()
    _note_empty(list(counts.index[counts == 0]))
    scores = scores[scores["model"].isin(counts.index[counts > 0])]
    if fold is not None:
        scores = _without_failures(scores)
    _check_enough(list(counts.index[counts > 0]), list(scores["dataset"].unique()), dataset)
    return scores


def _wide(
    frame: "pd.DataFrame", found: dict[str, str | None], models: str | None
) -> "pd.DataFrame":
    """Return one row per dataset and one column per model; a long table if there are folds."""
    fold = found["fold"] if found["fold"] != found["dataset"] else None
    dataset = found["dataset"] or _first_text(frame, {fold})
    frame, dataset = _without_row_numbers(frame, dataset, fold, models)
    if dataset is None and fold is not None:
        raise CoCoError(
            f"the table has a column {fold!r} but none that names datasets, so it is about one; "
            f"models are compared over two datasets or more: add a column 'dataset'"
        )
    if dataset is None:
        frame = frame.assign(dataset=[f"row {k}" for k in range(1, len(frame) + 1)])
        dataset = "dataset"
    for key in (dataset, fold):
        if key is not None:
            _check_named(frame, key)
    names = [str(name) for name in frame[dataset]]
    there = [str(c) for c in frame.columns if c not in {dataset, fold}]
    chosen = _chosen(models, there, "columns")
    frame = frame.drop(columns=[c for c in there if c not in chosen])
    frame = frame.assign(**{c: _numbers(frame, c, names) for c in chosen})
    empty = [c for c in chosen if frame[c].isna().all()]
    _note_empty(empty)
    frame = frame.drop(columns=empty).rename(columns={dataset: "dataset"})
    _check_enough([c for c in chosen if c not in empty], sorted(set(names)), dataset)
    if fold is None:
        _check_once(names)
        return frame.set_index("dataset")
    frame = frame.rename(columns={fold: "fold"})
    return frame.melt(id_vars=["dataset", "fold"], var_name="model", value_name="score")


def _column(frame: "pd.DataFrame", names: set[str]) -> str | None:
    return next((str(c) for c in frame.columns if str(c).strip().lower() in names), None)


def _is_number(column: Any) -> bool:
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - heavy

    return bool(is_numeric_dtype(column))


def _is_integer(column: Any) -> bool:
    """Return whether a column has two integers or more, and nothing else."""
    if not _is_number(column) or column.isna().any() or len(column) < 2:
        return False
    return bool((column == column.round()).all())


def _first_text(frame: "pd.DataFrame", without: set[str | None]) -> str | None:
    """Return the first column of names: text that is not for the most part numbers."""
    import pandas as pd  # noqa: PLC0415 - heavy

    for column in frame.columns:
        values = frame[column].dropna()
        if column not in without and len(values) and not _is_number(values):
            # A column of scores with a "failed" in it is text, but names nothing.
            n_numbers = pd.to_numeric(values, errors="coerce").notna().sum()
            if 2 * n_numbers < len(values):
                return str(column)
    return None


def _numbered_datasets(frame: "pd.DataFrame") -> str | None:
    """Return the column of a long table that has the numbers of its datasets, such as did."""
    for column in map(str, frame.columns):
        if column.strip().lower() in DATASET_NUMBERS and _is_integer(frame[column]):
            return column
    return None


def _row_numbers(frame: "pd.DataFrame", without: set[str | None]) -> list[str]:
    """Return the columns of distinct integers that are called as numbers of rows are.

    So is the first column, whatever it is called, if it alone holds nothing but integers.
    """
    others = [str(column) for column in frame.columns if column not in without]
    integers = {column for column in others if _is_integer(frame[column])}
    found = [c for c in others if c in integers and c.strip().lower() in ROW_NUMBERS]
    if not found and others and integers == {others[0]} and len(others) > 2:
        found = others[:1]
    return [column for column in found if frame[column].is_unique]


def _without_row_numbers(
    frame: "pd.DataFrame", dataset: str | None, fold: str | None, models: str | None
) -> tuple["pd.DataFrame", str | None]:
    """Leave out columns that number the rows; if nothing else names the datasets, one does."""
    numbering = [] if models is not None else _row_numbers(frame, {dataset, fold})
    if dataset is None and fold is None and numbering:
        dataset, *numbering = numbering
        note(
            f"the column {dataset!r} numbers the rows: taken for the names of the datasets; if it "
            f"is a model, say --models"
        )
    if numbering:
        note(
            f"left out {listed(map(repr, numbering))}, which numbers the rows; if it is a "
            f"model, say --models"
        )
    return frame.drop(columns=numbering), dataset


def _score_column(frame: "pd.DataFrame", keys: set[str | None]) -> str:
    """Return the one column of numbers, or ask which is meant."""
    without = keys | set(_row_numbers(frame, keys))
    numbers = [str(c) for c in frame.columns if c not in without and _is_number(frame[c])]
    if len(numbers) == 1:
        return numbers[0]
    if not numbers:
        raise CoCoError(
            f"a long table needs a column of numbers, 'score'; it has {listed(frame.columns)}"
        )
    raise CoCoError(f"which column has the scores? Say --score with one of {', '.join(numbers)}")


def _chosen(text: str | None, there: list[str], what: str) -> list[str]:
    """Return what --models names, in the order of the table; all if it was not said."""
    if text is None:
        return there
    names = [text] if text in there else [name.strip() for name in text.split(",") if name.strip()]
    lacking = [name for name in names if name not in there]
    if lacking or not names:
        name = repr(lacking[0]) if lacking else "nothing"
        raise CoCoError(f"--models names {name}, but the {what} are {listed(there)}")
    return [name for name in there if name in names]


def _numbers(frame: "pd.DataFrame", column: str, rows: Sequence[str]) -> Any:
    """Return a column of scores, or say which cell is none."""
    import pandas as pd  # noqa: PLC0415 - heavy

    values = pd.to_numeric(frame[column], errors="coerce")
    wrong = (values.isna() & frame[column].notna()).to_numpy()
    if wrong.all():
        raise CoCoError(
            f"column {column!r} holds {frame[column].iloc[0]!r} and no score at all; leave the "
            f"column out, or name the others with --models"
        )
    if wrong.any():
        place = int(wrong.argmax())
        raise CoCoError(
            f"column {column!r} holds {frame[column].iloc[place]!r} at {rows[place]}, which is no "
            f"score; leave the cell of a failed run empty"
        )
    return values.astype(float)


def _without_percent_signs(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table in which 63.7% is 0.637, in columns that are for the most part percents."""
    import pandas as pd  # noqa: PLC0415 - heavy

    read = []
    for column in frame.columns:
        if _is_number(frame[column]):
            continue
        texts = frame[column].astype(object)
        shares = texts.dropna().astype(str).str.extract(f"^{PERCENT}$", expand=False).dropna()
        if 2 * len(shares) > texts.notna().sum():
            numbers = pd.to_numeric(shares.str.replace(",", ".")) / 100
            frame = frame.assign(**{str(column): numbers.astype(object).combine_first(texts)})
            read.append(str(column))
    if read:
        note(f"percents are read as shares, 63.7% as 0.637: {listed(read)}")
    return frame


def _without_failures(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Leave out rows that have neither fold nor score: they say that a run failed."""
    import pandas as pd  # noqa: PLC0415 - heavy

    from cocoloss._checks import counted  # noqa: PLC0415

    failed = scores["fold"].isna()
    if not failed.any():
        return scores
    rows = counted(int(failed.sum()), "row has", "rows have")
    note(f"{rows} neither fold nor score: taken for failed runs")
    kept = scores[~failed]
    # A dataset on which all failed stays, as one that lacks every result.
    lost = scores[failed & ~scores["dataset"].isin(kept["dataset"])].drop_duplicates("dataset")
    return pd.concat([kept, lost.assign(fold=0)]) if len(lost) else kept


def _note_empty(models: list[str]) -> None:
    if models:
        have = "which has" if len(models) == 1 else "which have"
        note(f"left out {listed(models)}, {have} no score at all")


def _check_named(frame: "pd.DataFrame", column: str, but: Any = None) -> None:
    """Refuse a row without a name, but for some."""
    unnamed = frame[column].isna()
    without = (unnamed if but is None else unnamed & ~but).to_numpy()
    if without.any():
        raise CoCoError(
            f"row {int(without.argmax()) + 1} has nothing in the column {column!r}; fill it in, or "
            f"leave the row out"
        )


def _check_once(names: list[str]) -> None:
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise CoCoError(
            f"{listed(map(repr, twice))} {'comes' if len(twice) == 1 else 'come'} in "
            f"several rows; number the repeats in a column 'fold', or leave all but one out"
        )


def _check_enough(models: list[str], datasets: list[str], column: str) -> None:
    """Refuse a table of fewer than two models or datasets; say how it was read."""
    known = column.strip().lower() in NAMES["dataset"]
    read = "" if known else f" (the column {column!r} is taken for the names of the datasets)"
    if len(models) < 2:
        only = f"one model, {models[0]!r}" if models else "no model that has a score"
        raise CoCoError(f"the table has {only}; a comparison needs two or more{read}")
    if len(datasets) < 2:
        raise CoCoError(
            f"the table has one dataset, {str(datasets[0])!r}; models are compared over two or "
            f"more{read}"
        )


def _check_one_benchmark(frame: "pd.DataFrame", keys: list[str]) -> None:
    """Refuse rows of several benchmarks with scores of the same model, dataset and fold.

    The columns spec and spec_hash are those of ``bench export``.
    """
    columns = [name for name in ("spec", "spec_hash") if name in frame.columns]
    if not any(frame[name].nunique() > 1 for name in columns):
        return
    kinds = frame[columns].drop_duplicates().astype(str)
    names = [f"{kind[0]}@{kind[-1][:6]}" if len(kind) > 1 else kind[0] for kind in kinds.to_numpy()]
    several = f"has rows of {len(names)} benchmarks, {listed(names)}"
    if frame.dropna(subset=keys).duplicated(keys).any():
        raise CoCoError(
            f"the table {several}, with scores of the same models on the same datasets; compare "
            f"one of them: `bench export --name {names[0]}` writes it alone"
        )
    note(f"the table {several}; they are compared together")
