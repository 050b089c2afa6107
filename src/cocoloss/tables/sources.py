"""Where tables come from, each with the same two questions: which are there, and give me one."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError
from cocoloss.tables.folders import FolderSource
from cocoloss.tables.formats import check_is_file
from cocoloss.tables.openml import SUITES, OpenMLSource
from cocoloss.tables.table import Table, make_table
from cocoloss.tables.table_file import read_table

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
SPELLINGS = "'folder:PATH', 'file:PATH#TARGET', 'sklearn' or 'openml-cc18'"


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
    categorical : collection of str, optional
        Columns whose values are names even if they are numbers.
    **options
        Passed on to :func:`cocoloss.tables.read_table`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "toy.csv"
    ...     _ = path.write_text("size,kind\n1,a\n2,b\n3,a\n")
    ...     FileSource(path, "kind").load("toy")
    Table('toy', 3 rows, 1 features, 2 classes)
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        target: str,
        *,
        categorical: Iterable[str] | None = None,
        **options: Any,
    ) -> None:
        self.path = check_is_file(Path(path).expanduser())
        self.target = target
        self.categorical = None if categorical is None else list(categorical)
        self.options = options

    def names(self) -> list[str]:
        """Return the one name."""
        return [Path(self.path.name.removesuffix(".gz")).stem]

    def load(self, name: str) -> Table:
        """Return the table."""
        _check_name(name, self.names(), str(self.path))
        options = self.options
        if self.categorical:
            options = {**options, "text": [*options.get("text", ()), *self.categorical]}
        frame = read_table(self.path, **options)
        return make_table(name, frame, self.target, categorical=self.categorical, missing="drop")


class BundledSource:
    """The small tables that come with scikit-learn: iris, wine, breast_cancer, digits.

    Examples
    --------
    >>> from cocoloss.tables import BundledSource
    >>> BundledSource().load("wine")
    Table('wine', 178 rows, 13 features, 3 classes)
    """

    def names(self) -> list[str]:
        """Return the names of the tables."""
        return list(BUNDLED)

    def load(self, name: str) -> Table:
        """Return a table; the classes have names where scikit-learn has them."""
        _check_name(name, BUNDLED, "scikit-learn")
        from sklearn import datasets  # noqa: PLC0415 - slow to import, and only wanted here

        bunch = getattr(datasets, f"load_{name}")(as_frame=True)
        classes = dict(enumerate(map(str, bunch.target_names)))
        frame = bunch.data.assign(target=bunch.target.map(classes))
        return make_table(name, frame, "target")


def load_source(text: str) -> Source:
    """Return the source that a text names, as specs of benchmarks do.

    Parameters
    ----------
    text : str
        ``folder:PATH``, ``file:PATH#TARGET``, ``sklearn`` or ``openml-cc18``.

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
        return FolderSource(rest)
    if kind == "file" and rest:
        path, mark, target = rest.rpartition("#")
        if not mark or not target:
            raise CoCoError(f"{text!r} does not name its classes; say file:{rest}#TARGET")
        return FileSource(path, target)
    if text == "sklearn":
        return BundledSource()
    if text in SUITES:
        return OpenMLSource(text)
    guess = did_you_mean(str(text), ["sklearn", *SUITES])
    raise CoCoError(f"{text!r} is not a source of tables{guess or f'; say {SPELLINGS}'}")


@dataclass(frozen=True)
class TableCheck:
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


def _check_name(name: str, names: Iterable[str], where: str) -> None:
    names = list(names)
    if name not in names:
        raise CoCoError(f"{where} has no table {name!r}{did_you_mean(str(name), names)}")
