"""What a fitted estimator says of itself: its arguments, its columns, the versions it ran with."""

import inspect
import platform
import textwrap
from importlib.metadata import version
from typing import Any

import cocoloss
from cocoloss.columns.encoder import FloatEncoder, TableEncoder

NOT_RECORDED = ("callbacks", "verbose")  # arguments that say nothing about what was learnt
LONGEST_ARGUMENT = 80
ORDERS = {"%d/%m": "day first", "%m/%d": "month first"}  # how the form of a date begins


def arguments_of(estimator: Any) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the arguments as text, and the names of those that are not the default."""
    parameters = inspect.signature(type(estimator)).parameters
    given = {n: v for n, v in estimator.get_params(deep=False).items() if n not in NOT_RECORDED}
    text = {name: _text(value) for name, value in given.items()}
    return text, tuple(name for name in text if text[name] != _text(parameters[name].default))


def _text(value: Any) -> str:
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(value.__name__)  # its repr has an address, which is nobody's business
    return textwrap.shorten(repr(value), LONGEST_ARGUMENT, placeholder=" …")


def columns_of(preprocessor: Any) -> dict[str, dict[str, str]]:
    """Say how a fitted preprocessor reads each column, and why it leaves others out.

    Parameters
    ----------
    preprocessor : transformer
        Of cocoloss; of a transformer of the user's own nothing is known.

    Returns
    -------
    dict
        ``column_kinds``, the kind of each column in use, ``column_notes``, how it is written or
        encoded where there is something to say, and ``dropped_columns``, why others are not used.

    Examples
    --------
    >>> import pandas as pd
    >>> from cocoloss.columns import TablePreprocessor
    >>> table = pd.DataFrame({"price": ["$1", "$2"], "city": ["Bern", "Oslo"], "unit": "kg"})
    >>> columns_of(TablePreprocessor().fit(table))["column_kinds"]
    {'price': 'number', 'city': 'category'}
    """
    encoder = getattr(preprocessor, "encoder_", None)
    kinds = dict(encoder.kinds) if isinstance(encoder, TableEncoder | FloatEncoder) else {}
    notes, dropped = {}, {}
    if isinstance(encoder, TableEncoder):
        notes = {name: note for name in kinds if (note := _note(encoder, name))}
        dropped = dict(encoder.dropped_columns)
    return {"column_kinds": kinds, "column_notes": notes, "dropped_columns": dropped}


def _note(encoder: TableEncoder, name: str) -> str:
    """Say how a column is written, or how many values it has."""
    one_hot = encoder.one_hots.get(name)
    if one_hot is not None:
        few = " and the rarer ones together" if one_hot.has_infrequent else ""
        return f"{len(one_hot.categories)} values{few}" if one_hot.categories else "only its gaps"
    form = encoder.forms.get(name, "")
    parts = [ORDERS.get(form[:5], f"written as {form}")] if form else []
    if name in encoder.stray_columns:
        parts.append("other text is a gap")
    return ", ".join(parts)


def versions() -> dict[str, str]:
    """Return the versions of what did the work."""
    packages = {name: version(name) for name in ("numpy", "scikit-learn", "torch")}
    return {"cocoloss": cocoloss.__version__, "Python": platform.python_version()} | packages
