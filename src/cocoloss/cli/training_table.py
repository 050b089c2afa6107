"""A table to learn from: its file and the options that say how to read it, and what was read."""

import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cocoloss.cli.messages import ADVICE, listed, note, notes_for_warnings
from cocoloss.cli.options import Command, check_is_no_model, combined, table_with_gaps

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class TrainingTable:
    """A table with its target.

    Attributes
    ----------
    X, y : pandas.DataFrame, pandas.Series
        The columns as they were read, and the classes.
    name : str
        Of the file.
    preprocess : "auto" or TablePreprocessor
        The argument of an estimator that reads the columns as the user, or the file, says.
    n_left_out : int
        Rows without a class that the file has besides.
    left_out : dict of str to str
        Columns that the file has besides, and why they are not in X.
    """

    X: "pd.DataFrame"
    y: "pd.Series[Any]"
    name: str
    preprocess: Any = "auto"
    n_left_out: int = 0
    left_out: dict[str, str] = field(default_factory=dict)

    def settled(self) -> "pd.DataFrame":
        """Return the columns with their kinds decided, so that no part is read differently."""
        from cocoloss.columns import make_preprocessor, settle_kinds  # noqa: PLC0415 - heavy

        return cast("pd.DataFrame", settle_kinds(self.X, make_preprocessor(self.preprocess)))


@dataclass(frozen=True)
class TrainingFile:
    """A file, its target, and what the user says of both.

    Attributes
    ----------
    file : Path
    target : str
        The column to predict.
    drop : tuple of str
        Columns to leave out.
    how : dict
        How to read the file, for :func:`cocoloss.tables.read_table`.
    categorical : tuple of str
        Columns to take for categories.
    day_first : bool, optional
        What comes first in dates that do not tell.
    use : tuple of str
        Columns to use though they only count the rows.
    """

    file: Path
    target: str
    drop: tuple[str, ...]
    how: dict[str, Any]
    categorical: tuple[str, ...]
    day_first: bool | None
    use: tuple[str, ...] = ()

    def read(self) -> TrainingTable:
        """Return the table and its target; say what was read."""
        from cocoloss.columns import TablePreprocessor  # noqa: PLC0415
        from cocoloss.exceptions import CoCoError  # noqa: PLC0415
        from cocoloss.tables import find_writing, read_table, split_target  # noqa: PLC0415 - heavy
        from cocoloss.tables.identifiers import find_counters, find_identifiers  # noqa: PLC0415

        file, target, drop, how = self.file, self.target, self.drop, self.how
        check_is_no_model(file)
        categorical = [name for name in self.categorical if name not in drop]
        if target in categorical:
            raise CoCoError(f"--categorical {target}: that is the target, whose values are classes")
        with notes_for_warnings(advice=ADVICE):
            frame = read_table(file, text=categorical, **how)  # text as for predict: 007 is not 7
        for what, names in (("drop", drop), ("use", self.use)):
            lacking = [name for name in names if name not in frame.columns]
            if lacking:
                raise CoCoError(
                    f"{file} has no column {lacking[0]!r} to {what}; it has {listed(frame.columns)}"
                )
        X, y = split_target(frame.drop(columns=list(drop)), target, missing="drop")
        counters = [name for name in find_counters(frame) if name in X and name not in self.use]
        if counters:
            if len(counters) == len(X.columns):
                raise CoCoError(
                    f"{file} has no column beside {target!r} but {listed(counters)}, which counts "
                    f"the rows; say --use COLUMN to learn from it"
                )
            X = X.drop(columns=counters)
            note(
                f"left out, as it only counts the rows: {listed(counters)}; say --use COLUMN to "
                f"learn from it"
            )
        if len(y) < len(frame):
            note(f"left out {len(frame) - len(y):,} rows whose {target} is not known")
        written = find_writing(file, **how, text=[target, *drop, *categorical])
        if written.codes:
            note(
                f"read as numbers, though some begin with 0: {listed(written.codes)}; say "
                f"--categorical COLUMN if they are codes, --drop COLUMN if they only name the rows"
            )
        named = [name for name in find_identifiers(X) if name not in written.codes]
        if named:
            note(
                f"used as numbers, though no two are equal and the name is that of an identifier: "
                f"{listed(named)}; say --drop COLUMN if they only name the rows"
            )
        given: dict[str, Any] = {"categorical_features": categorical, "day_first": self.day_first}
        if written.decimal == "," or how.get("decimal"):
            given["decimal"] = written.decimal
        given = {name: value for name, value in given.items() if value not in ([], None)}
        preprocess = TablePreprocessor(**given) if given else "auto"
        left_out = dict.fromkeys(counters, "counts the rows")
        return TrainingTable(X, y, file.name, preprocess, len(frame) - len(y), left_out)


def training_file(command: Command) -> Command:
    """Add FILE, --target and what can be said of columns: the one argument ``source``."""

    @functools.wraps(command)
    def wrapper(
        file: Path,
        target: str,
        drop: tuple[str, ...],
        how: dict[str, Any],
        categorical: tuple[str, ...],
        day_first: bool | None,
        use: tuple[str, ...],
        **rest: Any,
    ) -> Any:
        source = TrainingFile(file, target, drop, how, categorical, day_first, use)
        return command(source=source, **rest)

    added = (
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
        click.option(
            "--use",
            multiple=True,
            metavar="COLUMN",
            help="Learn from a column though it only counts the rows; repeatable.",
        ),
        click.option(
            "--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."
        ),
        click.option("--target", required=True, metavar="COLUMN", help="The column to predict."),
        table_with_gaps,
    )
    return combined(cast("Command", wrapper), added)
