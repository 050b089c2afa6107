"""Docstrings speak reStructuredText, as numpydoc wants; the site reads Markdown."""  # noqa: INP001 - griffe loads it as a file

import re
import textwrap
from typing import Any

import griffe

FORMULA = re.compile(r"^( *)\.\. math::[ ]*(.*(?:\n(?: *\n)*\1 +\S.*)*)", re.MULTILINE)
TABLE = re.compile(r"^( *)(=+(?: +=+)+)\n(.*)\n\1\2\n((?:.*\n)+?)\1\2$", re.MULTILINE)
GROUP = re.compile(r"^( *)(\w+(?:, \w+)+)( : .*)?\n((?:\1 +\S.*(?:\n|\Z))+)", re.MULTILINE)
SYMBOL = re.compile(r":math:`([^`]+)`")
NAME = re.compile(r":(?:class|func|meth|mod|attr|exc):`~?([^`]+)`")


class Markdown(griffe.Extension):
    """Rewrite the docstring of every object that is documented."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_function_node(self, *, node: Any, agent: griffe.Visitor, **_: Any) -> None:
        """Forget an import that a function of the same name stands in for.

        Griffe would look for the names of the function's annotations in what was imported.
        """
        known = agent.current.members.get(getattr(node, "name", ""))
        if known is not None and known.is_alias:
            del agent.current.members[known.name]


def as_markdown(text: str) -> str:
    r"""Return a docstring with formulas between dollars, names as code that links, and tables.

    >>> as_markdown(r"but :math:`\pi`; see :meth:`fit`")
    'but $\\pi$; see `fit`'
    >>> as_markdown("as :class:`cocoloss.CoCoLoss`")
    'as <autoref identifier="cocoloss.CoCoLoss" optional><code>CoCoLoss</code></autoref>'
    >>> print(as_markdown(".. math:: a +\n          b\n\nthen"))
    $$
    a +
    b
    $$
    <BLANKLINE>
    then
    >>> print(as_markdown("==  =====\nC   value\n==  =====\n2   -1\n==  ====="))
    | C | value |
    |---|---|
    | 2 | -1 |

    Parameters that share a description get one each: griffe would give them one default.

    >>> print(as_markdown("X, y : array\n    Rows."))
    X : array
        Rows.
    y : array
        Rows.
    """
    text = GROUP.sub(_each, TABLE.sub(_table, FORMULA.sub(_display, text)))
    return NAME.sub(_name, SYMBOL.sub(r"$\1$", text))


def _display(found: re.Match[str]) -> str:
    margin, formula = found[1], found[2]
    first, _, rest = formula.partition("\n")
    lines = [line for line in (first, *textwrap.dedent(rest).splitlines()) if line.strip()]
    return "\n".join(margin + line for line in ("$$", *lines, "$$"))


def _table(found: re.Match[str]) -> str:
    margin, rule, head, body = found.groups()
    starts = [column.start() for column in re.finditer("=+", rule)]
    bounds = list(zip(starts, [*starts[1:], None], strict=True))

    def row(line: str) -> str:
        cells = (line[len(margin) :][start:end].strip() for start, end in bounds)
        return f"{margin}| {' | '.join(cells)} |"

    return "\n".join([row(head), f"{margin}|{'---|' * len(bounds)}", *map(row, body.splitlines())])


def _each(found: re.Match[str]) -> str:
    margin, names, kind, description = found.groups()
    entry = f"{kind or ''}\n{description.rstrip()}"
    end = description[len(description.rstrip()) :]
    return "\n".join(f"{margin}{name}{entry}" for name in names.split(", ")) + end


def _name(found: re.Match[str]) -> str:
    name = found[1]
    if not name.startswith("cocoloss."):
        return f"`{name}`"
    short = name.rpartition(".")[2]
    return f'<autoref identifier="{name}" optional><code>{short}</code></autoref>'
