"""A folder of tables, with a file that says which columns are categorical."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from cocoloss.data.names import did_you_mean, listed
from cocoloss.data.reading import read_table
from cocoloss.data.table import Table, make_table
from cocoloss.exceptions import CoCoError

SCHEMA = "schema.json"
INDEX = "index"
TARGET = "target"
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".arff")


class FolderSource:
    r"""The tables of a folder.

    Each file with the suffix of a table is one, ``index.csv`` excepted, under its name without
    suffixes. ``schema.json``, if there is one, says more of some or all of them::

        {"credit-g": {"categorical": ["purpose", "housing"],
                      "target": "class",
                      "target_classes": {"good": 700, "bad": 300}}}

    A table listed there is read to the letter: its categorical columns and its classes are text,
    even in digits; in delimited files the first row is the header and an empty cell is the only
    gap. ``target`` is the column of the classes, ``"target"`` by default. ``target_classes``, if
    given, is checked. Any other table is read as :func:`cocoloss.data.read_table` reads it, and
    its rows without a class are left out.

    Parameters
    ----------
    path : path
        The folder.

    Raises
    ------
    CoCoError
        If there is no such folder, it has no tables, or its schema cannot be read.

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
        path = self._files[name]
        entry = self._schema.get(name)
        if entry is None:
            frame = _checked(read_table(path), TARGET, name)
            return make_table(name, frame, TARGET, missing="drop")
        target, categorical = entry.get("target", TARGET), entry.get("categorical", [])
        text = dict.fromkeys([*categorical, target])
        frame = read_table(path, header=True, text=list(text), missing=[""])
        table = make_table(name, frame, target, categorical=categorical)
        _check_classes(table, entry.get("target_classes"))
        return table


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
    """Return the name of a file without the suffixes of a table, or None if it has none."""
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
    well_formed = isinstance(schema, dict) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("categorical", []), list)
        and isinstance(entry.get("target", TARGET), str)
        and isinstance(entry.get("target_classes", {}), dict)
        for entry in schema.values()
    )
    if not well_formed:
        raise CoCoError(
            f"{path} must map each table to its 'categorical' list, and may give its 'target' and "
            f"its 'target_classes' with their numbers of rows"
        )
    return dict(schema)


def _checked(frame: Any, target: str, name: str) -> Any:
    if target not in frame.columns:
        raise CoCoError(
            f"{name} has no column {target!r}; name the one of its classes as 'target' in {SCHEMA}"
        )
    return frame


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
