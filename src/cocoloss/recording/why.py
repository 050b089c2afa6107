"""Why a fitted model says what it says of some test rows: what a page shows of explanations."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss._checks import amount
from cocoloss.columns.frames import read_table
from cocoloss.fitting.explain import n_references

MOST_ASKED = 60_000  # made-up rows that a model is asked about for a page, about
MOST_ROWS, FEWEST_ROWS = 60, 8  # that the mean is taken over
MOST_CLASSES = 4  # of which a row is shown
MOST_PARTS = 7  # columns that are drawn one by one
LONGEST_CELL = 40


@dataclass(frozen=True)
class Part:
    """What a column adds to the prediction of a row."""

    column: str
    cell: str  # as text
    added: float


@dataclass(frozen=True)
class WhyRow:
    """The prediction of one row as a sum."""

    title: str  # why this row
    row: str  # its name in the table
    true: str
    predicted: str
    base: float
    parts: tuple[Part, ...]  # the strongest first
    rest: float  # of the other columns
    value: float  # the sum of all
    odd: tuple[str, ...]  # columns that are not as in training
    nearest: tuple[tuple[str, str, float], ...]  # training rows: name, target, similarity


@dataclass(frozen=True)
class Why:
    """What columns add to predictions of test rows."""

    scale: str  # "probability", "score" or "number"
    sizes: dict[str, float]  # of columns in use: mean size of what each adds, the largest first
    n_rows: int  # that it is the mean of
    rows: tuple[WhyRow, ...]
    note: str  # what the nearest rows are


def why_of_classes(
    model: Any, X: Any, labels: NDArray[np.int64], names: Sequence[str], trained: pd.Index
) -> Why | None:
    """Explain test rows of classes: the surest, the least sure, a mistake, some of each class.

    ``trained`` are the names of the training rows. None if heads only vote.
    """
    if not (model.has("predict_proba") or model.has("decision_function")):
        return None
    scores = model.scores(model.inputs(X))
    sure, chosen_class = scores.max(axis=1), scores.argmax(axis=1)
    chosen = {
        "Most certain prediction": int(sure.argmax()),
        "Least certain prediction": int(sure.argmin()),
    }
    wrong = np.flatnonzero(chosen_class != labels)
    if len(wrong):
        chosen["Most certain error"] = int(wrong[sure[wrong].argmax()])
    frequent = np.argsort(-np.bincount(labels, minlength=len(names)), kind="stable")
    for c in frequent[:MOST_CLASSES]:
        of_class = np.flatnonzero((labels == c) & (chosen_class == c))
        if len(of_class):
            middle = of_class[np.argsort(sure[of_class], kind="stable")[len(of_class) // 2]]
            chosen[f"Typical for {names[c]}"] = int(middle)
    true = [names[c] for c in labels]
    predicted = [names[c] for c in chosen_class]
    by_name = dict(zip(model.classes.tolist(), names, strict=True))
    return _why(model, X, chosen, true, predicted, trained, by_name)


def why_of_numbers(
    model: Any, X: Any, y: NDArray[np.float64], widths: NDArray[np.float64], trained: pd.Index
) -> Why:
    """Explain test rows of numbers: the smallest, middle and largest, and that of least trust."""
    predicted = model.predict(X)
    order = np.argsort(predicted, kind="stable")
    chosen = {
        "Largest prediction": int(order[-1]),
        "Smallest prediction": int(order[0]),
        "Median prediction": int(order[len(order) // 2]),
        "Widest interval": int(widths.argmax()),
    }
    return _why(model, X, chosen, list(map(amount, y)), list(map(amount, predicted)), trained, {})


def _why(
    model: Any,
    X: Any,
    chosen: Mapping[str, int],
    true: Sequence[str],
    predicted: Sequence[str],
    trained: pd.Index,
    by_name: Mapping[Any, str],
) -> Why:
    positions = list(dict.fromkeys(chosen.values()))
    n = len(true)
    in_use = set(model.origins)
    asked = 2 * n_references(len(in_use)) * len(in_use)
    most = int(np.clip(MOST_ASKED // asked, FEWEST_ROWS, MOST_ROWS))
    spread = np.unique(np.linspace(0, n - 1, min(n, most)).astype(int))
    explained = model.explain(_safe_indexing(X, spread), neighbours=0)
    sizes = {k: float(v) for k, v in explained.importances.items() if k in in_use}
    found = model.explain(_safe_indexing(X, positions))
    table = read_table(X, "")
    index = index_of(X)
    cells = {name: table.column(j).series for j, name in enumerate(table.names)}
    titles = {i: title for title, i in reversed([*chosen.items()])}  # the first of several
    k = len(found.neighbours) // len(positions)
    rows = []
    for place, i in enumerate(positions):
        added = found.contributions.iloc[place]
        order = added.abs().sort_values(ascending=False, kind="stable").index[:MOST_PARTS]
        far = found.out_of_range.iloc[place]
        near = found.neighbours.iloc[place * k : (place + 1) * k]
        rows.append(
            WhyRow(
                title=titles[i],
                row=str(index[i]),
                true=true[i],
                predicted=predicted[i],
                base=float(found.base[place]),
                parts=tuple(
                    Part(name, cell_text(cells[name].iloc[i]) if name in cells else "", added[name])
                    for name in order
                    if name in in_use
                ),
                rest=float(added.drop(order).sum()),  # 0, not a rounding error, without others
                value=float(found.value[place]),
                odd=tuple(far.index[far > 0]),
                nearest=_nearest(near, trained, by_name),
            )
        )
    return Why(found.scale, sizes, len(spread), tuple(rows), found.note)


def index_of(X: Any) -> pd.Index:
    """Return how the rows of a table are called."""
    return X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(X.shape[0])


def _nearest(
    near: pd.DataFrame, trained: pd.Index, by_name: Mapping[Any, str]
) -> tuple[tuple[str, str, float], ...]:
    """Return training rows by name; nothing where their places are not known."""
    if "target" not in near:
        return ()
    known = zip(near["row"], near["target"], near["similarity"], strict=True)
    return tuple(
        (str(trained[row]), by_name[target] if by_name else amount(target), float(similarity))
        for row, target, similarity in known
    )


def cell_text(value: Any) -> str:
    """Return a cell as people write it."""
    if pd.isna(value):
        return "gap"
    if isinstance(value, bool | np.bool_ | str):
        return textwrap.shorten(str(value), LONGEST_CELL, placeholder=" …")
    if isinstance(value, int | float | np.number):
        return amount(float(value))
    return str(value).removesuffix(" 00:00:00")  # of dates
