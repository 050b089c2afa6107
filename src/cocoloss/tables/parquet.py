"""Parquet files through pyarrow, whole or in chunks."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd

from cocoloss.exceptions import CoCoError
from cocoloss.tables.delimited import check_text_columns
from cocoloss.tables.dialect import check_distinct
from cocoloss.tables.formats import Found
from cocoloss.tables.steady import kinds_of, steady
from cocoloss.tables.text import decoded


def read_parquet(found: Found) -> Any:
    """Return a Parquet file as a data frame; an index that pandas saved is left out."""
    with _opened(found) as file:
        return _frame(file.read())


def iter_parquet(
    found: Found, rows: int, *, steadily: bool = True, columns: Collection[str] | None = None
) -> Iterator[Any]:
    """Give a Parquet file in chunks of so many rows; the categories are those of the chunk.

    With ``steadily=False`` the types are those of the file, also where whole numbers have gaps.
    With ``columns`` no others are read.
    """
    kinds: dict[str, str] | None = None
    n_read = 0
    with _opened(found) as file:
        wanted = None
        if columns is not None:
            wanted = check_text_columns(found.path, columns, file.schema_arrow.names)
        for batch in file.iter_batches(batch_size=rows, columns=wanted):
            chunk = _frame(batch, exactly=not steadily)
            if wanted is not None:
                chunk = chunk[wanted]  # pyarrow takes "a" for "a.b" as well
            kinds = kinds_of(chunk) if kinds is None else kinds
            yield steady(chunk, kinds, n_read, found.path) if steadily else chunk
            n_read += len(chunk)
        if not n_read:
            raise CoCoError(f"{found.path} is damaged: it has fewer rows than it says")


def n_parquet_columns(found: Found) -> int:
    """Return the number of columns."""
    with _opened(found) as file:
        return int(file.metadata.num_columns)


def import_pyarrow(path: object) -> Any:
    """Return pyarrow with its Parquet half, or say how to get it."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, and slow to import
        import pyarrow.parquet  # noqa: PLC0415 - the same
    except ImportError:
        raise CoCoError(
            f"{path}: Parquet needs pyarrow; run pip install 'cocoloss[parquet]'"
        ) from None
    return pa


def _frame(table: Any, *, exactly: bool = False) -> Any:
    frame = table.to_pandas(types_mapper=pd.ArrowDtype if exactly else None).reset_index(drop=True)
    frame.columns = [str(name) for name in frame.columns]
    if exactly:
        return frame
    # Text that was written as bytes; text of two encodings is told apart value by value.
    texts = {
        name: frame[name].astype(object).map(decoded, na_action="ignore")
        for name in (str(field.name) for field in table.schema if _holds_bytes(field.type))
        if name in frame.columns
    }
    return frame.assign(**texts) if texts else frame


def _holds_bytes(kind: Any) -> bool:
    from pyarrow import types  # noqa: PLC0415 - an extra, and slow to import

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(
        types.is_binary(kind) or types.is_large_binary(kind) or types.is_fixed_size_binary(kind)
    )


def _check_shape(path: object, file: Any) -> None:
    check_distinct(path, list(file.schema_arrow.names))
    if file.metadata.num_rows == 0:
        raise CoCoError(f"{path} has columns but no rows")
    if file.metadata.num_columns == 0:
        raise CoCoError(f"{path} has no columns")


@contextmanager
def _opened(found: Found) -> Iterator[Any]:
    path = found.path
    if found.gzipped:
        raise CoCoError(f"{path} is Parquet inside gzip; unpack it first, Parquet packs itself")
    pa = import_pyarrow(path)
    try:
        with pa.parquet.ParquetFile(path) as file:
            _check_shape(path, file)
            yield file
    except CoCoError:
        raise
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:
        # The latter where pandas' own notes inside the file are damaged.
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CoCoError(f"{path} is a damaged Parquet file: {reason}; fetch it again") from error
