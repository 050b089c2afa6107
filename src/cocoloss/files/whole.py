"""Writing a file whole or not at all: aside first, then one rename."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cocoloss.exceptions import CoCoError

REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.EACCES: "permission denied; choose another place",
    errno.EPERM: "permission denied; choose another place",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
}


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, beside ``path``; when the block ends well it takes its name.

    Whatever stops the block, an error, Ctrl-C or a kill, ``path`` holds what it held before.

    Parameters
    ----------
    path : path
        What the file is to be called in the end; a file that has the name is replaced.

    Raises
    ------
    CoCoError
        If the place cannot be written to: a folder, a missing folder, no permission, a full disk.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with write_whole(Path(folder) / "a.txt") as aside:
    ...         _ = aside.write_text("all of it")
    ...     print((Path(folder) / "a.txt").read_text())
    all of it
    """
    target = check_can_write(path)
    # The suffix stays, for writers that look at it; the name is ours alone.
    aside = target.with_name(f".{target.stem[:40]}.{secrets.token_hex(4)}.part{target.suffix}")
    try:
        yield aside
        _flush(aside)
        aside.replace(target)
    except OSError as error:
        raise _explain(error, target) from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def check_can_write(path: str | os.PathLike[str]) -> Path:
    """Return a path that a file can be written to, or say why not; long work asks before it starts.

    Raises
    ------
    CoCoError
        If the path is a folder, its folder is missing, or writing there is not permitted.
    """
    target = Path(path)
    if target.is_dir():
        raise CoCoError(f"cannot write {target}: it is a folder; add a file name")
    folder = target.parent
    if not folder.is_dir():
        raise CoCoError(f"cannot write {target}: there is no folder {folder}; make it first")
    if target.exists() and not os.access(target, os.W_OK):
        raise CoCoError(f"cannot write {target}: it is read-only; choose another name")
    if not os.access(folder, os.W_OK):
        raise CoCoError(f"cannot write {target}: the folder {folder} is read-only")
    return target.resolve() if target.is_symlink() else target


def _flush(path: Path) -> None:
    """Bring the bytes to the disk before the name, so that a power cut cannot leave a gap."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _explain(error: OSError, target: Path) -> CoCoError:
    reason = REMEDIES.get(error.errno or 0) or error.strerror or str(error)
    return CoCoError(f"cannot write {target}: {reason}")
