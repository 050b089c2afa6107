"""What commands say: notes on standard error, lists that fit on a line, JSON for machines."""

import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import click

ALIKE = 30  # characters in which two warnings about the same thing agree
# What a warning about columns is about -> what to do on a command line that has column options.
ADVICE = {
    "text": "--categorical COLUMN keeps such a column as a category",
    "strays": "mend that text, or say --categorical COLUMN if they are categories",
    "mixture": "mend the other values, or confirm it with --categorical COLUMN",
    "dates": "say --day-first or --month-first if they are dates",
    "thousands": "say --decimal . if they are decimal points",
}
OTHER_ADVICE = "leave such a column out with --drop"
LEFT_OUT = ("text", "rare")  # columns about which there is no more to say than that
SHOWN = 8  # names in a list before "and so many more"


def some_of(names: Any) -> str:
    """Return a list of names that fits on a line."""
    names = list(map(str, names))
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def note(text: str) -> None:
    """Say something on standard error that is not an error."""
    click.echo(click.style("note: ", fg="yellow") + " ".join(text.split()), err=True)


@contextmanager
def notes_for_warnings(
    *, advice: Mapping[str, str] = MappingProxyType({}), but: Sequence[str] = ()
) -> Iterator[None]:
    """Show warnings as notes, after the work, each once: folds differ in their examples only.

    Parameters
    ----------
    advice : mapping of str to str
        What a warning about columns is about -> what the command's options can do. What an
        argument in Python would do is of no use on a command line.
    but : sequence of str
        What warnings are about that the command tells in its own way.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = []
    for message in (warning.message for warning in caught):
        about = getattr(message, "about", None)
        if about is None:
            texts.append(str(message))
        elif about not in but:
            what = getattr(message, "what", str(message))
            texts.append(f"{what}; {advice.get(about, OTHER_ADVICE)}")
    alike = {text[:ALIKE]: text for text in reversed(texts)}
    for text in reversed(alike.values()):
        note(text)


def print_json(value: Any) -> None:
    """Print a value for machines; what is not a number is null."""
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False)
    if not can_print(text):
        text = json.dumps(_plain(value), indent=2, allow_nan=False)
    click.echo(text)


def can_print(text: str) -> bool:
    """Return whether standard output has the characters of a text."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


@contextmanager
def printed_somehow() -> Iterator[None]:
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


def _plain(value: Any) -> Any:
    """Return a value that JSON has."""
    import numpy as np  # noqa: PLC0415 - heavy

    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def is_terminal() -> bool:
    """Return whether somebody watches standard error."""
    return sys.stderr.isatty()
