"""Anybody's table of scores, wide or long, in a form that :mod:`cocoloss.stats` reads."""

from typing import TYPE_CHECKING, Any

from cocoloss.cli.messages import listed, note
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

NAMES = {  # what columns are called, in small letters
    "model": {"model", "classifier", "method", "algorithm", "estimator", "learner", "framework"},
    "dataset": {"dataset", "data", "data set", "data_set", "task", "problem", "table"},
    "fold": {"fold", "split", "repeat", "seed", "run"},
    "score": {"score", "value", "balanced_accuracy", "balanced accuracy", "accuracy"},
}
ROW_NUMBERS = {  # what columns are called that number rows; column_1 has no name in its file
    *("", "column_1", "unnamed: 0", "#", "no", "no.", "nr", "nr.", "number", "row", "id", "index"),
    *("idx", "did", "tid", "data_id", "dataset_id", "task_id", "openml_id"),
}


def as_scores(
    frame: "pd.DataFrame",
    *,
    score: str | None = None,
    dataset: str | None = None,
    model: str | None = None,
    models: str | None = None,
) -> "pd.DataFrame":
    """Return a table in one of the two forms that :func:`cocoloss.stats.compare` reads.

    What the user says of its columns comes first; others are found by their names.
    """
    given = {"model": model, "dataset": dataset, "score": score}
    options = {"model": "--model-column", "dataset": "--dataset", "score": "--score"}
    for role, column in given.items():
        if column is not None and column not in frame.columns:
            raise CoCoError(
                f"{options[role]}: no column {column!r}; it has {listed(frame.columns)}"
            )
    taken: list[str | None] = [column for column in given.values() if column is not None]
    for column in taken:
        if taken.count(column) > 1:
            same = " and ".join(options[role] for role in given if given[role] == column)
            raise CoCoError(f"{same} are both {column!r}; name two columns")
    frame = _without_percent_signs(frame)
    found: dict[str, str | None] = {}
    for role, names in NAMES.items():
        others = (str(c) for c in frame.columns if c not in taken)
        called_so = (c for c in others if c.strip().lower() in names)
        found[role] = given.get(role) or next(called_so, None)
        taken.append(found[role])
    if found["model"] is not None:
        return _long(frame, found, models)
    if score is not None:
        raise CoCoError(
            f"--score is for long tables, which have a column 'model'; this one has "
            f"{listed(frame.columns)}; --model-column names it if it is called otherwise"
        )
    return _wide(frame, found["dataset"], found["fold"], models)


def _long(
    frame: "pd.DataFrame", found: dict[str, str | None], models: str | None
) -> "pd.DataFrame":
    """Return one row per score, with the columns dataset, model, score and perhaps fold."""
    if found["dataset"] is None:
        raise CoCoError(
            f"a table with a column {found['model']!r} needs a column 'dataset' too; it has "
            f"{listed(frame.columns)}; --dataset names it if it is called otherwise"
        )
    if found["score"] is None:
        keys = set(found.values())
        numbers = [str(c) for c in frame.columns if c not in keys and _is_number(frame[c])]
        if len(numbers) != 1:
            raise CoCoError(
                f"which column has the scores? Say --score with one of "
                f"{', '.join(numbers or map(str, frame.columns))}"
            )
        found = found | {"score": numbers[0]}
    if models is not None:
        names = frame[found["model"]].astype(str)
        frame = frame[names.isin(_chosen(models, list(names.unique()), "models"))]
    roles = {column: role for role, column in found.items() if column is not None}
    _check_one_benchmark(frame, [column for column, role in roles.items() if role != "score"])
    scores = frame[list(roles)].rename(columns=roles).reset_index(drop=True)
    counts = scores.groupby("model", sort=False)["score"].count()
    _note_empty(list(counts.index[counts == 0]))
    scores = scores[~scores["model"].isin(counts.index[counts == 0])]
    return _without_failures(scores) if found["fold"] is not None else scores


def _wide(
    frame: "pd.DataFrame", dataset: str | None, fold: str | None, models: str | None
) -> "pd.DataFrame":
    """Return one row per dataset and one column per model; a long table if there are folds."""
    there = [str(c) for c in frame.columns if c not in {dataset, fold}]
    if dataset is None:
        dataset = next((c for c in there if _has_names(frame[c])), None)
    numbering = _row_numbers(frame, [c for c in there if c != dataset]) if models is None else []
    if dataset is None and fold is not None:
        raise CoCoError(
            f"the table has a column {fold!r} but none that names datasets, so it is about one; "
            f"models are compared over two datasets or more: say --dataset with their column"
        )
    if dataset is None and numbering:
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
    chosen = _chosen(models, [c for c in there if c not in {dataset, *numbering}], "columns")
    words = [c for c in chosen if _has_names(frame[c])]
    if words:
        raise CoCoError(
            f"column {words[0]!r} holds {frame[words[0]].iloc[0]!r} and no score at all; leave the "
            f"column out, or name the others with --models"
        )
    empty = [c for c in chosen if frame[c].isna().all()]
    _note_empty(empty)
    chosen = [c for c in chosen if c not in empty]
    if dataset is None:
        frame = frame.assign(dataset=[f"row {k}" for k in range(1, len(frame) + 1)])
        dataset = "dataset"
    unnamed = frame[dataset].isna().to_numpy()
    if unnamed.any():
        raise CoCoError(
            f"row {int(unnamed.argmax()) + 1} has nothing in the column {dataset!r}; fill it in, "
            f"or leave the row out"
        )
    if fold is None:
        return frame[[dataset, *chosen]].set_index(dataset)
    frame = frame[[dataset, fold, *chosen]].rename(columns={dataset: "dataset", fold: "fold"})
    return frame.melt(id_vars=["dataset", "fold"], var_name="model", value_name="score")


def _is_number(column: Any) -> bool:
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - heavy

    return bool(is_numeric_dtype(column))


def _has_names(column: Any) -> bool:
    """Return whether a column is text, and not for the most part numbers with a "failed" in it."""
    import pandas as pd  # noqa: PLC0415 - heavy

    values = column.dropna()
    n_numbers = pd.to_numeric(values, errors="coerce").notna().sum()
    return not _is_number(values) and bool(2 * n_numbers < len(values))


def _row_numbers(frame: "pd.DataFrame", columns: list[str]) -> list[str]:
    """Return the columns of distinct integers that are called as numbers of rows are.

    So is the first column, whatever it is called, if it alone holds nothing but integers.
    """
    numbers = [c for c in columns if _is_number(frame[c]) and len(frame) > 1]
    integers = [c for c in numbers if (frame[c] == frame[c].round()).all()]
    found = [c for c in integers if c.strip().lower() in ROW_NUMBERS]
    if not found and integers == columns[:1] and len(columns) > 2:
        found = integers
    return [column for column in found if frame[column].is_unique]


def _chosen(text: str | None, there: list[str], what: str) -> list[str]:
    """Return what --models names, in the order of the table; all if it was not said."""
    if text is None:
        return there
    names = [text] if text in there else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in there:
            raise CoCoError(f"--models names {name!r}, but the {what} are {listed(there)}")
    return [name for name in there if name in names]


def _note_empty(models: list[str]) -> None:
    if models:
        have = "which has" if len(models) == 1 else "which have"
        note(f"left out {listed(models)}, {have} no score at all")


def _without_percent_signs(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table in which 63.7% is 0.637, in columns that are for the most part percents."""
    import pandas as pd  # noqa: PLC0415 - heavy

    read = []
    for column in frame.columns:
        if _is_number(frame[column]):
            continue
        texts = frame[column].astype(object)
        digits = texts.dropna().astype(str).str.extract(r"^\s*([^%]+)%\s*$", expand=False).dropna()
        shares = pd.to_numeric(digits.str.replace(",", "."), errors="coerce").dropna() / 100
        if 2 * len(shares) > texts.notna().sum():
            frame = frame.assign(**{str(column): shares.astype(object).combine_first(texts)})
            read.append(str(column))
    if read:
        note(f"percents are read as shares, 63.7% as 0.637: {listed(read)}")
    return frame


def _without_failures(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Leave out rows that have neither fold nor score: of failed runs, in `bench export`."""
    import pandas as pd  # noqa: PLC0415 - heavy

    failed = scores["fold"].isna() & scores["score"].isna()
    if not failed.any():
        return scores
    note(f"{int(failed.sum()):,} rows have neither fold nor score: taken for failed runs")
    kept = scores[~failed]
    # A dataset on which all failed stays, as one that lacks every result.
    lost = scores[failed & ~scores["dataset"].isin(kept["dataset"])].drop_duplicates("dataset")
    return pd.concat([kept, lost.assign(fold=0)]) if len(lost) else kept


def _check_one_benchmark(frame: "pd.DataFrame", keys: list[str]) -> None:
    """Refuse a `bench export` of several benchmarks, with scores of the same models in them."""
    if not {"spec", "spec_hash"} <= set(frame.columns):
        return
    kinds = frame[["spec", "spec_hash"]].drop_duplicates().astype(str)
    if len(kinds) == 1:
        return
    names = [f"{name}@{text[:6]}" for name, text in kinds.to_numpy()]
    several = f"has rows of {len(names)} benchmarks, {listed(names)}"
    if frame.dropna(subset=keys).duplicated(keys).any():
        raise CoCoError(
            f"the table {several}, with scores of the same models on the same datasets; compare "
            f"one of them: `bench export --name {names[0]}` writes it alone"
        )
    note(f"the table {several}; they are compared together")
