"""Where tables come from, each with the same two questions: which are there, and give me one."""

import csv
import gzip
import json
import os
import warnings
import zlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from importlib.resources import files
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlparse

from cocoloss._checks import check_option, did_you_mean, listed
from cocoloss.exceptions import CoCoError
from cocoloss.tables.dialect import SUFFIXES, suffix_of
from cocoloss.tables.table import Table, make_table
from cocoloss.tables.table_file import check_is_file, read_table

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
BUNDLED_NUMBERS = ("diabetes",)
SUITES = ("openml-cc18",)
SPELLINGS = "'folder:PATH', 'file:PATH#TARGET', 'sklearn' or 'openml-cc18'"

SCHEMA = "schema.json"
INDEX = "index"
LONGEST_VALUE = 60  # characters of it in a message
TARGET = "target"
KEYS = {  # of an entry, all optional
    "categorical": (list, "a list of columns"),
    TARGET: (str, "the name of a column"),
    "target_classes": (dict, "each class with its number of rows"),
}


class Source(Protocol):
    """A set of tables."""

    def names(self) -> list[str]:
        """Return the names of the tables."""

    def load(self, name: str) -> Table:
        """Return the table of a name, or raise a ``CoCoError`` that says why not."""


class FileSource:
    r"""One file as a source of one table, named after the file; rows without a class are left out.

    Parameters
    ----------
    path : path
        The file; see :func:`cocoloss.tables.read_table`.
    target : str
        The column of the classes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.csv"
    ...     _ = path.write_text("size,kind\n1,a\n2,b\n3,a\n")
    ...     FileSource(path, "kind").load("toy")
    Table('toy', 3 rows, 1 features, 2 classes)
    """

    def __init__(self, path: str | os.PathLike[str], target: str, *, task: str = "classes") -> None:
        self.path = check_is_file(Path(path).expanduser())
        self.target = target
        self.task = task

    def names(self) -> list[str]:
        """Return the one name."""
        return [Path(self.path.name.removesuffix(".gz")).stem]

    def load(self, name: str) -> Table:
        """Return the table."""
        _check_name(name, self.names(), str(self.path))
        return make_table(name, read_table(self.path), self.target, missing="drop", task=self.task)


class BundledSource:
    """The small tables that come with scikit-learn.

    Of classes iris, wine, breast_cancer and digits; of numbers diabetes.

    Examples
    --------
    >>> from cocoloss.tables import BundledSource
    >>> BundledSource().load("wine")
    Table('wine', 178 rows, 13 features, 3 classes)
    """

    def __init__(self, *, task: str = "classes") -> None:
        if task == "levels":
            raise CoCoError("scikit-learn has no table of levels; name a folder: folder:PATH")
        self.task = task

    def names(self) -> list[str]:
        """Return the names of the tables."""
        return list(BUNDLED if self.task == "classes" else BUNDLED_NUMBERS)

    def load(self, name: str) -> Table:
        """Return a table; the classes have names where scikit-learn has them."""
        _check_name(name, self.names(), "scikit-learn")
        from sklearn import datasets  # noqa: PLC0415 - slow to import, and only wanted here

        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        if self.task == "numbers":
            return make_table(name, bunch.frame, "target", task=self.task)
        classes = dict(enumerate(map(str, bunch.target_names)))
        frame = bunch.data.assign(target=bunch.target.map(classes))
        return make_table(name, frame, "target")


class FolderSource:
    r"""The tables of a folder.

    Each file with the suffix of a table is one, ``index.csv`` excepted, under its name without
    suffixes. ``schema.json``, if there is one, says more of some or all of them::

        {"credit-g": {"categorical": ["purpose", "housing"],
                      "target": "class",
                      "target_classes": {"good": 700, "bad": 300}}}

    All three are optional. ``target`` is the column of the classes, ``"target"`` by default.
    ``target_classes``, if given, is checked. A table with a list ``categorical``, be it empty, is
    read to the letter: these columns and its classes are text, even in digits; in delimited files
    the first row is the header and an empty cell is the only gap. Any other table is read as
    :func:`cocoloss.tables.read_table` reads it, and its rows without a class are left out.

    Parameters
    ----------
    path : path
        The folder.
    task : {"classes", "levels", "numbers"}
        What the targets are; levels are written as numbers.

    Raises
    ------
    CoCoError
        If there is no such folder, it has no tables, or its schema cannot be read or says what
        is not understood.
    """

    def __init__(self, path: str | os.PathLike[str], *, task: str = "classes") -> None:
        self.task = task
        self.path = Path(path).expanduser()
        if not self.path.is_dir():
            raise CoCoError(f"there is no folder {self.path}")
        self._files = _tables_in(self.path)
        self._schema = _read_schema(self.path / SCHEMA)

    def names(self) -> list[str]:
        """Return the names of the tables, in alphabetical order."""
        return list(self._files)

    def load(self, name: str) -> Table:
        """Return a table, or say why it cannot be read or is not as the schema says."""
        _check_name(name, self._files, f"the folder {self.path}")
        entry = self._schema.get(name, {})
        target = entry.get(TARGET, TARGET)
        if "categorical" in entry:
            categorical = entry["categorical"]
            text = dict.fromkeys([*categorical, *([target] if self.task == "classes" else [])])
            frame = read_table(self._files[name], header=True, text=list(text), missing=[""])
            table = make_table(name, frame, target, categorical=categorical, task=self.task)
        else:
            frame = read_table(self._files[name])
            if target not in frame.columns and TARGET not in entry:
                raise CoCoError(
                    f"{name} has no column {TARGET!r}; say which one has its classes in "
                    f'{self.path / SCHEMA}: {{"{name}": {{"target": "COLUMN"}}}}; '
                    f"the columns are {listed(list(frame.columns))}"
                )
            table = make_table(name, frame, target, missing="drop", task=self.task)
        _check_classes(table, entry.get("target_classes"))
        return table


class SuiteEntry(NamedTuple):
    """A table of a suite: the numbers of its task and of its data on OpenML, and its name."""

    task_id: int
    data_id: int
    name: str


def suite_entries(suite: str) -> list[SuiteEntry]:
    """Return the tables of a suite, by task number.

    Parameters
    ----------
    suite : {"openml-cc18"}
        The 72 tasks of OpenML's curated classification benchmark, its study 99.

    Examples
    --------
    >>> entries = suite_entries("openml-cc18")
    >>> len(entries), entries[0]
    (72, SuiteEntry(task_id=3, data_id=3, name='kr-vs-kp'))
    """
    check_option(suite, "suite", SUITES)
    text = files("cocoloss.tables").joinpath("suites", f"{suite}.csv").read_text(encoding="utf-8")
    return [
        SuiteEntry(int(row["task_id"]), int(row["data_id"]), row["name"])
        for row in csv.DictReader(text.splitlines())
    ]


class OpenMLSource:
    """The tables of an OpenML suite, through :func:`sklearn.datasets.fetch_openml`.

    Each is downloaded when first asked for, its checksum is compared with OpenML's, and it is kept
    in scikit-learn's data folder. What is there needs no network.

    Parameters
    ----------
    suite : {"openml-cc18"}
        The suite.
    cache : path, optional
        The folder; ``SCIKIT_LEARN_DATA`` or ``~/scikit_learn_data`` by default, as in scikit-learn.

    Examples
    --------
    >>> from cocoloss.tables import OpenMLSource
    >>> OpenMLSource().names()[:3]
    ['kr-vs-kp', 'letter', 'balance-scale']
    """

    def __init__(
        self, suite: str = "openml-cc18", *, cache: str | os.PathLike[str] | None = None
    ) -> None:
        self.suite = suite
        folder = cache or os.environ.get("SCIKIT_LEARN_DATA") or "~/scikit_learn_data"
        self.folder = Path(folder).expanduser()
        self._ids = {entry.name: entry.data_id for entry in suite_entries(suite)}

    def names(self) -> list[str]:
        """Return the names of the tables, by task number."""
        return list(self._ids)

    def is_cached(self, name: str) -> bool:
        """Tell whether a table is in the folder."""
        kept = self.folder / "openml" / "openml.org"  # fetch_openml keeps each address as a file
        try:
            about = gzip.decompress((kept / f"api/v1/json/data/{self._id(name)}.gz").read_bytes())
            url = json.loads(about)["data_set_description"]["url"]
        except (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError):
            return False
        return (kept / f"{urlparse(url).path.lstrip('/')}.gz").is_file()

    def load(self, name: str) -> Table:
        """Return a table; its columns of OpenML's nominal type are unordered categories."""
        data_id = self._id(name)
        from sklearn.datasets import fetch_openml  # noqa: PLC0415 - slow to import

        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "A network error occurred")  # it tries again
                # Without a target, which must not have gaps there. Not by its pandas parser, which
                # cuts cells at a %, and fails on classes of digits with pandas 3.1 (its #34892).
                bunch = fetch_openml(
                    data_id=data_id,
                    data_home=self.folder,
                    target_column=None,
                    as_frame=True,
                    parser="liac-arff",
                )
            target = bunch.details["default_target_attribute"]
        except OSError as error:  # of the network or the disk
            raise CoCoError(
                f"{name} is not in {self.folder}, and cannot be fetched: {_short(error)}; "
                f"connect to the network, or name a folder that has it in SCIKIT_LEARN_DATA"
            ) from error
        except Exception as error:
            # Its reader of JSON and its parser of ARFF each fail in their own ways.
            raise CoCoError(f"{name}, as OpenML has it, cannot be read: {_short(error)}") from error
        return make_table(name, bunch.frame, target, missing="drop")

    def _id(self, name: str) -> int:
        _check_name(name, self._ids, self.suite)
        return self._ids[name]


def load_source(text: str, task: str = "classes") -> Source:
    """Return the source that a text names, as specs of benchmarks do.

    Parameters
    ----------
    text : str
        ``folder:PATH``, ``file:PATH#TARGET``, ``sklearn`` or ``openml-cc18``.
    task : {"classes", "levels", "numbers"}
        What the targets are.

    Raises
    ------
    CoCoError
        If it names none, or what it names is not there.

    Examples
    --------
    >>> load_source("sklearn").names()
    ['iris', 'wine', 'breast_cancer', 'digits']
    """
    kind, _, rest = str(text).partition(":")
    if kind == "folder" and rest:
        return FolderSource(rest, task=task)
    if kind == "file" and rest:
        path, mark, target = rest.rpartition("#")
        if not mark or not target:
            raise CoCoError(f"{text!r} does not name its classes; say file:{rest}#TARGET")
        return FileSource(path, target, task=task)
    if text == "sklearn":
        return BundledSource(task=task)
    if text in SUITES:
        if task != "classes":
            raise CoCoError(f"{text} has classes, not {task}; name a folder: folder:PATH")
        return OpenMLSource(text)
    guess = did_you_mean(str(text), ["sklearn", *SUITES])
    raise CoCoError(f"{text!r} is not a source of tables{guess or f'; say {SPELLINGS}'}")


class TableCheck(NamedTuple):
    """What became of loading a table: its sizes and fingerprint, or one line that says why not."""

    name: str
    problem: str | None = None
    n_rows: int = 0
    n_features: int = 0
    n_classes: int = 0
    n_categorical: int = 0
    class_ratio: float = 0.0
    fingerprint: str = ""
    n_left_out: int = 0  # rows without a class


def check_tables(source: Source, names: Iterable[str] | None = None) -> Iterator[TableCheck]:
    """Load tables one by one and say of each what it is, or why it cannot be had.

    Parameters
    ----------
    source : Source
        Where they come from.
    names : iterable of str, optional
        Which ones; all by default.

    Examples
    --------
    >>> [check] = check_tables(BundledSource(), ["iris"])
    >>> check.n_rows, check.problem
    (150, None)
    """
    for name in source.names() if names is None else names:
        try:
            table = source.load(name)
        except CoCoError as error:
            yield TableCheck(name, problem=str(error))
        else:
            yield TableCheck(
                name,
                None,
                table.n_rows,
                table.n_features,
                table.n_classes,
                len(table.categorical),
                table.class_ratio,
                table.fingerprint,
                table.n_left_out,
            )


def _check_name(name: str, names: Collection[str], where: str) -> None:
    if name not in names:
        raise CoCoError(f"{where} has no table {name!r}{did_you_mean(str(name), names)}")


def _tables_in(folder: Path) -> dict[str, Path]:
    found = sorted(
        (_stem(path), path)
        for path in folder.iterdir()
        if path.is_file() and _stem(path) not in {None, INDEX}
    )
    if not found:
        raise CoCoError(f"the folder {folder} has no tables; they end in {', '.join(SUFFIXES)}")
    twice = [name for name, count in Counter(name for name, _ in found).items() if count > 1]
    if twice:
        raise CoCoError(f"the folder {folder} has several tables named {listed(twice)}")
    return {str(name): path for name, path in found}


def _stem(path: Path) -> str | None:
    """Return the name of a file without the suffixes of a table, or None if it has none.

    Names that begin with a dot are those of files on their way, and of other programs.
    """
    suffix, _ = suffix_of(path)
    stem = path.name.removesuffix(".gz")[: -len(suffix)] if suffix in SUFFIXES else ""
    return stem if stem and not path.name.startswith(".") else None


def _read_schema(path: Path) -> dict[str, dict[str, Any]]:
    if not path.exists():
        return {}
    try:
        schema = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CoCoError(f"{path} is not readable as JSON: {error}") from error
    shape = f'{{"TABLE": {{"target": "COLUMN"}}}}, and may give {listed(list(KEYS)[::2])} beside'
    if not isinstance(schema, dict):
        raise CoCoError(f"{path} must look like {shape}")
    for name, entry in schema.items():
        if not isinstance(entry, dict):
            raise CoCoError(f"{path} says {_short(entry)} of {name!r}; it must look like {shape}")
        for key, value in entry.items():
            if key not in KEYS:
                guess = did_you_mean(key, KEYS) or f"; there are {listed(list(KEYS))}"
                raise CoCoError(f"{path} says {key!r} of {name!r}, which means nothing{guess}")
            kind, expected = KEYS[key]
            if not isinstance(value, kind):
                raise CoCoError(
                    f"{path}: {key!r} of {name!r} must be {expected}, got {_short(value)}"
                )
    return schema


def _short(value: object) -> str:
    """Return what stands in a schema, or what a library says, on one short line."""
    if isinstance(value, Exception):
        return shorten(str(value) or type(value).__name__, 300, placeholder=" ...")
    return shorten(json.dumps(value, ensure_ascii=False), LONGEST_VALUE, placeholder=" ...")


def _check_classes(table: Table, expected: dict[str, int] | None) -> None:
    if expected is None:
        return
    found = {str(label): int(count) for label, count in table.class_counts.items()}
    for label in sorted(expected.keys() | found.keys()):
        if found.get(label, 0) != expected.get(label, 0):
            raise CoCoError(
                f"{table.name} has {found.get(label, 0)} rows of class {label!r} where {SCHEMA} "
                f"says {expected.get(label, 0)}; one of the files is damaged or of another version"
            )
