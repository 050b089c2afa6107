"""Pages from templates: one HTML file each, which holds all it needs and fetches nothing.

The templates are in ``templates/``; styles and scripts are in ``assets/``. Whatever a template
writes is escaped: names of classes, columns and files are strangers' strings.
"""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from cocoloss._checks import amount, counted
from cocoloss.report.document import percent, significant, visible


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
