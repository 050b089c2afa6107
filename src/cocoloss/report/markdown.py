"""A report as Markdown: tables with bars, pictures by their files."""

import re

from cocoloss.report.document import (
    Block,
    Cards,
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
    blocks = [block_as_markdown(block, folder) for block in flat(document.blocks)]
    return "\n\n".join([f"# {escape(document.title)}", *blocks]) + "\n"


def escape(text: str) -> str:
    r"""Return text that Markdown shows as it is.

    Examples
    --------
    >>> print(escape("a_b|c"))
    a\_b\|c
    """
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def block_as_markdown(block: Block, folder: str) -> str:
    """Return one block; those that hold others are no business of this function."""
    made = ""
    match block:
        case Heading():
            made = f"{'#' * (block.level + 1)} {escape(block.text)}"
        case Text():
            made = escape(block.text)
        case Cards():
            made = block_as_markdown(block.as_items(), folder)
        case Items():
            made = "\n".join(f"- {escape(item)}" for item in block.items)
        case Grid():
            made = _grid(block)
        case Picture():
            made = f"![{escape(block.title)}]({folder}/{block.name}.svg)\n\n{escape(block.caption)}"
    return made


def _grid(grid: Grid) -> str:
    frame = grid.frame(escape, "**{}**")
    marks = ["---" if k < grid.n_names else "---:" for k in range(len(grid.columns))]
    # By hand: DataFrame.to_markdown would need tabulate for these joins.
    rows = [list(frame.columns), marks, *frame.to_numpy().tolist()]
    title = [f"**{escape(grid.title)}**\n"] if grid.title else []
    caption = f"\n\n{escape(grid.caption)}" if grid.caption else ""
    return "\n".join([*title, *(f"| {' | '.join(cells)} |" for cells in rows)]) + caption
