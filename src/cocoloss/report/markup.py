"""A report in its forms: a page from templates, Markdown, LaTeX.

A page is one HTML file that holds all it needs and fetches nothing. Its templates are in
``templates/``, styles and scripts in ``assets/``. Whatever a template writes is escaped: names of
classes, columns and files are strangers' strings. Tables of LaTeX are by pandas, pictures by their
files.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from cocoloss._checks import amount, counted
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
    percent,
    significant,
    visible,
)

# Pages.


@cache
def environment() -> Environment:
    """Return the environment of all templates: autoescaped, and nothing may be undefined."""
    made = Environment(
        loader=PackageLoader("cocoloss.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "amount": amount,
        "counted": counted,
        "degrees": "{:.1f}°".format,
        "percent": percent,
        "significant": significant,
        "thousands": "{:,}".format,
    }
    # `tojson` writes <, > and & as escapes, so that "</script>" in a name ends no script.
    made.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return made


def render(
    template: str | Template,
    *,
    title: str,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Any,
    **context: Any,
) -> str:
    """Return a page made by a template that extends ``base.html``.

    Styles and scripts are files in ``assets/``, written into the page in this order; the data is
    for the scripts. What the template writes was computed before. The content security policy
    forbids every fetch, and every script and style but our own, which it knows by their hashes: a
    name that became markup after all would still do nothing.
    """
    css, js = ([asset(name) for name in names] for names in (styles, scripts))
    policy = (
        f"default-src 'none'; style-src {_hashes(css)}; script-src {_hashes(js)}; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )
    page = environment().get_template(template)
    return page.render(title=title, policy=policy, styles=css, scripts=js, data=data, **context)


def asset(filename: str) -> str:
    """Return a static part of the pages."""
    return (files("cocoloss.report") / "assets" / filename).read_text(encoding="utf-8")


def _shown(value: Any) -> Any:
    """Return a value as a template writes it: nothing for None, and no unseen characters."""
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hashes(parts: Sequence[str]) -> str:
    digests = (hashlib.sha256(part.encode()).digest() for part in parts)
    return " ".join(f"'sha256-{base64.b64encode(d).decode()}'" for d in digests) or "'none'"


SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&]|^[#+-](?=\s))")


def as_markdown(document: Document, folder: str) -> str:
    """Return a document as GitHub-flavoured Markdown; ``folder`` has the files of pictures."""
    blocks = [block_as_markdown(block, folder) for block in flat(document.blocks)]
    return "\n\n".join([f"# {escape_markdown(document.title)}", *blocks]) + "\n"


def escape_markdown(text: str) -> str:
    """Return text that Markdown shows as it is."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def block_as_markdown(block: Block, folder: str) -> str:
    """Return one block; not those that hold others."""
    escape = escape_markdown
    block = block.as_items() if isinstance(block, Cards) else block
    match block:
        case Heading(text, level):
            return f"{'#' * (level + 1)} {escape(text)}"
        case Text(text):
            return escape(text)
        case Items(items):
            return "\n".join(f"- {escape(item)}" for item in items)
        case Grid():
            return _markdown_table(block)
        case Picture():
            return f"![{escape(block.title)}]({folder}/{block.name}.svg)\n\n{escape(block.caption)}"
    return ""


def _markdown_table(grid: Grid) -> str:
    marks = ["---" if k < grid.n_names else "---:" for k in range(len(grid.columns))]
    # By hand: DataFrame.to_markdown would need tabulate for these joins.
    heads = [escape_markdown(column) for column in grid.columns]
    rows = [heads, marks, *grid.texts(escape_markdown, "**{}**")]
    title = [f"**{escape_markdown(grid.title)}**\n"] if grid.title else []
    caption = f"\n\n{escape_markdown(grid.caption)}" if grid.caption else ""
    return "\n".join([*title, *(f"| {' | '.join(cells)} |" for cells in rows)]) + caption


# LaTeX.

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
    """Return a document as a LaTeX file that stands alone; ``folder`` has the files of pictures."""
    parts = [rf"\title{{{escape_latex(document.title)}}}\date{{}}\maketitle"]
    parts += [made for block in flat(document.blocks) if (made := _latex_block(block, folder))]
    body = "\n\n".join([r"\begin{document}", *parts, r"\end{document}"]) + "\n"
    foreign = sorted({character for character in body if not character.isascii()})
    marks = [UNKNOWN % (character, ord(character)) for character in foreign]
    if marks:  # other engines know all letters, and not the command
        marks = [r"\ifdefined\DeclareUnicodeCharacter", *marks, r"\fi"]
    return "\n".join([PREAMBLE.rstrip("\n"), *marks, body])


def escape_latex(text: str) -> str:
    """Return text that LaTeX prints as it is."""
    printable = "".join(c if c.isprintable() or c in TABLE_SPACES else " " for c in text)
    return DOUBLED.sub("", RAISED_RUN.sub(_raised, printable.translate(TABLE)))


def _raised(run: re.Match[str]) -> str:
    """Return a whole run at once: LaTeX refuses one superscript after another."""
    inside = "".join(RAISED[character] for character in run[0]).translate(TABLE)
    return rf"\textsuperscript{{{inside}}}"


def _latex_block(block: Block, folder: str) -> str:
    escape = escape_latex
    block = block.as_items() if isinstance(block, Cards) else block
    match block:
        case Heading(text, level):
            return rf"\{SECTIONS[level]}{{{escape(text)}}}"
        case Text(text):
            return escape(text)
        case Items(items):
            lines = [rf"  \item {escape(item)}" for item in items]
            return "\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"])
        case Grid():
            return _latex_table(block)
        case Picture():
            caption = escape(f"{block.title}. {block.caption}".strip())
            drawing = rf"  {AT_MOST_A_LINE}\includegraphics{{{folder}/{block.name}.pdf}}}}"
            lines = [r"\begin{figure}[htbp]", r"  \centering", drawing]
            return "\n".join([*lines, rf"  \caption{{{caption}}}", r"\end{figure}"])
    return ""


def _latex_table(grid: Grid) -> str:
    shape = "l" * grid.n_names + "r" * (len(grid.columns) - grid.n_names)
    if grid.n_names > 2:  # the last of them are sentences
        shape = "l" * (grid.n_names - 1) + r"p{0.3\linewidth}" + shape[grid.n_names :]
    caption = escape_latex(". ".join(t.rstrip(".") for t in (grid.title, grid.caption) if t) + ".")
    cells = grid.texts(escape_latex, r"\textbf{{{}}}")
    heads = [_heading(column) for column in grid.columns]
    style = pd.DataFrame(cells, columns=heads, dtype=object).style.hide(axis="index")
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
        return escape_latex(column)
    cuts = [sum(map(len, words[:k])) for k in range(len(words) + 1)]
    middle = min(range(1, len(words)), key=lambda k: abs(2 * cuts[k] - cuts[-1]))
    lines = [escape_latex(" ".join(words[a:b])) for a, b in pairwise((0, middle, len(words)))]
    return r"\shortstack[r]{" + r"\\".join(lines) + "}"
