"""Names that are loaded when they are first used, so that a package costs what is used of it."""

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Homes = Mapping[str, Sequence[str]]  # module -> the names that it defines


def late_names(
    package: str, homes: Homes, *, stages: Sequence[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` of a package whose names are loaded late.

    ``stages`` are modules of the package that are themselves among its names.

    Examples
    --------
    >>> load, names = late_names("a.package", {"math": ["pi"], "cmath": ["tau"]})
    >>> load("pi")
    3.141592653589793
    >>> names()
    ['pi', 'tau']
    >>> load("e")
    Traceback (most recent call last):
    AttributeError: module 'a.package' has no attribute 'e'
    """
    late = LateNames(homes)

    def load(name: str) -> object:
        if name in late:
            return late[name]
        if name in stages:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted([*late, *stages])


class LateNames(Mapping[str, Any]):
    """A mapping of names to what they stand for, imported when it is looked up."""

    def __init__(self, homes: Homes) -> None:
        self._home = {name: home for home, names in homes.items() for name in names}

    def __contains__(self, name: object) -> bool:
        return name in self._home  # which imports nothing

    def __getitem__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._home[name]), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._home)

    def __len__(self) -> int:
        return len(self._home)
