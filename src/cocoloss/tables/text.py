"""A file as text: unpacked, and UTF-8 whatever it was before, a block at a time.

What the text says is not this file's business, but for a hint to Excel before it.
"""

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from types import TracebackType
from typing import Any, BinaryIO, Protocol, Self

from cocoloss.exceptions import CoCoError
from cocoloss.tables.formats import Found, damaged

BLOCK = 1 << 18

# Windows-1252, the five bytes it leaves out read as latin-1 has them: every byte is a character.
WESTERN = "".join(bytes([b]).decode("cp1252", errors="ignore") or chr(b) for b in range(256))

OTHER_MARKS = [
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
]

EXCEL_HINT = re.compile(rb'\A"?sep=.?"?[;,\t]*(\r?\n|\r)', re.IGNORECASE)


class Recoder(Protocol):
    """What turns blocks of bytes into UTF-8, keeping split characters for the next block."""

    def recode(self, data: bytes, *, final: bool) -> bytes:
        """Return a block as UTF-8; ``final`` says that nothing follows."""


class GuessingRecoder:
    r"""UTF-8, or Windows-1252 if the first byte beyond ASCII does not begin a UTF-8 character.

    The two agree on ASCII, so the choice can wait for that byte wherever it is.

    Parameters
    ----------
    sure : bool
        Whether it is known to be UTF-8, by its mark.

    Examples
    --------
    >>> GuessingRecoder().recode("Köln".encode("latin-1"), final=True).decode()
    'Köln'
    """

    def __init__(self, *, sure: bool = False) -> None:
        self._rest = b""
        self._utf8_seen = sure
        self._western = False

    def recode(self, data: bytes, *, final: bool) -> bytes:
        """Return a block as UTF-8."""
        if self._western:
            return _from_western(data)
        if not self._rest and data.isascii():
            return data
        data = self._rest + data
        try:
            _, used = codecs.utf_8_decode(data, "strict", final)
        except UnicodeDecodeError as error:
            if self._utf8_seen or not data[: error.start].isascii():
                raise
            self._western = True
            return _from_western(data)
        self._rest = data[used:]
        self._utf8_seen = self._utf8_seen or not data[:used].isascii()
        return data[:used]


class NamedRecoder:
    """An encoding that Python knows by name."""

    def __init__(self, name: str) -> None:
        self._decoder = codecs.getincrementaldecoder(name)()

    def recode(self, data: bytes, *, final: bool) -> bytes:
        """Return a block as UTF-8."""
        return self._decoder.decode(data, final).encode()


class TextSource:
    r"""A file as a stream of UTF-8 without a byte order mark, its line ends as they are.

    A first line ``sep=;``, which tells Excel the separator, is given as an empty one.

    pandas' C parser takes bytes for UTF-8 as they are, which spares it decoding and encoding.

    Parameters
    ----------
    found : Found
        The file.
    encoding : str, optional
        As Python names it. By default UTF-8 with or without a mark, UTF-16 with one, and else
        Windows-1252.
    returns : bool
        Whether lines end in ``\r`` alone, as on old Macs; then they are given with ``\n``.

    Raises
    ------
    CoCoError
        From ``read``, if the bytes are damaged, have NUL bytes or another encoding.
    """

    def __init__(self, found: Found, encoding: str | None = None, *, returns: bool = False) -> None:
        self._path = found.path
        self._encoding = encoding
        self._returns = returns
        try:
            # Closed by close(), as that of any stream.
            self._file: BinaryIO = found.path.open("rb", buffering=0)
        except OSError as error:
            raise CoCoError(f"cannot read {found.path}: {error.strerror or error}") from error
        self._unpacked: Any = gzip.GzipFile(fileobj=self._file) if found.gzipped else self._file
        self._recoder: Recoder | None = None
        self._position = 0
        self._is_start = True

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
        """Return about ``size`` bytes of whole characters, some until the end; all for -1."""
        if size < 0:
            return b"".join(iter(lambda: self.read(BLOCK), b""))
        while True:
            data = self._bytes(size)
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
            raise damaged(self._path, error) from error
        return data

    def _recode(self, data: bytes) -> bytes:
        if self._recoder is None:
            self._recoder = _recoder(data, self._encoding)
            if isinstance(self._recoder, GuessingRecoder):
                data = data.removeprefix(codecs.BOM_UTF8)
        try:
            text = self._recoder.recode(data, final=not data)
        except UnicodeError as error:
            raise CoCoError(self._wrong_encoding(error)) from error
        if b"\0" in text:
            raise CoCoError(
                f"{self._path} holds a NUL byte near position {self._position}; "
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
        return (
            f"{self._path} is not in {name} throughout{where}; name its encoding, such as latin-1"
        )


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
        return codecs.charmap_decode(data, "strict", WESTERN)[0]


def _from_western(data: bytes) -> bytes:
    return codecs.charmap_decode(data, "strict", WESTERN)[0].encode()


def _recoder(start: bytes, encoding: str | None) -> Recoder:
    if encoding is None:
        for mark, name in OTHER_MARKS:
            if start.startswith(mark):
                return NamedRecoder(name)
        return GuessingRecoder(sure=start.startswith(codecs.BOM_UTF8))
    try:
        if codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"}:
            return GuessingRecoder(sure=True)
        return NamedRecoder(encoding)
    except LookupError:
        raise CoCoError(
            f"there is no encoding {encoding!r}; common ones are utf-8, latin-1, cp1252, utf-16"
        ) from None


def read_sample(found: Found, encoding: str | None, enough: int, most: int) -> tuple[str, bool]:
    """Return the beginning of a file, and whether that is all of it.

    Parameters
    ----------
    found : Found
        The file.
    encoding : str or None
        See :class:`TextSource`.
    enough : int
        So many bytes are enough if they hold some lines.
    most : int
        More than so many are never read, however long the lines.
    """
    parts: list[str] = []
    size = lines = 0
    with TextSource(found, encoding) as source:
        while size < enough or (lines < 10 and size < most):
            part = source.read(enough).decode()
            if not part:
                return "".join(parts), True
            parts.append(part)
            size += len(part)
            lines += part.count("\n") + part.count("\r")
        return "".join(parts), not source.read(1)
