"""A file of one JSON document and some arrays of numbers, safe to open whoever wrote it.

A zip that only stores, so that nothing unpacks to more than the file holds, and that ends in the
SHA-256 of all the bytes before it. The digest tells an accident; what a stranger has crafted is
held by the other checks: names, sizes, shapes and kinds are all known before a member is read.

By hand: pickle and joblib run code, and skops trusts all of scikit-learn, compiled trees with
their unchecked indices included, and reads before it measures.
"""

import hashlib
import json
import math
import os
import zipfile
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole

DOCUMENT = "model.json"
MAX_DOCUMENT = 2**25  # bytes; a table of 10,000 columns with 64 categories each takes a third
DIGEST_LENGTH = 64  # hexadecimal digits at the very end, within the comment of the zip
DIGEST_LABEL = b"sha256:"
DTYPES = ("<f4", "<f8", "<i8", "<i4", "|b1")
BLOCK = 2**20
LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same model gives the same bytes
ZIP_START = b"PK\x03\x04"


class Archive(NamedTuple):
    """What a file holds."""

    document: Any
    arrays: list[NDArray[Any]]


def write_archive(
    path: str | os.PathLike[str],
    document: Any,
    arrays: list[NDArray[Any]],
    *,
    version: int,
    writer: str,
) -> None:
    """Write a document and arrays into one file, whole or not at all.

    Parameters
    ----------
    path : path
        Where to write.
    document : dict, list, str, number, bool or None
        Anything that JSON has.
    arrays : list of ndarray
        Of float32, float64, int32, int64 or bool.
    version : int
        Version of what the document means; a reader of an older version refuses.
    writer : str
        Name and version of the program, for its message.

    Examples
    --------
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.coco"
    ...     write_archive(path, {"a": 1}, [np.arange(3.0)], version=1, writer="me 1.0")
    ...     read_archive(path, version=1)
    Archive(document={'a': 1}, arrays=[array([0., 1., 2.])])
    """
    arrays = [np.ascontiguousarray(array) for array in arrays]
    header = {
        "format": "cocoloss",
        "version": version,
        "writer": writer,
        "arrays": [{"dtype": array.dtype.str, "shape": list(array.shape)} for array in arrays],
        "document": document,
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    if len(text) > MAX_DOCUMENT:
        raise CoCoError(
            f"the description of the model takes {len(text):,} bytes, and a file holds "
            f"{MAX_DOCUMENT:,} at most; leave out columns with very many categories"
        )
    with write_whole(path) as aside:
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_STORED) as archive:
            archive.comment = DIGEST_LABEL + b"0" * DIGEST_LENGTH
            archive.writestr(zipfile.ZipInfo(DOCUMENT, LONG_AGO), text)
            for i, array in enumerate(arrays):
                assert array.dtype.str in DTYPES, array.dtype
                archive.writestr(zipfile.ZipInfo(_member(i), LONG_AGO), array.tobytes())
        with aside.open("r+b") as file:
            digest = _digest(file)
            file.seek(-DIGEST_LENGTH, os.SEEK_END)
            file.write(digest)


def read_archive(path: str | os.PathLike[str], *, version: int) -> Archive:
    """Read what :func:`write_archive` wrote, and nothing else.

    Parameters
    ----------
    path : path
        The file.
    version : int
        The newest version that the caller understands.

    Raises
    ------
    CoCoError
        If there is no such file, or it is of another kind, altered, cut short or from the future.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            return _read(path, file, version)
    except CoCoError:
        raise
    except FileNotFoundError:
        raise CoCoError(f"there is no file {path}") from None
    except IsADirectoryError:
        raise CoCoError(f"{path} is a folder, not a model file") from None
    except OSError as error:
        raise CoCoError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # a NUL in the name
        raise CoCoError(f"cannot read {str(path)!r}: {error}") from error


def _read(path: Path, file: IO[bytes], version: int) -> Archive:
    if file.read(len(ZIP_START)) != ZIP_START:
        raise CoCoError(f"{path} is not a cocoloss model file; nothing of it was opened")
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - DIGEST_LENGTH))
    whole = file.read() == _digest(file)
    try:
        archive = zipfile.ZipFile(file)
        header = _read_header(archive, size)
    except (Exception, RecursionError) as error:  # whatever a crafted zip makes zipfile or json say
        raise _refusal(path, whole=whole, why=error) from error
    found = header["version"]
    if found > version:
        raise CoCoError(
            f"{path} has format {found} of {header['writer']!r:.60}, and this version of cocoloss "
            f"reads formats up to {version}; upgrade cocoloss"
        )
    if not whole:
        raise _refusal(path, whole=whole)
    try:
        return Archive(header["document"], _read_arrays(archive, header["arrays"], size))
    except Exception as error:
        raise _refusal(path, whole=whole, why=error) from error


def _refusal(path: Path, *, whole: bool, why: BaseException | None = None) -> CoCoError:
    if whole:
        return CoCoError(f"{path} is not a cocoloss model file: {brief(why)}")
    return CoCoError(
        f"{path} was altered or cut short: its checksum does not match; get the file again"
    )


def brief(error: BaseException | None) -> str:
    """Return what we said ourselves; of another's error the name only, for it may quote bytes."""
    return str(error) if isinstance(error, CoCoError) else f"it is broken ({type(error).__name__})"


def _digest(file: IO[bytes]) -> bytes:
    """Return the digest of all but the last digits, as digits."""
    left = file.seek(0, os.SEEK_END) - DIGEST_LENGTH
    file.seek(0)
    digest = hashlib.sha256()
    while left > 0 and (block := file.read(min(BLOCK, left))):
        digest.update(block)
        left -= len(block)
    return digest.hexdigest().encode()


def _member(i: int) -> str:
    return f"arrays/{i}.bin"


def _read_header(archive: zipfile.ZipFile, size: int) -> dict[str, Any]:
    """Check the members against each other and the size of the file; read the document."""
    members = archive.infolist()
    names = [member.filename for member in members]
    if names != [DOCUMENT, *map(_member, range(len(members) - 1))]:
        raise CoCoError("its members are not those of a model")
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise CoCoError("a member is compressed")
    if any(member.compress_size != member.file_size for member in members):
        raise CoCoError("a member has two sizes")
    if sum(member.file_size for member in members) > size:
        raise CoCoError("its members claim to be larger than the file")
    if members[0].file_size > MAX_DOCUMENT:
        raise CoCoError("its description is too long")
    header = json.loads(archive.read(DOCUMENT))
    if not isinstance(header, dict) or header.get("format") != "cocoloss":
        raise CoCoError("it holds no model of cocoloss")
    if not {"version", "writer", "arrays", "document"} <= header.keys():
        raise CoCoError("its description lacks a part")
    if type(header["version"]) is not int or header["version"] < 1:
        raise CoCoError("its version is no number")
    return header


def _read_arrays(archive: zipfile.ZipFile, listed: Any, size: int) -> list[NDArray[Any]]:
    if not isinstance(listed, list) or len(listed) != len(archive.infolist()) - 1:
        raise CoCoError("its arrays are not those of its description")
    arrays = []
    for i, entry in enumerate(listed):
        dtype, shape = entry["dtype"], entry["shape"]
        if dtype not in DTYPES or not isinstance(shape, list) or len(shape) > 8:
            raise CoCoError(f"array {i} is of a kind that models do not have")
        if not all(type(n) is int and 0 <= n <= size for n in shape):
            raise CoCoError(f"array {i} has no possible shape")
        info = archive.getinfo(_member(i))
        if math.prod(shape) * np.dtype(dtype).itemsize != info.file_size:
            raise CoCoError(f"array {i} does not have the size of its shape")
        data = archive.read(info)
        if dtype == "|b1" and data.strip(b"\0\1"):
            raise CoCoError(f"array {i} holds bytes that are neither true nor false")
        arrays.append(np.frombuffer(data, dtype).reshape(shape).copy())
    return arrays
