# ruff: noqa: S704 - this file goes when nothing builds markup by hand
"""The shell of a page: one HTML file that holds all it needs and fetches nothing.

Text becomes markup in one place, :func:`element`, which escapes whatever is not markup already:
names of classes, columns and files are strangers' strings.
"""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from cocoloss.report.templates import _hashes, asset
from cocoloss.report.text import MISSING, percent, significant, visible

__all__ = ["MISSING", "Markup", "asset", "percent", "significant", "visible"]

VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})  # elements without an end tag
BLANK = "(empty)"


def element(tag: str, *children: "str | Iterable[str | None] | None", **attributes: Any) -> Markup:
    """Return an HTML element; children that are not markup are escaped.

    Parameters
    ----------
    tag : str
        Name of the element.
    *children : str, sequence of str or None
        What is inside.
    **attributes
        A trailing underscore is dropped (``class_``), others become hyphens (``aria_label``).
        True is an attribute without a value; None and False leave it out.

    Examples
    --------
    >>> print(element("p", "a < b", element("b", "!"), class_="note"))
    <p class="note">a &lt; b<b>!</b></p>
    """
    written = "".join(_attribute(name, value) for name, value in attributes.items())
    inside = "".join(_inside(child) for child in children)
    return Markup(f"<{tag}{written}>" if tag in VOID else f"<{tag}{written}>{inside}</{tag}>")


def _attribute(name: str, value: Any) -> str:
    name = name.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{html.escape(visible(str(value)))}"'


def _inside(child: "str | Iterable[str | None] | None") -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return html.escape(visible(child))
    return "".join(_inside(part) for part in child)


def name(text: str) -> Markup:
    """Return a stranger's name: isolated, so that its direction of writing moves nothing else."""
    return element("bdi", text if text.strip() else BLANK, class_="name", title=text or None)


def card(
    title: str,
    value: str,
    note: str = "",
    *,
    key: str = "",
    raw: float | None = None,
    mark: Markup | None = None,
) -> Markup:
    """Return a number with its name above and a remark below.

    Parameters
    ----------
    title, value, note : str
    key : str
        Name of the number for who reads the page by machine, with ``raw`` its value.
    raw : float, optional
    mark : markup, optional
        Whose number it is.
    """
    return element(
        "div",
        element("dt", title),
        element(
            "dd",
            value,
            class_="value",
            data_key=key or None,
            data_value=None if raw is None else raw,
        ),
        element("dd", note, class_="note") if note else None,
        element("dd", mark) if mark else None,
        class_="card",
    )


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "", class_: str = ""
) -> Markup:
    """Return a table whose first column names the rows; the others hold numbers."""
    first = [element("th", header[0], scope="col")]
    head = element(
        "tr", first, [element("th", h, scope="col", class_="number") for h in header[1:]]
    )
    body = [
        element(
            "tr",
            element("th", row[0], scope="row"),
            [element("td", cell, class_="number") for cell in row[1:]],
        )
        for row in rows
    ]
    title = element("caption", caption) if caption else None
    made = element(
        "table", title, element("thead", head), element("tbody", body), class_=class_ or None
    )
    return element("div", made, class_="scroll")


def figure(title: str, *body: "str | None", caption: str = "", id_: str = "") -> Markup:
    """Return a titled figure; its parts are filled by a script or given here."""
    return element(
        "figure",
        element("h3", title),
        body,
        element("figcaption", caption) if caption else None,
        id_=id_ or None,
    )


def page(
    title: str,
    body: Iterable[str],
    *,
    styles: Sequence[str],
    scripts: Sequence[str],
    data: Any,
) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
    body : sequence of markup
    styles, scripts : sequence of str
        Names of assets.
    data : anything that JSON knows
        For the scripts, in ``<script type="application/json" id="data">``.

    Notes
    -----
    The content security policy forbids every fetch, and every script and style but our own,
    which it knows by their hashes: a name that became markup after all would still do nothing.
    """
    css = [asset(part) for part in styles]
    js = [asset(part) for part in scripts]
    policy = (
        f"default-src 'none'; style-src {_hashes(css)}; script-src {_hashes(js)}; img-src data:; "
        f"base-uri 'none'; form-action 'none'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        [element("style", Markup(part)) for part in css],
    )
    content = element(
        "body",
        element("main", body),
        element("script", as_json(data), type="application/json", id_="data"),
        [element("script", Markup(part)) for part in js],
    )
    return f"<!DOCTYPE html>\n{element('html', head, chr(10), content, lang='en')}\n"


def as_json(data: Any) -> Markup:
    r"""Return data as JSON that cannot end the element it stands in.

    Examples
    --------
    >>> print(as_json({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)
