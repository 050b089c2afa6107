"""A fit that fails, or is stopped, leaves no trace."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unchanged_on_failure(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was, fitted or not, if learning fails or is stopped by Ctrl-C.

    Learning replaces attributes and changes none in place, so that the old ones are all it takes.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
