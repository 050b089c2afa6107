"""A folder of tables, with a file that says which columns are categorical."""

import json
import os
import warnings
from collections import Counter
from difflib import get_close_matches
from pathlib import Path
from textwrap import shorten
from typing import Any

from cocoloss._checks import did_you_mean, listed
from cocoloss.exceptions import CoCoError
from cocoloss.tables.table import Table, make_table
from cocoloss.tables.table_file import read_table

SCHEMA = "schema.json"
INDEX = "index"
LONGEST_VALUE = 60  # characters of it in a message
TARGET = "target"
KEYS = {"categorical": list, TARGET: str, "target_classes": dict}  # of an entry, all optional
EXPECTED = {
    list: "a list of columns",
    str: "the name of a column",
    dict: "each class with its number of rows",
}
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".arff")


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

    Raises
    ------
    CoCoError
        If there is no such folder, it has no tables, or its schema cannot be read or says what
        is not understood.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "toy.csv").write_text("zip,target\n7,None\n8,a\n7,None\n")
    ...     schema = {"toy": {"categorical": ["zip"]}}
    ...     _ = (Path(folder) / "schema.json").write_text(json.dumps(schema))
    ...     FolderSource(folder).load("toy")
    Table('toy', 3 rows, 1 features, 2 classes)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()
        if not self.path.is_dir():
            raise CoCoError(f"there is no folder {self.path}")
        self._files = _tables_in(self.path)
        self._schema = _read_schema(self.path / SCHEMA)

    def names(self) -> list[str]:
        """Return the names of the tables, in alphabetical order."""
        return list(self._files)

    def load(self, name: str) -> Table:
        """Return a table.

        Raises
        ------
        CoCoError
            If there is none of that name, it cannot be read, or it is not as the schema says.
        """
        if name not in self._files:
            guess = did_you_mean(str(name), self._files)
            raise CoCoError(f"the folder {self.path} has no table {name!r}{guess}")
        entry = self._schema.get(name, {})
        target = entry.get(TARGET, TARGET)
        if "categorical" in entry:
            categorical = entry["categorical"]
            text = dict.fromkeys([*categorical, target])
            frame = read_table(self._files[name], header=True, text=list(text), missing=[""])
            table = make_table(name, frame, target, categorical=categorical)
        else:
            frame = read_table(self._files[name])
            self._check_says_target(name, frame)
            table = make_table(name, frame, target, missing="drop")
        _check_classes(table, entry.get("target_classes"))
        return table

    def _check_says_target(self, name: str, frame: Any) -> None:
        """Refuse a table that neither the schema nor a column's name says the classes of."""
        other = self._misspelt(name)
        if TARGET not in frame.columns and TARGET not in self._schema.get(name, {}):
            raise CoCoError(
                f"{name} has no column {TARGET!r}; say which one has its classes in "
                f'{self.path / SCHEMA}: {{"{name}": {{"target": "COLUMN"}}}}'
                f"{f' (it says so of {other!r}, which is no table there)' if other else ''}; "
                f"the columns are {listed(list(frame.columns))}"
            )
        if other:
            warnings.warn(
                f"{self.path / SCHEMA} says nothing of {name}, but of {other!r}, which is no table "
                f"there; is it misspelt?",
                stacklevel=3,
            )

    def _misspelt(self, name: str) -> str | None:
        """Return the name that the schema may have for a table that it does not list."""
        if name in self._schema:
            return None
        lost = [known for known in self._schema if known not in self._files]
        return next(iter(get_close_matches(name, lost, n=1)), None)


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
    if path.name.startswith("."):
        return None
    name = path.name.removesuffix(".gz")
    stem, dot, suffix = name.rpartition(".")
    return stem if stem and f"{dot}{suffix.lower()}" in SUFFIXES else None


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
            if not isinstance(value, KEYS[key]):
                raise CoCoError(
                    f"{path}: {key!r} of {name!r} must be {EXPECTED[KEYS[key]]}, "
                    f"got {_short(value)}"
                )
    return schema


def _short(value: object) -> str:
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
