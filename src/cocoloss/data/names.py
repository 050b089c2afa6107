"""Names in messages: the nearest to the one asked for, and lists that stay short."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

MOST_LISTED = 8


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the name nearest to ``word``, or nothing.

    Examples
    --------
    >>> did_you_mean("specie", ["species", "length"])
    "; did you mean 'species'?"
    >>> did_you_mean("zzz", ["species"])
    ''
    """
    known = {name.casefold(): name for name in names}
    near = get_close_matches(word.casefold(), known, n=1, cutoff=0.6)
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def listed(names: Sequence[object]) -> str:
    """Return names in quotes with commas between, cut after a few.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed(range(100))
    "'0', '1', '2', '3', '4', '5', '6', '7' and 92 more"
    """
    shown = ", ".join(repr(str(name)) for name in names[:MOST_LISTED])
    more = len(names) - MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown
