"""Random numbers from a private generator: the global seed is never read and never moved."""

import numpy as np

from cocoloss.exceptions import CoCoError

RandomState = int | np.random.Generator | np.random.RandomState | None


def as_generator(random_state: RandomState) -> np.random.Generator:
    """Turn what users pass as ``random_state`` into a numpy generator.

    Parameters
    ----------
    random_state : int, Generator, RandomState or None
        A seed, a generator to draw from, or None for fresh entropy.

    Examples
    --------
    >>> as_generator(0).integers(10) == as_generator(0).integers(10)
    np.True_
    """
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
