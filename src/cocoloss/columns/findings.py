"""What the columns of a table are, each by itself but for the decimal mark, which they share."""

from typing import Any

import numpy as np
from pandas.api import types

from cocoloss.columns.kinds import CATEGORY, NUMBER, Finding, Writing, find_kind
from cocoloss.columns.listed import listed_categories
from cocoloss.columns.numerals import AUTO, COMMA, DECIMAL_COMMA
from cocoloss.columns.tables import NUMBER_KINDS, Table


def find_kinds(
    table: Table, categorical_features: Any, max_categories: int, writing: Writing
) -> dict[str, Finding]:
    """Say of each column what it is.

    Where numbers in some column of text have decimal commas, and in none a decimal point, points
    in the others are thousands.

    Parameters
    ----------
    table : Table
        The table.
    categorical_features : "from_dtype" or sequence
        Columns that are categories whatever they hold.
    max_categories : int
        With more values than this, nearly all different, even short ones are text.
    writing : Writing
        How numbers and dates are written, where that is known.

    Returns
    -------
    dict of str to Finding
        In the order of the columns.
    """
    listed = listed_categories(categorical_features, table)
    findings = {}
    for j, name in enumerate(table.names):
        if name in listed:
            findings[name] = Finding(CATEGORY)
        elif table.block is not None or _is_plain(table.column(j)):
            # Text in place of these numbers, some day, has the decimal mark of the table.
            findings[name] = Finding(NUMBER, DECIMAL_COMMA if writing.decimal == COMMA else "")
        else:
            findings[name] = find_kind(table.column(j), name, max_categories, writing)
    if writing.decimal != AUTO or not any(DECIMAL_COMMA in f.form for f in findings.values()):
        return findings
    commas = writing._replace(decimal=COMMA)
    renewed = {
        name: find_kind(table.column(j), name, max_categories, commas)
        for j, name in enumerate(table.names)
        if _is_numbers_in_text(findings[name], table.column(j))
    }
    agreed = all(DECIMAL_COMMA in finding.form for finding in renewed.values())
    return findings | renewed if agreed else findings


def _is_plain(column: Any) -> bool:
    dtype = column.dtype
    return isinstance(dtype, np.dtype) and dtype.kind in NUMBER_KINDS


def _is_numbers_in_text(finding: Finding, column: Any) -> bool:
    """Tell whether a column of text was taken for numbers without a decimal comma."""
    is_text = not types.is_numeric_dtype(column.dtype)
    return is_text and finding.kind == NUMBER and DECIMAL_COMMA not in finding.form
