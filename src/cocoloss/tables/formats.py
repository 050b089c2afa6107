"""What a file is, told from its first bytes; the suffix has a say only where they are silent.

How a format is read is not this file's business.
"""

import gzip
import os
import re
import zlib
from pathlib import Path
from typing import NamedTuple

from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError

DELIMITED = "delimited"
PARQUET = "parquet"
ARFF = "arff"

HEAD_BYTES = 1 << 14
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")  # UTF-16, and the first half of UTF-32

SAVE_AS_CSV = "open it there and save it as CSV"
# First bytes of files that people take for tables, and what to do with them.
NOT_TABLES = [
    (b"\xd0\xcf\x11\xe0", f"an old Excel or Office file; {SAVE_AS_CSV}"),
    (b"BZh", "packed by bzip2; unpack it first, or pack it with gzip"),
    (b"\xfd7zXZ\x00", "packed by xz; unpack it first, or pack it with gzip"),
    (b"\x28\xb5\x2f\xfd", "packed by zstd; unpack it first, or pack it with gzip"),
    (b"7z\xbc\xaf", "a 7z archive; unpack it first"),
    (b"Rar!", "a rar archive; unpack it first"),
    (b"ARROW1", "a Feather (Arrow) file; save it as Parquet or CSV"),
    (b"FEA1", "a Feather file; save it as Parquet or CSV"),
    (b"SQLite format 3\x00", "an SQLite database; export the table as CSV"),
    (b"\x89HDF", "an HDF5 file; save the table as Parquet or CSV"),
    (b"\x93NUMPY", "a numpy array; save it as CSV, with the names of its columns"),
    (b"%PDF", "a PDF document"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"GIF8", "a picture"),
]
PICKLE = re.compile(rb"\x80[\x02-\x05]")
ZIPPED = b"PK\x03\x04"
MARKUP = re.compile(rb"\s*<(!doctype|html|head|body|\?xml|!--|[a-z]+:|table)", re.IGNORECASE)
# An object, or a list of objects, lists, strings or numbers.
JSON = re.compile(rb'\s*(\{\s*("|\}|$)|\[\s*([\[{]|"[^"]*"\s*[,\]]|-?\d+[\d.eE+-]*\s*[,\]]))')
ARFF_START = re.compile(rb"(\s*(%[^\r\n]*)?[\r\n]+)*\s*@relation\b", re.IGNORECASE)

SUFFIXES = {".parquet": PARQUET, ".pq": PARQUET, ".arff": ARFF}


class Found(NamedTuple):
    """A file that may hold a table."""

    path: Path
    format: str
    gzipped: bool


def find_format(path: str | os.PathLike[str], encoding: str | None = None) -> Found:
    r"""Say what a file is.

    Parameters
    ----------
    path : path
        A file, perhaps packed by gzip.
    encoding : str, optional
        Of text, where the user knows it; its NUL bytes are then no sign of binary data.

    Returns
    -------
    Found
        The path, one of "delimited", "parquet" and "arff", and whether it is packed.

    Raises
    ------
    CoCoError
        If there is no such file, or it is none of the three; the message says what it is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.txt"
    ...     _ = path.write_text("% by hand\n@RELATION a\n")
    ...     find_format(path).format
    'arff'
    """
    path = check_is_file(path)
    head = _head(path)
    gzipped = head.startswith(GZIP_MAGIC)
    if gzipped:
        head = _unpacked_head(path)
    if not head.strip():
        raise CoCoError(f"{path} is empty; there is no table in it")
    return Found(path, _format_of(head, path, encoding), gzipped)


def check_is_file(path: str | os.PathLike[str]) -> Path:
    """Return a path that leads to a file, or say what is there instead."""
    path = Path(path)
    if "\0" in str(path):
        raise CoCoError(f"there is no file {str(path)!r}: no name holds a NUL")
    try:
        if path.is_file():
            return path
        if path.is_dir():
            raise CoCoError(f"{path} is a folder; name a file in it")
        if path.exists():
            raise CoCoError(f"{path} is not a regular file; save the table to one first")
        beside = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    except OSError as error:
        raise _unreadable(path, error) from error
    if path.parent.is_dir():
        raise CoCoError(f"there is no file {path}{did_you_mean(path.name, beside)}")
    raise CoCoError(f"there is no file {path}, and no folder {path.parent}")


def damaged(path: Path, error: Exception) -> CoCoError:
    """Return what to say of a packed file that cannot be unpacked to its end."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return CoCoError(f"{path} is damaged or cut short: {reason}; fetch it again")


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unpacked_head(path: Path) -> bytes:
    try:
        with gzip.open(path) as file:
            return file.read(HEAD_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, error) from error


def _format_of(head: bytes, path: Path, encoding: str | None) -> str:
    if head.startswith(b"PAR1"):
        return PARQUET
    for magic, what in NOT_TABLES:
        if head.startswith(magic):
            raise CoCoError(f"{path} is not a table but {what}")
    if head.startswith(ZIPPED):
        what = "a zip archive; unpack it first"
        if b"xl/" in head or b"[Content_Types]" in head or path.suffix.lower() == ".xlsx":
            what = f"an Excel file; {SAVE_AS_CSV}"
        raise CoCoError(f"{path} is not a table but {what}")
    if PICKLE.match(head):
        raise CoCoError(
            f"{path} is a pickle, which runs code when it is read; save the table as Parquet or CSV"
        )
    if encoding is None and not head.startswith(BYTE_ORDER_MARKS):
        _refuse_other_text(head, path)
    text = head.removeprefix(b"\xef\xbb\xbf")
    if ARFF_START.match(text):
        return ARFF
    by_suffix = SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower(), DELIMITED)
    if by_suffix == PARQUET:
        raise CoCoError(f"{path} has the name of a Parquet file, but is none; fetch it again")
    return by_suffix


def _refuse_other_text(head: bytes, path: Path) -> None:
    if b"\0" in head:
        zeros = head.count(b"\0") / len(head)
        if 0.4 < zeros < 0.6:  # every other byte
            raise CoCoError(
                f"{path} looks like UTF-16 without its mark; save it as UTF-8, or name its "
                f"encoding, utf-16-le or utf-16-be"
            )
        raise CoCoError(f"{path} is not a table: it holds binary data")
    text = head.removeprefix(b"\xef\xbb\xbf")
    if MARKUP.match(text):
        raise CoCoError(
            f"{path} is a web page or XML, not a table; download the file itself, not its page"
        )
    if JSON.match(text):
        raise CoCoError(f"{path} is JSON, not a table; save it as CSV")


def _unreadable(path: Path, error: OSError) -> CoCoError:
    return CoCoError(f"cannot read {path}: {error.strerror or error}")
