"""What commands say beside their results: notes on standard error, JSON for machines."""

import json
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import click

from cocoloss.json_text import finite, json_value

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
