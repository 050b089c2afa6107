"""A report as LaTeX: booktabs tables, set by pandas, and drawings as PDF."""

import re
from itertools import pairwise

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
\usepackage{booktabs,longtable,graphicx}
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
        case Cards():
            made = _block(block.as_items(), folder)
        case Items():
            lines = [rf"  \item {escape(item)}" for item in block.items]
            made = "\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"])
        case Grid():
            made = _grid(block)
        case Picture():
            caption = escape(f"{block.title}. {block.caption}".strip())
            path = f"{folder}/{block.name}.pdf"
            drawing = rf"  {AT_MOST_A_LINE}\includegraphics{{{path}}}}}"
            lines = [r"\begin{figure}[htbp]", r"  \centering", drawing]
            made = "\n".join([*lines, rf"  \caption{{{caption}}}", r"\end{figure}"])
    return made


def _grid(grid: Grid) -> str:
    shape = "l" * grid.n_names + "r" * (len(grid.columns) - grid.n_names)
    if grid.n_names > 2:  # the last of them are sentences
        shape = "l" * (grid.n_names - 1) + r"p{0.3\linewidth}" + shape[grid.n_names :]
    caption = escape(". ".join(t.rstrip(".") for t in (grid.title, grid.caption) if t) + ".")
    frame = grid.frame(escape, r"\textbf{{{}}}")
    frame.columns = [_heading(column) for column in grid.columns]
    style = frame.style.hide(axis="index")
    if len(grid.rows) > LONG:
        size = [size for least, size in SIZES.items() if len(grid.columns) >= least][:1]
        table = style.to_latex(
            column_format=shape, hrules=True, caption=caption, environment="longtable"
        )
        return "\n".join(["{", *size, table.rstrip(), "}"])
    table = style.to_latex(column_format=shape, hrules=True)
    top = [r"\begin{table}[htbp]", r"\centering", rf"\caption{{{caption}}}", AT_MOST_A_LINE + "%"]
    return "\n".join([*top, table.rstrip(), "}", r"\end{table}"])


def _heading(column: str) -> str:
    """Return the title of a column, on two lines if it is long."""
    words = column.split(" ")
    if len(column) < 14 or len(words) == 1:
        return escape(column)
    cuts = [sum(map(len, words[:k])) for k in range(len(words) + 1)]
    middle = min(range(1, len(words)), key=lambda k: abs(2 * cuts[k] - cuts[-1]))
    lines = [escape(" ".join(words[a:b])) for a, b in pairwise((0, middle, len(words)))]
    return r"\shortstack[r]{" + r"\\".join(lines) + "}"
