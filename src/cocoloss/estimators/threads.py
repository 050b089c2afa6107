"""How many threads small matrices are worth: one."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# Multiplications of one step from which a second thread is worth its risk. On idle cores it pays
# from some 3e7 on, by a third; on busy ones the threads wait for each other, and ten folds that
# take 3 s on one thread were seen to take 130 s on two.
WORTH_A_THREAD = 1_000_000_000


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """Let numpy's products of so many multiplications use one thread, or as many as there are."""
    if work >= WORTH_A_THREAD:
        yield
        return
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()  # looks at every loaded library, so once is enough
