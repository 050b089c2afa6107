"""Checks, random numbers and words of messages that several stages share; no torch here."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss.exceptions import CoCoError, GeometryError

SHOWN = 8  # names in a list before "and so many more"
RandomState = int | np.random.Generator | np.random.RandomState | None
MOST_WRITTEN = 1e16  # from which on digits before the point are more than a number has
PRIORS_TOLERANCE = 1e-6  # room for priors that were summed in float32


def check_integer(value: object, name: str, *, minimum: int) -> int:
    """Return ``value`` as an int, or say which whole number was expected."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise CoCoError(f"{name} must be a whole number of at least {minimum}, not {value!r}")
    if value < minimum:
        raise CoCoError(f"{name} must be at least {minimum}, but is {value}")
    return int(value)


def check_share(value: object, name: str) -> float:
    """Return a number strictly between 0 and 1: a significance level, a share of the rows."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < 1:
        raise CoCoError(f"{name} must be a number between 0 and 1, not {value!r}")
    return float(value)


def check_truth(value: object, name: str) -> bool:
    """Return ``value`` as a bool: text such as "no" would be true."""
    if not isinstance(value, (bool, np.bool_)):
        raise CoCoError(f"{name} must be True or False, not {value!r:.80}")
    return bool(value)


def check_n_classes(n_classes: object) -> int:
    """Return the number of classes: there is nothing to tell apart below two."""
    return check_integer(n_classes, "n_classes", minimum=2)


def check_room_for_simplex(n_classes: int, embedding_dim: int) -> None:
    """Refuse an embedding space that is too small for C equidistant unit vectors."""
    # NOTE[PAPER]: the paper asks C <= q - 1. The simplex spans C - 1 dimensions (its vertices
    # sum to zero), so q >= C - 1 suffices.
    if embedding_dim < n_classes - 1:
        raise GeometryError(
            f"a simplex of {n_classes} classes needs embedding_dim >= n_classes - 1 = "
            f"{n_classes - 1}, but embedding_dim is {embedding_dim}; use a larger embedding_dim, "
            f'or, where a similarity is asked for, "packing": vectors spread as well as possible'
        )


def check_option(value: object, name: str, options: Iterable[str]) -> str:
    """Return ``value`` if it is one of the named options."""
    options = tuple(options)
    if not isinstance(value, str) or value not in options:
        raise CoCoError(f"{name} must be one of {', '.join(map(repr, options))}, not {value!r}")
    return value


def is_sparse(values: object) -> bool:
    """Return whether something is a sparse matrix, without importing scipy: it came from there."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(values))


def as_array(values: Any) -> Any:
    """Return a torch tensor as an array, without importing torch; leave anything else as it is."""
    if not hasattr(values, "detach"):
        return values
    values = values.detach().cpu()
    if str(values.dtype) == "torch.bfloat16":  # numpy has no bfloat16
        values = values.float()
    return values.numpy()


def check_weights(sample_weight: Any, n_rows: int) -> NDArray[np.float64]:
    """Return one finite, non-negative weight per row; ones when none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = as_float_array(sample_weight, "sample_weight")
    if weights.shape != (n_rows,):
        raise CoCoError(
            f"sample_weight has shape {weights.shape} for {n_rows} rows; give one weight each"
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        first = int(bad.argmax())
        raise CoCoError(
            f"sample_weight must be finite and not negative, but row {first} has {weights[first]}; "
            f"use 0 to leave a row out"
        )
    return weights


def as_float_array(values: Any, name: str) -> NDArray[np.float64]:
    """Return a float64 array from an array, a list or a torch tensor (which is detached)."""
    try:
        array = np.asarray(as_array(values))
        if np.iscomplexobj(array):
            raise CoCoError(f"{name} must hold real numbers, not {array.dtype}")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CoCoError(f"{name} must hold numbers only: {error}") from error


def check_priors(
    priors: ArrayLike,
    n_classes: int | None = None,
    name: str = "priors",
    classes: Sequence[Any] | None = None,
) -> NDArray[np.float64]:
    """Return class priors: positive, one per class, summing to one; messages name ``classes``."""
    priors = as_float_array(priors, name)
    if priors.ndim != 1 or priors.size < 2:
        raise CoCoError(
            f"{name} must be a vector with one value per class, for at least two classes, "
            f"but has shape {priors.shape}"
        )
    if n_classes is not None and priors.size != n_classes:
        raise CoCoError(f"{name} has {priors.size} values for {n_classes} classes; give one each")
    if not np.all(priors > 0):  # also catches NaN
        bad = int(np.argmin(np.nan_to_num(priors, nan=-np.inf)))
        whose, remedy = f"class {bad}", "leave out classes that the training data lacks"
        if classes is not None:
            whose, remedy = f"{classes[bad]!r}", "give a class that never occurs a small one"
        raise CoCoError(f"{name} must be positive, but {whose} has {priors[bad]}; {remedy}")
    total = float(priors.sum())
    if abs(total - 1) > PRIORS_TOLERANCE:
        raise CoCoError(
            f"{name} must sum to one, but sum to {total:.6g}; "
            f"divide class counts by the number of samples"
        )
    return np.asarray(priors / total)


def check_balance(balance: Any) -> float:
    """Return the exponent s of weights pi^-s: a number at least 0."""
    is_number = isinstance(balance, Real) and not isinstance(balance, (bool, np.bool_))
    if not is_number or not 0 <= float(balance) < np.inf:
        raise CoCoError(
            f"balance must be a number at least 0, such as 0 (plain) or 0.5 (the paper's), not "
            f"{balance!r:.80}"
        )
    return float(balance)


# Parts of a state, which is nested dicts and lists of numbers, text and arrays: a model file may be
# a stranger's, so that parts may be missing, of another type, or not fit together.


def require(is_sound: object, message: str) -> None:
    """Refuse what is not sound with a message."""
    if not is_sound:
        raise CoCoError(message)


def state_part(
    state: Any, name: str, kind: type, *, of: type | None = None, n: int | None = None
) -> Any:
    """Return a part of a state that is of a type, its items of another, and so many."""
    part = state.get(name) if isinstance(state, Mapping) else None
    require(isinstance(part, kind), f"its {name} must be of type {kind.__name__}")
    items: Any = part.values() if isinstance(part, Mapping) else part
    if of is not None:
        sound = all(isinstance(item, of) for item in items)
        require(sound, f"the items of its {name} must be of type {of.__name__}")
    if n is not None:
        require(len(items) == n, f"its {name} must have {n} items, not {len(items)}")
    return part


def state_array(
    state: Any,
    name: str,
    dtype: type[np.generic],
    shape: tuple[int | None, ...],
    *,
    positive: bool = False,
) -> NDArray[Any]:
    """Return an array of a state: finite, of a dtype and a shape, in which None is any length."""
    array: NDArray[Any] = state_part(state, name, np.ndarray)
    fits = len(shape) == array.ndim and all(
        n is None or n == found for n, found in zip(shape, array.shape, strict=True)
    )
    require(
        fits and np.issubdtype(array.dtype, dtype) and np.isfinite(array).all(),
        f"its {name} must be finite numbers of type {dtype.__name__} and shape {shape}, not "
        f"{array.dtype} of shape {array.shape}",
    )
    require(not positive or (array > 0).all(), f"its {name} must be positive")
    return array


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn what users pass as ``random_state``, None for fresh entropy, into a generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**32, size=4, dtype=np.uint32))
    if isinstance(random_state, bool) or not (
        random_state is None or isinstance(random_state, int | np.integer | np.random.Generator)
    ):
        raise CoCoError(
            f"random_state must be an integer, a numpy generator or None, not {random_state!r}"
        )
    if isinstance(random_state, int | np.integer) and random_state < 0:
        raise CoCoError(f"random_state must not be negative, but is {random_state}")
    return np.random.default_rng(random_state)


def did_you_mean(word: str, names: Iterable[object]) -> str:
    """Return ``; did you mean 'x'?`` for the name nearest to ``word``, or nothing.

    Examples
    --------
    >>> did_you_mean("specie", ["species", "length"])
    "; did you mean 'species'?"
    >>> did_you_mean("zzz", ["species"])
    ''
    """
    known = {str(name).casefold(): str(name) for name in names}
    near = get_close_matches(word.casefold(), known, n=1, cutoff=0.6)
    return f"; did you mean {known[near[0]]!r}?" if near else ""


def amount(value: float) -> str:
    """Return a number as people write it: four digits, and all of those before the point.

    Examples
    --------
    >>> amount(1234567.8), amount(0.123456), amount(1e30)
    ('1,234,568', '0.1235', '1e+30')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < MOST_WRITTEN else f"{value:.4g}"


def listed(names: Iterable[object], *, quoted: bool = True, separator: str = ", ") -> str:
    """Return names with commas between, cut after a few.

    Examples
    --------
    >>> listed(["a", "b"])
    "'a', 'b'"
    >>> listed(range(100), quoted=False)
    '0, 1, 2, 3, 4, 5, 6, 7 and 92 more'
    """
    texts = [repr(str(name)) if quoted else str(name) for name in names]
    more = len(texts) - SHOWN
    return separator.join(texts[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def counted(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(2000, "row"), counted(2, "class", "classes")
    ('1 row', '2,000 rows', '2 classes')
    """
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
