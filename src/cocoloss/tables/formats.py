"""What a file is, by its first bytes, and its text as UTF-8, unpacked, block by block.

How rows and cells are cut is not this file's business.
"""

import codecs
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError

DELIMITED = "delimited"
PARQUET = "parquet"
ARFF = "arff"
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), DELIMITED),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    ".arff": ARFF,
}

BLOCK = 1 << 18
HEAD_BYTES = 1 << 14
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8",
}
# Windows-1252, the five bytes it leaves out read as latin-1 has them: every byte is a character.
WESTERN = "".join(bytes([b]).decode("cp1252", errors="ignore") or chr(b) for b in range(256))
EXCEL_HINT = re.compile(rb'\A"?sep=.?"?[;,\t]*(\r?\n|\r)', re.IGNORECASE)

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
RELATION = re.compile(rb"@relation\b", re.IGNORECASE)


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


def check_suffix(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the suffix of a file to write and whether to pack it; long work asks beforehand.

    Examples
    --------
    >>> check_suffix("predictions.csv.gz")
    ('.csv', True)
    """
    suffix, gzipped = suffix_of(path)
    kind = SUFFIXES.get(suffix)
    if kind == DELIMITED or (kind == PARQUET and not gzipped):
        return suffix, gzipped
    known = ".csv, .tsv, .txt, .csv.gz, .parquet"
    raise CoCoError(f"cannot tell the format of {path} from its name; end it in one of {known}")


def suffix_of(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the suffix of a table's name in lower case, and whether ``.gz`` follows it.

    Examples
    --------
    >>> suffix_of("a.TSV.gz")
    ('.tsv', True)
    """
    path = Path(path)
    gzipped = path.suffix.lower() == ".gz"
    return Path(path.stem if gzipped else path.name).suffix.lower(), gzipped


def find_format(source: "TextSource", encoding: str | None = None) -> str:
    r"""Say what a file is, from its first bytes, and from its suffix where they are silent.

    Parameters
    ----------
    source : TextSource
        The file, just opened.
    encoding : str, optional
        Of text, where the user knows it; its NUL bytes are then no sign of binary data.

    Returns
    -------
    {"delimited", "parquet", "arff"}

    Raises
    ------
    CoCoError
        If it is none of the three; the message says what it is.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.txt"
    ...     _ = path.write_text("% by hand\n@RELATION a\n")
    ...     with TextSource(path) as source:
    ...         find_format(source)
    'arff'
    """
    head, path = source.head, source.path
    if not head.strip():
        raise CoCoError(f"{path} is empty; there is no table in it")
    if head.startswith(b"PAR1"):
        if source.gzipped:
            raise CoCoError(f"{path} is Parquet inside gzip; unpack it first, Parquet packs itself")
        return PARQUET
    _refuse_binary(head, path)
    if encoding is None and not head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        _refuse_other_text(head, path)
    by_suffix = SUFFIXES.get(suffix_of(path)[0], DELIMITED)
    if _is_arff(head):
        return ARFF
    if by_suffix == PARQUET:
        raise CoCoError(f"{path} has the name of a Parquet file, but is none; fetch it again")
    return by_suffix


def _is_arff(head: bytes) -> bool:
    """Tell whether the first line that is neither blank nor a comment declares a relation."""
    lines = map(bytes.strip, head.removeprefix(codecs.BOM_UTF8).splitlines())
    first = next((line for line in lines if line and not line.startswith(b"%")), b"")
    return RELATION.match(first) is not None


def _refuse_binary(head: bytes, path: Path) -> None:
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


def _refuse_other_text(head: bytes, path: Path) -> None:
    if b"\0" in head:
        zeros = head.count(b"\0") / len(head)
        if 0.4 < zeros < 0.6:  # every other byte
            raise CoCoError(
                f"{path} looks like UTF-16 without its mark; save it as UTF-8, or name its "
                f"encoding, utf-16-le or utf-16-be"
            )
        raise CoCoError(f"{path} is not a table: it holds binary data")
    text = head.removeprefix(codecs.BOM_UTF8)
    if MARKUP.match(text):
        raise CoCoError(
            f"{path} is a web page or XML, not a table; download the file itself, not its page"
        )
    if JSON.match(text):
        raise CoCoError(f"{path} is JSON, not a table; save it as CSV")


class TextSource:
    r"""A file as a stream of UTF-8 without a byte order mark, its line ends as they are.

    A first line ``sep=;``, which names the separator for Excel, is given as an empty one. pandas' C
    parser takes bytes for UTF-8 as they are, which spares it decoding and encoding.

    Parameters
    ----------
    path : Path
        The file, packed by gzip or not.
    encoding : str, optional
        As Python names it. By default UTF-8 with or without a mark, UTF-16 with one, and else
        Windows-1252.
    returns : bool
        Whether lines end in ``\r`` alone, as on old Macs; then they are given with ``\n``.

    Attributes
    ----------
    head : bytes
        The first bytes of the file, unpacked, in its own encoding.
    gzipped : bool
        Whether it is packed by gzip.

    Raises
    ------
    CoCoError
        Also from ``read``, if the bytes are damaged, have NUL bytes or another encoding.
    """

    def __init__(self, path: Path, encoding: str | None = None, *, returns: bool = False) -> None:
        self.path = path
        self._encoding = encoding
        self._returns = returns
        self._recoder: Recoder | None = None
        self._position = 0
        self._is_start = True
        try:
            # Closed by close(), as that of any stream.
            self._file: BinaryIO = path.open("rb", buffering=0)
            self._unpacked: Any = self._file
            head = self._file.read(HEAD_BYTES)
        except OSError as error:
            raise _unreadable(path, error) from error
        self.gzipped = head.startswith(GZIP_MAGIC)
        if self.gzipped:
            self._file.seek(0)
            self._unpacked = gzip.GzipFile(fileobj=self._file)
            try:
                head = self._bytes(HEAD_BYTES)
            except CoCoError:
                self.close()
                raise
        self.head = self._pending = head

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:
        return self.lines()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, size: int = -1) -> bytes:
        """Return about ``size`` bytes of complete characters, some until the end; all for -1."""
        if size < 0:
            return b"".join(iter(lambda: self.read(BLOCK), b""))
        while True:
            data, self._pending = self._pending or self._bytes(size), b""
            text = self._recode(data)
            if text or not data:
                return text

    def lines(self) -> Iterator[str]:
        r"""Give the lines one by one, each with ``\n`` at its end, whatever it was before."""
        newlines = io.IncrementalNewlineDecoder(None, translate=True)
        rest = ""
        while block := self.read(BLOCK):
            *complete, rest = (rest + newlines.decode(block.decode())).split("\n")
            yield from (line + "\n" for line in complete)
        if rest:
            yield rest

    def _bytes(self, size: int) -> bytes:
        try:
            data: bytes = self._unpacked.read(size)
        except (OSError, EOFError, zlib.error) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CoCoError(
                f"{self.path} is damaged or cut short: {reason}; fetch it again"
            ) from error
        return data

    def _recode(self, data: bytes) -> bytes:
        if self._recoder is None:
            self._recoder = Recoder(data, self._encoding)
            if self._recoder.is_utf8:
                data = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = self._recoder.recode(data, final=not data)
        except UnicodeError as error:
            raise CoCoError(self._wrong_encoding(error)) from error
        if b"\0" in text:
            raise CoCoError(
                f"{self.path} holds a NUL byte near position {self._position}; "
                f"it is damaged or not a table, fetch it again"
            )
        self._position += len(data)
        if self._is_start and text:
            self._is_start = False
            text = EXCEL_HINT.sub(rb"\1", text, count=1)  # the line stays, for the numbers of lines
        return text.replace(b"\r", b"\n") if self._returns else text

    def _wrong_encoding(self, error: UnicodeError) -> str:
        where = ""
        if isinstance(error, UnicodeDecodeError):
            byte = error.object[error.start]
            where = f": byte 0x{byte:02x} near position {self._position + error.start}"
        name = getattr(error, "encoding", self._encoding)
        return f"{self.path} is not in {name} throughout{where}; name its encoding, such as latin-1"


class Recoder:
    r"""What turns blocks of bytes into UTF-8, keeping split characters for the next block.

    Without a name it is UTF-8, or Windows-1252 if the first byte beyond ASCII does not begin a
    UTF-8 character. The two agree on ASCII, so the choice can wait for that byte wherever it is.

    Parameters
    ----------
    start : bytes
        The first block, whose byte order mark counts.
    encoding : str, optional
        As Python names it.

    Examples
    --------
    >>> data = "Köln".encode("latin-1")
    >>> Recoder(data).recode(data, final=True).decode()
    'Köln'
    """

    def __init__(self, start: bytes, encoding: str | None = None) -> None:
        self._rest = b""
        self._is_western = False
        if encoding is None:
            marks = (name for mark, name in BYTE_ORDER_MARKS.items() if start.startswith(mark))
            encoding = next(marks, None)
        self.is_utf8 = encoding is None or _codec(encoding) in {"utf-8", "utf-8-sig"}
        self._is_sure = self.is_utf8 and encoding is not None  # that it is not Windows-1252
        self._decoder = None if self.is_utf8 else codecs.getincrementaldecoder(str(encoding))()

    def recode(self, data: bytes, *, final: bool) -> bytes:
        """Return a block as UTF-8; ``final`` says that nothing follows."""
        if self._decoder is not None:
            return self._decoder.decode(data, final).encode()
        if self._is_western:
            return _from_western(data).encode()
        if not self._rest and data.isascii():
            return data
        data = self._rest + data
        try:
            _, used = codecs.utf_8_decode(data, "strict", final)
        except UnicodeDecodeError as error:
            if self._is_sure or not data[: error.start].isascii():
                raise
            self._is_western = True
            return _from_western(data).encode()
        self._rest = data[used:]
        self._is_sure = self._is_sure or not data[:used].isascii()
        return data[:used]


def decoded(data: bytes) -> str:
    r"""Return text that a file keeps as bytes: UTF-8, or else Windows-1252.

    Examples
    --------
    >>> decoded("Köln".encode()), decoded("Köln".encode("latin-1"))
    ('Köln', 'Köln')
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _from_western(data)


def _from_western(data: bytes) -> str:
    return codecs.charmap_decode(data, "strict", WESTERN)[0]


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise CoCoError(
            f"there is no encoding {encoding!r}; common ones are utf-8, latin-1, cp1252, utf-16"
        ) from None


def _unreadable(path: Path, error: OSError) -> CoCoError:
    return CoCoError(f"cannot read {path}: {error.strerror or error}")
