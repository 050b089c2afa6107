"""Arguments and options that several commands share, and what they read."""

import functools
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import click

if TYPE_CHECKING:
    import pandas as pd

Command = TypeVar("Command", bound=Callable[..., Any])
MODELS = {  # option -> class of cocoloss.estimators
    "coco": "CoCoClassifier",
    "dr": "DotRegressionClassifier",
    "ce": "CrossEntropyClassifier",
}
MODEL_SUFFIX = ".coco"
ALIKE = 30  # characters in which two warnings about the same thing agree
FOR_PYTHON = re.compile(r" [^.,;]* by preprocess=.*\(from cocoloss\.preprocessing\)")
SHOWN = 8  # names in a list before "and so many more"


class Labelled(NamedTuple):
    """A table with its target."""

    X: "pd.DataFrame"
    y: "pd.Series[Any]"
    name: str


def table_file(command: Command) -> Command:
    """Add FILE and how to read it, which the command gets as the one argument ``how``."""

    @functools.wraps(command)
    def wrapper(separator: str | None, encoding: str | None, no_header: bool, **rest: Any) -> Any:
        separator = "\t" if separator in {"tab", "\\t"} else separator
        header: bool | str = False if no_header else "auto"
        how = {"separator": separator, "encoding": encoding, "header": header}
        return command(how=how, **rest)

    decorated: Any = wrapper
    for decorate in (
        click.option("--no-header", is_flag=True, help="The first line is a row, not names."),
        click.option("--encoding", help="Such as utf-8 or latin-1; found if left out."),
        click.option("--separator", help="Between the columns of a CSV; found if left out."),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        decorated = decorate(decorated)
    return cast("Command", decorated)


def target_option(command: Command) -> Command:
    """Add --target and --drop."""
    for decorate in (
        click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out."),
        click.option("--target", required=True, metavar="COLUMN", help="The column to predict."),
    ):
        command = decorate(command)
    return command


def json_option(command: Command) -> Command:
    """Add --json."""
    option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
    return option(command)


def seed_option(command: Command) -> Command:
    """Add --seed."""
    option = click.option(
        "--seed", default=0, show_default=True, help="The same seed gives the same result."
    )
    return option(command)


def model_option(command: Command) -> Command:
    """Add --model."""
    option = click.option(
        "--model",
        type=click.Choice(list(MODELS)),
        default="coco",
        show_default=True,
        help="CoCo, dot regression or cross-entropy.",
    )
    return option(command)


def out_option(
    name: str,
    *,
    required: bool = False,
    help: str,  # noqa: A002 - click's word
) -> Callable[[Command], Command]:
    """Return what adds --out."""
    place = click.Path(path_type=Path, readable=False)  # write_whole says what is wrong with it
    return click.option("--out", required=required, type=place, metavar=name, help=help)


def check_out(
    out: Path, inputs: Sequence[Path], *, suffixes: Sequence[str] = (), never: Sequence[str] = ()
) -> None:
    """Refuse, before the work, a place that cannot be written, or that holds what is being read.

    Parameters
    ----------
    out : Path
        Where the result goes.
    inputs : sequence of Path
        What is read.
    suffixes, never : sequences of str
        How the name may end, if that matters, and how it may not: a model is no table.
    """
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415
    from cocoloss.files.whole import check_can_write  # noqa: PLC0415

    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise CoCoError(f"--out is {path}, which is being read; choose another name")
    if suffixes and out.suffix.lower() not in suffixes and not out.is_dir():
        raise CoCoError(f"{out} must end in {' or '.join(suffixes)}")
    if out.suffix.lower() in never:
        raise CoCoError(f"{out} is the name of a table; call a model something like model.coco")
    check_can_write(out)


def check_is_no_model(file: Path) -> None:
    """Tell a model that is given in place of a table."""
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415

    if file.suffix == MODEL_SUFFIX and file.is_file():
        raise CoCoError(
            f"{file} is a model, not a table; in `predict` and `embed` the model is first"
        )


def make_model(name: str, **options: Any) -> Any:
    """Return the classifier of an option of --model."""
    from cocoloss import estimators  # noqa: PLC0415 - heavy

    return getattr(estimators, MODELS[name])(**options)


def read_labelled(file: Path, target: str, drop: tuple[str, ...], how: dict[str, Any]) -> Labelled:
    """Return a table and its target; say what was read."""
    from cocoloss.data import read_table, split_target  # noqa: PLC0415 - heavy
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415

    check_is_no_model(file)
    frame = read_table(file, **how)
    lacking = [name for name in drop if name not in frame.columns]
    if lacking:
        raise CoCoError(
            f"{file} has no column {lacking[0]!r} to drop; it has {some_of(frame.columns)}"
        )
    X, y = split_target(frame.drop(columns=list(drop)), target, missing="drop")
    if len(y) < len(frame):
        note(f"left out {len(frame) - len(y):,} rows whose {target} is not known")
    return Labelled(X, y, file.name)


def some_of(names: Any) -> str:
    """Return a list of names that fits on a line."""
    names = list(map(str, names))
    rest = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {rest:,} more" if rest > 0 else "")


def note(text: str) -> None:
    """Say something on standard error that is not an error."""
    click.echo(click.style("note: ", fg="yellow") + " ".join(text.split()), err=True)


@contextmanager
def notes_for_warnings(*, but: Sequence[str] = ()) -> Iterator[None]:
    """Show warnings as notes, after the work, each once: folds differ in their examples only.

    Parameters
    ----------
    but : sequence of str
        How warnings begin that the command tells in its own way.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    texts = [str(warning.message) for warning in caught]
    alike = {text[:ALIKE]: text for text in reversed(texts) if not text.startswith(tuple(but))}
    for text in reversed(alike.values()):
        # What an argument in Python would do is of no use on a command line.
        note(FOR_PYTHON.sub(" leave it out with --drop", text))


def print_json(value: Any) -> None:
    """Print a value for machines; what is not a number is null."""
    click.echo(json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False))


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
