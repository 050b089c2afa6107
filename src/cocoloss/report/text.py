"""How pages, Markdown and LaTeX write numbers, and what they do with characters nobody can show."""

import math
import unicodedata

UNSEEN = frozenset({"Cc", "Cs"})  # control characters and lone surrogates: no file can hold these
MISSING = "\u2013"
NARROW = "\u202f"  # a space at which no line breaks
SUPERSCRIPTS = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def visible(text: str) -> str:
    """Return text without characters that no file or reader can show; they become U+FFFD."""
    return "".join(
        "\ufffd" if unicodedata.category(c) in UNSEEN and c not in "\n\t" else c for c in text
    )


def significant(value: float | None) -> str:
    """Return a number with three significant digits, as the scripts of the pages write it.

    Examples
    --------
    >>> [significant(x) for x in (0.02216, 12.0, 1234.5, 3.21e-5, 0.0, float("nan"), float("inf"))]
    ['0.0222', '12.0', '1235', '3.2×10⁻⁵', '0', '–', '∞']
    """  # noqa: RUF002 - what a reader sees
    if value == math.inf:
        return "∞"
    if value is None or not math.isfinite(value):
        return MISSING
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e5 or size < 1e-3:
        digits, exponent = f"{value:.1e}".split("e")
        return f"{digits}×10{str(int(exponent)).translate(SUPERSCRIPTS)}"  # noqa: RUF001
    if size >= 999.5:
        return str(math.floor(value + 0.5))
    return f"{value:#.3g}".rstrip(".")


def percent(value: float | None) -> str:
    r"""Return a share in per cent with one decimal place.

    Examples
    --------
    >>> percent(0.97222)
    '97.2\u202f%'
    """
    if value is None or not math.isfinite(value):
        return MISSING
    return f"{100 * value:.1f}{NARROW}%"
