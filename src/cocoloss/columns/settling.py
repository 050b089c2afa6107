"""Columns of text turned into what they are, once for a whole table.

Parts of a table may look otherwise: of ten identifiers one cannot say that all differ, and the one
cell with a decimal comma is in one part only. Whoever learns from parts, as cross-validation does,
settles this before: it is a matter of reading, and neither classes nor numbers decide it.
"""

from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from cocoloss.columns.dates import MICROSECONDS_PER_DAY
from cocoloss.columns.kinds import CATEGORY, DATE, NUMBER, STRAYS, TEXT
from cocoloss.columns.preprocessor import TablePreprocessor
from cocoloss.columns.tables import read_table
from cocoloss.columns.values import days, numbers


def settle_kinds(X: Any, preprocessor: TablePreprocessor | None = None) -> Any:
    """Return a frame whose columns of text are numbers, dates or categories by type.

    A :class:`TablePreprocessor` then takes every part of it as it would take the whole. Columns
    that it would drop as text are left out, with its warnings.

    Parameters
    ----------
    X : pandas.DataFrame
        A table; columns that are not text stay as they are.
    preprocessor : TablePreprocessor, optional
        Whose arguments say how to read it; the default ones if left out. It is not fitted.

    Returns
    -------
    pandas.DataFrame
        The same rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from cocoloss.columns import settle_kinds
    >>> table = pd.DataFrame({"price": ["12,50 EUR", "8 EUR"], "day": ["31.12.2024", "1.1.2025"]})
    >>> settle_kinds(table)
       price        day
    0   12.5 2024-12-31
    1    8.0 2025-01-01
    """
    preprocessor = TablePreprocessor() if preprocessor is None else preprocessor
    table = read_table(X, "settle_kinds")
    findings = preprocessor._find_kinds(table)  # noqa: SLF001 - a part of it, in a file of its own
    preprocessor._warn_of(findings)  # noqa: SLF001
    changed = {}
    for name, label in zip(table.names, X.columns, strict=True):
        found, column = findings[name], X[label]
        is_text = types.is_string_dtype(column.dtype)
        if found.kind == NUMBER and is_text:
            values = numbers(column, name, found.form, lenient=found.about == STRAYS)
            changed[label] = pd.Series(values, X.index)
        elif found.kind == DATE and is_text:
            changed[label] = pd.Series(_stamps(days(column, name, found.form)), X.index)
        elif found.kind == CATEGORY and not isinstance(column.dtype, pd.CategoricalDtype):
            changed[label] = column.astype("category")
    text = [label for label in X.columns if findings[str(label)].kind == TEXT]
    if 0 < len(text) < len(X.columns):  # else it is for fit to say that nothing is left
        X = X.drop(columns=text)
    return X.assign(**changed) if changed else X


def _stamps(values: Any) -> Any:
    """Return days since 1970 as times, which are whole microseconds."""
    gaps = np.isnan(values)
    microseconds = np.rint(np.where(gaps, 0, values) * MICROSECONDS_PER_DAY).astype(np.int64)
    stamps = microseconds.astype("datetime64[us]")
    stamps[gaps] = np.datetime64("NaT")
    return stamps
