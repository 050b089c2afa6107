"""What the options of these experiments must be."""

from collections.abc import Mapping, Sequence
from typing import Any

from cocoloss._checks import check_integer
from cocoloss.exceptions import CoCoError


def check_counts(chosen: Mapping[str, Any], name: str, *, minimum: int) -> None:
    """Refuse an option that is no list of whole numbers, or one below a minimum."""
    counts = chosen[name]
    if not isinstance(counts, list | tuple) or not counts:
        raise CoCoError(f"options.{name} must be a list of numbers, not {counts!r}")
    for count in counts:
        check_integer(count, f"each of options.{name}", minimum=minimum)


def check_whole(chosen: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse options that are no whole numbers from 1 on."""
    for name in names:
        check_integer(chosen[name], f"options.{name}", minimum=1)


def check_rate(chosen: Mapping[str, Any], name: str, *, positive: bool) -> None:
    """Refuse an option that is no number, or below zero, or zero if it must be positive."""
    rate = chosen[name]
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    if not is_number or not (rate > 0 if positive else rate >= 0):
        kind = "a positive number" if positive else "a number that is not negative"
        raise CoCoError(f"options.{name} must be {kind}, not {rate!r}")
