"""Results as JSON; what is not a number is null."""

import json
from datetime import datetime
from typing import Any

from cocoloss.json_text import finite, json_value


def as_json_text(value: Any) -> str:
    """Return any result as JSON; what is not a number is null.

    Examples
    --------
    >>> as_json_text({"a": float("nan"), "b": (1, 2)})
    '{"a":null,"b":[1,2]}'
    """
    known = json_value(value, number=finite, other=_text)
    return json.dumps(known, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _text(value: Any) -> str:
    return value.isoformat() + "Z" if isinstance(value, datetime) else str(value)
