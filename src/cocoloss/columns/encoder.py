"""What was learnt of a table's columns, as frozen values that turn tables into matrices.

Numpy and pandas alone: a model file predicts from these values without scikit-learn. How a kind of
column is read or encoded is not known here.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pandas.api.types import is_numeric_dtype

from cocoloss._checks import check_option, require, state_array, state_part
from cocoloss.columns.categories import TOO_RARE, TRUTH_KEYS, OneHot, fit_one_hots
from cocoloss.columns.column_kinds import (
    BOOLEAN,
    CATEGORY,
    DATE,
    NUMBER,
    QUANTITIES,
    RARE,
    STRAYS,
    TEXT,
    ColumnKind,
    ColumnOptions,
    find_kinds,
    warn_of_columns,
    with_reasons,
)
from cocoloss.columns.frames import MISSING, UNSEEN, Column, Header, Table, read_table
from cocoloss.columns.quantities import (
    CYCLES,
    EXAMPLES,
    Box,
    NumberScaler,
    as_floats,
    cycle_names,
    read_days,
    read_numbers,
    read_seconds,
    varying_cycles,
    write_cycles,
)
from cocoloss.columns.texts import TextReducer, fit_texts
from cocoloss.exceptions import CoCoError
from cocoloss.number_text import AUTO, COMMA, DOT, is_gap_mark, parse_numbers, with_decimal


@dataclass(frozen=True, eq=False, kw_only=True)
class TableEncoder:
    """What a :class:`TablePreprocessor` has learnt: a table of any kind to a finite matrix."""

    header: Header  # the names of the columns seen in fit
    columns: dict[str, ColumnKind]  # what each is and how it is read, or why it is not in use
    scaler: NumberScaler  # of numbers, dates and durations
    cycles: dict[str, list[str]]  # of each date
    one_hots: dict[str, OneHot]  # of each boolean and category
    texts: dict[str, TextReducer] = field(default_factory=dict)  # of each column of text in use
    decimal: str = AUTO  # the mark that the user named
    reader: str = "TablePreprocessor"  # who speaks in messages

    @classmethod
    def fit(
        cls, X: Any, options: ColumnOptions, *, estimator: str = "", stacklevel: int = 1
    ) -> Self:
        """Learn kinds, scales and categories; an estimator may speak in the messages."""
        reader = estimator or cls.reader
        table = read_table(X, reader)
        columns = find_kinds(table, options)
        quantities = {name: c for name, c in columns.items() if c.kind in QUANTITIES}
        where = {name: j for j, name in enumerate(table.names)}
        matrix = _read_quantities(table, where, quantities)
        scaler, useless = NumberScaler.fit(
            matrix, {n: c.kind for n, c in quantities.items()}, ranks=bool(options.ranks)
        )
        cycles = {
            name: varying_cycles(matrix[:, j])
            for j, (name, column) in enumerate(quantities.items())
            if column.kind == DATE and name not in useless
        }
        categories = {n: c.kind for n, c in columns.items() if c.kind in (BOOLEAN, CATEGORY)}
        one_hots, reasons = fit_one_hots(table, categories, options.max_categories)
        prose = [name for name, c in columns.items() if c.kind == TEXT and not c.left_out]
        texts, unread = fit_texts(table, prose) if prose else ({}, {})
        for name, why in (useless | reasons | unread).items():
            columns[name] = replace(columns[name], left_out=why)
            if why == TOO_RARE:
                columns[name] = replace(columns[name], about=RARE, remark=why)
        encoder = cls(
            header=table.header,
            # Remarks quote cells, and what was learnt holds none that it does not need.
            columns={n: replace(c, remark="") if c.remark else c for n, c in columns.items()},
            scaler=scaler,
            cycles=cycles,
            one_hots=one_hots,
            texts=texts,
            decimal=options.decimal,
            reader=reader,
        )
        if not encoder.kinds:
            few = ", as there is but one sample" if table.n_rows == 1 else ""
            nothing = f"no column is left to learn from{few}: "
            nothing += with_reasons(encoder.dropped_columns)
            if not estimator or few:
                raise CoCoError(nothing)
            warnings.warn(f"{nothing}; all rows are predicted alike", stacklevel=stacklevel + 1)
        warn_of_columns(columns, in_estimator=bool(estimator), stacklevel=stacklevel + 1)
        return encoder

    @property
    def column_names(self) -> list[str]:
        """The names of the columns seen in fit, or ``x0, x1, ...``."""
        return list(self.header.names)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each column in use."""
        return {name: column.kind for name, column in self.columns.items() if not column.left_out}

    @cached_property
    def forms(self) -> dict[str, str]:
        """How text is written where that is not the plain way: as "$1,234.5" or "%m/%d/%Y"."""
        return {n: self.columns[n].form for n in self.kinds if self.columns[n].form}

    @property
    def stray_columns(self) -> list[str]:
        """Columns of numbers in which other text is a gap, and not an error."""
        return [name for name in self.kinds if self.columns[name].lenient]

    @property
    def dropped_columns(self) -> dict[str, str]:
        """Why the other columns are not in use."""
        return {name: c.left_out for name, c in self.columns.items() if c.left_out}

    @cached_property
    def width(self) -> int:
        """Number of columns of the result; where none is in use there is one of zeros."""
        circles = 2 * sum(len(cycles) for cycles in self.cycles.values())
        categories = sum(one_hot.width for one_hot in self.one_hots.values())
        texts = sum(reducer.width for reducer in self.texts.values())
        return (self.scaler.width + circles + categories + texts) or 1

    @cached_property
    def _quantities(self) -> dict[str, ColumnKind]:
        return {n: self.columns[n] for n, kind in self.kinds.items() if kind in QUANTITIES}

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return a table with the columns seen in fit as a finite matrix, (n_rows, width)."""
        table = read_table(X, self.reader)
        where = self.header.locate(table.header, self.kinds, self.reader)
        out = np.zeros((table.n_rows, self.width), dtype=np.float32)
        matrix = _read_quantities(table, where, self._quantities)
        end = self.scaler.width
        self.scaler.transform(matrix, out[:, :end])
        for name, cycles in self.cycles.items():
            start, end = end, end + 2 * len(cycles)
            days = matrix[:, list(self._quantities).index(name)]
            write_cycles(days, cycles, out[:, start:end])
        for name, one_hot in self.one_hots.items():
            start, end = end, end + one_hot.width
            codes = one_hot.codes(table.column(where[name]), self.kinds[name])
            one_hot.transform(codes, out[:, start:end])
        for name, reducer in self.texts.items():
            start, end = end, end + reducer.width
            reducer.transform(table.column(where[name]), out[:, start:end])
        return out

    def out_of_range(self, X: Any) -> NDArray[np.float64]:
        """Return how far each row is outside what was seen in fit, (n_rows,).

        A category that fit has not seen counts like about a standard deviation beyond the range.
        """
        table = read_table(X, self.reader)
        where = self.header.locate(table.header, self.kinds, self.reader)
        distance = self.scaler.box.distance(_read_quantities(table, where, self._quantities))
        for unseen in self._unseen(table, where).values():
            distance += unseen
        return distance

    @property
    def quantity_names(self) -> list[str]:
        """The columns of numbers, dates and durations, in the order of ``scaler``."""
        return list(self._quantities)

    def read_quantities(self, X: Any) -> NDArray[Any]:
        """Return those columns of a table as numbers, NaN in gaps, (n_rows, n_quantities)."""
        table = read_table(X, self.reader)
        where = self.header.locate(table.header, self.kinds, self.reader)
        return _read_quantities(table, where, self._quantities)

    def cells_out_of_range(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """Return how far each cell is outside what was seen in fit, column by column, (n_rows,).

        In units of about a standard deviation; a category that fit has not seen is infinitely far.
        """
        table = read_table(X, self.reader)
        where = self.header.locate(table.header, self.kinds, self.reader)
        outside = self.scaler.box.outside(_read_quantities(table, where, self._quantities))
        found = dict(zip(self._quantities, outside.T, strict=True))
        for name, unseen in self._unseen(table, where).items():
            found[name] = np.where(unseen, np.inf, 0.0)
        return found

    def _unseen(self, table: Table, where: Mapping[str, int]) -> dict[str, NDArray[np.bool_]]:
        """Return which cells are categories that fit has not seen, column by column, (n_rows,)."""
        found = {}
        for name, one_hot in self.one_hots.items():
            codes = one_hot.codes(table.column(where[name]), self.kinds[name])
            # Rare categories are not remembered one by one, nor is the only one beside gaps.
            vague = one_hot.has_infrequent or not one_hot.categories
            found[name] = (codes == UNSEEN) & (not vague)
        return found

    def feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the result's columns, (width,)."""
        called = self.header.renamed(input_features)
        names = self.scaler.names([called[name] for name in self._quantities])
        for name, cycles in self.cycles.items():
            names += cycle_names(called[name], cycles)
        for name, each in (self.one_hots | self.texts).items():
            names += each.names(called[name])
        return np.array(names or ["nothing"], dtype=object)

    @property
    def origins(self) -> list[str]:
        """The column of the table that each column of the result comes from, (width,)."""
        names, scaled = list(self._quantities), self.scaler
        positions = scaled.value_columns, scaled.gap_columns, scaled.rank_columns
        origins = [names[j] for j in np.concatenate(positions)]
        for name, cycles in self.cycles.items():
            origins += 2 * len(cycles) * [name]
        for name, each in (self.one_hots | self.texts).items():
            origins += each.width * [name]
        return origins or self.column_names[:1]

    def with_decimal(self, decimal: str) -> Self:
        """Return an encoder that reads numbers in text with another decimal mark, "." or ","."""
        check_option(decimal, "decimal", [DOT, COMMA])
        columns = {
            name: replace(column, form=with_decimal(column.form, decimal))
            for name, column in self.columns.items()
            if column.kind == NUMBER
        }
        return replace(self, columns=self.columns | columns)

    def strays(self, X: Any) -> dict[str, str]:
        """Return the columns of numbers in which a table holds other text, and such a text.

        What was learnt from a sample of a table need not have met it.
        """
        table = read_table(X, self.reader)
        where = self.header.locate(table.header, self.kinds, self.reader)
        found = {}
        for name, this in self._quantities.items():
            column = table.column(where[name])
            if this.kind != NUMBER or this.lenient or is_numeric_dtype(column.series.dtype):
                continue
            values = column.distinct.values
            unread = np.isnan(parse_numbers(values, this.form))
            odd = [v for v, bad in zip(values, unread, strict=True) if bad and not is_gap_mark(v)]
            if odd:
                found[name] = f"such as {odd[0]!r}"
        return found

    def lenient_in(self, strays: Mapping[str, str]) -> Self:
        """Return an encoder to which text among the numbers of these columns is a gap."""
        columns = {n: replace(self.columns[n], about=STRAYS) for n in strays}
        return replace(self, columns=self.columns | columns) if columns else self

    def column_codes(self, name: str, column: Column) -> NDArray[np.intp]:
        """Return what each row has of a column in use: MISSING in a gap, UNSEEN, or 0 and more."""
        this = self.columns[name]
        if this.kind == TEXT:
            return np.minimum(column.distinct.codes, 0)
        if this.kind not in QUANTITIES:
            return self.one_hots[name].codes(column, this.kind)
        return np.where(np.isnan(_read_quantity(column, this)), MISSING, 0)

    def n_gaps(self, X: Any) -> dict[str, int]:
        """Return how many rows lack a value of each column in use, where any do."""
        table = read_table(X, self.reader)
        where = self.header.locate(table.header, self.kinds, self.reader)
        codes = {name: self.column_codes(name, table.column(where[name])) for name in self.kinds}
        counts = {name: int((of_rows == MISSING).sum()) for name, of_rows in codes.items()}
        return {name: count for name, count in counts.items() if count}

    def blank_row(self) -> Any:
        """Return a table of one row without any value, to try a model on."""
        return self.header.row_of(np.nan)

    def to_state(self) -> dict[str, Any]:
        """Return the value as nested dicts and lists of numbers, text and arrays."""
        return {
            "header": vars(self.header) | {"names": self.column_names},
            "columns": {name: [*vars(column).values()] for name, column in self.columns.items()},
            "scaler": {**vars(self.scaler), "box": self.scaler.box.to_state()},
            "cycles": self.cycles,
            "one_hots": {name: dict(vars(one_hot)) for name, one_hot in self.one_hots.items()},
            "texts": {name: dict(vars(reducer)) for name, reducer in self.texts.items()},
            "decimal": self.decimal,
            "reader": self.reader,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        listed = state_part(state, "columns", dict, of=list)
        columns = {n: ColumnKind(*state_part(listed, n, list, of=str, n=5)) for n in listed}
        kinds = [column.kind for column in columns.values() if not column.left_out]
        n_quantities = sum(kind in QUANTITIES for kind in kinds)
        arrays = state_part(state, "scaler", dict)
        encoder = cls(
            header=_header_of(state),
            columns=columns,
            scaler=NumberScaler(
                box=Box.from_state(arrays.get("box"), n_quantities),
                center=state_array(arrays, "center", np.float64, (n_quantities,)),
                scale=state_array(arrays, "scale", np.float64, (n_quantities,), positive=True),
                value_columns=state_array(arrays, "value_columns", np.signedinteger, (None,)),
                gap_columns=state_array(arrays, "gap_columns", np.signedinteger, (None,)),
                **_ranks_of(arrays),
            ),
            cycles=state_part(state, "cycles", dict, of=list),
            one_hots={
                name: OneHot(
                    categories=state_part(one_hot, "categories", list, of=str),
                    has_infrequent=state_part(one_hot, "has_infrequent", bool),
                    has_missing=state_part(one_hot, "has_missing", bool),
                )
                for name, one_hot in state_part(state, "one_hots", dict, of=dict).items()
            },
            texts={  # which earlier files have none of
                name: TextReducer.from_state(each)
                for name, each in state_part({"texts": {}, **state}, "texts", dict, of=dict).items()
            },
            decimal=check_option(state_part(state, "decimal", str), "decimal", [AUTO, DOT, COMMA]),
            reader=state_part(state, "reader", str),
        )
        encoder._check_parts()
        return encoder

    def _check_parts(self) -> None:
        """Refuse parts of a state that do not fit together."""
        kinds, scaler = self.kinds, self.scaler
        misfit = "its {} of columns do not fit together".format
        require([*self.columns] == self.column_names, misfit("names"))
        require({*kinds.values()} <= {*QUANTITIES, BOOLEAN, CATEGORY, TEXT}, misfit("kinds"))
        require([*self.texts] == [n for n in kinds if kinds[n] == TEXT], misfit("texts"))
        for positions in (scaler.value_columns, scaler.gap_columns, scaler.rank_columns):
            require({*positions.tolist()} <= {*range(len(self._quantities))}, misfit("positions"))
        others = {*kinds} - {*self._quantities} - {*self.texts}
        require({*self.one_hots} == others, misfit("categories"))
        for name, one_hot in self.one_hots.items():
            known = one_hot.categories
            is_boolean = kinds[name] == BOOLEAN
            sound = known in ([], TRUTH_KEYS) if is_boolean else len({*known}) == len(known)
            require(sound, misfit("categories"))
        require([*self.cycles] == [n for n in kinds if kinds[n] == DATE], misfit("dates"))
        for name, column in self._quantities.items():
            if column.kind == NUMBER:
                parse_numbers([], column.form)  # refuses what is no form
            elif column.kind == DATE:
                are_known = all(isinstance(c, str) and c in CYCLES for c in self.cycles[name])
                require(are_known and column.form in EXAMPLES, misfit("dates"))


@dataclass(frozen=True, eq=False, kw_only=True)
class FloatEncoder:
    """What a :class:`FloatConverter` has learnt: a table of finite numbers to a float32 matrix."""

    header: Header  # the names of the columns seen in fit
    box: Box  # their values
    reader: str = "FloatConverter"  # who speaks in messages

    @classmethod
    def fit(cls, X: Any, *, estimator: str = "") -> Self:
        """Check a table and remember its columns."""
        reader = estimator or cls.reader
        table = read_table(X, reader)
        box = Box.of(as_floats(table, range(len(table.names))))
        return cls(header=table.header, box=box, reader=reader)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns seen in fit, or ``x0, x1, ...``."""
        return list(self.header.names)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each column: all are numbers."""
        return dict.fromkeys(self.header.names, NUMBER)

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return len(self.header.names)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return a table as a matrix of the same numbers, (n_rows, width), C-contiguous."""
        table = read_table(X, self.reader)
        where = self.header.locate(table.header, self.header.names, self.reader)
        return as_floats(table, [where[name] for name in self.header.names])

    def out_of_range(self, X: Any) -> NDArray[np.float64]:
        """Return how far each row is outside what was seen in fit, (n_rows,)."""
        return self.box.distance(self.transform(X))

    def cells_out_of_range(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """Return how far each cell is outside what was seen in fit, column by column, (n_rows,)."""
        return dict(zip(self.column_names, self.box.outside(self.transform(X)).T, strict=True))

    def feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns, which are those of the table."""
        return np.array(list(self.header.renamed(input_features).values()), dtype=object)

    @property
    def origins(self) -> list[str]:
        """The column of the table that each column of the result is, (width,)."""
        return self.column_names

    def blank_row(self) -> Any:
        """Return a table of one row of zeros, to try a model on."""
        return self.header.row_of(0.0)

    def to_state(self) -> dict[str, Any]:
        """Return the value as nested dicts and lists."""
        header = vars(self.header) | {"names": self.column_names}
        return {"header": header, "box": self.box.to_state(), "reader": self.reader}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        header = _header_of(state)
        box = Box.from_state(state.get("box"), len(header.names))
        return cls(header=header, box=box, reader=state_part(state, "reader", str))


class Coverage:
    """Which columns have held nothing that an encoder knows, over parts of a table.

    A column is looked at until its first known value, so that long tables cost nothing more. Of
    encoders that find columns by position nothing is said.
    """

    def __init__(self, encoder: Any) -> None:
        self.encoder = encoder
        is_told = isinstance(encoder, TableEncoder) and encoder.header.named
        self.n_rows = 0  # rows seen so far
        self.empty = list(encoder.kinds) if is_told else []  # columns without a value so far
        self.unknown: dict[str, str] = {}  # those with unseen categories so far -> one of them

    def see(self, X: Any) -> None:
        """Look at further rows, a data frame with the columns of training."""
        self.n_rows += len(X)
        unsettled = [*self.empty, *self.unknown]
        if not unsettled or not len(X):
            return
        table = read_table(X[unsettled], "Coverage")
        for j, name in enumerate(unsettled):
            column = table.column(j)
            codes = self.encoder.column_codes(name, column)
            is_new = codes == UNSEEN
            one_hot = self.encoder.one_hots.get(name)
            # Rare categories are not remembered one by one, nor is the only one beside gaps.
            vague = one_hot is not None and (one_hot.has_infrequent or not one_hot.categories)
            is_known = (codes >= 0).any() or (vague and is_new.any())
            if name in self.empty and (is_known or is_new.any()):
                self.empty.remove(name)
            if is_known:
                self.unknown.pop(name, None)
            elif is_new.any():
                example = column.series.iloc[int(np.argmax(is_new))]
                self.unknown.setdefault(name, str(example))


def _read_quantities(
    table: Table, where: Mapping[str, int], columns: Mapping[str, ColumnKind]
) -> NDArray[Any]:
    """Return numbers, days since 1970 and seconds as a matrix, NaN in the gaps.

    It has a column for each of the given ones; at times it is the table's own block.
    """
    positions = [where[name] for name in columns]
    block = table.numbers(positions)
    if block is not None and all(column.kind == NUMBER for column in columns.values()):
        return block
    matrix = np.empty((len(columns), table.n_rows))
    for row, position, column in zip(matrix, positions, columns.values(), strict=True):
        row[:] = _read_quantity(table.column(position), column)
    return matrix.T


def _read_quantity(column: Column, this: ColumnKind) -> NDArray[np.float64]:
    if this.kind == NUMBER:
        return read_numbers(column, this.form, lenient=this.lenient)
    return read_days(column, this.form) if this.kind == DATE else read_seconds(column)


def _ranks_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a scaler's state that is about ranks; earlier files have none."""
    if "knots" not in state:
        return {"rank_columns": np.zeros(0, dtype=np.intp), "knots": []}
    listed = state_part(state, "knots", list, of=np.ndarray)
    knots = [state_array({"knots": each}, "knots", np.float64, (2, None)) for each in listed]
    rising = all(each.size and (np.diff(each) > 0).all() for each in knots)
    require(rising, "the knots of its ranks do not rise")
    columns = state_array(state, "rank_columns", np.signedinteger, (len(knots),))
    return {"rank_columns": columns, "knots": knots}


def _header_of(state: Mapping[str, Any]) -> Header:
    parts = state_part(state, "header", dict)
    names = state_part(parts, "names", list, of=str)
    require(len(set(names)) == len(names) > 0, "its names of columns must be there and differ")
    flags = (state_part(parts, flag, bool) for flag in ("named", "all_text"))
    return Header(tuple(names), *flags)
