"""What commands say beside their results: notes on standard error, JSON for machines."""

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

from cocoloss.exceptions import CoCoError
from cocoloss.json_text import finite, json_value

if TYPE_CHECKING:
    import pandas as pd

# What a warning about columns is about -> what to do on a command line that has column options.
ADVICE = {
    "text": "--categorical COLUMN keeps such a column as a category",
    "prose": "say --drop COLUMN if it only names rows, --categorical COLUMN for categories",
    "strays": "mend that text, or say --categorical COLUMN if they are categories",
    "mixture": "mend the other values, or confirm it with --categorical COLUMN",
    "dates": "say --day-first or --month-first if they are dates",
    "thousands": "say --decimal . if they are decimal points",
}
OTHER_ADVICE = "leave such a column out with --drop"
MANY_NUMBERS = 20  # more whole numbers than this may be a quantity
FEWEST_ROWS = 10  # of which a column does not go with the target by chance
LEFT_OUT = ("text", "rare")  # columns about which there is no more to say than that


def listed(names: Iterable[object], separator: str = ", ") -> str:
    """Return names with commas between, cut after a few so that they fit on a line."""
    from cocoloss._checks import listed as shared  # noqa: PLC0415 - loads numpy, the help does not

    return shared(names, quoted=False, separator=separator)


def note(text: str) -> None:
    """Say something on standard error that is not an error."""
    click.echo(click.style("note: ", fg="yellow") + " ".join(text.split()), err=True)


@contextmanager
def notes_for_warnings(
    *, advice: Mapping[str, str] = MappingProxyType({}), but: Sequence[str] = ()
) -> Iterator[None]:
    """Show warnings as notes, after the work, each once: folds repeat them.

    ``advice`` says what the command's options can do about columns, as what an argument in Python
    would do is of no use here; ``but`` names what the command tells in its own way.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts: dict[str, None] = {}  # in order of appearance
    for message in (warning.message for warning in caught):
        about = getattr(message, "about", None)
        if about is None:
            texts[str(message)] = None
        elif about not in but:
            what = getattr(message, "what", str(message))
            texts[f"{what}; {advice.get(about, OTHER_ADVICE)}"] = None
    for text in texts:
        note(text)


def print_json(value: Any) -> None:
    """Print a value for machines; what is not a number is null."""
    known = json_value(value, number=finite, other=str)
    text = json.dumps(known, indent=2, ensure_ascii=False, allow_nan=False)
    if not can_print(text):
        text = json.dumps(known, indent=2, allow_nan=False)
    click.echo(text)


def can_print(text: str) -> bool:
    """Return whether standard output has the characters of a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def escaped_output() -> Iterator[None]:
    """Let characters that standard output lacks be escaped rather than end the command."""
    before = getattr(sys.stdout, "errors", None)
    if before is None or not hasattr(sys.stdout, "reconfigure"):
        yield
        return
    sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        sys.stdout.reconfigure(errors=before)


def is_terminal() -> bool:
    """Return whether somebody watches standard error."""
    return sys.stderr.isatty()


def console() -> Any:
    """Return where tables are printed; a file or a pipe has no width of its own."""
    from rich.console import Console  # noqa: PLC0415 - heavy

    terminal = Console()
    return terminal if terminal.is_terminal else Console(width=160)


def table(
    title: str,
    texts: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[Sequence[Any]],
    **options: Any,
) -> Any:
    """Return a table with columns of text and of numbers; names are no markup."""
    from rich.table import Table  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415

    made = Table(title=Text(title, style="bold") if title else None, title_justify="left")
    for name in texts:
        made.add_column(name, **options)
    for name in numbers:
        made.add_column(name, justify="right", **options)
    for row in rows:
        made.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return made


# Notes on a table before a model learns from it: what may have been meant otherwise.


def note_rows_without_target(
    n_rows: int, target: str, missing: Sequence[str] | None, task: str | None
) -> None:
    """Say which rows are left out, and what made their target a gap."""
    from cocoloss._checks import counted  # noqa: PLC0415 - heavy

    words = [word for word in missing or () if word]
    gaps = f"empty, or as --missing says {listed(words)}" if words else "empty"
    gaps += ", or no number" if task == "numbers" else ""
    note(f"left out {counted(n_rows, 'row')} whose {target} is not known: {gaps}")


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


def find_leaks(X: "pd.DataFrame", y: "pd.Series[Any]", task: str) -> list[str]:
    """Return the columns that are the target under another name.

    Each of their values goes with one class, or they put all rows into the order of the numbers.
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    known = y.notna().to_numpy()
    if known.sum() < FEWEST_ROWS:
        return []
    if task == "numbers":
        numbers = X[known].select_dtypes("number")
        rank = y[known].rank(method="dense").to_numpy()
        orders = {rank.tobytes(), (rank.max() + 1 - rank).tobytes()}
        ranks = numbers.rank(method="dense")
        return [name for name in numbers if ranks[name].to_numpy().tobytes() in orders]
    codes, classes = pd.factorize(y[known])
    same = []
    for name in X.columns:
        values, distinct = pd.factorize(X[name][known], use_na_sentinel=False)
        if len(distinct) == len(classes):
            pairs = values.astype("int64") * len(classes) + codes
            if len(pd.unique(pairs)) == len(classes):
                same.append(name)
    return same


def note_leaks(X: "pd.DataFrame", y: "pd.Series[Any]", target: str, task: str) -> None:
    """Say which columns are the target under another name."""
    same = find_leaks(X, y, task)
    if same:
        what = "number" if task == "numbers" else "class"
        note(
            f"each value of {listed(same)} goes with one {what} of {target}, as if it were the "
            f"target written again; say --drop COLUMN if it is not known when you predict"
        )
