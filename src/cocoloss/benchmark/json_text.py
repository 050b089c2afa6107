"""JSON that every database takes, with every number as it was."""

import json
import math
from collections.abc import Mapping
from typing import Any

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def dump_json(value: Any) -> str:
    """Write a value; what JSON has no number for becomes its name.

    Examples
    --------
    >>> dump_json({"a": 0.1, "b": float("nan")})
    '{"a":0.1,"b":"NaN"}'
    """
    value = plain(value)
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:  # few values hold such a number
        return json.dumps(_named(value), separators=(",", ":"), allow_nan=False)


def load_json(text: str | bytes) -> Any:
    """Read it back.

    Examples
    --------
    >>> load_json('{"a":0.1,"b":"NaN"}')
    {'a': 0.1, 'b': nan}
    """
    value = json.loads(text)
    # Few texts hold such a name; looking for it is cheaper than walking through all of them.
    quoted = ('"NaN"', 'Infinity"') if isinstance(text, str) else (b'"NaN"', b'Infinity"')
    return _restored(value) if any(mark in text for mark in quoted) else value  # type: ignore[operator]


def plain(value: Any) -> Any:
    """Return a value that JSON has, numpy's numbers and arrays as Python's; NaN stays NaN.

    Raises
    ------
    TypeError
        If there is none; the message says what it was.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return float(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy
        return plain(value.tolist())
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON has not")


def storable(value: Any) -> Any:
    r"""Return a plain value whose texts every database and file takes.

    Half a character, as Python makes of a byte that is no UTF-8, and NUL are written out.

    Examples
    --------
    >>> storable({"a": ["caf\udce9", 1]})
    {'a': ['caf\\udce9', 1]}
    """
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode().replace("\0", "\\x00")
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value


def _named(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else NAMES[str(value)]
    if isinstance(value, list):
        return [_named(item) for item in value]
    if isinstance(value, dict):
        return {key: _named(item) for key, item in value.items()}
    return value


def _restored(value: Any) -> Any:
    if isinstance(value, str):
        return NON_FINITE.get(value, value)
    if isinstance(value, list):
        return [_restored(item) for item in value]
    if isinstance(value, dict):
        return {key: _restored(item) for key, item in value.items()}
    return value
