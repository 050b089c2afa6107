"""The columns of categories and booleans: the one-hots they need, and the codes of new rows."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.columns.categories import OneHot
from cocoloss.columns.kinds import BOOLEAN
from cocoloss.columns.scaling import find_twins
from cocoloss.columns.tables import Table
from cocoloss.columns.values import (
    UNSEEN,
    category_codes,
    category_keys,
    distinct,
    truth_codes,
)

TRUTH_KEYS = ["False", "True"]
TOO_RARE = "too many categories, and none occurs twice"


def fit_one_hots(
    table: Table, kinds: Mapping[str, str], max_categories: int
) -> tuple[dict[str, OneHot], dict[str, str]]:
    """Learn the categories of some columns.

    Parameters
    ----------
    table : Table
        The table.
    kinds : mapping of str to str
        The columns, and whether each is a category or a boolean.
    max_categories : int
        With more categories than this, the rarest are grouped.

    Returns
    -------
    one_hots : dict of str to OneHot
        The categories of each column in use.
    dropped : dict of str to str
        Why the others are not.
    """
    one_hots, dropped, contents = {}, {}, {}
    for j, name in enumerate(table.names):
        if name not in kinds:
            continue
        column = table.column(j)
        if kinds[name] == BOOLEAN:
            keys, codes = TRUTH_KEYS, truth_codes(column, name)
        else:
            keys = sorted(set(category_keys(distinct(column, name).values)))
            codes = category_codes(column, name, keys)
        one_hot = OneHot.fit(codes, keys, max_categories)
        if one_hot.width == 0:
            dropped[name] = _why_useless(codes)
        else:
            one_hots[name] = one_hot
            contents[j] = (tuple(keys), codes.tobytes())
    twins = find_twins(list(contents), lambda j: contents[j][0], lambda j: contents[j][1])
    for j, twin in twins.items():
        dropped[table.names[j]] = f"duplicate of {table.names[twin]!r}"
        del one_hots[table.names[j]]
    return one_hots, dropped


def one_hot_codes(column: Any, name: str, kind: str, one_hot: OneHot) -> NDArray[np.intp]:
    """Return the position of each row's category, MISSING in a gap, UNSEEN where it is new."""
    if kind != BOOLEAN:
        return category_codes(column, name, one_hot.categories)
    codes = truth_codes(column, name)
    if not one_hot.categories:  # training saw one of the two only, and gaps
        codes = np.where(codes >= 0, UNSEEN, codes)
    return codes


def _why_useless(codes: NDArray[np.intp]) -> str:
    n_categories = np.unique(codes[codes >= 0]).size
    if n_categories == 0:
        return "no value"
    return "constant" if n_categories == 1 else TOO_RARE
