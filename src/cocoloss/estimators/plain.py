"""Values as JSON and arrays of numbers, and back: nothing that is read back can run.

What JSON lacks is written as a list that begins with a word: ``["tuple", ...]``. Objects are
their attributes, and only those of classes that the caller names.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.exceptions import CoCoError

Classes = Mapping[str, type]
RAW = {"f": ("<f4", "<f8"), "i": ("<i4", "<i8"), "b": ("|b1",)}  # kinds kept as they are
WIDEST = {"f": "<f8", "i": "<i8", "u": "<i8"}  # what the other sizes of a kind become
# Bytes of all arrays of text and of other kinds of number together: so many, and so many times as
# many as the plain arrays have. In an array of text every item is as wide as the longest.
MAX_MADE = 2**26
MADE_PER_BYTE = 4


def pack(value: Any, classes: Classes) -> tuple[Any, list[NDArray[Any]]]:
    """Return a value as a tree that JSON has, and the arrays that it refers to.

    Parameters
    ----------
    value
        Numbers, text, None, tuples, lists, dicts, arrays, and objects of the given classes.
    classes : mapping of str to type
        Classes whose objects may be part of it, by the name to write.

    Raises
    ------
    CoCoError
        If it holds anything else; the message says where.

    Examples
    --------
    >>> tree, arrays = pack({"a": (1, float("inf"))}, {})
    >>> tree
    ['dict', ['a', ['tuple', 1, ['float', 'inf']]]]
    >>> unpack(tree, arrays, {})
    {'a': (1, inf)}
    """
    packer = _Packer(classes)
    tree = packer.pack(value, "the model")
    if packer.n_made > _most_made(packer.arrays):
        raise CoCoError(f"its text takes {packer.n_made:,} bytes, too many for a model file")
    return tree, packer.arrays


def unpack(tree: Any, arrays: list[NDArray[Any]], classes: Classes) -> Any:
    """Return the value that :func:`pack` took apart.

    Raises
    ------
    CoCoError
        If the tree is not one that :func:`pack` makes: it takes each array once, and what is made
        besides is not much larger than they are.
    """
    return _Unpacker(arrays, classes).unpack(tree)


class _Packer:
    def __init__(self, classes: Classes) -> None:
        self.names = {cls: name for name, cls in classes.items()}
        self.arrays: list[NDArray[Any]] = []
        self.n_made = 0

    def pack(self, value: Any, where: str) -> Any:
        if isinstance(value, np.generic) and not isinstance(value, (np.datetime64, np.timedelta64)):
            value = value.item()
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else ["float", str(value)]
        if isinstance(value, (list, tuple)):
            items = [self.pack(item, f"{where}[{i}]") for i, item in enumerate(value)]
            return [type(value).__name__ if type(value) in (list, tuple) else "tuple", *items]
        if isinstance(value, dict):
            pairs = [
                (self.pack(k, where), self.pack(v, f"{where}[{k!r}]")) for k, v in value.items()
            ]
            return ["dict", *map(list, pairs)]
        if isinstance(value, np.ndarray):
            return self._array(value, where)
        if type(value) in self.names:
            name = self.names[type(value)]
            state = {k: self.pack(v, f"{where}.{k}") for k, v in vars(value).items()}
            return ["object", name, state]
        raise CoCoError(
            f"{where} is a {type(value).__name__}, which a model file cannot hold without pickle"
        )

    def _array(self, array: NDArray[Any], where: str) -> Any:
        kind = array.dtype.kind
        if kind in "Mm":
            self.n_made += array.nbytes
            return ["times", array.dtype.str, self._array(array.astype("<i8"), where)]
        if kind in "OU":
            if array.ndim != 1:
                raise CoCoError(f"{where} is a table of text, which a model file cannot hold")
            items = array.tolist()
            dtype = np.dtype(object) if kind == "O" else _narrowed(array.dtype, items)
            self.n_made += dtype.itemsize * len(items)
            return ["items", "object" if kind == "O" else dtype.str, self.pack(items, where)]
        if array.dtype.str not in RAW.get(kind, ()):
            if kind not in WIDEST:
                raise CoCoError(f"{where} is an array of {array.dtype}; a model file has none")
            self.n_made += array.nbytes
            return ["cast", array.dtype.str, self._array(array.astype(WIDEST[kind]), where)]
        self.arrays.append(array)
        return ["array", len(self.arrays) - 1]


class _Unpacker:
    def __init__(self, arrays: list[NDArray[Any]], classes: Classes) -> None:
        self.arrays, self.classes = arrays, classes
        self.left = set(range(len(arrays)))  # a second object on the same array is nobody's
        self.bytes_left = _most_made(arrays)
        self.words: dict[str, Callable[..., Any]] = {
            "float": self._float,
            "list": lambda *items: [self.unpack(item) for item in items],
            "tuple": lambda *items: tuple(self.unpack(item) for item in items),
            "dict": lambda *pairs: {self.unpack(k): self.unpack(v) for k, v in pairs},
            "array": self._array,
            "cast": self._cast,
            "times": self._cast,
            "items": self._items,
            "object": self._object,
        }

    def unpack(self, tree: Any) -> Any:
        if tree is None or isinstance(tree, (bool, int, float, str)):
            return tree
        if not isinstance(tree, list) or not tree or tree[0] not in self.words:
            raise CoCoError(f"a value of no known kind: {str(tree)[:40]}")
        return self.words[tree[0]](*tree[1:])

    def _float(self, text: Any) -> float:
        if text not in ("nan", "inf", "-inf"):
            raise CoCoError(f"no number: {text!r:.40}")
        return float(text)

    def _array(self, index: Any) -> NDArray[Any]:
        if type(index) is not int or index not in self.left:
            raise CoCoError(f"there is no array {index!r:.40}, or it was taken before")
        self.left.remove(index)
        return self.arrays[index]

    def _cast(self, dtype: Any, tree: Any) -> NDArray[Any]:
        kind = np.dtype(_text(dtype))
        array = self.unpack(tree)
        if kind.kind not in "fiuMm" or not isinstance(array, np.ndarray):
            raise CoCoError(f"no array of {kind}")
        self._make_room(array.size * kind.itemsize)
        return array.astype(kind)

    def _items(self, dtype: Any, tree: Any) -> NDArray[Any]:
        items = self.unpack(tree)
        if not isinstance(items, list):
            raise CoCoError("an array of text that is no list")
        if dtype == "object":
            self._make_room(np.dtype(object).itemsize * len(items))
            array = np.empty(len(items), dtype=object)
            array[:] = items
            return array
        width = np.dtype(_text(dtype))
        if width.kind != "U" or not all(isinstance(item, str) for item in items):
            raise CoCoError("an array of text that holds something else")
        width = _narrowed(width, items)
        self._make_room(width.itemsize * len(items))
        return np.array(items, dtype=width)

    def _make_room(self, n_bytes: int) -> None:
        self.bytes_left -= n_bytes
        if self.bytes_left < 0:
            raise CoCoError("it unpacks to more than a model needs")

    def _object(self, name: Any, state: Any) -> Any:
        if name not in self.classes or not isinstance(state, dict):
            raise CoCoError(f"an object of a class that no model has: {name!r:.60}")
        cls = self.classes[name]
        value: Any = object.__new__(cls)  # no constructor runs: what follows is data
        for key, tree in state.items():
            if not key.isidentifier() or key.startswith("__"):
                raise CoCoError(f"no attribute: {key!r:.40}")
            value.__dict__[key] = self.unpack(tree)
        return value


def _most_made(arrays: list[NDArray[Any]]) -> int:
    return MAX_MADE + MADE_PER_BYTE * sum(array.nbytes for array in arrays)


def _narrowed(dtype: Any, items: list[str]) -> np.dtype[Any]:
    """Return the kind of an array of text, no wider than the longest item."""
    widest = np.dtype(dtype).itemsize // np.dtype("U1").itemsize
    width = min(widest, max(map(len, items), default=1) or 1)
    return np.dtype(f"{np.dtype(dtype).byteorder}U{width}")


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > 20:
        raise CoCoError(f"no kind of number: {str(value)[:40]}")
    return value
