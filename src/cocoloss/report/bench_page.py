"""The benchmark report as one HTML page: blocks become markup, tables sort, rows open."""

import math
from collections.abc import Sequence

from cocoloss.report.document import (
    Block,
    Cards,
    Cell,
    Document,
    Folded,
    Grid,
    Heading,
    Items,
    Picture,
    Side,
    Text,
)
from cocoloss.report.page import Markup, card, element, name, page

STYLES = ("page.css", "bench.css")
SCRIPTS = ("draw.js", "bench.js")
SHORT = 32  # letters of a text that is kept on one line
FILTER_FROM = 16  # rows from which on a table can be filtered


def as_page(document: Document, folder: str) -> str:
    """Return a document as a page that fetches nothing.

    Parameters
    ----------
    document : Document
    folder : str
        Where the files of pictures are, for the links below them.
    """
    writer = _Writer(folder)
    body = writer.blocks(document.blocks)
    head = element(
        "header",
        element("p", "cocoloss · benchmark report", class_="kicker"),
        element("h1", document.title),
    )
    contents = [
        element("li", element("a", text, href=f"#{anchor}"), class_=f"level-{level}")
        for text, anchor, level in writer.contents
    ]
    nav = element("nav", element("ol", contents), class_="contents", aria_label="Contents")
    return page(
        document.title,
        [head, nav, *body],
        styles=STYLES,
        scripts=SCRIPTS,
        data=dict(document.data),
    )


class _Writer:
    """Turns blocks into markup, and remembers the sections for the contents."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.contents: list[tuple[str, str, int]] = []
        self.within = 0  # how deep inside something that folds

    def blocks(self, blocks: Sequence[Block]) -> list[Markup]:
        return [self.block(block) for block in blocks]

    def block(self, block: Block) -> Markup:
        match block:
            case Heading():
                made = self.heading(block)
            case Text():
                made = element("p", block.text, class_=block.role)
            case Items():
                made = element("ul", [element("li", i) for i in block.items], class_="notes")
            case Cards():
                made = element("dl", [card(*each) for each in block.cards], class_="cards")
            case Grid():
                made = self.grid(block)
            case Picture():
                made = self.picture(block)
            case Side():
                made = element("div", self.blocks(block.blocks), class_="grid")
            case Folded():
                made = self.folded(block)
        return made

    def folded(self, block: Folded) -> Markup:
        self.within += 1
        inside = self.blocks(block.blocks)
        self.within -= 1
        return element("details", element("summary", block.title), inside, class_="folded")

    def heading(self, block: Heading) -> Markup:
        tag = {1: "h2", 2: "h2", 3: "h3"}[block.level]
        if self.within or block.level == 3:
            return element(tag, block.text, class_="part")
        anchor = f"section-{len(self.contents) + 1}"
        self.contents.append((block.text, anchor, block.level))
        return element(tag, block.text, id_=anchor, class_="top" if block.level == 1 else None)

    def picture(self, picture: Picture) -> Markup:
        links = [
            element("a", suffix[1:].upper(), href=f"{self.folder}/{picture.name}{suffix}")
            for suffix in picture.files
        ]
        line = element("p", "Files: ", _joined(links), class_="files") if links else None
        return element(
            "figure",
            element("h3", picture.title) if picture.title else None,
            picture.inline,
            element("figcaption", picture.caption) if picture.caption else None,
            line,
            class_="wide-figure" if picture.wide else None,
        )

    def grid(self, grid: Grid) -> Markup:
        head = element("tr", [_head(grid, k, title) for k, title in enumerate(grid.columns)])
        body = [_row(grid, row) for row in grid.rows]
        made = element(
            "table",
            element("thead", head),
            element("tbody", body),
            data_sortable=grid.sortable,
            data_drill=grid.drill or None,
            aria_label=grid.title or None,
        )
        several = grid.sortable and len(grid.rows) >= FILTER_FROM
        return element(
            "figure",
            element("h3", grid.title) if grid.title else None,
            _filter() if several else None,
            element("div", made, class_="scroll", tabindex=0, role="region", aria_label=grid.title),
            element("figcaption", grid.caption) if grid.caption else None,
            class_="table",
        )


def _head(grid: Grid, column: int, title: str) -> Markup:
    kind = None if column < grid.n_names else "number"
    inside = element("button", title, type="button", class_="sort") if grid.sortable else title
    return element(
        "th", inside, scope="col", class_=kind, aria_sort="none" if grid.sortable else None
    )


def _row(grid: Grid, row: Sequence[Cell]) -> Markup:
    cells = []
    for column, cell in enumerate(row):
        if column == 0:
            label = name(cell.text) if cell.text else Markup("")
            inside = (
                element("button", label, type="button", class_="open", aria_expanded="false")
                if grid.drill
                else label
            )
            key = cell.text if grid.drill else None
            cells.append(
                element("th", inside, scope="row", data_value=_value(cell), data_dataset=key)
            )
            continue
        words = ["short"] if len(cell.text) <= SHORT else []
        kinds = words if column < grid.n_names else ["number"]
        kinds += ["best"] if cell.best else []
        cells.append(
            element("td", cell.text, class_=" ".join(kinds) or None, data_value=_value(cell))
        )
    return element("tr", cells)


def _value(cell: Cell) -> float | str | None:
    """Return what the scripts sort by, in their spelling."""
    return "Infinity" if cell.value == math.inf else cell.value


def _filter() -> Markup:
    box = element("input", type="search", autocomplete="off", spellcheck="false")
    count = element("span", class_="count", role="status")
    return element("label", "Filter ", box, count, class_="filter controls")


def _joined(links: Sequence[Markup]) -> Markup:
    return Markup(", ".join(links))
