"""Checks of what a spec says; each is given a value and the key that it stands at."""

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any

from cocoloss._checks import check_integer
from cocoloss.exceptions import CoCoError

Check = Callable[[Any, str], Any]


def whole(minimum: int) -> Check:
    """Return what checks a whole number of at least ``minimum``."""
    return lambda value, name: check_integer(value, name, minimum=minimum)


def text(value: Any, name: str) -> str:
    """Check a text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise CoCoError(f"{name} must be a text, not {value!r}")
    return value


def kind_of_experiment(value: Any, name: str) -> str:
    """Check what an experiment can be called: ``kind`` or ``package.module``."""
    if not isinstance(value, str) or not all(part.isidentifier() for part in value.split(".")):
        raise CoCoError(
            f"{name} must name an experiment, such as 'accuracy' or 'package.module', not {value!r}"
        )
    return value


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Check a list of texts, none of them twice."""
    if not isinstance(value, list | tuple) or not all(isinstance(v, str) and v for v in value):
        raise CoCoError(f"{name} must be a list of texts, not {value!r}")
    twice = sorted({v for v in value if list(value).count(v) > 1})
    if twice:
        raise CoCoError(f"{name} has {twice[0]!r} twice")
    return tuple(value)


def places(value: Any, name: str) -> dict[str, str]:
    """Check names of models and where each is made, ``package.module:factory``."""
    if not isinstance(value, Mapping):
        raise CoCoError(f"{name} must be a table of name = 'package.module:factory', not {value!r}")
    for model, place in value.items():
        module, colon, factory = place.partition(":") if isinstance(place, str) else ("", "", "")
        good = all(part.isidentifier() for part in [*module.split("."), *factory.split(".")])
        if not colon or not good:
            raise CoCoError(f"{name}.{model} must be 'package.module:factory', not {place!r}")
    return dict(value)


def numbers_of_trials(value: Any, name: str) -> dict[str, int]:
    """Check numbers of trials by model."""
    if not isinstance(value, Mapping):
        raise CoCoError(f"{name} must be a table of model = number, not {value!r}")
    return {model: check_integer(n, f"{name}.{model}", minimum=0) for model, n in value.items()}


def refuse_unknown(given: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
    """Refuse a key that is not known, with the one that was meant."""
    for key in given:
        if key not in known:
            raise CoCoError(f"unknown key {prefix}{key}; {what_there_is(str(key), known)}")


def what_there_is(name: str, known: Collection[str]) -> str:
    """Return the name that was meant, as a question, or else all that there are.

    Examples
    --------
    >>> what_there_is("outerr", ["outer", "inner"])
    "did you mean 'outer'?"
    >>> what_there_is("rain", ["outer", "inner"])
    'there are outer, inner'
    """
    near = get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
