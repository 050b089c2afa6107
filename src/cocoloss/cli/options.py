"""Arguments and options that several commands share; those that belong together come as one."""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from cocoloss.cli.messages import (
    ADVICE,
    listed,
    note,
    note_classes,
    note_leaks,
    note_rows_without_target,
    notes_for_warnings,
    refuse_nested,
)
from cocoloss.exceptions import CoCoError
from cocoloss.files import check_can_write

if TYPE_CHECKING:
    import pandas as pd

    from cocoloss.columns.column_kinds import ColumnKind
    from cocoloss.tables import TableFile

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Any], Any]
MODEL_SUFFIX = ".coco"
TABLES = (".csv", ".tsv", ".txt", ".parquet", ".arff", ".xlsx")  # and .gz
LARGE_FILE = 256 * 2**20  # bytes, from which on a table is read in blocks
BLOCK_ROWS = 50_000
MODELS = {  # option -> class of cocoloss.estimators
    "coco": "CoCoClassifier",
    "dr": "DotRegressionClassifier",
    "ce": "CrossEntropyClassifier",
}
FOR_TASK = {"levels": "CoCoOrdinalClassifier", "numbers": "CoCoRegressor"}
NOT_FOR_NUMBERS = ("--priors", "--embedding-dim")


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


class TablePath(click.Path):
    """The path of a table; ``-`` is standard input, which is kept in a file while it is needed."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the path of what was given."""
        if str(value) != "-" or ctx is None:
            return super().convert(value, param, ctx)
        import shutil  # noqa: PLC0415 - heavy
        import tempfile  # noqa: PLC0415

        if sys.stdin.isatty():
            self.fail("- is standard input, but nothing comes: pipe a table into it", param, ctx)
        folder = Path(ctx.with_resource(tempfile.TemporaryDirectory(prefix="cocoloss-")))
        with (folder / "standard input").open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        return folder / "standard input"


def _how_to_read(
    separator: str | None,
    encoding: str | None,
    decimal: str | None,
    header: bool | None,
    sheet: str | None,
) -> dict[str, Any]:
    return {
        "sheet": sheet,
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
    click.option("--separator", help="Of the columns of a CSV; detected by default."),
    click.option("--encoding", help="Such as utf-8 or latin-1; detected by default."),
    click.option(
        "--decimal", type=click.Choice([".", ","]), help="Decimal mark; detected by default."
    ),
    click.option(
        "--header/--no-header",
        default=None,
        help="Whether the first line has the names; detected by default.",
    ),
    click.option("--sheet", metavar="NAME", help="Sheet of an Excel file, by name or number."),
]
MISSING = click.option(
    "--missing",
    multiple=True,
    metavar="WORD",
    help="Marks a missing value, besides empty cells; repeatable. Default: NA, None, ? and others.",
)
FILE = click.argument("file", type=TablePath(path_type=Path))
FILES = click.argument("files", type=TablePath(path_type=Path), nargs=-1, required=True)
table_file = packed("how", _how_to_read, [FILE, *HOW_TO_READ])  # FILE, and how to read it
table_with_gaps = _table_file(FILE)  # and which words are gaps
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
EPOCHS = click.option(
    "--epochs", type=click.IntRange(min=1), help="Maximum number of epochs; 100 by default."
)
PRIORS = click.option(
    "--priors",
    type=click.Choice(["uniform", "empirical"]),
    help="Class frequencies that probabilities and predictions assume: equal, as by default, or "
    "those of the training rows.",
)
SEED = click.option(
    "--seed", default=0, show_default=True, help="The same seed gives the same result."
)
SOLVER = click.option(
    "--solver",
    type=click.Choice(["auto", "kernel", "network", "both"]),
    help="Kernels, networks or both for CoCo. Default: kernels, for many rows also networks; only "
    "networks if one of their options, such as --epochs, is given.",
)
DEVICE = click.option(
    "--device",
    metavar="NAME",
    help="Device for networks: cpu, the default, cuda, cuda:1 or mps. With any but cpu, CoCo "
    "is networks only, unless --solver is given.",
)


def _threads_option(if_left_out: str, **options: Any) -> Decorator:
    return click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help=f"Maximum threads for each of BLAS, OpenMP, torch and joblib; {if_left_out}.",
        **options,
    )


THREADS = _threads_option(
    "by default the number of cores, for small tasks one",
    expose_value=False,
    callback=lambda ctx, _, n: _limit_threads(ctx, n),
)
THREADS_OF_WORKERS = _threads_option("by default one per worker")


def _limit_threads(ctx: click.Context, n: int | None) -> None:
    if n is not None and not ctx.resilient_parsing:
        from cocoloss.threads import at_most_threads  # noqa: PLC0415 - not for the help

        ctx.with_resource(at_most_threads(n))


def check_device(device: str | None) -> None:
    """Refuse a device that is not there, before the work."""
    if device not in (None, "cpu"):
        from cocoloss.fitting.fit import check_device as check  # noqa: PLC0415 - torch

        check(device)


@dataclass(frozen=True)
class Training:
    """What to train; what the user leaves out, the estimator decides."""

    model: str = "coco"
    epochs: int | None = None
    members: int | None = None
    priors: str | None = None
    seed: int = 0
    solver: str | None = None
    time_limit: float | None = None
    landmarks: str | None = None
    device: str | None = None

    def estimator(self, task: str = "classes", **options: Any) -> Any:
        """Return the estimator for a task, with further arguments unless they are None."""
        from cocoloss import estimators  # noqa: PLC0415 - heavy

        check_device(self.device)
        of_coco = {"--solver": self.solver, "--landmarks": self.landmarks}
        if self.model != "coco":
            refuse_given(of_coco, f"is for --model coco, not for {self.model}")
            if task != "classes":
                raise CoCoError(f"--model {self.model} is for classes, not for {task}")
        of_classes = {
            "priors": self.priors,
            "embedding_dim": options.pop("embedding_dim", None),
        }
        if task == "numbers":
            named = dict(zip(NOT_FOR_NUMBERS, of_classes.values(), strict=True))
            refuse_given(named, "is for classes and levels, and the target is numbers")
        given = {
            **of_classes,
            "max_iter": self.epochs,
            "n_members": self.members,
            "solver": self.solver,
            "time_limit": self.time_limit,
            "landmarks": self.landmarks,
            "device": self.device,
            **options,
        }
        return getattr(estimators, FOR_TASK.get(task, MODELS[self.model]))(
            random_state=self.seed,
            **{name: value for name, value in given.items() if value is not None},
        )


def refuse_given(given: dict[str, Any], why: str) -> None:
    """Refuse the first option that has a value."""
    for option, value in given.items():
        if value is not None:
            raise CoCoError(f"{option} {why}; leave it out")


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
            "--members", type=click.IntRange(min=1), help="Networks to average; 6 by default."
        ),
        PRIORS,
        SEED,
        SOLVER,
        click.option(
            "--time-limit",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="Time limit of a fit; a note names what was skipped.",
        ),
        click.option(
            "--landmarks",
            type=click.Choice(["rows", "kmeans"]),
            help="What kernels store in the model file: rows of the table, the default, or means "
            "of clusters of rows.",
        ),
        DEVICE,
        THREADS,
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
    n_left_out: int = 0  # rows without a target that the file has besides
    left_out: dict[str, str] = field(default_factory=dict)  # column that the file has besides: why
    task: str = "classes"

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
    task: str | None = None  # what the target is; a guess if None
    levels: str | None = None  # with commas between

    def read(self, missing: str = "drop") -> TrainingTable:
        """Return the table and its target; note what the user may want otherwise.

        Rows whose target is not known are left out, unless ``missing`` is "keep".
        """
        with notes_for_warnings(advice=ADVICE):
            table = self.open()
            frame = table.read()
        self.check_columns(frame)
        refuse_nested(frame.drop(columns=list(self.drop)))
        known = replace(self, task=self.task_of(frame, table))
        X, y = known.split(frame, table, missing)
        counters = self.counters(frame, X)
        X = X.drop(columns=counters)
        n_left_out = len(frame) - len(y)
        if n_left_out:
            note_rows_without_target(n_left_out, self.target, self.how["missing"], known.task)
        if known.task == "classes":
            note_classes(y, self.target)
        note_leaks(X, y, self.target, str(known.task))
        left_out = dict.fromkeys(counters, "counts the rows")
        preprocess = self.preprocess(table, X)
        return TrainingTable(
            X, y, self.file.name, preprocess, n_left_out, left_out, str(known.task)
        )

    def task_of(self, frame: "pd.DataFrame", table: "TableFile") -> str:
        """Return what the target is, as the user says, or as it looks; then say so."""
        from cocoloss.tables import guess_task  # noqa: PLC0415 - heavy
        from cocoloss.tables.table import MANY_CLASSES, plain_numbers  # noqa: PLC0415

        if self.levels is not None and self.task not in (None, "levels"):
            raise CoCoError(f"--levels is for levels, and --task is {self.task}; leave one out")
        if self.task is not None or self.levels is not None:
            return self.task or "levels"
        if self.target not in frame:
            return "classes"  # which says what there is
        column = plain_numbers(frame[self.target])
        task, n = guess_task(column, self.decimal(table) or "auto"), column.nunique()
        if task == "numbers":
            note(
                f"{self.target} has {n:,} different values, and is taken for numbers; say --task "
                f"classes or --task levels if that is not so"
            )
        elif getattr(column.dtype, "ordered", False):
            note(f"the values of {self.target} have an order; say --task levels to make use of it")
        elif 2 < n <= MANY_CLASSES and column.dtype.kind in "iuf":
            note(
                f"{self.target} has {n:,} different numbers, and is taken for classes; say --task "
                f"levels if they have an order, --task numbers if they are amounts"
            )
        return task

    def split(
        self,
        frame: "pd.DataFrame",
        table: "TableFile",
        missing: str = "drop",
        *,
        whole: bool = True,
    ) -> tuple[Any, Any]:
        """Return the features and the target of rows of the file, of which the task is known."""
        from cocoloss.tables import split_target  # noqa: PLC0415 - heavy

        frame = frame.drop(columns=list(self.drop), errors="ignore")
        with notes_for_warnings(advice={"strays": "such rows are left out"}):
            return split_target(
                frame,
                self.target,
                missing=missing,
                whole=whole,
                task=self.task or "classes",
                levels=None if self.levels is None else self.levels.split(","),
                decimal=self.decimal(table) or "auto",
                verbatim=True,
            )

    def decimal(self, table: "TableFile") -> str | None:
        """Return the decimal mark, if the user or the file says it."""
        return table.decimal if table.decimal == "," or self.how.get("decimal") else None

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
        said: dict[str, Any] = {
            "categorical_features": categorical or None,
            "day_first": self.day_first,
            "decimal": self.decimal(table),
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
    task: str | None = None
    levels: str | None = None

    def read(self, missing: str = "drop") -> "TrainingTable | TrainingBlocks":
        """Return the table, read, or in blocks if it is large or in several files."""
        files = [file for path in self.files for file in _files_in(path)]
        rest = {name: value for name, value in vars(self).items() if name != "files"}
        first, *others = (TrainingFile(file, **rest) for file in files)
        if others or (first.file.is_file() and first.file.stat().st_size > LARGE_FILE):
            blocks = TrainingBlocks.of([first, *others])
            if missing == "keep":
                raise CoCoError(
                    "--unlabelled soft needs the whole table in memory; name one file, or use "
                    "--unlabelled ignore"
                )
            return blocks
        return first.read(missing)


def _files_in(path: Path) -> list[Path]:
    """Return the tables in a folder and its folders, those of a pattern, or the path itself."""
    if not path.exists() and has_magic(str(path)):  # not every shell makes names of it
        matches = sorted(glob(str(path), recursive=True))  # noqa: PTH207 - any root
        return [Path(match) for match in matches] or [path]
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
        task = first.task_of(frame, table)
        sources = [replace(source, task=task) for source in sources]
        X, _ = split_part(sources[0], frame, table)
        counters = first.counters(frame, X)
        return cls(sources, counters, first.preprocess(table, X.drop(columns=counters)))

    @property
    def task(self) -> str:
        """What the target is."""
        return str(self.sources[0].task)

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
            table = source.open()
            for frame in table.chunks(BLOCK_ROWS):
                X, y = split_part(source, frame, table)
                n_left_out += len(frame) - len(y)
                yield X.drop(columns=self.counters), y
        if n_left_out and not self.told:
            note_rows_without_target(n_left_out, source.target, source.how["missing"], source.task)
        self.told.append("all")


def split_part(source: TrainingFile, frame: "pd.DataFrame", table: "TableFile") -> tuple[Any, Any]:
    """Return the features and the target of some rows of a file."""
    try:
        return source.split(frame, table, whole=False)
    except CoCoError as error:
        raise CoCoError(f"{source.file}: {error}") from error


def _note_codes_and_identifiers(X: "pd.DataFrame", codes: Sequence[str]) -> None:
    from cocoloss.tables.table import find_identifiers  # noqa: PLC0415 - heavy

    if codes:
        note(
            f"not read as numbers, because some values begin with 0: {listed(codes)}; --use COLUMN "
            f"reads them as numbers, --drop COLUMN ignores the column"
        )
    named = [name for name in find_identifiers(X) if name not in codes]
    if named:
        note(
            f"read as numbers, but named like an identifier, and no two values are equal: "
            f"{listed(named)}; --drop COLUMN ignores it"
        )


def _one_target(names: Sequence[str]) -> str:
    """Return the target, unless there is a second one, of which click would take the last."""
    if len(names) > 1:
        raise click.UsageError(
            f"--target was given {len(names)} times: {listed(names)}; a model predicts one column, "
            f"so fit one for each, and --drop the others"
        )
    return names[0]


TASKS = click.Choice(["classes", "levels", "numbers"])
TASK = click.option("--task", type=TASKS, help="Type of the targets; classes by default.")
ABOUT_COLUMNS = [
    click.option(
        "--target",
        required=True,
        multiple=True,
        callback=lambda _ctx, _, names: _one_target(names),
        metavar="COLUMN",
        help="The column to predict.",
    ),
    click.option(
        "--task",
        type=TASKS,
        help="Classification, ordinal regression or regression. By default text and few distinct "
        "values are classes, many distinct numbers are numbers.",
    ),
    click.option(
        "--levels",
        metavar="LOW,...,HIGH",
        help="Ordered classes, if they are not numbers; implies --task levels.",
    ),
    click.option("--drop", multiple=True, metavar="COLUMN", help="Ignore a column; repeatable."),
    click.option(
        "--use",
        multiple=True,
        metavar="COLUMN",
        help="Use a column that would be left out or read as text; repeatable.",
    ),
    click.option(
        "--categorical",
        multiple=True,
        metavar="COLUMN",
        help="Read a column of numbers as categories; repeatable.",
    ),
    click.option(
        "--day-first/--month-first",
        default=None,
        help="Order in ambiguous dates such as 01/02/2024.",
    ),
]
# FILE, --target and what can be said of columns
training_file = packed("source", TrainingFile, [_table_file(FILE), *ABOUT_COLUMNS])
training_files = packed("source", TrainingFiles, [_table_file(FILES), *ABOUT_COLUMNS])
