"""Writing a file whole or not at all: aside first, then one rename."""

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from cocoloss.exceptions import CoCoError

REMEDIES = {
    errno.ENOSPC: "the disk is full; free some space",
    errno.EDQUOT: "the disk quota is used up; free some space",
    errno.EROFS: "the disk is read-only; choose another place",
    errno.EACCES: "permission denied; choose another place",
    errno.EPERM: "permission denied; choose another place",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: "it is a link that leads to itself; choose another name",
}
# Names of what is open already, such as /dev/stdout; a file behind one is not to be replaced.
OPEN_ALREADY = tuple(map(Path, ("/dev", "/dev/fd", "/proc/self/fd")))


@contextmanager
def write_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a path to write to, beside ``path``; when the block ends well it takes its name.

    Whatever stops the block, an error, Ctrl-C or a kill, ``path`` holds what it held before. A
    pipe or a device such as ``/dev/null`` stays what it is, and is given all at the end.

    Parameters
    ----------
    path : path
        What the file is to be called in the end; a file that has the name is replaced, and its
        permissions are kept.

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
    try:
        if _is_stream(target):
            with TemporaryDirectory() as folder:
                aside = Path(folder) / target.name
                yield aside
                _pour(aside, target)
            return
        # The suffix stays, for writers that look at it; the name is ours alone.
        aside = target.with_name(f".{target.stem[:40]}.{secrets.token_hex(4)}.part{target.suffix}")
        try:
            if target.exists():  # as private from the start as the file that is there
                mode = stat.S_IMODE(target.stat().st_mode)
                os.close(os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
                aside.chmod(mode)
            yield aside
            _flush(aside)
            aside.replace(target)
        finally:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
    except OSError as error:
        raise _explain(error, target) from error


def check_can_write(path: str | os.PathLike[str]) -> Path:
    """Return a path that a file can be written to, or say why not; long work asks before it starts.

    Raises
    ------
    CoCoError
        If the path is a folder, its folder is missing, or writing there is not permitted.
    """
    target = Path(path)
    if "\0" in str(target):
        raise CoCoError(f"cannot write {str(target)!r}: the name holds a NUL; choose another name")
    try:
        return _checked(target)
    except OSError as error:
        raise _explain(error, target) from error


def _checked(target: Path) -> Path:
    if target.is_dir():
        raise CoCoError(f"cannot write {target}: it is a folder; add a file name")
    if _is_stream(target):
        if not os.access(target, os.W_OK):
            raise CoCoError(f"cannot write {target}: {REMEDIES[errno.EACCES]}")
        return target
    place = _end_of_links(target)
    folder = place.parent
    if not folder.is_dir():
        raise CoCoError(f"cannot write {target}: there is no folder {folder}; make it first")
    if place.exists() and not place.is_file():
        raise CoCoError(f"cannot write {target}: it is no file; choose another name")
    if place.exists() and not os.access(place, os.W_OK):
        raise CoCoError(f"cannot write {target}: it is read-only; choose another name")
    if not os.access(folder, os.W_OK):
        raise CoCoError(f"cannot write {target}: the folder {folder} is read-only")
    return place


def _end_of_links(target: Path) -> Path:
    """Return where a link leads, be it to a file that is not there yet."""
    if not target.is_symlink():
        return target
    try:
        place = target.resolve()
    except RuntimeError:  # what Python before 3.13 says of links in a circle
        place = target
    if place.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return place


def _is_stream(target: Path) -> bool:
    """Tell whether bytes go through a path rather than stay: pipes, terminals, /dev/null.

    A disk is a device too, but nothing to write a file over.
    """
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISREG(mode):
        return target.is_symlink() and target.parent in OPEN_ALREADY
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _pour(aside: Path, target: Path) -> None:
    """Write a file into a stream, which is neither made nor cut."""
    descriptor = os.open(target, os.O_WRONLY | os.O_APPEND)
    with aside.open("rb") as file, open(descriptor, "wb") as stream:  # noqa: PTH123 - it is open
        shutil.copyfileobj(file, stream)


def _flush(path: Path) -> None:
    """Bring the bytes to the disk before the name, so that a power cut cannot leave a gap."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _explain(error: OSError, target: Path) -> CoCoError:
    reason = REMEDIES.get(error.errno or 0) or error.strerror or str(error)
    return CoCoError(f"cannot write {target}: {reason}")
