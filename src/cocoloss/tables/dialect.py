"""How a file is written: its suffix, encoding, separator and header, found from its beginning.

``csv.Sniffer`` is not used: it counts characters inside quoted fields and takes letters for
separators. Here the beginning of the file is parsed under each candidate, and the one that gives
even rows wins. What the cells mean is not known here.
"""

import codecs
import csv
import gzip
import io
import os
import re
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from cocoloss._checks import counted, listed
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import COMMA, has_decimal, split_unit

DELIMITED = "delimited"
PARQUET = "parquet"
ARFF = "arff"
EXCEL = "excel"
SUFFIXES = {
    **dict.fromkeys((".csv", ".tsv", ".txt"), DELIMITED),
    **dict.fromkeys((".parquet", ".pq"), PARQUET),
    ".arff": ARFF,
    **dict.fromkeys((".xlsx", ".xlsm"), EXCEL),
}

BLOCK = 1 << 18
HEAD_BYTES = 1 << 14
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    codecs.BOM_UTF8: "utf-8-sig",
}
# Windows-1252, the five bytes it leaves out read as latin-1 has them: every byte is a character.
WINDOWS = "cp1252"
WESTERN = "".join(bytes([b]).decode("cp1252", errors="ignore") or chr(b) for b in range(256))
EXCEL_HINT = re.compile(rb'\A"?sep=.?"?[;,\t]*(\r?\n|\r)', re.IGNORECASE)

WHITESPACE = r"\s+"  # as pandas spells it
SEPARATORS = ["\t", ",", ";", "|", WHITESPACE]  # the first of equals wins
UNUSUAL = ":^~!"  # to name in a message, not to guess
SPOKEN = {"\t": "tab", WHITESPACE: "white space"}

ENOUGH_BYTES = 1 << 16  # of a file show how it is written
MOST_BYTES = 1 << 23  # are looked at, however long the lines
ENOUGH_ROWS = 100  # to find the separator
EVEN_ENOUGH = 0.5  # share of rows of the usual width, below which a separator is out
MOST_WORDS = 4  # in the cells of a table that has one column

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
OTHER_SEPARATOR = re.compile(r"[\t,;|]")
TOKEN = re.compile(r'"((?:[^"]|"")*)"|(\S+)')


def suffix_of(path: str | os.PathLike[str]) -> tuple[str, bool]:
    """Return the suffix of a table's name in lower case, and whether ``.gz`` follows it."""
    path = Path(path)
    gzipped = path.suffix.lower() == ".gz"
    return Path(path.stem if gzipped else path.name).suffix.lower(), gzipped


class TextSource:
    r"""A file as a stream of UTF-8 without a byte order mark, its line ends as they are.

    A first line ``sep=;``, which names the separator for Excel, is given as an empty one. With
    ``returns``, lines end in ``\r`` alone, as on old Macs, and are given with ``\n``. The first
    ``titles`` lines are given as empty ones. pandas' C
    parser takes bytes for UTF-8 as they are, which spares it decoding and encoding.

    Without a name or a mark the encoding is UTF-8, or Windows-1252 if the first byte beyond ASCII
    does not begin a UTF-8 character. The two agree on ASCII, so the choice can wait for that byte.
    """

    def __init__(
        self, path: Path, encoding: str | None = None, *, returns: bool = False, titles: int = 0
    ) -> None:
        self.path = path
        self._returns = returns
        self._titles = titles  # lines before the header, which are given as empty ones, too
        self._position = 0
        self._is_start = True
        self._rest = b""  # of a character that goes on in the next block
        try:
            # Closed by close(), as that of any stream.
            self._file: BinaryIO = path.open("rb", buffering=0)
            self._unpacked: Any = self._file
            head = self._file.read(HEAD_BYTES)
        except OSError as error:
            raise unreadable(path, error) from error
        self.gzipped = head.startswith(GZIP_MAGIC)
        try:
            if self.gzipped:
                self._file.seek(0)
                self._unpacked = gzip.GzipFile(fileobj=self._file)
                head = self._bytes(HEAD_BYTES)
            if encoding is None:
                marks = (name for mark, name in BYTE_ORDER_MARKS.items() if head.startswith(mark))
                encoding = next(marks, None)
            self.encoding = "utf-8" if encoding is None else _codec(encoding)
        except CoCoError:
            self.close()
            raise
        self._is_sure = encoding is not None  # that it is not the other one of the two
        is_utf8 = self.encoding in {"utf-8", "utf-8-sig"}
        self._decode: Callable[[bytes, bool], str] | None = (
            None if is_utf8 else codecs.getincrementaldecoder(self.encoding)().decode
        )
        self.head = head  # unpacked, in the encoding of the file
        self._pending = head.removeprefix(codecs.BOM_UTF8) if is_utf8 else head

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[str]:  # without which it is no file to pandas
        return self.lines()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def read(self, size: int) -> bytes:
        """Return about ``size`` bytes of complete characters, some until the end."""
        while True:
            data, self._pending = self._pending or self._bytes(size), b""
            text = self._text(data)
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

    def find_encoding(self) -> str:
        """Read up to the first character beyond ASCII, and return the encoding of the file."""
        while not self._is_sure and self.read(BLOCK):
            pass
        return self.encoding

    def _bytes(self, size: int) -> bytes:
        try:
            data: bytes = self._unpacked.read(size)
        except (OSError, EOFError, zlib.error) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CoCoError(
                f"{self.path} is damaged or cut short: {reason}; fetch it again"
            ) from error
        return data

    def _text(self, data: bytes) -> bytes:
        try:
            text = self._recode(data, final=not data)
        except UnicodeError as error:
            where = ""
            if isinstance(error, UnicodeDecodeError):
                byte = error.object[error.start]
                where = f": byte 0x{byte:02x} near position {self._position + error.start}"
            name = getattr(error, "encoding", self.encoding)
            raise CoCoError(
                f"{self.path} is not in {name} throughout{where}; name its encoding, such as "
                f"latin-1"
            ) from error
        if b"\0" in text:
            raise CoCoError(
                f"{self.path} holds a NUL byte near position {self._position}; "
                f"it is damaged or not a table, fetch it again"
            )
        self._position += len(data)
        if self._is_start and text:
            self._is_start = False
            text = EXCEL_HINT.sub(rb"\1", text, count=1)  # the line stays, for the numbers of lines
        text = text.replace(b"\r", b"\n") if self._returns else text
        blank = b""
        while self._titles and text:  # the lines stay, for their numbers
            _, end, text = text.partition(b"\n")
            blank += end
            self._titles -= len(end)
        return blank + text

    def _recode(self, data: bytes, *, final: bool) -> bytes:
        if self._decode is not None:
            return self._decode(data, final).encode()
        if not self._rest and data.isascii():
            return data
        data = self._rest + data
        try:
            _, used = codecs.utf_8_decode(data, "strict", final)
        except UnicodeDecodeError as error:
            if self._is_sure or not data[: error.start].isascii():
                raise
            self.encoding, self._is_sure, self._decode = WINDOWS, True, _from_western
            return _from_western(data).encode()
        self._rest = data[used:]
        self._is_sure = self._is_sure or not data[:used].isascii()
        return data[:used]


def _from_western(data: bytes, _: bool = True) -> str:
    return codecs.charmap_decode(data, "strict", WESTERN)[0]


def _codec(encoding: str) -> str:
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        raise CoCoError(
            f"there is no encoding {encoding!r}; common ones are utf-8, latin-1, cp1252, utf-16"
        ) from None


def unreadable(path: Path, error: OSError) -> CoCoError:
    """Return an error that says why a file cannot be read."""
    return CoCoError(f"cannot read {path}: {error.strerror or error}")


class Sample(NamedTuple):
    """The beginning of a text."""

    text: str
    is_complete: bool


class Row(NamedTuple):
    """The cells of a row."""

    line: int  # of the file in which it ends
    cells: list[str]


@dataclass(frozen=True)
class Dialect:
    """How a delimited file is written."""

    separator: str  # one character, or WHITESPACE
    names: tuple[str, ...]
    header: bool  # whether the first row holds the names
    skip_spaces: bool  # whether every separator is followed by spaces that mean nothing
    returns: bool  # whether lines end in a carriage return alone
    may_have_commas: bool  # whether a cell may hold a comma
    sample: list[list[str]] = field(repr=False, compare=False)  # the first rows below the header
    sample_is_complete: bool  # whether these are all rows of the file
    titles: int = 0  # lines before the header that are no rows


def read_sample(source: TextSource) -> Sample:
    """Return the beginning of a file: 64 kB, or more until it has some lines."""
    parts: list[str] = []
    size = lines = 0
    while size < ENOUGH_BYTES or (lines < 10 and size < MOST_BYTES):
        part = source.read(ENOUGH_BYTES).decode()
        if not part:
            return Sample("".join(parts), is_complete=True)
        parts.append(part)
        size += len(part)
        lines += part.count("\n") + part.count("\r")
    return Sample("".join(parts), is_complete=not source.read(1))


def find_dialect(
    path: object, sample: Sample, *, separator: str | None = None, header: bool | str = "auto"
) -> Dialect:
    """Find how a file is written from its beginning, or say why it is no table."""
    if separator is None:
        separator = _find_separator(path, sample)
    else:
        separator = _check_separator(path, separator, sample)
    skip_spaces = _spaces_follow(_sample_rows(sample, separator, skip_spaces=False))
    rows = _sample_rows(sample, separator, skip_spaces=skip_spaces)
    if not rows:
        raise CoCoError(f"{path} has no complete row in its first {len(sample.text)} characters")
    n_titles = 0
    if header == "auto" and separator != WHITESPACE:
        n_titles = n_title_rows([row.cells for row in rows[:ENOUGH_ROWS]], str.strip)
    titles, rows = rows[:n_titles], rows[n_titles:]
    has_header = check_header(path, header, rows[0].cells)
    if titles:
        warnings.warn(
            f"{Path(str(path)).name}: passed over {counted(n_titles, 'row')} above the header, "
            f"{titles[0].cells[0].strip()!r:.80}; the names are in line {rows[0].line}",
            stacklevel=4,
        )
    first = enumerate(rows[0].cells, start=1)
    names = [(has_header and cell.strip()) or f"column_{j}" for j, cell in first]
    check_distinct(path, names)
    check_widths(path, rows, len(names))
    body = [row.cells for row in (rows[1:] if has_header else rows)]
    if not body and sample.is_complete:
        raise CoCoError(f"{path} has a header but no rows")
    return Dialect(
        separator,
        tuple(names),
        has_header,
        skip_spaces,
        returns="\r" in sample.text and "\n" not in sample.text,
        may_have_commas=separator != "," or '"' in sample.text,
        sample=body,
        sample_is_complete=sample.is_complete,
        titles=titles[-1].line if titles else 0,
    )


def n_title_rows(rows: Sequence[Sequence[Any]], is_filled: Callable[[Any], Any]) -> int:
    """Return how many rows stand above the header: those with a filled cell where most have more.

    Only where a full row follows, and most rows fill two cells at least; a title fills one cell,
    or less than half as many as is usual in a row that ends there.
    """
    filled = [sum(bool(is_filled(cell)) for cell in row) for row in rows]
    usual = sorted(filled)[len(filled) // 2] if filled else 0
    for n, (row, count) in enumerate(zip(rows, filled, strict=True)):
        if 2 * count > usual:
            return n if usual > 1 else 0
        is_title = count == 0 or (count == 1 and bool(is_filled(row[0]))) or 2 * len(row) < usual
        if not is_title:
            return 0
    return 0


def iter_rows(lines: Iterable[str], separator: str, *, skip_spaces: bool = False) -> Iterator[Row]:
    """Give the rows of a text one by one, empty lines left out: slow, but each has its line."""
    if separator == WHITESPACE:
        for number, line in enumerate(lines, start=1):
            cells = [
                quoted.replace('""', '"') if quoted else bare
                for quoted, bare in TOKEN.findall(line)
            ]
            if cells:
                yield Row(number, cells)
        return
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=skip_spaces)
    for cells in reader:
        if len(cells) > 1 or (cells and cells[0].strip()):
            yield Row(reader.line_num, cells)


def check_widths(path: object, rows: Iterable[Row], n_columns: int) -> None:
    """Say which row, if any, has more or fewer cells than there are columns."""
    for row in rows:
        if len(row.cells) != n_columns:
            cells = counted(len(row.cells), "cell")
            raise CoCoError(
                f"{path}, line {row.line}: {cells} where the first row has {n_columns}; "
                f"mend the line, or put cells that hold the separator into quotes"
            )


def check_distinct(path: object, names: list[str]) -> None:
    """Say which names, if any, several columns have."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise CoCoError(f"{path} has several columns named {listed(repeated)}; rename them")


def _score(sample: Sample, separator: str) -> tuple[float, ...]:
    """Say how well a separator fits; the larger the better, from left to right, and nothing if not.

    Whether the first row has the usual width, how many rows do, how many cells could not be cut
    further, and the width.
    """
    rows = _sample_rows(sample, separator, skip_spaces=True, most=ENOUGH_ROWS)
    if not rows:
        return ()
    widths = Counter(len(row.cells) for row in rows)
    width, n_usual = widths.most_common(1)[0]
    width = max(width, len(rows[0].cells)) if n_usual <= len(rows) / 2 else width
    if width < 2 or widths[width] < EVEN_ENOUGH * len(rows):
        return ()
    cells = [cell for row in rows for cell in row.cells]
    clean = sum(_is_clean(cell, separator) for cell in cells) / len(cells)
    return len(rows[0].cells) == width, widths[width] / len(rows), clean, width


def _is_clean(cell: str, separator: str) -> bool:
    """Tell whether a cell could not be cut further by another separator."""
    if not OTHER_SEPARATOR.search(cell.strip()):
        return True
    digits = split_unit(cell)[1]
    return separator != "," and "," in digits and has_decimal(digits, COMMA)


def _find_separator(path: object, sample: Sample) -> str:
    scores = {candidate: _score(sample, candidate) for candidate in SEPARATORS}
    best = max(SEPARATORS, key=lambda candidate: scores[candidate])
    if scores[best]:
        return best
    for candidate in UNUSUAL:
        if _score(sample, candidate):
            raise CoCoError(
                f"{path}: no comma, semicolon, tab, bar or space splits its rows; it looks "
                f"separated by {candidate!r}, set separator to {candidate!r} if so"
            )
    lines = sample.text.splitlines()[:ENOUGH_ROWS]
    if any(OTHER_SEPARATOR.search(line) or len(line.split()) > MOST_WORDS for line in lines):
        raise CoCoError(
            f"{path} does not look like a table: no comma, semicolon, tab, bar or space splits "
            f"its lines into the same number of cells; if it is one, name its separator"
        )
    return ","  # one column


def _check_separator(path: object, separator: str, sample: Sample) -> str:
    separator = {"tab": "\t", r"\t": "\t", " ": WHITESPACE, "space": WHITESPACE}.get(
        separator, separator
    )
    if separator != WHITESPACE and (len(separator) != 1 or separator in '"\r\n\0'):
        raise CoCoError(f"separator must be one character, 'tab' or 'space', not {separator!r}")
    if separator != WHITESPACE and not separator.isascii():
        raise CoCoError(f"separator must be an ASCII character, not {separator!r}")
    rows = _sample_rows(sample, separator, skip_spaces=True)
    if rows and all(len(row.cells) == 1 for row in rows):
        found = _find_separator(path, sample)
        if _score(sample, found):
            raise CoCoError(
                f"{path} has no {SPOKEN.get(separator, repr(separator))} between its cells; "
                f"it looks separated by {SPOKEN.get(found, repr(found))}"
            )
    return separator


def _sample_rows(
    sample: Sample, separator: str, *, skip_spaces: bool, most: int | None = None
) -> list[Row]:
    """Return the rows of a sample; not the last, which may be cut, unless it is all there is."""
    lines = io.StringIO(sample.text, newline="")  # which ends at \n, \r\n and \r, and keeps them
    found: list[Row] = []
    try:
        found.extend(islice(iter_rows(lines, separator, skip_spaces=skip_spaces), most))
    except csv.Error:
        return found  # a cell beyond csv's limit: a quote that never closes, or no table at all
    return found if sample.is_complete or len(found) == most else found[:-1]


def _spaces_follow(rows: list[Row]) -> bool:
    inner = [cell for row in rows for cell in row.cells[1:] if cell]
    return bool(inner) and all(cell.startswith(" ") for cell in inner)


def check_header(path: object, header: bool | str, first: list[str]) -> bool:
    """Return whether the first row holds names, or say that it looks as if it does not."""
    if isinstance(header, bool):
        return header
    if header != "auto":
        raise CoCoError(f"header must be True, False or 'auto', not {header!r}")
    if _looks_like_data(first):
        raise CoCoError(
            f"{path}: the first row looks like data, not like names: {listed(first)}; "
            f"set header to False (--no-header) if so, to True (--header) if these are names"
        )
    return True


def _looks_like_data(cells: list[str]) -> bool:
    """Tell whether a first row holds values.

    Counted columns, 0, 1, 2, ..., are names. So are numbers in rising order beside names, which
    may be years or wavelengths. Fewer than two numbers say nothing.
    """
    cells = [cell.strip() for cell in cells]
    numbers = [float(cell) for cell in cells if NUMBER.fullmatch(cell)]
    if len(numbers) == len(cells):
        counted = list(range(len(cells)))
        return numbers not in (counted, [number + 1 for number in counted])
    rising = all(a < b for a, b in pairwise(numbers))
    return len(numbers) > 1 and not rising
