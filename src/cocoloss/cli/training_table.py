"""A table to learn from: its file and the options that say how to read it, and what was read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from cocoloss.cli.messages import ADVICE, listed, note, notes_for_warnings
from cocoloss.cli.options import check_is_no_model, packed, table_with_gaps

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

    def typed(self) -> "pd.DataFrame":
        """Return the columns typed by their kinds, so that no fold reads them differently."""
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
        """Return the table and its target; note what the user may want otherwise."""
        from cocoloss.exceptions import CoCoError  # noqa: PLC0415
        from cocoloss.tables import open_table, split_target  # noqa: PLC0415 - heavy

        target = self.target
        check_is_no_model(self.file)
        categorical = [name for name in self.categorical if name not in self.drop]
        if target in categorical:
            raise CoCoError(f"--categorical {target}: that is the target, whose values are classes")
        with notes_for_warnings(advice=ADVICE):
            # Categories are text, as they are for `predict`: 007 is not 7.
            table = open_table(self.file, text=categorical, **self.how)
            frame = table.read()
        self._check_columns(frame)
        X, y = split_target(frame.drop(columns=list(self.drop)), target, missing="drop")
        counters = self._counters(frame, X)
        X = X.drop(columns=counters)
        n_left_out = len(frame) - len(y)
        if n_left_out:
            note(f"left out {n_left_out:,} rows whose {target} is not known")
        table = table.with_options(text=[target, *self.drop, *categorical])
        _note_codes_and_identifiers(X, table.codes)
        decimal = table.decimal if table.decimal == "," or self.how.get("decimal") else None
        given = {
            "categorical_features": categorical or None,
            "day_first": self.day_first,
            "decimal": decimal,
        }
        return TrainingTable(
            X,
            y,
            self.file.name,
            _preprocess({name: value for name, value in given.items() if value is not None}),
            n_left_out,
            dict.fromkeys(counters, "counts the rows"),
        )

    def _check_columns(self, frame: "pd.DataFrame") -> None:
        from cocoloss.exceptions import CoCoError  # noqa: PLC0415

        for what, names in (("drop", self.drop), ("use", self.use)):
            lacking = [name for name in names if name not in frame.columns]
            if lacking:
                raise CoCoError(
                    f"{self.file} has no column {lacking[0]!r} to {what}; it has "
                    f"{listed(frame.columns)}"
                )

    def _counters(self, frame: "pd.DataFrame", X: "pd.DataFrame") -> list[str]:
        """Return the columns that only count the rows, and say that they are left out."""
        from cocoloss.exceptions import CoCoError  # noqa: PLC0415
        from cocoloss.tables.identifiers import find_counters  # noqa: PLC0415

        counters = [name for name in find_counters(frame) if name in X and name not in self.use]
        if counters and len(counters) == len(X.columns):
            raise CoCoError(
                f"{self.file} has no column beside {self.target!r} but {listed(counters)}, which "
                f"counts the rows; say --use COLUMN to learn from it"
            )
        if counters:
            note(
                f"left out, as it only counts the rows: {listed(counters)}; say --use COLUMN to "
                f"learn from it"
            )
        return counters


def _note_codes_and_identifiers(X: "pd.DataFrame", codes: Sequence[str]) -> None:
    from cocoloss.tables.identifiers import find_identifiers  # noqa: PLC0415 - heavy

    if codes:
        note(
            f"read as numbers, though some begin with 0: {listed(codes)}; say "
            f"--categorical COLUMN if they are codes, --drop COLUMN if they only name the rows"
        )
    named = [name for name in find_identifiers(X) if name not in codes]
    if named:
        note(
            f"used as numbers, though no two are equal and the name is that of an identifier: "
            f"{listed(named)}; say --drop COLUMN if they only name the rows"
        )


def _preprocess(arguments: dict[str, Any]) -> Any:
    """Return the argument ``preprocess`` of an estimator that reads columns as the user says."""
    from cocoloss.columns import TablePreprocessor  # noqa: PLC0415 - heavy

    return TablePreprocessor(**arguments) if arguments else "auto"


training_file = packed(  # FILE, --target and what can be said of columns
    "source",
    TrainingFile,
    [
        table_with_gaps,
        click.option("--target", required=True, metavar="COLUMN", help="The column to predict."),
        click.option(
            "--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."
        ),
        click.option(
            "--use",
            multiple=True,
            metavar="COLUMN",
            help="Learn from a column though it only counts the rows; repeatable.",
        ),
        click.option(
            "--categorical",
            multiple=True,
            metavar="COLUMN",
            help="Take a column for categories, though it holds numbers; repeatable.",
        ),
        click.option(
            "--day-first/--month-first",
            default=None,
            help="What comes first in dates such as 01/02/2024, where no number above 12 tells.",
        ),
    ],
)
