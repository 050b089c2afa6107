"""Anybody's table of scores, wide or long, in a form that :mod:`cocoloss.stats` reads."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cocoloss.cli import saying
from cocoloss.cli.compare_columns import (
    check_one_benchmark,
    chosen_names,
    first_text,
    is_number,
    numbered_tables,
    row_numbers,
    without_percent_signs,
)
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

NAMES = {  # what columns are called, in small letters
    "dataset": {"dataset", "data", "data set", "data_set", "task", "problem", "table"},
    "model": {"model", "classifier", "method", "algorithm", "estimator", "learner"},
    "fold": {"fold", "split", "repeat", "seed", "run"},
    "score": {"score", "value", "balanced_accuracy", "balanced accuracy", "accuracy"},
}


def as_scores(
    frame: "pd.DataFrame",
    score: str | None = None,
    *,
    dataset: str | None = None,
    models: str | None = None,
) -> "pd.DataFrame":
    """Return a table in one of the two forms that :func:`cocoloss.stats.compare` reads.

    Parameters
    ----------
    frame : DataFrame
        Wide or long, with names as people give them.
    score : str, optional
        Column of a long table.
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
    if dataset is not None and dataset not in frame.columns:
        raise CoCoError(f"--dataset: no column {dataset!r}; it has {saying.some_of(frame.columns)}")
    frame = without_percent_signs(frame)
    found = {role: _column(frame, names) for role, names in NAMES.items()}
    found["dataset"] = dataset or found["dataset"]
    if found["model"] is not None and found["model"] != dataset:
        return _long(frame, found, score, models)
    if score is not None:
        raise CoCoError(
            f"--score is for long tables, which have a column 'model'; this one has "
            f"{saying.some_of(frame.columns)}"
        )
    return _wide(frame, found, models)


def _column(frame: "pd.DataFrame", names: set[str]) -> str | None:
    for column in frame.columns:
        if str(column).strip().lower() in names:
            return str(column)
    return None


def _long(
    frame: "pd.DataFrame", found: dict[str, str | None], score: str | None, models: str | None
) -> "pd.DataFrame":
    dataset = found["dataset"] or first_text(frame, {found["model"]}) or numbered_tables(frame)
    if dataset is None:
        raise CoCoError(
            f"a table with a column {found['model']!r} needs a column 'dataset' too; it has "
            f"{saying.some_of(frame.columns)}"
        )
    chosen = score or _score_column(frame, {dataset, found["model"], found["fold"]}, found["score"])
    if chosen not in frame.columns:
        raise CoCoError(f"no column {chosen!r}; it has {saying.some_of(frame.columns)}")
    if chosen in {dataset, found["model"], found["fold"]}:
        raise CoCoError(f"the column {chosen!r} holds names, no scores; say --score with another")
    roles = {dataset: "dataset", found["model"]: "model", chosen: "score"}
    if found["fold"] is not None:
        roles[found["fold"]] = "fold"
    failed = frame[chosen].isna()  # `bench export` gives the fold of finished tasks only
    for column, role in roles.items():
        if role != "score":
            _check_named(frame, str(column), but=failed if role == "fold" else None)
    frame = frame.reset_index(drop=True)
    if models is not None:
        there = list(map(str, frame[found["model"]].unique()))
        frame = frame[frame[found["model"]].astype(str).isin(chosen_names(models, there, "models"))]
    check_one_benchmark(frame, [str(c) for c, role in roles.items() if role != "score"])
    rows = [f"row {row + 1}" for row in frame.index]
    scores = frame[list(roles)].assign(**{chosen: _numbers(frame, chosen, rows)})
    scores = scores.rename(columns=roles)
    counts = scores.groupby("model", sort=False)["score"].count()
    _note_empty(list(counts.index[counts == 0]))
    scores = scores[scores["model"].isin(counts.index[counts > 0])]
    if "fold" in scores.columns:
        scores = _without_failures(scores)
    _check_enough(list(counts.index[counts > 0]), list(scores["dataset"].unique()), dataset)
    return scores


def _score_column(frame: "pd.DataFrame", keys: set[str | None], named: str | None) -> str:
    if named is not None:
        return named
    without = keys | set(row_numbers(frame, keys))
    numbers = [str(c) for c in frame.columns if c not in without and is_number(frame[c])]
    if len(numbers) == 1:
        return numbers[0]
    if not numbers:
        raise CoCoError(
            f"a long table needs a column of numbers, 'score'; it has "
            f"{saying.some_of(frame.columns)}"
        )
    raise CoCoError(f"which column has the scores? Say --score with one of {', '.join(numbers)}")


def _wide(
    frame: "pd.DataFrame", found: dict[str, str | None], models: str | None
) -> "pd.DataFrame":
    fold = found["fold"] if found["fold"] != found["dataset"] else None
    dataset = found["dataset"] or first_text(frame, {fold})
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
    chosen = chosen_names(models, there, "columns")
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


def _without_row_numbers(
    frame: "pd.DataFrame", dataset: str | None, fold: str | None, models: str | None
) -> tuple["pd.DataFrame", str | None]:
    """Leave out columns that number the rows; if nothing else names the datasets, one does."""
    numbering = [] if models is not None else row_numbers(frame, {dataset, fold})
    if dataset is None and fold is None and numbering:
        dataset, *numbering = numbering
        saying.note(
            f"the column {dataset!r} numbers the rows: taken for the names of the datasets; if it "
            f"is a model, say --models"
        )
    if numbering:
        saying.note(
            f"left out {saying.some_of(map(repr, numbering))}, which numbers the rows; if it is a "
            f"model, say --models"
        )
    return frame.drop(columns=numbering), dataset


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


def _without_failures(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Leave out rows that have neither fold nor score: they say that a run failed."""
    import pandas as pd  # noqa: PLC0415 - heavy

    failed = scores["fold"].isna()
    if not failed.any():
        return scores
    n = int(failed.sum())
    saying.note(
        f"{n} {'row has' if n == 1 else 'rows have'} neither fold nor score: taken for failed runs"
    )
    kept = scores[~failed]
    # A dataset on which all failed stays, as one that lacks every result.
    lost = scores[failed & ~scores["dataset"].isin(kept["dataset"])].drop_duplicates("dataset")
    return pd.concat([kept, lost.assign(fold=0)]) if len(lost) else kept


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
            f"{saying.some_of(map(repr, twice))} {'comes' if len(twice) == 1 else 'come'} in "
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


def _note_empty(models: list[str]) -> None:
    if models:
        have = "which has" if len(models) == 1 else "which have"
        saying.note(f"left out {saying.some_of(models)}, {have} no score at all")
