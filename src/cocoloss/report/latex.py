"""A report as LaTeX: booktabs tables, and diagrams in the fonts of the document."""

import re
from itertools import pairwise

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

ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "“": "``",
    "”": "''",
    "–": "--",  # noqa: RUF001 - as written
    "…": r"\dots{}",
    "±": r"$\pm$",
    "×": r"$\times$",  # noqa: RUF001 - as written
    "χ": r"$\chi$",
    "ρ": r"$\rho$",  # noqa: RUF001 - as written
    "\u202f": r"\,",
    "−": "$-$",  # noqa: RUF001 - as written
    "∞": r"$\infty$",
    **{character: f"\\{character}" for character in "{}$&#%_"},
}
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789−", strict=True))  # noqa: RUF001 - as written
TABLE_SPACES = "\u202f"  # which is not printable, and has a form of its own
DOUBLED = re.compile(r"(?<!\\)\$\$")  # where formulas meet; not an amount of dollars before one
RAISED_RUN = re.compile(f"[{''.join(RAISED)}]+")
TABLE = str.maketrans(ESCAPES)
SECTIONS = {1: "section", 2: "subsection", 3: "subsubsection"}
LONG = 40  # rows from which on a table may break over pages
# Columns from which on a table that breaks over pages is set so small; others are shrunk to fit.
SIZES = {12: r"\tiny\setlength{\tabcolsep}{2pt}", 8: r"\footnotesize"}
AT_MOST_A_LINE = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{"
PREAMBLE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}
\usepackage[T1]{fontenc}
\IfFileExists{lmodern.sty}{\usepackage{lmodern}}{}
\usepackage[margin=2cm]{geometry}
\usepackage{booktabs,longtable,graphicx,tikz}
"""
# A letter that no font has would stop pdfLaTeX.
UNKNOWN = (
    r"\expandafter\ifx\csname u8:\detokenize{%s}\endcsname\relax"
    r"\DeclareUnicodeCharacter{%04X}{?}\fi"
)


def as_latex(document: Document, folder: str) -> str:
    """Return a document as a LaTeX file that stands alone; its tables can be copied out.

    Parameters
    ----------
    document : Document
    folder : str
        Where the files of pictures are, relative to this one.
    """
    parts = [rf"\title{{{escape(document.title)}}}\date{{}}\maketitle"]
    parts += [made for block in flat(document.blocks) if (made := _block(block, folder))]
    body = "\n\n".join([r"\begin{document}", *parts, r"\end{document}"]) + "\n"
    foreign = sorted({character for character in body if not character.isascii()})
    marks = [UNKNOWN % (character, ord(character)) for character in foreign]
    if marks:  # other engines know all letters, and not the command
        marks = [r"\ifdefined\DeclareUnicodeCharacter", *marks, r"\fi"]
    return "\n".join([PREAMBLE.rstrip("\n"), *marks, body])


def escape(text: str) -> str:
    r"""Return text that LaTeX prints as it is.

    Examples
    --------
    >>> print(escape("a_b & 50%, χ² < 10⁻⁵"))
    a\_b \& 50\%, $\chi$\textsuperscript{2} \textless{} 10\textsuperscript{$-$5}
    """
    printable = "".join(c if c.isprintable() or c in TABLE_SPACES else " " for c in text)
    return DOUBLED.sub("", RAISED_RUN.sub(_raised, printable.translate(TABLE)))


def _raised(run: re.Match[str]) -> str:
    """Return a whole run at once: LaTeX refuses one superscript after another."""
    inside = "".join(RAISED[character] for character in run[0]).translate(TABLE)
    return rf"\textsuperscript{{{inside}}}"


def _block(block: Block, folder: str) -> str:
    made = ""
    match block:
        case Heading():
            made = rf"\{SECTIONS[block.level]}{{{escape(block.text)}}}"
        case Text():
            made = escape(block.text)
        case Items():
            made = _items([escape(item) for item in block.items])
        case Cards():
            made = _items([_card(*each) for each in block.cards])
        case Grid():
            made = _grid(block)
        case Picture() if block.files:
            made = _picture(block, folder)
    return made


def _card(title: str, value: str, note: str) -> str:
    return escape(f"{title}: {value} ({note})" if note else f"{title}: {value}")


def _items(items: list[str]) -> str:
    lines = [rf"  \item {item}" for item in items]
    return "\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"])


def _picture(picture: Picture, folder: str) -> str:
    path = f"{folder}/{picture.name}"
    if ".tex" in picture.files:
        drawing = rf"{AT_MOST_A_LINE}\input{{{path}.tex}}}}"
    else:
        drawing = rf"\includegraphics[width=0.8\linewidth]{{{path}.png}}"
    caption = escape(f"{picture.title}. {picture.caption}".strip())
    lines = [r"\begin{figure}[htbp]", r"  \centering", f"  {drawing}"]
    return "\n".join([*lines, rf"  \caption{{{caption}}}", r"\end{figure}"])


def _grid(grid: Grid) -> str:
    shape = "l" * grid.n_names + "r" * (len(grid.columns) - grid.n_names)
    if grid.n_names > 2:  # the last of them are sentences
        shape = "l" * (grid.n_names - 1) + r"p{0.3\linewidth}" + shape[grid.n_names :]
    header = " & ".join(_heading(column) for column in grid.columns) + r" \\"
    rows = [" & ".join(map(_cell, row)) + r" \\" for row in grid.rows]
    caption = escape(". ".join(t.rstrip(".") for t in (grid.title, grid.caption) if t) + ".")
    long = len(rows) > LONG
    body = [r"\toprule", header, r"\midrule", *([r"\endhead"] if long else []), *rows]
    if long:
        size = [size for least, size in SIZES.items() if len(grid.columns) >= least][:1]
        table = [rf"\begin{{longtable}}{{{shape}}}", rf"\caption{{{caption}}}\\", *body]
        return "\n".join(["{", *size, *table, r"\bottomrule", r"\end{longtable}", "}"])
    table = [rf"\begin{{tabular}}{{{shape}}}", *body, r"\bottomrule", r"\end{tabular}"]
    top = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{caption}}}", AT_MOST_A_LINE + "%"]
    return "\n".join([*top, *table, "}", r"\end{table}"])


def _heading(column: str) -> str:
    """Return the title of a column, on two lines if it is long."""
    words = column.split(" ")
    if len(column) < 14 or len(words) == 1:
        return escape(column)
    cuts = [sum(map(len, words[:k])) for k in range(len(words) + 1)]
    middle = min(range(1, len(words)), key=lambda k: abs(2 * cuts[k] - cuts[-1]))
    lines = [escape(" ".join(words[a:b])) for a, b in pairwise((0, middle, len(words)))]
    return r"\shortstack[r]{" + r"\\".join(lines) + "}"


def _cell(cell: Cell) -> str:
    text = escape(cell.text)
    return rf"\textbf{{{text}}}" if cell.best and text else text
