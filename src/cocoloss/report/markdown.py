"""A report as Markdown: tables with bars, pictures by their files."""

import re

from cocoloss.report.document import (
    Block,
    Cards,
    Cell,
    Document,
    Grid,
    Heading,
    Items,
    Picture,
    Text,
    flat,
)

SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&]|^[#+-](?=\s))")


def as_markdown(document: Document, folder: str) -> str:
    """Return a document as GitHub-flavoured Markdown.

    Parameters
    ----------
    document : Document
    folder : str
        Where the files of pictures are, relative to this one.
    """
    parts = [f"# {escape(document.title)}"]
    parts += [made for block in flat(document.blocks) if (made := block_as_markdown(block, folder))]
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    Examples
    --------
    >>> print(escape("a_b|c"))
    a\_b\|c
    """
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def block_as_markdown(block: Block, folder: str) -> str:
    """Return one block; nothing for a picture that has no file."""
    made = ""
    match block:
        case Heading():
            made = f"{'#' * (block.level + 1)} {escape(block.text)}"
        case Text():
            made = escape(block.text)
        case Items():
            made = "\n".join(f"- {escape(item)}" for item in block.items)
        case Cards():
            made = "\n".join(f"- {_card(*each)}" for each in block.cards)
        case Grid():
            made = _grid(block)
        case Picture() if block.files:
            made = f"![{escape(block.title)}]({folder}/{block.name}.svg)\n\n{escape(block.caption)}"
    return made


def _card(title: str, value: str, note: str) -> str:
    return escape(f"{title}: {value} ({note})" if note else f"{title}: {value}")


def _grid(grid: Grid) -> str:
    lines = [f"**{escape(grid.title)}**\n"] if grid.title else []
    lines.append(_row([escape(column) for column in grid.columns]))
    marks = ["---" if k < grid.n_names else "---:" for k in range(len(grid.columns))]
    lines.append(_row(marks))
    lines += [_row([_cell(cell) for cell in row]) for row in grid.rows]
    caption = f"\n\n{escape(grid.caption)}" if grid.caption else ""
    return "\n".join(lines) + caption


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    return f"**{text}**" if cell.best and text else text
