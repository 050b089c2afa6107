"""A folder of downloaded files, each under the checksum of its content, and records of them.

Nothing is ever deleted here for want of a network: a file leaves only when a good one replaces it.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole

VARIABLE = "COCOLOSS_CACHE"
BLOCK = 1 << 20


def default_cache_folder() -> Path:
    """Return where downloads are kept: ``COCOLOSS_CACHE``, or the cache folder of the system.

    That is ``$XDG_CACHE_HOME/cocoloss`` or ``~/.cache/cocoloss``, ``~/Library/Caches/cocoloss``
    on macOS, and ``%LOCALAPPDATA%/cocoloss`` on Windows.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser()
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "cocoloss"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "cocoloss"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache") / "cocoloss"


class FileCache:
    """Files by the SHA-256 of their content, with a record for each key that leads to one.

    Parameters
    ----------
    folder : path, optional
        :func:`default_cache_folder` by default. It is made when something is first stored.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     cache = FileCache(folder)
    ...     part = cache.part_of("letter-1")
    ...     _ = part.write_text("content")
    ...     cache.store("letter-1", part, {"from": "somewhere"})
    ...     cache.find("letter-1").read_text(), cache.record("letter-1")["from"]
    ('content', 'somewhere')
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self.folder = default_cache_folder() if folder is None else Path(folder).expanduser()

    def record(self, key: str) -> dict[str, Any] | None:
        """Return what was noted of a key, or None."""
        try:
            record = json.loads(self._record_path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):  # not there, or not whole: as good as not there
            return None
        return record if isinstance(record, dict) and "sha256" in record else None

    def find(self, key: str) -> Path | None:
        """Return the file of a key, or None if there is none or its checksum is wrong."""
        record = self.record(key)
        if record is None:
            return None
        path = self._content_path(str(record["sha256"]))
        if not path.is_file() or checksum(path, "sha256") != record["sha256"]:
            return None
        return path

    def is_damaged(self, key: str) -> bool:
        """Tell whether a key has a record, but no file that fits it."""
        return self.record(key) is not None and self.find(key) is None

    def store(self, key: str, part: Path, record: dict[str, Any]) -> None:
        """Take over a finished file, and note what it is."""
        sha256 = checksum(part, "sha256")
        path = self._content_path(sha256)
        path.parent.mkdir(parents=True, exist_ok=True)
        part.replace(path)
        record_path = self._record_path(key)
        record_path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({**record, "sha256": sha256}, indent=1, sort_keys=True)
        with write_whole(record_path) as aside:
            aside.write_text(text, encoding="utf-8")

    def part_of(self, key: str) -> Path:
        """Return where the download of a key grows; what is there is from a broken one."""
        return self._made("parts") / f"{key}.part"

    @contextmanager
    def exclusive(self, key: str) -> Iterator[None]:
        """Let one process at a time fetch a key; a killed one gives way by itself."""
        path = self._made("locks") / f"{key}.lock"
        try:
            file = path.open("a")
        except OSError as error:
            raise _unusable(path, error) from error
        with file:
            _lock(file)
            yield

    def _made(self, name: str) -> Path:
        folder = self.folder / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _unusable(folder, error) from error
        return folder

    def _record_path(self, key: str) -> Path:
        return self.folder / "records" / f"{key}.json"

    def _content_path(self, sha256: str) -> Path:
        return self.folder / "content" / sha256[:2] / sha256


def _unusable(path: Path, error: OSError) -> CoCoError:
    return CoCoError(
        f"cannot write {path} in the cache: {error.strerror or error}; "
        f"name another folder in {VARIABLE}"
    )


def checksum(path: Path, algorithm: str) -> str:
    """Return the checksum of a file, in hexadecimal."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _lock(file: Any) -> None:
    """Wait for the lock of an open file; closing it, or dying, gives it back."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - there only

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl  # noqa: PLC0415 - not on Windows

        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
