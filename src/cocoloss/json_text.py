"""Values as JSON has them: one walk through results for databases, reports and commands.

JSON has no NaN and no infinity. A database must give every number back as it was, so there they
are written by name (:func:`dump_json`); who only reads gets null (:func:`finite`).
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, NoReturn

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def finite(value: float) -> float | None:
    """Return a number, or None for what JSON has no number for."""
    return value if math.isfinite(value) else None


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"a result holds a {type(value).__name__}, which JSON has not")


def json_value(
    value: Any,
    *,
    number: Callable[[float], float | str | None] = float,
    other: Callable[[Any], Any] = _refuse,
) -> Any:
    """Return a value of dicts, lists, texts and numbers.

    Mappings and dataclasses become dicts; lists, tuples and arrays become lists; numpy's numbers
    become Python's. A table of pandas becomes its index, columns and data, a series a dict.
    ``number`` writes a float: :func:`finite` turns NaN into None. ``other`` writes anything else;
    by default that is a TypeError.

    Examples
    --------
    >>> json_value({"a": float("nan"), ("b", 1): (1, 2)}, number=finite)
    {'a': None, 'b/1': [1, 2]}
    """

    def walk(value: Any) -> Any:
        made: Any
        if value is None or isinstance(value, str | bool | int):
            made = value
        elif isinstance(value, float):
            made = number(float(value))
        elif isinstance(value, Mapping):
            made = {_key(key): walk(item) for key, item in value.items()}
        elif isinstance(value, list | tuple):
            made = [walk(item) for item in value]
        elif is_dataclass(value) and not isinstance(value, type):
            made = {f.name: walk(getattr(value, f.name)) for f in fields(value)}
        elif hasattr(value, "columns"):  # a table of pandas
            parts = {"index": value.index, "columns": value.columns}
            made = {name: walk(part.tolist()) for name, part in parts.items()}
            made["data"] = walk(value.to_numpy(dtype=object).tolist())
        elif hasattr(value, "to_dict"):  # a series
            made = walk(value.to_dict())
        elif hasattr(value, "tolist"):  # numpy
            made = walk(value.tolist())
        else:
            made = other(value)
        return made

    return walk(value)


def as_json_text(value: Any) -> str:
    """Write any result for who only reads it: NaN is null, times are UTC, the rest is text."""

    def text(value: Any) -> str:
        return f"{value.isoformat()}Z" if isinstance(value, datetime) else str(value)

    known = json_value(value, number=finite, other=text)
    return json.dumps(known, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dump_json(value: Any) -> str:
    """Write a value such that :func:`load_json` reads the same; NaN is written by its name.

    Examples
    --------
    >>> dump_json({"a": 0.1, "b": float("nan")})
    '{"a":0.1,"b":"NaN"}'
    >>> load_json('{"a":0.1,"b":"NaN"}')
    {'a': 0.1, 'b': nan}
    """
    named = json_value(value, number=lambda x: x if math.isfinite(x) else json.dumps(x))
    return json.dumps(named, separators=(",", ":"), allow_nan=False)


def load_json(text: str | bytes) -> Any:
    """Read what :func:`dump_json` wrote."""
    text = text.decode() if isinstance(text, bytes) else text
    value = json.loads(text)
    # Few texts hold such a name; looking for it is cheaper than walking through all of them.
    if '"NaN"' not in text and 'Infinity"' not in text:
        return value
    return _with_texts(value, lambda text: NON_FINITE.get(text, text))


def storable(value: Any) -> Any:
    r"""Return a JSON value whose texts every database and file takes.

    Half a character, as Python makes of a byte that is no UTF-8, and NUL are written out.

    Examples
    --------
    >>> storable({"a": ["caf\udce9", 1]})
    {'a': ['caf\\udce9', 1]}
    """

    def written_out(text: str) -> str:
        return text.encode(errors="backslashreplace").decode().replace("\0", "\\x00")

    return _with_texts(value, written_out, keys=True)


def _with_texts(value: Any, change: Callable[[str], Any], *, keys: bool = False) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [_with_texts(item, change, keys=keys) for item in value]
    if isinstance(value, dict):
        return {
            change(key) if keys else key: _with_texts(item, change, keys=keys)
            for key, item in value.items()
        }
    return value


def _key(key: Any) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
