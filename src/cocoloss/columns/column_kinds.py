"""What kind each column of a table is, decided once: by its dtype, and else by what it holds.

The result says of each column how it is read, why it is left out, and what to warn of. Nothing is
learnt here but that.
"""

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from cocoloss._checks import SHOWN, check_integer, check_option, listed
from cocoloss.columns.frames import Column, Distinct, Table, is_plain_number, read_table
from cocoloss.columns.quantities import (
    as_timestamps,
    find_order,
    look_like_dates,
    read_days,
    read_numbers,
)
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import (
    AUTO,
    COMMA,
    DOT,
    WITH_COMMA,
    are_codes,
    find_form,
    has_leading_zero,
    is_gap_mark,
)

NUMBER = "number"
DATE = "date"
DURATION = "duration"
BOOLEAN = "boolean"
CATEGORY = "category"
TEXT = "text"  # free text; identifiers, too, which are left out
QUANTITIES = frozenset({NUMBER, DATE, DURATION})

FROM_DTYPE = "from_dtype"

# What pandas finds in a column of Python objects. Whatever is not listed is looked at as text.
KIND_OF_OBJECTS = {
    "boolean": BOOLEAN,
    "integer": NUMBER,
    "floating": NUMBER,
    "mixed-integer-float": NUMBER,
    "decimal": NUMBER,
    "empty": NUMBER,
    "date": DATE,
    "datetime": DATE,
    "datetime64": DATE,
    "timedelta": DURATION,
    "timedelta64": DURATION,
}

# Text among numbers is a gap where it is this rare; else the column is a category.
NUMBERS_MIN_SHARE = 0.95
NUMBERS_MIN_COUNT = 20

# Identifiers and free text: many values, nearly all different, longer than a code or too many.
TEXT_MIN_DISTINCT = 20
TEXT_MIN_DISTINCT_SHARE = 0.9
TEXT_MIN_LENGTH = 5
# Text that is read: at least this share of the cells differ, this share of the values by their
# words, and they have so many on average.
PROSE_MIN_WORDS = 2.0
PROSE_MIN_DISTINCT_SHARE = 0.5
_WORD = re.compile(r"[^\W\d_]{2,}")  # two letters at least

# What a remark about a column is about, beside TEXT.
PROSE = "prose"  # text that is read
STRAYS = "strays"  # other text among numbers
MIXTURE = "mixture"  # a category, though most values are numbers
UNCLEAR_DATES = "dates"
THOUSANDS = "thousands"  # points that might be decimal points
RARE = "rare"  # too many categories, and none occurs twice

_AS_CATEGORY = "categorical_features={names}"
_CONVERT_DATES = (
    "Convert such a column by pandas.to_datetime, or say whether day or month is first by",
    "day_first=True or day_first=False",
)
# What became of columns (kind), and what the remark is about -> how to say it, what to do, and by
# which argument.
WARNINGS = {
    (TEXT, TEXT): (
        "dropped",
        "Turn such a column into numbers or dates, or keep it as a category by",
        _AS_CATEGORY,
    ),
    (TEXT, UNCLEAR_DATES): ("dropped", *_CONVERT_DATES),
    (TEXT, PROSE): (
        "read as text, by parts of its words:",
        "Leave out such a column if it only names the rows, or make it a category by",
        _AS_CATEGORY,
    ),
    (NUMBER, STRAYS): (
        "read as numbers, with other text as gaps:",
        "Mend that text, or make such a column a category by",
        _AS_CATEGORY,
    ),
    (NUMBER, THOUSANDS): (
        "read with points between thousands, as decimal marks are commas:",
        "If they are decimal points, say so by",
        "decimal='.'",
    ),
    (CATEGORY, MIXTURE): (
        "taken as categories:",
        "Convert such a column by pandas.to_numeric, or confirm it by",
        _AS_CATEGORY,
    ),
    (CATEGORY, UNCLEAR_DATES): ("taken as categories:", *_CONVERT_DATES),
    (CATEGORY, RARE): (
        "dropped",
        "Raise max_categories to their number to keep them:",
        "max_categories=...",
    ),
}


class ColumnsWarning(UserWarning):
    """A warning about columns, in two halves: what was made of them, and what to do."""

    def __init__(self, what: str, remedy: str, about: str) -> None:
        super().__init__(f"{what}. {remedy}")
        self.what = what  # for those who have another remedy at hand, such as an option
        self.about = about  # "text", "prose", "strays", "mixture", "dates", "thousands", "rare"


@dataclass(frozen=True)
class ColumnOptions:
    """What the user says of the columns: the arguments of :class:`TablePreprocessor`."""

    categorical_features: Any = FROM_DTYPE
    max_categories: int = 64
    decimal: str = AUTO
    day_first: bool | None = None
    ranks: bool | None = None

    def __post_init__(self) -> None:
        check_integer(self.max_categories, "max_categories", minimum=2)
        check_option(self.decimal, "decimal", [AUTO, DOT, COMMA])

    @classmethod
    def of(cls, preprocessor: Any) -> Self:
        """Return the arguments of a preprocessor, checked."""
        return cls(**{field.name: getattr(preprocessor, field.name) for field in fields(cls)})


@dataclass(frozen=True)
class ColumnKind:
    """What a column turned out to be."""

    kind: str  # "number", "date", "duration", "boolean", "category" or "text"
    form: str = ""  # how its numbers or dates are written, where that is not the plain way
    about: str = ""  # what there is to warn of, as in ColumnsWarning
    remark: str = ""  # and the words for it
    left_out: str = ""  # why it is not in use, if it is not

    @property
    def lenient(self) -> bool:
        """Whether text among its numbers is a gap, and not an error."""
        return self.about == STRAYS


def warn_of_columns(
    columns: Mapping[str, ColumnKind], *, in_estimator: bool, stacklevel: int
) -> None:
    """Warn once for each sort of remark; in an estimator the remedy names ``preprocess``."""
    doubtful = {name: column for name, column in columns.items() if column.about}
    for (kind, about), (fate, remedy, argument) in WARNINGS.items():
        remarks = {n: c.remark for n, c in doubtful.items() if (c.kind, c.about) == (kind, about)}
        if remarks:
            some = ", ".join(map(repr, [*remarks][:SHOWN]))
            names = f"[{some}{', ...' if len(remarks) > SHOWN else ''}]"
            call = f"TablePreprocessor({argument.format(names=names)})"
            if in_estimator:
                call = f"preprocess={call} (from cocoloss.columns)"
            warning = ColumnsWarning(f"{fate} {with_reasons(remarks)}", f"{remedy} {call}", about)
            warnings.warn(warning, stacklevel=stacklevel + 1)


def with_reasons(reasons: Mapping[str, str]) -> str:
    """Return the first few columns with a remark about each."""
    texts = [f"{name!r} ({reason})" for name, reason in reasons.items()]
    return listed(texts, quoted=False, separator="; ")


def find_kinds(table: Table, options: ColumnOptions) -> dict[str, ColumnKind]:
    """Say of each column what it is.

    Each is judged by itself but for the decimal mark: where numbers in some column of text have
    decimal commas, and in none a decimal point, points in the others are thousands.
    """
    categories = _listed_categories(options.categorical_features, table)
    # Text in place of plain numbers, some day, has the decimal mark of the table.
    plain = ColumnKind(NUMBER, WITH_COMMA if options.decimal == COMMA else "")
    found = {}
    for j, name in enumerate(table.names):
        if name in categories:
            found[name] = ColumnKind(CATEGORY)
        elif table.block is not None or is_plain_number(table.column(j).series.dtype):
            found[name] = plain
        else:
            found[name] = find_kind(table.column(j), options)
    if options.decimal == AUTO and any(WITH_COMMA in column.form for column in found.values()):
        with_commas = replace(options, decimal=COMMA)
        renewed = {
            column.name: find_kind(column, with_commas)
            for column in table.columns
            if found[column.name].kind == NUMBER
            and WITH_COMMA not in found[column.name].form
            and not types.is_numeric_dtype(column.series.dtype)
        }
        if all(WITH_COMMA in column.form for column in renewed.values()):
            found |= renewed
    return found


def find_kind(column: Column, options: ColumnOptions) -> ColumnKind:
    """Say whether a column is numbers, dates, durations, booleans, a category or text."""
    kind = kind_of_dtype(column.series.dtype)
    if kind is not None:
        return ColumnKind(kind)
    if types.is_complex_dtype(column.series.dtype):
        raise column.complex_error()
    values, counts = column.distinct.values, column.distinct.counts
    kind = KIND_OF_OBJECTS.get(types.infer_dtype(values, skipna=False))
    if kind is not None:
        return ColumnKind(kind)
    is_mark = np.array([is_gap_mark(value) for value in values], dtype=bool)
    if is_mark.all():
        return ColumnKind(CATEGORY)
    found = _find_quantity(values[~is_mark], counts[~is_mark], options)
    return _as_text(column.distinct, found, options) if found.kind == CATEGORY else found


def _as_text(column: Distinct, found: ColumnKind, options: ColumnOptions) -> ColumnKind:
    """Say whether what would be a category is text, to be read or to be left out."""
    first = column.values[0]
    if not found.about and _is_prose(column, options.max_categories):
        # The same words for every fold, so that the warning is shown once.
        return ColumnKind(TEXT, about=PROSE, remark="values of several words")
    if not _is_free_text(column, options.max_categories):
        return found
    more = f"and {found.remark}" if found.remark else f"such as {first!r}"
    about = found.about if found.about == UNCLEAR_DATES else TEXT
    remark = f"text: nearly every value differs, {more}"
    return ColumnKind(TEXT, about=about, remark=remark, left_out=remark)


def kind_of_dtype(dtype: Any) -> str | None:
    """Return the kind that a dtype says, None where the values must be looked at.

    A categorical dtype is a category whether or not it is ordered, because readers of nominal data
    often set the flag. Integers are numbers.
    """
    if isinstance(dtype, pd.CategoricalDtype | pd.IntervalDtype):
        return CATEGORY
    if types.is_bool_dtype(dtype):
        return BOOLEAN
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return NUMBER
    if types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        return DATE
    return DURATION if types.is_timedelta64_dtype(dtype) else None


def settle_kinds(X: Any, preprocessor: Any = None) -> Any:
    """Return a frame whose columns of text are numbers, dates or categories by type.

    A :class:`TablePreprocessor` then takes every part of it as it would take the whole. Parts may
    look otherwise: of ten identifiers one cannot say that all differ, and the one cell with a
    decimal comma is in one part only. So whoever learns from parts, as cross-validation does,
    calls this before; neither classes nor numbers decide it. Columns that are left out as text are
    left out here, with the same warnings; free text stays text.

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
    >>> settle_kinds(pd.DataFrame({"price": ["$1,200", "$7"], "city": ["Bonn", "Genf"]})).dtypes
    price     float64
    city     category
    dtype: object
    """
    return typed_by_kind(X, preprocessor)[0]


def typed_by_kind(X: Any, preprocessor: Any = None) -> tuple[Any, dict[str, ColumnKind]]:
    """Return what :func:`settle_kinds` does, and what each column turned out to be."""
    options = ColumnOptions() if preprocessor is None else ColumnOptions.of(preprocessor)
    table = read_table(X, "settle_kinds")
    found = find_kinds(table, options)
    warn_of_columns(found, in_estimator=False, stacklevel=3)
    changed: dict[Any, Any] = {}
    for j, label in enumerate(X.columns):
        column, this = table.column(j), found[table.names[j]]
        is_text = types.is_string_dtype(column.series.dtype)
        if this.kind == NUMBER and is_text:
            values = read_numbers(column, this.form, lenient=this.lenient)
            changed[label] = pd.Series(values, X.index)
        elif this.kind == DATE and is_text:
            changed[label] = pd.Series(as_timestamps(read_days(column, this.form)), X.index)
        elif this.kind == CATEGORY and not isinstance(column.series.dtype, pd.CategoricalDtype):
            changed[label] = X[label].astype("category")
    text = [label for label in X.columns if found[str(label)].left_out]
    if 0 < len(text) < len(X.columns):  # else it is for fit to say that nothing is left
        X = X.drop(columns=text)
    return X.assign(**changed) if changed else X, found


def _find_quantity(
    values: NDArray[Any], counts: NDArray[np.intp], options: ColumnOptions
) -> ColumnKind:
    """Say which quantity a column is, or else that it is a category, and what speaks against it."""
    kind = KIND_OF_OBJECTS.get(types.infer_dtype(values, skipna=False))
    if kind is not None and kind != BOOLEAN:
        return ColumnKind(kind)
    found = _find_numbers(values, counts, options.decimal)
    if found.kind == NUMBER:
        return found
    order = find_order(values, day_first=options.day_first)
    if order is not None:
        return ColumnKind(DATE, order)
    if look_like_dates(values):
        remark = f"they look like dates, but cannot be read for sure, such as {values[0]!r}"
        return ColumnKind(CATEGORY, about=UNCLEAR_DATES, remark=remark)
    return found


def _find_numbers(values: NDArray[Any], counts: NDArray[np.intp], decimal: str) -> ColumnKind:
    """Say that a column is numbers, or else a category, and what speaks against it."""
    if are_codes(values):  # such as postcodes
        return ColumnKind(CATEGORY)
    form, fits = find_form(values, counts, decimal)
    zeros = np.array([has_leading_zero(value) for value in values], dtype=bool)
    fits &= ~zeros
    odd = values[np.argmin(fits)]
    if fits.all():
        text = [value for value in values if isinstance(value, str)]
        points = [value for value in text if "." in value]  # might be decimal points as well
        commas = any("," in value for value in text)
        if decimal == COMMA and WITH_COMMA in form and points and not commas:
            return ColumnKind(NUMBER, form, THOUSANDS, f"such as {points[0]!r}")
        return ColumnKind(NUMBER, form)
    n_fit, n_cells = int(counts[fits].sum()), int(counts.sum())
    strays_are_few = n_fit >= max(NUMBERS_MIN_COUNT, NUMBERS_MIN_SHARE * n_cells)
    sure = decimal == COMMA or WITH_COMMA not in form
    if strays_are_few and not zeros.any() and sure:
        return ColumnKind(NUMBER, form, STRAYS, f"such as {odd!r}")
    if 2 * n_fit > n_cells and len(values) > TEXT_MIN_DISTINCT:
        remark = f"most values are numbers, but not {odd!r}"
        return ColumnKind(CATEGORY, about=MIXTURE, remark=remark)
    return ColumnKind(CATEGORY)


def _is_free_text(column: Distinct, max_categories: int) -> bool:
    n_distinct = len(column.values)
    if n_distinct <= TEXT_MIN_DISTINCT:
        return False
    if n_distinct < TEXT_MIN_DISTINCT_SHARE * int(column.counts.sum()):
        return False
    if n_distinct > max_categories:
        return True
    return float(np.mean([len(str(value)) for value in column.values])) >= TEXT_MIN_LENGTH


def _is_prose(column: Distinct, max_categories: int) -> bool:
    """Say whether values are worth reading: many, mostly different, of several different words."""
    n_distinct = len(column.values)
    if n_distinct <= TEXT_MIN_DISTINCT:
        return False
    share = n_distinct / int(column.counts.sum())
    many = n_distinct > max_categories or share >= TEXT_MIN_DISTINCT_SHARE
    if not many or share < PROSE_MIN_DISTINCT_SHARE:
        return False
    words = [(*_WORD.findall(value),) for value in column.values if isinstance(value, str)]
    if len({*words}) < PROSE_MIN_DISTINCT_SHARE * n_distinct:  # "row no. 1", "row no. 2", ...
        return False
    return float(np.mean([len(each) for each in words])) >= PROSE_MIN_WORDS


def _listed_categories(features: Any, table: Table) -> set[str]:
    """Return the names of the columns that the user lists as categories.

    They are names, positions from 0, or a mask; "from_dtype" lists none.
    """
    names = table.names
    if isinstance(features, str):
        if features == FROM_DTYPE:
            return set()
        raise CoCoError(f"categorical_features must be {FROM_DTYPE!r} or a list, not {features!r}")
    entries = np.asarray(features, dtype=object).ravel().tolist()
    if len(entries) == len(names) and all(isinstance(e, bool | np.bool_) for e in entries):
        entries = np.flatnonzero(entries).tolist()
    known: dict[Any, str] = dict(zip(names, names, strict=True)) | dict(enumerate(names))
    for entry in entries:
        is_key = isinstance(entry, str | Integral) and not isinstance(entry, bool)
        if not is_key or entry not in known:
            raise CoCoError(
                f"categorical_features lists {entry!r}, but the columns are "
                f"{listed(names, quoted=False)}; give names, positions from 0 or a mask of all"
            )
    return {known[entry] for entry in entries}
