"""Suites of OpenML: their tables, downloaded once and kept."""

import csv
import json
import os
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from cocoloss._checks import check_option, did_you_mean
from cocoloss.exceptions import CoCoError
from cocoloss.tables.cache import VARIABLE, FileCache
from cocoloss.tables.downloads import UnreachableError, download, fetch_bytes
from cocoloss.tables.table import Table, make_table
from cocoloss.tables.table_file import read_table

SERVER = "https://www.openml.org"
SUITES = ("openml-cc18",)


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
    """The tables of an OpenML suite, downloaded when first asked for and kept in a cache.

    A file counts only if its checksum is that of OpenML when it comes and our own ever after.
    What is in the cache needs no network.

    Parameters
    ----------
    suite : {"openml-cc18"}
        The suite.
    cache : path, optional
        Folder of the cache; see :func:`cocoloss.tables.default_cache_folder`.
    server : str
        Address of OpenML, or of a copy of it.
    offline : bool
        Never ask the server.

    Examples
    --------
    >>> from cocoloss.tables import OpenMLSource
    >>> OpenMLSource().names()[:3]
    ['kr-vs-kp', 'letter', 'balance-scale']
    """

    def __init__(
        self,
        suite: str = "openml-cc18",
        *,
        cache: str | os.PathLike[str] | None = None,
        server: str = SERVER,
        offline: bool = False,
        timeout: float = 30.0,
    ) -> None:
        self.suite = suite
        self.cache = FileCache(cache)
        self.server = server.rstrip("/")
        self.offline = offline
        self.timeout = timeout
        self._ids = {entry.name: entry.data_id for entry in suite_entries(suite)}

    def names(self) -> list[str]:
        """Return the names of the tables, by task number."""
        return list(self._ids)

    def is_cached(self, name: str) -> bool:
        """Tell whether a table is in the cache, whole and undamaged."""
        return self.cache.find(self._key(name)) is not None

    def fetch(self, name: str) -> Path:
        """Return the file of a table, from the cache or else from OpenML.

        Raises
        ------
        CoCoError
            If it is in neither, or its checksum is wrong.
        """
        key = self._key(name)
        path = self.cache.find(key)
        if path is not None:
            return path
        if self.offline:
            raise CoCoError(self._nowhere(name, "offline=True"))
        try:
            with self.cache.exclusive(key):
                # Another process may have fetched it while this one waited.
                path = self.cache.find(key)
                if path is None:
                    self._download(name, key)
        except UnreachableError as error:
            raise CoCoError(self._nowhere(name, str(error))) from error
        path = self.cache.find(key)
        assert path is not None, "it was stored a moment ago"
        return path

    def load(self, name: str) -> Table:
        """Return a table; its columns of OpenML's nominal type are unordered categories.

        Raises
        ------
        CoCoError
            If it can neither be found in the cache nor be downloaded.
        """
        path = self.fetch(name)
        record = self.cache.record(self._key(name)) or {}
        try:
            frame = read_table(path)
        except CoCoError as error:
            raise CoCoError(f"{name}, as OpenML has it, cannot be read: {error}") from error
        left_out = [column for column in record["left_out"] if column in frame.columns]
        return make_table(name, frame.drop(columns=left_out), record["target"], missing="drop")

    def _download(self, name: str, key: str) -> None:
        description = self._description(name)
        part = self.cache.part_of(f"{key}-{description['md5'] or 'unchecked'}")
        download(description["url"], part, md5=description["md5"], timeout=self.timeout)
        self.cache.store(key, part, description)

    def _description(self, name: str) -> dict[str, Any]:
        """Return what OpenML says of a table, as far as we need it."""
        url = f"{self.server}/api/v1/json/data/{self._ids[name]}"
        answer = fetch_bytes(url, timeout=self.timeout)
        try:
            said = json.loads(answer)["data_set_description"]
            description = {
                "name": said["name"],
                "data_id": int(said["id"]),
                "version": said.get("version"),
                "url": said["url"],
                "md5": said.get("md5_checksum"),
                "target": said["default_target_attribute"],
                "left_out": [
                    *_as_list(said.get("ignore_attribute")),
                    *_as_list(said.get("row_id_attribute")),
                ],
            }
        except (ValueError, KeyError, TypeError) as error:
            raise CoCoError(f"{url} does not answer as OpenML does: {error!r}") from error
        if description["data_id"] != self._ids[name]:
            raise CoCoError(
                f"{url} speaks of data {description['data_id']}, not of {self._ids[name]}"
            )
        return description

    def _key(self, name: str) -> str:
        if name not in self._ids:
            raise CoCoError(
                f"{self.suite} has no table {name!r}{did_you_mean(str(name), self._ids)}"
            )
        return f"openml-{self._ids[name]}"

    def _nowhere(self, name: str, reason: str) -> str:
        state = "is not in"
        if self.cache.is_damaged(self._key(name)):
            state = "is damaged in"
        return (
            f"{name} {state} the cache {self.cache.folder}, and {reason}; connect to the network, "
            f"or name a filled cache in {VARIABLE}"
        )


def _as_list(names: Any) -> list[str]:
    """Return names that OpenML gives as a list, as one text with commas, or not at all."""
    if not names:
        return []
    if isinstance(names, str):
        return [name.strip() for name in names.split(",")]
    return [str(name) for name in names]
