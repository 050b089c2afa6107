"""Arguments and options that several commands share; those that belong together come as one."""

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from cocoloss.cli.messages import ADVICE, listed, note, notes_for_warnings
from cocoloss.cli.table_notes import note_classes, note_leaks, note_rows_without_class
from cocoloss.exceptions import CoCoError
from cocoloss.files import check_can_write

if TYPE_CHECKING:
    import pandas as pd

    from cocoloss.columns.column_kinds import ColumnKind
    from cocoloss.tables import TableFile

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]
MODEL_SUFFIX = ".coco"
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".arff")  # and .gz
LARGE_FILE = 256 * 2**20  # bytes, from which on a table is read in blocks
BLOCK_ROWS = 50_000
MODELS = {  # option -> class of cocoloss.estimators
    "coco": "CoCoClassifier",
    "dr": "DotRegressionClassifier",
    "ce": "CrossEntropyClassifier",
}


def packed(
    argument: str, make: Callable[..., Any], options: Sequence[Decorator]
) -> Callable[[Command], Command]:
    """Return what adds options to a command, which gets them as one argument.

    Options that are not among the parameters of ``make`` go to the command as they are.
    """
    names = list(inspect.signature(make).parameters)

    def decorate(command: Command) -> Command:
        @functools.wraps(command)
        def wrapper(**given: Any) -> Any:
            made = make(**{name: given.pop(name) for name in names})
            return command(**{argument: made}, **given)

        decorated: Any = wrapper
        for option in reversed(options):
            decorated = option(decorated)
        return cast("Command", decorated)

    return decorate


def _how_to_read(
    separator: str | None, encoding: str | None, decimal: str | None, header: bool | None
) -> dict[str, Any]:
    return {
        "separator": "\t" if separator in {"tab", "\\t"} else separator,
        "encoding": encoding,
        "header": "auto" if header is None else header,
        "decimal": decimal,
    }


def _with_gaps(how: dict[str, Any], missing: tuple[str, ...]) -> dict[str, Any]:
    return how | {"missing": ["", *missing] if missing else None}


def _table_file(argument: Decorator) -> Decorator:
    """Return what adds a table, how to read it, and which words are gaps in it."""
    reading = packed("how", _how_to_read, [argument, *HOW_TO_READ])
    return packed("how", _with_gaps, [reading, MISSING])


HOW_TO_READ = [
    click.option("--separator", help="Between the columns of a CSV; found if left out."),
    click.option("--encoding", help="Such as utf-8 or latin-1; found if left out."),
    click.option(
        "--decimal", type=click.Choice([".", ","]), help="Decimal mark; found if left out."
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line has the names, where it looks like a row.",
    ),
]
MISSING = click.option(
    "--missing",
    multiple=True,
    metavar="WORD",
    help="What means a gap, beside empty cells; repeatable. NA, None, ? and the like if left out.",
)
FILE = click.argument("file", type=click.Path(path_type=Path))
FILES = click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
table_file = packed("how", _how_to_read, [FILE, *HOW_TO_READ])  # FILE, and how to read it
table_with_gaps = _table_file(FILE)  # and which words are gaps
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
EPOCHS = click.option(
    "--epochs", type=click.IntRange(min=1), help="At most so many; 100 if left out."
)
PRIORS = click.option(
    "--priors",
    type=click.Choice(["uniform", "empirical"]),
    default="uniform",
    show_default=True,
    help="Count all classes alike, or as often as they occur.",
)
SEED = click.option(
    "--seed", default=0, show_default=True, help="The same seed gives the same result."
)


@dataclass(frozen=True)
class Training:
    """What to train; what the user leaves out, the classifier decides."""

    model: str = "coco"
    epochs: int | None = None
    members: int | None = None
    priors: str = "uniform"
    seed: int = 0
    solver: str | None = None
    time_limit: float | None = None
    landmarks: str | None = None

    def classifier(self, **options: Any) -> Any:
        """Return the classifier, with further arguments unless they are None."""
        from cocoloss import estimators  # noqa: PLC0415 - heavy

        if self.solver is not None and self.model != "coco":
            raise CoCoError(f"--solver is for --model coco, not for {self.model}; leave it out")
        if self.landmarks is not None and self.model != "coco":
            raise CoCoError(f"--landmarks is for --model coco, not for {self.model}; leave it out")
        given = {
            "max_iter": self.epochs,
            "n_members": self.members,
            "solver": self.solver,
            "time_limit": self.time_limit,
            "landmarks": self.landmarks,
            **options,
        }
        return getattr(estimators, MODELS[self.model])(
            priors=self.priors,
            random_state=self.seed,
            **{name: value for name, value in given.items() if value is not None},
        )


training_options = packed(
    "training",
    Training,
    [
        click.option(
            "--model",
            type=click.Choice(list(MODELS)),
            default="coco",
            show_default=True,
            help="CoCo, dot regression or cross-entropy.",
        ),
        EPOCHS,
        click.option(
            "--members", type=click.IntRange(min=1), help="Networks to average; 6 if left out."
        ),
        PRIORS,
        SEED,
        click.option(
            "--solver",
            type=click.Choice(["auto", "kernel", "network", "both"]),
            help="Kernels, networks or both; if it is left out, kernels, with networks beside them "
            "if rows are many, and networks alone where --epochs or --members is given.",
        ),
        click.option(
            "--time-limit",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="How long a fit may take; what is left out for it is said.",
        ),
        click.option(
            "--landmarks",
            type=click.Choice(["rows", "kmeans"]),
            help="What kernels keep in the model file: rows of the table, if it is left out, or "
            "means of clusters of rows.",
        ),
    ],
)


def out_option(name: str, **options: Any) -> Callable[[Command], Command]:
    """Return what adds --out."""
    place = click.Path(path_type=Path, readable=False)  # write_whole says what is wrong with it
    return click.option("--out", type=place, metavar=name, **options)


def check_out(
    out: Path, inputs: Sequence[Path], *, suffixes: Sequence[str] = (), never: Sequence[str] = ()
) -> None:
    """Refuse, before the work, a place that cannot be written, or that holds what is being read.

    ``suffixes`` is how the name may end, if that matters, ``never`` how it may not.
    """
    check_can_write(out)
    for path in inputs:
        if out.exists() and path.exists() and out.samefile(path):
            raise CoCoError(f"--out is {path}, which is being read; choose another name")
    if suffixes and out.suffix.lower() not in suffixes:
        raise CoCoError(f"{out} must end in {' or '.join(suffixes)}")
    if out.suffix.lower() in never:
        raise CoCoError(f"{out} is the name of a table; call a model something like model.coco")


def check_is_no_model(file: Path) -> None:
    """Refuse a model that is given in place of a table."""
    if file.suffix == MODEL_SUFFIX and file.is_file():
        raise CoCoError(
            f"{file} is a model, not a table; in `predict` and `embed` the model is first"
        )


@dataclass(frozen=True)
class TrainingTable:
    """A table with its target, as it was read."""

    X: "pd.DataFrame"
    y: "pd.Series[Any]"
    name: str  # of the file
    preprocess: Any = "auto"  # for an estimator that reads columns as the user, or the file, says
    n_left_out: int = 0  # rows without a class that the file has besides
    left_out: dict[str, str] = field(default_factory=dict)  # column that the file has besides: why

    def typed(self) -> tuple["pd.DataFrame", "dict[str, ColumnKind]"]:
        """Return the columns typed by their kinds, so that no fold reads them differently."""
        from cocoloss.columns import make_preprocessor  # noqa: PLC0415 - heavy
        from cocoloss.columns.column_kinds import typed_by_kind  # noqa: PLC0415

        return typed_by_kind(self.X, make_preprocessor(self.preprocess))


@dataclass(frozen=True)
class TrainingFile:
    """A file, its target, and what the user says of both."""

    file: Path
    target: str
    drop: tuple[str, ...]
    how: dict[str, Any]  # to read it
    categorical: tuple[str, ...]
    day_first: bool | None  # in dates that do not tell
    use: tuple[str, ...] = ()  # columns that only count the rows

    def read(self, missing: str = "drop") -> TrainingTable:
        """Return the table and its target; note what the user may want otherwise.

        Rows whose target is not known are left out, unless ``missing`` is "keep".
        """
        from cocoloss.tables import split_target  # noqa: PLC0415 - heavy

        with notes_for_warnings(advice=ADVICE):
            table = self.open()
            frame = table.read()
        self.check_columns(frame)
        used = frame.drop(columns=list(self.drop))
        X, y = split_target(used, self.target, missing=missing, verbatim=True)
        counters = self.counters(frame, X)
        X = X.drop(columns=counters)
        n_left_out = len(frame) - len(y)
        if n_left_out:
            note_rows_without_class(n_left_out, self.target, self.how["missing"])
        note_classes(y, self.target)
        note_leaks(X, y, self.target)
        left_out = dict.fromkeys(counters, "counts the rows")
        return TrainingTable(X, y, self.file.name, self.preprocess(table, X), n_left_out, left_out)

    @property
    def _categories(self) -> list[str]:
        return [name for name in self.categorical if name not in self.drop]

    def open(self) -> "TableFile":
        """Return the file, found out how to read."""
        from cocoloss.tables import open_table  # noqa: PLC0415 - heavy

        check_is_no_model(self.file)
        target = self.target
        if target in self._categories:
            raise CoCoError(f"--categorical {target}: that is the target, whose values are classes")
        if target in self.drop:
            raise CoCoError(f"--drop {target}: that is the target; name another one, or keep it")
        # Categories are text, as they are for `predict`: 007 is not 7. So are codes.
        table = open_table(self.file, text=self._categories, labels=[target], **self.how)
        codes = [name for name in table.codes if name not in (*self.drop, *self.use)]
        return table.with_options(text=[*self._categories, *codes])

    def preprocess(self, table: "TableFile", X: "pd.DataFrame") -> Any:
        """Return what reads columns as the user, or the file, says; note what looks like codes."""
        from cocoloss.columns import TablePreprocessor  # noqa: PLC0415 - heavy

        categorical = self._categories
        table = table.with_options(text=[self.target, *self.drop, *categorical])
        _note_codes_and_identifiers(X, [c for c in table.codes if c in X and c not in self.use])
        decimal = table.decimal if table.decimal == "," or self.how.get("decimal") else None
        said: dict[str, Any] = {
            "categorical_features": categorical or None,
            "day_first": self.day_first,
            "decimal": decimal,
        }
        arguments = {name: value for name, value in said.items() if value is not None}
        return TablePreprocessor(**arguments) if arguments else "auto"

    def check_columns(self, frame: "pd.DataFrame") -> None:
        """Refuse columns to drop or to use that the file lacks."""
        for what, names in (("drop", self.drop), ("use", self.use)):
            lacking = [name for name in names if name not in frame.columns]
            if lacking:
                raise CoCoError(
                    f"{self.file} has no column {lacking[0]!r} to {what}; it has "
                    f"{listed(frame.columns)}"
                )

    def counters(self, frame: "pd.DataFrame", X: "pd.DataFrame") -> list[str]:
        """Return the columns that only count the rows, and say that they are left out."""
        from cocoloss.tables.table import find_counters  # noqa: PLC0415 - heavy

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


@dataclass(frozen=True)
class TrainingFiles:
    """Files that are one table, their target, and what the user says of them."""

    files: tuple[Path, ...]
    target: str
    drop: tuple[str, ...]
    how: dict[str, Any]
    categorical: tuple[str, ...]
    day_first: bool | None
    use: tuple[str, ...] = ()

    def read(self, missing: str = "drop") -> "TrainingTable | TrainingBlocks":
        """Return the table, read, or in blocks if it is large or in several files."""
        files = [file for path in self.files for file in _files_in(path)]
        rest = self.target, self.drop, self.how, self.categorical, self.day_first, self.use
        first, *others = (TrainingFile(file, *rest) for file in files)
        if others or (first.file.is_file() and first.file.stat().st_size > LARGE_FILE):
            if missing == "keep":
                raise CoCoError(
                    "--unlabelled soft needs the whole table in memory; name one file, or use "
                    "--unlabelled ignore"
                )
            return TrainingBlocks.of([first, *others])
        return first.read(missing)


def _files_in(path: Path) -> list[Path]:
    """Return the tables in a folder and its folders, or the path itself."""
    if not path.is_dir():
        return [path]
    found = sorted(each for each in path.rglob("*") if _is_table(each))
    if not found:
        raise CoCoError(f"{path} is a folder without tables; they end in {', '.join(TABLES)}")
    return found


def _is_table(path: Path) -> bool:
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(TABLES) and not name.startswith((".", "_")) and path.is_file()


@dataclass(frozen=True)
class TrainingBlocks:
    """A table that is read in blocks, each time that they are asked for."""

    sources: Sequence[TrainingFile]
    counters: list[str]
    preprocess: Any
    y: None = None  # each block brings its own
    told: list[str] = field(default_factory=list)  # whether all has been noted, in the first pass

    @classmethod
    def of(cls, sources: Sequence[TrainingFile]) -> "TrainingBlocks":
        """Decide by the first rows what is decided once."""
        first = sources[0]
        with notes_for_warnings(advice=ADVICE):
            table = first.open()
            frame = next(table.chunks(BLOCK_ROWS))
        first.check_columns(frame)
        X, _ = split_part(first, frame)
        counters = first.counters(frame, X)
        return cls(sources, counters, first.preprocess(table, X.drop(columns=counters)))

    @property
    def name(self) -> str:
        """What the first file is called."""
        return self.sources[0].file.name

    @property
    def left_out(self) -> dict[str, str]:
        """Columns that the files have besides, and why they are not used."""
        return dict.fromkeys(self.counters, "counts the rows")

    def X(self) -> "Iterator[tuple[pd.DataFrame, pd.Series[Any]]]":  # noqa: N802 - as of a table
        """Yield the rows with a class of each block, and their classes."""
        n_left_out = 0
        for source in self.sources:
            for frame in source.open().chunks(BLOCK_ROWS):
                X, y = split_part(source, frame)
                n_left_out += len(frame) - len(y)
                yield X.drop(columns=self.counters), y
        if n_left_out and not self.told:
            note_rows_without_class(n_left_out, source.target, source.how["missing"])
        self.told.append("all")


def split_part(source: TrainingFile, frame: "pd.DataFrame") -> tuple[Any, Any]:
    """Return the features and classes of some rows of a file."""
    from cocoloss.tables import split_target  # noqa: PLC0415 - heavy

    frame = frame.drop(columns=list(source.drop), errors="ignore")
    try:
        return split_target(frame, source.target, missing="drop", whole=False)
    except CoCoError as error:
        raise CoCoError(f"{source.file}: {error}") from error


def _note_codes_and_identifiers(X: "pd.DataFrame", codes: Sequence[str]) -> None:
    from cocoloss.tables.table import find_identifiers  # noqa: PLC0415 - heavy

    if codes:
        note(
            f"taken for text, not for numbers, as some begin with 0: {listed(codes)}; say "
            f"--use COLUMN if they are numbers, --drop COLUMN if they only name the rows"
        )
    named = [name for name in find_identifiers(X) if name not in codes]
    if named:
        note(
            f"used as numbers, though no two are equal and the name is that of an identifier: "
            f"{listed(named)}; say --drop COLUMN if they only name the rows"
        )


ABOUT_COLUMNS = [
    click.option("--target", required=True, metavar="COLUMN", help="The column to predict."),
    click.option("--drop", multiple=True, metavar="COLUMN", help="Leave a column out; repeatable."),
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
]
# FILE, --target and what can be said of columns
training_file = packed("source", TrainingFile, [_table_file(FILE), *ABOUT_COLUMNS])
training_files = packed("source", TrainingFiles, [_table_file(FILES), *ABOUT_COLUMNS])
