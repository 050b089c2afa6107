"""What a report says, before it is a page, Markdown or LaTeX: a few kinds of blocks.

The blocks are made once from results; each writer turns them into its own form. Nothing here
computes, and nothing here knows a form. How numbers are written is the same in all of them.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from cocoloss.report.figures import SUFFIXES, figure_bytes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

UNSEEN = frozenset({"Cc", "Cs"})  # control characters and lone surrogates: no file can hold these
MISSING = "\u2013"
NARROW = "\u202f"  # a space at which no line breaks
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True)
class Cell:
    """A cell of a table."""

    text: str
    value: float | None = None  # what it is sorted by; the text if left out
    best: bool = False  # whether it stands out


@dataclass(frozen=True)
class Heading:
    """A title; 1 is that of a benchmark, 2 of a section, 3 of a part."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Text:
    """A paragraph; ``role`` is "lead", "about" or "warning"."""

    text: str
    role: str = "about"


@dataclass(frozen=True)
class Items:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True)
class Cards:
    """Numbers that stand out: title, value, remark."""

    cards: tuple[tuple[str, str, str], ...]

    def as_items(self) -> Items:
        """Return them as sentences, for forms that have no cards."""
        lines = (
            f"{title}: {value}" + (f" ({note})" if note else "")
            for title, value, note in self.cards
        )
        return Items(tuple(lines))


@dataclass(frozen=True)
class Grid:
    """A table whose first columns are names and whose others are numbers."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    n_names: int = 1  # how many of the first columns hold text
    sortable: bool = False  # whether a page lets its reader sort it, and filter its rows
    drill: str = ""  # benchmark whose folds a page shows when a row is opened

    def texts(self, write: Callable[[str], str], bold: str) -> list[list[str]]:
        """Return its cells, escaped by ``write``; ``bold`` has "{}" for one that stands out."""
        return [
            [
                bold.format(write(cell.text)) if cell.best and cell.text else write(cell.text)
                for cell in row
            ]
            for row in self.rows
        ]


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawing."""

    name: str  # of its files, without suffix
    title: str
    draw: "Callable[[], Figure]"  # called once, if at all
    caption: str = ""
    label: str = ""  # what it shows, for those who cannot see it; the title if left out
    draw_narrow: "Callable[[], Figure] | None" = None  # for pages on small screens

    @cached_property
    def figure(self) -> "Figure":
        """What is drawn."""
        return self.draw()

    def files(self) -> dict[str, bytes]:
        """Return the content of its files, by their names."""
        return {f"{self.name}{suffix}": figure_bytes(self.figure, suffix) for suffix in SUFFIXES}


@dataclass(frozen=True, eq=False)
class Side:
    """Blocks that stand side by side where there is room."""

    blocks: "tuple[Block, ...]"


@dataclass(frozen=True, eq=False)
class Folded:
    """Blocks that a page shows when asked to."""

    title: str
    blocks: "tuple[Block, ...]"


Block = Heading | Text | Items | Cards | Grid | Picture | Side | Folded


@dataclass(frozen=True, eq=False)
class Document:
    """A report: its title, its blocks, and what the scripts of its page read."""

    title: str
    blocks: tuple[Block, ...]
    data: Mapping[str, object] = field(default_factory=dict)

    def pictures(self) -> list[Picture]:
        """Return all drawings."""
        return [block for block in flat(self.blocks) if isinstance(block, Picture)]


def flat(blocks: tuple[Block, ...]) -> list[Block]:
    """Return the blocks without those that only hold others; what folds gets a title."""
    found: list[Block] = []
    for block in blocks:
        if isinstance(block, Side):
            found += flat(block.blocks)
        elif isinstance(block, Folded):
            found += [Heading(block.title, 3), *flat(block.blocks)]
        else:
            found.append(block)
    return found


def visible(text: str) -> str:
    """Return text without characters that no file or reader can show; they become U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(c) in UNSEEN and c not in "\n\t" else c for c in text
    )


def significant(value: float | None) -> str:
    """Return a number with three significant digits, as the scripts of the pages write it."""
    if value == math.inf:
        return "∞"
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e5 or size < 1e-3:
        digits, exponent = f"{value:.1e}".split("e")
        return f"{digits}×10{str(int(exponent)).translate(SUPERSCRIPTS)}"  # noqa: RUF001
    if size >= 999.5:
        return str(math.floor(value + 0.5))
    return f"{value:#.3g}".rstrip(".")


def percent(value: float | None) -> str:
    """Return a share in per cent with one decimal place."""
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{100 * value:.1f}{NARROW}%"


def number_of(n: int) -> Cell:
    """Return a number of things."""
    return Cell(f"{n:,}", float(n))


def fixed(value: float | None, digits: int, *, best: bool = False) -> Cell:
    """Return a number with so many decimal places; a dash if there is none."""
    if value is None or math.isnan(value):
        return Cell(MISSING)
    text = f"{value:.{digits}f}".replace("inf", "∞")
    return Cell(text, float(value), best)


def p_value(value: float | None, alpha: float = 0.05) -> Cell:
    """Return a p-value, which stands out if it is below alpha."""
    if value is None or math.isnan(value):
        return Cell(MISSING)
    text = significant(value) if value >= 1e-300 else "<10⁻³⁰⁰"
    return Cell(text, float(value), value < alpha)


def signed(value: float | None, digits: int) -> Cell:
    """Return a number with its sign and so many decimal places; a dash if there is none."""
    if value is None or not math.isfinite(value):
        return Cell(MISSING)
    return Cell(f"{value:+.{digits}f}", float(value))


def brief(value: float | None) -> Cell:
    """Return a number with three significant digits; a dash if there is none."""
    return Cell(significant(value), None if value is None or math.isnan(value) else float(value))


def stand_out(cells: Sequence[Cell], *, higher_is_better: bool = True) -> list[Cell]:
    """Return the cells with the best marked, and all that read the same."""
    values = [cell.value for cell in cells if cell.value is not None]
    if not values:
        return list(cells)
    best = max(values) if higher_is_better else min(values)
    text = next(cell.text for cell in cells if cell.value == best)
    return [replace(cell, best=cell.text == text) for cell in cells]


def slug(text: str) -> str:
    """Return a name that every disk takes; where letters had to change, with a digest."""
    kept = re.sub(r"[^A-Za-z0-9.-]+", "-", text).strip("-.")[:60]
    if kept == text:
        return kept
    return f"{kept or 'x'}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:6]}"
