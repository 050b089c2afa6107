"""Arguments and options that several commands share, and what they read."""

import functools
import json
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
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


class Columns(NamedTuple):
    """What the user says of columns."""

    categorical: tuple[str, ...] = ()
    day_first: bool | None = None


class Labelled(NamedTuple):
    """A table with its target.

    Attributes
    ----------
    X, y : pandas.DataFrame, pandas.Series
        The columns as they were read, and the classes.
    name : str
        Of the file.
    preprocess : "auto" or TablePreprocessor
        The argument of an estimator that reads the columns as the user, or the file, says.
    """

    X: "pd.DataFrame"
    y: "pd.Series[Any]"
    name: str
    preprocess: Any = "auto"

    def settled(self) -> "pd.DataFrame":
        """Return the columns with their kinds decided, so that no part is read differently."""
        from cocoloss.preprocessing import make_preprocessor, settle_kinds  # noqa: PLC0415 - heavy

        return cast("pd.DataFrame", settle_kinds(self.X, make_preprocessor(self.preprocess)))


def table_file(command: Command) -> Command:
    """Add FILE and how to read it, which the command gets as the one argument ``how``."""

    @functools.wraps(command)
    def wrapper(
        separator: str | None,
        encoding: str | None,
        decimal: str | None,
        no_header: bool,
        **rest: Any,
    ) -> Any:
        separator = "\t" if separator in {"tab", "\\t"} else separator
        header: bool | str = False if no_header else "auto"
        how = {"separator": separator, "encoding": encoding, "header": header, "decimal": decimal}
        return command(how=how, **rest)

    decorated: Any = wrapper
    for decorate in (
        click.option("--no-header", is_flag=True, help="The first line is a row, not names."),
        click.option(
            "--decimal", type=click.Choice([".", ","]), help="Decimal mark; found if left out."
        ),
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


def column_options(command: Command) -> Command:
    """Add what can be said of columns, which the command gets as the one argument ``columns``."""

    @functools.wraps(command)
    def wrapper(categorical: tuple[str, ...], day_first: bool | None, **rest: Any) -> Any:
        return command(columns=Columns(categorical, day_first), **rest)

    decorated: Any = wrapper
    for decorate in (
        click.option(
            "--day-first/--month-first",
            default=None,
            help="What comes first in dates such as 01/02/2024, where no number above 12 tells.",
        ),
        click.option(
            "--categorical",
            multiple=True,
            metavar="COLUMN",
            help="Take a column for categories, though it holds numbers; repeatable.",
        ),
    ):
        decorated = decorate(decorated)
    return cast("Command", decorated)


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


def read_labelled(
    file: Path,
    target: str,
    drop: tuple[str, ...],
    how: dict[str, Any],
    columns: Columns = Columns(),  # noqa: B008 - it never changes
) -> Labelled:
    """Return a table and its target; say what was read."""
    from cocoloss.data import find_writing, read_table, split_target  # noqa: PLC0415 - heavy
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415
    from cocoloss.preprocessing import TablePreprocessor  # noqa: PLC0415

    check_is_no_model(file)
    categorical = [name for name in columns.categorical if name not in drop]
    if target in categorical:
        raise CoCoError(f"--categorical {target}: that is the target, whose values are classes")
    with notes_for_warnings(advice=ADVICE):
        frame = read_table(file, text=categorical, **how)  # text as for predict: 007 is not 7
    lacking = [name for name in drop if name not in frame.columns]
    if lacking:
        raise CoCoError(
            f"{file} has no column {lacking[0]!r} to drop; it has {some_of(frame.columns)}"
        )
    X, y = split_target(frame.drop(columns=list(drop)), target, missing="drop")
    if len(y) < len(frame):
        note(f"left out {len(frame) - len(y):,} rows whose {target} is not known")
    given: dict[str, Any] = {"categorical_features": categorical, "day_first": columns.day_first}
    written = find_writing(file, **how, text=[target, *drop, *categorical])
    if written.codes:
        note(
            f"read as numbers, though some begin with 0: {some_of(written.codes)}; say "
            f"--categorical COLUMN if they are codes, --drop COLUMN if they only name the rows"
        )
    if written.decimal == "," or how.get("decimal"):
        given["decimal"] = written.decimal
    given = {name: value for name, value in given.items() if value not in ([], None)}
    return Labelled(X, y, file.name, TablePreprocessor(**given) if given else "auto")


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
