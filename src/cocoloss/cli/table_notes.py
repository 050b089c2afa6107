"""Notes on a table before a model learns from it: what may have been meant otherwise."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from cocoloss.cli.messages import listed, note
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

MANY_NUMBERS = 20  # more whole numbers than this may be a quantity
FEWEST_ROWS = 10  # of which a column does not go with the target by chance


def note_rows_without_target(
    n_rows: int, target: str, missing: Sequence[str] | None, task: str | None
) -> None:
    """Say which rows are left out, and what made their target a gap."""
    words = [word for word in missing or () if word]
    gaps = f"empty, or as --missing says {listed(words)}" if words else "empty"
    gaps += ", or no number" if task == "numbers" else ""
    note(f"left out {n_rows:,} rows whose {target} is not known: {gaps}")


def note_classes(y: "pd.Series[Any]", target: str) -> None:
    """Say of classes what they may be instead: gaps, one class written twice, numbers."""
    import pandas as pd  # noqa: PLC0415 - heavy

    from cocoloss.number_text import is_gap_mark  # noqa: PLC0415

    counts = y.value_counts()
    words = [word for word in counts.index if isinstance(word, str)]
    gaps = [word for word in words if is_gap_mark(word) or word.lower() in {"nan", "<na>"}]
    if gaps:
        note(
            f"{target}: {listed(f'{word} ({counts[word]:,} rows)' for word in gaps)} taken for a "
            f"class; say --missing {gaps[0]} if it means that the class is not known"
        )
    alike: dict[str, list[str]] = {}
    for word in words:
        alike.setdefault(" ".join(word.lower().split()), []).append(word)
    for spellings in alike.values():
        if len(spellings) > 1:
            note(
                f"{target}: {listed(sorted(spellings))} are different classes, though they differ "
                f"only by capitals or spaces; make them one in the file if they are"
            )
    if len(counts) > MANY_NUMBERS and not pd.to_numeric(pd.Series(counts.index), "coerce").hasnans:
        note(
            f"{target}: {len(counts):,} different numbers are taken for classes, which have no "
            f"order; if they are a quantity, this is the wrong kind of model"
        )


def refuse_nested(frame: "pd.DataFrame") -> None:
    """Refuse a column whose cells hold several values, as those of a Parquet file may."""
    for name in frame.columns[[getattr(each, "hasobject", False) for each in frame.dtypes]]:
        nested = (value for value in frame[name] if isinstance(value, Iterable))
        several = next((value for value in nested if not isinstance(value, str | bytes)), None)
        if several is not None:
            raise CoCoError(
                f"column {name!r} holds several values in a cell, such as {several!s:.60}; give "
                f"each a column of its own, or leave it out with --drop {name}"
            )


def find_leaks(X: "pd.DataFrame", y: "pd.Series[Any]") -> list[str]:
    """Return the columns that are the target under another name: each value has one class."""
    import pandas as pd  # noqa: PLC0415 - heavy

    known = y.notna().to_numpy()
    codes, classes = pd.factorize(y[known])
    if len(codes) < FEWEST_ROWS:
        return []
    same = []
    for name in X.columns:
        values, distinct = pd.factorize(X[name][known], use_na_sentinel=False)
        if len(distinct) == len(classes):
            pairs = values.astype("int64") * len(classes) + codes
            if len(pd.unique(pairs)) == len(classes):
                same.append(name)
    return same


def note_leaks(X: "pd.DataFrame", y: "pd.Series[Any]", target: str) -> None:
    """Say which columns are the target under another name: each value goes with one class."""
    same = find_leaks(X, y)
    if same:
        note(
            f"each value of {listed(same)} goes with one class of {target}, as if it were the "
            f"target written again; say --drop COLUMN if it is not known when you predict"
        )
