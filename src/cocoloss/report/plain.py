"""Results as plain data that JSON has: dataclasses, frames and arrays become dicts and lists."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any


def as_json_text(value: Any) -> str:
    """Return any result as JSON; what is not a number is null.

    Examples
    --------
    >>> as_json_text({"a": float("nan"), "b": (1, 2)})
    '{"a":null,"b":[1,2]}'
    """
    return json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def plain(value: Any) -> Any:
    """Return a value of dicts, lists, texts and numbers."""
    if isinstance(value, float):
        made: Any = float(value) if math.isfinite(value) else None
    elif isinstance(value, bool | int | str | None):
        made = value
    elif isinstance(value, Mapping):
        made = {_key(key): plain(item) for key, item in value.items()}
    elif isinstance(value, list | tuple | set | frozenset):
        made = [plain(item) for item in value]
    elif is_dataclass(value):
        made = {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    else:
        made = _foreign(value)
    return made


def _foreign(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat() + "Z"
    if hasattr(value, "columns"):  # a frame
        parts = {"index": value.index, "columns": value.columns}
        names = {name: plain(part.tolist()) for name, part in parts.items()}
        return {**names, "data": plain(value.to_numpy(dtype=object).tolist())}
    if hasattr(value, "index") and hasattr(value, "to_dict"):  # a series
        return plain(value.to_dict())
    return plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def _key(key: Any) -> str:
    return "/".join(map(str, key)) if isinstance(key, tuple) else str(key)
