"""Amounts of time and memory as people write them: 90, "15m", "4 GB"; and back."""

import math
import re
from numbers import Real

from cocoloss.exceptions import CoCoError

SECONDS = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20} | {
    "gib": 2**30
}
STEPS = ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
AMOUNT = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*")


def check_seconds(value: object, name: str) -> float:
    """Return a duration in seconds.

    Examples
    --------
    >>> check_seconds("15m", "--time-limit")
    900.0
    """
    return _amount(value, name, SECONDS, "seconds, such as 90, '15m' or '2h'")


def check_bytes(value: object, name: str) -> int:
    """Return an amount of memory in bytes.

    Examples
    --------
    >>> check_bytes("4 GB", "limits.memory_per_task")
    4000000000
    """
    return int(_amount(value, name, BYTES, "bytes, such as 500000000 or '4 GB'"))


def _amount(value: object, name: str, units: dict[str, int], expected: str) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        if 0 <= float(value) < math.inf:
            return float(value)
    elif isinstance(value, str):
        match = AMOUNT.fullmatch(value)
        if match and match[2].lower() in units:
            return float(match[1]) * units[match[2].lower()]
    raise CoCoError(f"{name} must be a number of {expected}, not {value!r}")


def readable_time(seconds: float) -> str:
    """Write a duration with the two units that matter.

    Examples
    --------
    >>> readable_time(0.25), readable_time(75), readable_time(7200), readable_time(200_000)
    ('0.25 s', '1 min 15 s', '2 h', '2 d 7 h')
    """
    if seconds < 0.01:
        return "0 s"
    if seconds < 9.95:
        return f"{seconds:.2g} s"
    seconds = round(seconds)
    for size, name, part, smaller in STEPS:
        if seconds >= size:
            rest = seconds % size // part
            return f"{seconds // size} {name}" + (f" {rest} {smaller}" if rest else "")
    return f"{seconds} s"
