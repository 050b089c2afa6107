"""Formulas as MathML, made when the site is built: no script and no network to read them."""  # noqa: INP001 - mkdocs loads it as a file

import html
import re
from typing import Any

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves of $...$ and $$...$$ in its generic mode.
INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)
# The bars of |h| and ||h||, which browsers would set apart as if they were operators.
BAR = re.compile(r"<mo(?: fence=\"false\")?(?: stretchy=\"false\")?>(&#x0007C;|&#x02016;)</mo>")


def on_page_content(content: str, **_: Any) -> str:
    r"""Replace every formula of a page.

    >>> page = on_page_content(r'<p><span class="arithmatex">\(h_i\)</span></p>')
    >>> "<msub>" in page, "arithmatex" in page
    (True, False)
    """
    content = INLINE.sub(lambda found: _mathml(found[1], "inline"), content)
    return DISPLAY.sub(lambda found: _block(found[1]), content)


def _block(formula: str) -> str:
    return f'<div class="formula">{_mathml(formula, "block")}</div>'


def _mathml(formula: str, display: str) -> str:
    mathml = convert(html.unescape(formula).strip(), display=display)
    return BAR.sub(r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', mathml)
