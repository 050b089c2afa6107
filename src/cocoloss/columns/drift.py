"""How a table differs from the one that an encoder learnt from: ranges, categories, gaps.

Tables of the same kind differ a little, too: a few values beyond the range, a rare category. So
only what many rows have is reported, or what is far out; and nothing of encoders that know no
columns.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import SHOWN, amount, counted
from cocoloss.columns.categories import OneHot
from cocoloss.columns.column_kinds import DATE
from cocoloss.columns.encoder import TableEncoder
from cocoloss.columns.frames import MISSING, UNSEEN, read_table
from cocoloss.columns.quantities import as_timestamps

MARGIN = 0.1  # of the range, by which a value may be beyond it
FAR_OUT = 10.0  # ranges beyond the range: a single such value is reported
LEAST_SHARE = 0.1  # of the rows, that are reported for anything else
MOST_ROWS = 100_000  # that are looked at; later ones are not

OUT_OF_RANGE = "out_of_range"
NEW_CATEGORIES = "new_categories"
NEW_GAPS = "new_gaps"
SAID = {
    OUT_OF_RANGE: "values out of the range of training",
    NEW_CATEGORIES: "categories that training had not",
    NEW_GAPS: "gaps where training had none",
}


@dataclass
class _Seen:
    """What rows so far had of a column."""

    rows: int = 0
    example: str = ""
    far: float = 0.0  # how many ranges the farthest value is out


@dataclass(frozen=True)
class Drift:
    """What rows have that training had not, collected over parts of a table."""

    encoder: Any
    found: dict[str, dict[str, _Seen]] = field(default_factory=lambda: {what: {} for what in SAID})
    looked_at: list[int] = field(default_factory=list)  # rows of each part

    def see(self, X: Any) -> None:
        """Look at further rows, a table with the columns of training."""
        encoder = self.encoder
        if not isinstance(encoder, TableEncoder) or self.n_rows >= MOST_ROWS:
            return
        self.looked_at.append(len(X))
        values = encoder.read_quantities(X)
        self._see_ranges(values)
        table = read_table(X, encoder.reader)
        where = encoder.header.locate(table.header, encoder.kinds, encoder.reader)
        others: dict[str, Any] = encoder.one_hots | encoder.texts
        for name, each in others.items():
            column = table.column(where[name])
            codes = encoder.column_codes(name, column)
            if not each.has_missing:
                self._add(NEW_GAPS, name, codes == MISSING)
            # Rare categories are not remembered one by one, nor is the only one beside gaps.
            if isinstance(each, OneHot) and each.categories and not each.has_infrequent:
                is_new = codes == UNSEEN
                example = column.series.iloc[int(np.argmax(is_new))]
                self._add(NEW_CATEGORIES, name, is_new, f"such as {str(example)[:40]!r}")

    @property
    def n_rows(self) -> int:
        """How many rows were looked at."""
        return sum(self.looked_at)

    def counts(self) -> dict[str, dict[str, int]]:
        """Return in how many rows each column has each sort of drift, where that is worth telling.

        The sorts are "out_of_range", "new_categories" and "new_gaps".
        """
        enough = LEAST_SHARE * self.n_rows
        return {
            what: {
                name: seen.rows
                for name, seen in columns.items()
                if seen.rows >= enough or seen.far > FAR_OUT
            }
            for what, columns in self.found.items()
            if what != NEW_GAPS or self.n_rows > 1  # a gap in a single row is nothing special
        }

    def without(self, columns: Collection[str]) -> Self:
        """Return what there is to say of other columns, where that of some is said already."""
        found = {
            what: {name: seen for name, seen in each.items() if name not in columns}
            for what, each in self.found.items()
        }
        return replace(self, found=found)

    def notes(self) -> list[str]:
        """Return a line for each sort of drift, with the columns and how many rows have it."""
        lines = []
        for what, columns in self.counts().items():
            if not columns:
                continue
            shown = [self._shown(what, name) for name in [*columns][:SHOWN]]
            more = len(columns) - SHOWN
            also = f"; and {more:,} more columns" if more > 0 else ""
            lines.append(f"{SAID[what]}: {'; '.join(shown)}{also}")
        return lines

    def __str__(self) -> str:
        return "\n".join([f"{counted(self.n_rows, 'row')} compared with training", *self.notes()])

    __repr__ = __str__

    def _shown(self, what: str, name: str) -> str:
        seen = self.found[what][name]
        rest = f", {seen.example}" if seen.example else ""
        return f"{name} ({seen.rows:,} of {self.n_rows:,} rows{rest})"

    def _add(self, what: str, name: str, rows: NDArray[np.bool_], example: str = "") -> None:
        n = int(rows.sum())
        if n:
            seen = self.found[what].setdefault(name, _Seen())
            seen.rows += n
            seen.example = seen.example or example

    def _see_ranges(self, values: NDArray[Any]) -> None:
        """Look at quantities, (n_rows, n_columns)."""
        scaler, kinds = self.encoder.scaler, self.encoder.kinds
        low, high = scaler.box.low, scaler.box.high
        marked = np.isnan(values[:, scaler.gap_columns]).any(axis=1)
        for j, name in enumerate(self.encoder.quantity_names):
            x = values[:, j].astype(np.float64)
            if j not in scaler.gap_columns:
                # Of columns whose gaps coincide one alone is marked.
                self._add(NEW_GAPS, name, np.isnan(x) & ~marked)
            unit = high[j] - low[j] or max(abs(low[j]), 1.0)
            with np.errstate(over="ignore"):
                out = np.nan_to_num(np.fmax(low[j] - x, x - high[j]) / unit, nan=0.0)
            if not (out > MARGIN).any():
                continue
            worst = int(np.argmax(out))
            three = x[worst], low[j], high[j]
            if kinds[name] == DATE:
                ends = [str(day)[:10] for day in as_timestamps(np.array(three))]
            else:
                ends = [amount(each) for each in three]
            seen = self.found[OUT_OF_RANGE].setdefault(name, _Seen())
            seen.rows += int((out > MARGIN).sum())
            if out[worst] > seen.far:
                seen.far = float(out[worst])
                seen.example = f"such as {ends[0]} where training had {ends[1]} to {ends[2]}"


def drift_of(encoder: Any, X: Any) -> Drift:
    """Return what a table has that training had not."""
    drift = Drift(encoder)
    drift.see(X)
    return drift
