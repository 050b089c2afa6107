"""Files over HTTP: gone on with where a connection broke, and checked when they are whole."""

import http.client
import re
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cocoloss.exceptions import CoCoError
from cocoloss.tables.cache import checksum

BLOCK = 1 << 18
ATTEMPTS = 4
PAUSE = 0.5  # seconds before the second attempt; doubled each time
TEMPORARY = {408, 425, 429, 500, 502, 503, 504}
RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class UnreachableError(CoCoError):
    """A server that does not answer, as opposed to one that says no."""


class _BrokenError(Exception):
    """A connection that ended too soon; what came is kept."""


def fetch_bytes(url: str, *, timeout: float = 30.0) -> bytes:
    """Return a small file.

    Raises
    ------
    UnreachableError
        If the server does not answer.
    CoCoError
        If it answers that there is no such file.
    """
    for attempt in range(ATTEMPTS):
        try:
            with _open(url, timeout) as response:
                data: bytes = response.read()
                return data
        except (_BrokenError, http.client.HTTPException, OSError) as error:
            _pause_or_give_up(url, attempt, error, 0)
    raise AssertionError("the last attempt raises")


def download(url: str, part: Path, *, md5: str | None = None, timeout: float = 30.0) -> None:
    """Download a file to ``part``, going on from what is there already.

    Parameters
    ----------
    url : str
        Where it is.
    part : path
        Where it goes. If the connection breaks too often, what came stays there.
    md5 : str, optional
        What its checksum must be. If it is not, the file is fetched once more from the start.
    timeout : float
        Seconds without a byte after which a connection counts as broken.

    Raises
    ------
    UnreachableError
        If the server does not answer, or the connection breaks again and again.
    CoCoError
        If there is no such file, or its checksum is wrong twice.
    """
    for again in (False, True):
        _download_whole(url, part, timeout)
        if not md5 or (found := checksum(part, "md5")) == md5.lower():
            return
        part.unlink()
        if again:
            raise CoCoError(
                f"{url} was fetched twice, and its checksum is {found} where {md5} was "
                f"announced; it is damaged on the way or at the source, try again later"
            )


def _download_whole(url: str, part: Path, timeout: float) -> None:
    for attempt in range(ATTEMPTS):
        try:
            _go_on(url, part, timeout)
        except (_BrokenError, http.client.HTTPException, OSError) as error:
            _pause_or_give_up(url, attempt, error, _size(part))
        else:
            return


def _go_on(url: str, part: Path, timeout: float) -> None:
    start = _size(part)
    headers = {"Range": f"bytes={start}-"} if start else {}
    try:
        response = _open(url, timeout, headers)
    except _WrongRangeError:
        part.unlink()  # longer than the file, so not of it
        raise _BrokenError("the file has changed") from None
    with response:
        begins, total = _range_of(response)
        if begins not in {0, start}:
            raise _BrokenError(f"asked for byte {start}, got {begins}")
        _take(response, part, "ab" if begins else "wb")
    if total is not None and _size(part) != total:
        raise _BrokenError(f"{_size(part)} of {total} bytes came")


def _take(response: Any, part: Path, mode: str) -> None:
    """Write what comes; a full disk is no broken connection."""
    try:
        file = part.open(mode)
    except OSError as error:
        raise _unwritable(part, error) from error
    with file:
        while block := response.read(BLOCK):
            try:
                file.write(block)
                file.flush()
            except OSError as error:
                raise _unwritable(part, error) from error


def _unwritable(part: Path, error: OSError) -> CoCoError:
    return CoCoError(f"cannot write {part}: {error.strerror or error}")


def _range_of(response: Any) -> tuple[int, int | None]:
    """Return the byte at which an answer begins, and the size of the whole file if it is said."""
    match = RANGE.match(response.headers.get("Content-Range", ""))
    if response.status == http.client.PARTIAL_CONTENT and match:
        return int(match[1]), None if match[2] == "*" else int(match[2])
    length = response.headers.get("Content-Length")
    return 0, None if length is None else int(length)


class _WrongRangeError(Exception):
    """A server that has no bytes where we want to go on."""


def _open(url: str, timeout: float, headers: dict[str, str] | None = None) -> Any:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise CoCoError(f"{url} is not an http address; nothing else is downloaded")
    request = urllib.request.Request(  # noqa: S310 - the scheme was checked
        url, headers={"User-Agent": "cocoloss", **(headers or {})}
    )
    try:
        return urllib.request.urlopen(request, timeout=timeout)  # noqa: S310 - the same
    except urllib.error.HTTPError as error:
        with error:
            if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and headers:
                raise _WrongRangeError from None
            if error.code in TEMPORARY:
                raise _BrokenError(f"the server answered {error.code} {error.reason}") from None
            raise CoCoError(
                f"{url} cannot be had: the server answered {error.code} {error.reason}"
            ) from None


def _pause_or_give_up(url: str, attempt: int, error: Exception, n_bytes: int) -> None:
    """Wait before the next attempt; but not for a server that is not there at all."""
    reason = getattr(error, "reason", error)
    absent = isinstance(error, urllib.error.URLError) and not isinstance(reason, TimeoutError)
    if absent or attempt == ATTEMPTS - 1:
        kept = f" after {n_bytes} bytes, which are kept: run again to go on" if n_bytes else ""
        host = urlsplit(url).netloc
        raise UnreachableError(f"cannot reach {host}: {reason or 'it hung up'}{kept}") from error
    time.sleep(PAUSE * 2**attempt)


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0
