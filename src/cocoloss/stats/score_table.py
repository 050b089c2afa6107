"""Tables of scores, wide or long, as one matrix with names; what becomes of missing results.

And what every test asks of scores: real numbers, paired, and equal where only rounding differs.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss._checks import as_float_array, check_option, counted, listed
from cocoloss.exceptions import CoCoError

Floats = NDArray[np.float64]

DIGITS = 12  # scores that agree in so many digits are equal: 0.9 - 0.8 ties with 0.8 - 0.7
DECIMALS = 300  # at most, before or after the point: a power of ten that a float can hold
LONG = ("dataset", "model", "score")
POLICIES = ("raise", "drop_datasets", "worst")  # for missing results


@dataclass(frozen=True)
class ScoreTable:
    """Scores of every model on every dataset.

    Attributes
    ----------
    datasets, models : tuple of str
        Names of the rows and of the columns.
    scores : ndarray of shape (n_datasets, n_models)
        NaN where there is no result. Means over the folds, if there are folds.
    folds : tuple of ndarrays of shape (n_folds, n_models), or None
        One array per dataset.
    """

    datasets: tuple[str, ...]
    models: tuple[str, ...]
    scores: Floats
    folds: tuple[Floats, ...] | None = None


def read_scores(scores: Any) -> ScoreTable:
    """Read a table of scores.

    Parameters
    ----------
    scores : DataFrame, mapping or array-like
        One of

        - long: a frame with the columns ``dataset``, ``model``, ``score`` and, if there is more
          than one score for a model on a dataset, ``fold``; other columns are not looked at;
        - wide: a frame with one row per dataset, named by its index or a column ``dataset``, and
          one column of numbers per model;
        - a mapping from models to lists of scores;
        - an array of shape (n_datasets, n_models).

    Returns
    -------
    ScoreTable
        With NaN where a long table has no row and a wide one no number.

    Examples
    --------
    >>> from cocoloss.stats import read_scores
    >>> read_scores({"ours": [0.9, 0.8], "theirs": [0.7, 0.9]}).models
    ('ours', 'theirs')
    """
    if type(scores).__module__.partition(".")[0] == "polars":  # known without importing polars
        scores = pd.DataFrame(scores.to_dict(as_series=False))
    if isinstance(scores, Mapping):
        try:
            scores = pd.DataFrame(scores)
        except ValueError as error:
            raise CoCoError(f"scores must have one list per model, all as long: {error}") from error
    if not isinstance(scores, pd.DataFrame):
        table = _from_array(scores)
    elif set(LONG) <= set(scores.columns):
        table = _from_long(scores)
    else:
        table = _from_wide(scores)
    for names, what, over, hint in (
        (table.models, "model", "", ""),
        (
            table.datasets,
            "dataset",
            " over datasets",
            ". For one dataset with folds, see significance_ranks and pairwise_p_values",
        ),
    ):
        if len(names) < 2:
            found = f"one {what}, {names[0]!r}" if names else f"no {what}"
            raise CoCoError(f"scores has {found}; a comparison{over} needs two or more{hint}")
    return table


def _from_array(scores: Any) -> ScoreTable:
    values = as_float_array(scores, "scores")
    if values.ndim != 2:
        raise CoCoError(
            f"scores must have one row per dataset and one column per model, but has shape "
            f"{values.shape}; for folds, give a frame with the columns {listed(LONG)}, 'fold'"
        )
    datasets, models = (
        tuple(f"{what} {i}" for i in range(1, n + 1))
        for what, n in zip(("dataset", "model"), values.shape, strict=True)
    )
    return ScoreTable(datasets, models, values)


def _from_wide(frame: Any) -> ScoreTable:
    present = [name for name in LONG if name in frame.columns]
    if "model" in present or "score" in present:
        missing = [name for name in LONG if name not in present]
        raise CoCoError(
            f"a long table has the columns {listed(LONG)}, but {listed(missing)} is missing; the "
            f"columns are {listed(frame.columns)}"
        )
    if "dataset" in present:
        frame = frame.set_index("dataset")
    models, datasets = _names(frame.columns, "model"), _names(frame.index, "dataset")
    values = np.empty(frame.shape)
    for place, model in enumerate(models):
        values[:, place] = _numbers(frame.iloc[:, place], f"model {model!r}", datasets)
    return ScoreTable(datasets, models, values)


def _from_long(frame: Any) -> ScoreTable:
    keys = [name for name in ("dataset", "fold", "model") if name in frame.columns]
    for name in (*keys, "score"):
        if list(frame.columns).count(name) > 1:
            raise CoCoError(f"the column {name!r} comes twice")
    for key in keys:
        if frame[key].isna().any():
            row = int(frame[key].isna().to_numpy().argmax())
            raise CoCoError(f"row {row} (counted from 0) has no {key}; name it or leave it out")
    again = frame.duplicated(keys)
    if again.any():
        cell = frame[again].iloc[0]
        where = ", ".join(f"{key} '{cell[key]}'" for key in keys)
        hint = "number all repeats as folds" if "fold" in keys else "add a column 'fold'"
        repeats = counted(
            int(again.sum()), "score repeats an earlier one", "scores repeat earlier ones"
        )
        raise CoCoError(f"{repeats}, the first for {where}; {hint}, or leave the repeats out")
    model_of, models = pd.factorize(frame["model"])  # in order of appearance
    dataset_of, datasets = pd.factorize(frame["dataset"])
    row_names = [f"row {row}" for row in range(len(frame))]
    scores = _numbers(frame["score"], "column 'score'", row_names)
    fold_of = dataset_of
    if "fold" in keys:
        folds = frame.groupby(["dataset", "fold"], sort=False, observed=True)
        fold_of = folds.ngroup().to_numpy()
    values = np.full((fold_of.max(initial=-1) + 1, len(models)), np.nan)
    values[fold_of, model_of] = scores
    names = _names(datasets, "dataset"), _names(models, "model")
    if "fold" not in keys or frame.empty:
        return ScoreTable(*names, values)
    owner = np.empty(len(values), dtype=np.intp)  # the dataset of each fold
    owner[fold_of] = dataset_of
    ends = np.cumsum(np.bincount(owner, minlength=len(datasets)))[:-1]
    parts = tuple(np.split(values[np.argsort(owner, kind="stable")], ends))
    return ScoreTable(*names, np.array([_means(part) for part in parts]), parts)


def _means(folds: Floats) -> Floats:
    """Return means over the folds; a model that lacks one fold has no mean."""
    complete = ~np.isnan(folds).any(axis=0)
    means = np.full(folds.shape[1], np.nan)
    means[complete] = mean_scores(folds[:, complete])
    return means


def _numbers(column: Any, what: str, rows: Any) -> Floats:
    """Return a column as floats, with NaN for gaps, or say which cell is not a number."""
    converted = pd.to_numeric(column, errors="coerce")
    bad = (converted.isna() & column.notna()).to_numpy()
    if bad.any():
        place = int(bad.argmax())
        raise CoCoError(
            f"scores must be numbers, but {what} has {column.iloc[place]!r} at {rows[place]}; "
            f"leave a failed run empty"
        )
    return np.asarray(converted.to_numpy(dtype=np.float64, na_value=np.nan))


def _names(labels: Iterable[Any], what: str) -> tuple[str, ...]:
    names = tuple(str(label) for label in labels)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        remedy = "; for several scores each, give a long table with folds"
        raise CoCoError(
            f"{what} names must differ, but these come twice: {listed(twice)}"
            f"{remedy if what == 'dataset' else ''}"
        )
    return names


@dataclass(frozen=True)
class CompleteTable:
    """A table without gaps, and what was done to make it so."""

    table: ScoreTable  # its scores hold no NaN; its folds may, for models that are filled in
    dropped: tuple[str, ...] = ()  # datasets that were left out
    filled: tuple[tuple[str, str], ...] = ()  # (dataset, model): now the worst score, an infinity


def complete(
    table: ScoreTable, policy: str = "raise", *, higher_is_better: bool = True
) -> CompleteTable:
    """Apply a policy for missing results.

    Parameters
    ----------
    table : ScoreTable
        With NaN where there is no result.
    policy : {"raise", "drop_datasets", "worst"}
        - "raise": refuse, and name the cells;
        - "drop_datasets": compare on the datasets that every model has a result on;
        - "worst": a model without a result comes last on that dataset, behind all that have one.
    higher_is_better : bool
        Decides which score is the worst.

    Examples
    --------
    >>> from cocoloss.stats import complete, read_scores
    >>> table = read_scores({"a": [0.9, 0.8, 0.7], "b": [0.7, None, 0.6]})
    >>> complete(table, "drop_datasets").dropped
    ('1',)
    """
    check_option(policy, "missing", POLICIES)
    missing = np.isnan(table.scores)
    if not missing.any():
        return CompleteTable(table)
    gaps = np.argwhere(missing)
    if policy == "raise":
        shown = [_describe_gap(table, row, column) for row, column in gaps]
        raise CoCoError(
            f"{counted(len(gaps), 'result is', 'results are')} missing: "
            f"{listed(shown, quoted=False, separator='; ')}. Run what is missing, or set `missing` "
            f"to drop_datasets (compare on complete datasets only) or worst (a model without a "
            f"result comes last)"
        )
    if policy == "drop_datasets":
        return _drop(table, missing)
    for axis, names, what in ((0, table.models, "model"), (1, table.datasets, "dataset")):
        empty = missing.all(axis=axis)
        if empty.any():
            raise CoCoError(f"{what} {names[int(empty.argmax())]!r} has no result; leave it out")
    worst = -np.inf if higher_is_better else np.inf
    filled = replace(table, scores=np.where(missing, worst, table.scores))
    cells = tuple((table.datasets[row], table.models[column]) for row, column in gaps)
    return CompleteTable(filled, filled=cells)


def _describe_gap(table: ScoreTable, row: int, column: int) -> str:
    """Name a result that is missing, and how many folds it lacks if it has some."""
    lacking = ""
    if table.folds is not None:
        folds = np.isnan(table.folds[row][:, column])
        lacking = "" if folds.all() else f" ({folds.sum()} of {len(folds)} folds)"
    return f"{table.models[column]!r} on {table.datasets[row]!r}{lacking}"


def _drop(table: ScoreTable, missing: NDArray[np.bool_]) -> CompleteTable:
    """Leave out the datasets that lack a result."""
    incomplete = missing.any(axis=1)
    places = np.flatnonzero(~incomplete)
    if len(places) < 2:
        worst = int(missing.sum(axis=0).argmax())
        raise CoCoError(
            f"{incomplete.sum()} of {len(missing)} datasets lack the result of some model, "
            f"which leaves too few to compare on; leave out the model that lacks most, "
            f"{table.models[worst]!r} ({missing[:, worst].sum()} missing), or set "
            f"`missing` to worst (a model without a result comes last)"
        )
    kept = replace(
        table,
        datasets=tuple(table.datasets[i] for i in places),
        scores=table.scores[places],
        folds=None if table.folds is None else tuple(table.folds[i] for i in places),
    )
    dropped = tuple(table.datasets[i] for i in np.flatnonzero(incomplete))
    return CompleteTable(kept, dropped=dropped)


def check_matrix(values: Any, name: str, *, rows: str) -> Floats:
    """Return a matrix of scores with one column per model, none of them NaN."""
    matrix = as_float_array(values, name)
    if matrix.ndim != 2:
        raise CoCoError(
            f"{name} must have one row per {rows} and one column per model, "
            f"but has shape {matrix.shape}"
        )
    if matrix.shape[1] < 2:
        raise CoCoError(f"{name} has {matrix.shape[1]} model(s); a comparison needs two or more")
    if matrix.shape[0] < 1:
        raise CoCoError(f"{name} has no {rows}; give one row for each")
    if np.isnan(matrix).any():
        row, column = np.argwhere(np.isnan(matrix))[0]
        raise CoCoError(
            f"{name} has no number for {rows} {row}, model {column} (counted from 0); "
            f"fill the gap or leave the {rows} out"
        )
    return matrix


def check_pair(first: Any, second: Any) -> tuple[Floats, Floats]:
    """Return two vectors of paired scores, none of them NaN."""
    first, second = as_float_array(first, "first"), as_float_array(second, "second")
    if first.ndim != 1 or first.shape != second.shape:
        raise CoCoError(
            f"first and second must be two lists of equal length, one score per fold or dataset, "
            f"but have shapes {first.shape} and {second.shape}"
        )
    check_matrix(np.stack([first, second], axis=1), "the pair of score lists", rows="row")
    return first, second


def check_finite(values: Floats, reason: str) -> Floats:
    """Refuse infinite scores where more than their order matters."""
    if not np.isfinite(values).all():
        raise CoCoError(
            f"{reason} needs finite scores, but one is infinite; "
            f"leave that row out, or use a test on ranks"
        )
    return values


def round_off(scores: Floats) -> Floats:
    """Return scores in 12 significant digits, so that equal ones are equal."""
    return _round(scores, _decimals(scores))


def mean_scores(scores: Floats) -> Floats:
    """Return the mean of each column, in 12 digits; infinite if a score of the column is."""
    with np.errstate(invalid="ignore"):
        means = scores.mean(axis=0)
    if np.isnan(means).any():
        raise CoCoError(
            "scores of one model are infinite with both signs, so that they have no mean; "
            "leave those rows out"
        )
    return round_off(means)


def score_differences(first: Floats, second: Floats) -> Floats:
    """Return first - second, with 0 for equal infinities and no digits made by rounding."""
    # inf - inf is mended in place; what is beyond the range of a float is infinite.
    with np.errstate(invalid="ignore", over="ignore"):
        difference = np.where(first == second, 0.0, first - second)
    return _round(difference, np.minimum(_decimals(first), _decimals(second)))


def _decimals(scores: Floats) -> Floats:
    """Return how many places after the point make 12 significant digits."""
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log10(np.abs(scores)))  # -inf for 0, inf for inf
    return np.asarray(np.clip(DIGITS - 1 - exponent, -DECIMALS, DECIMALS))


def _round(values: Floats, decimals: Floats) -> Floats:
    with np.errstate(over="ignore"):  # values near the largest float, kept in the next line
        scaled = values * 10.0**decimals
        rounded = np.rint(scaled) / 10.0**decimals
    return np.where(np.isfinite(scaled) & np.isfinite(rounded), rounded, values)
