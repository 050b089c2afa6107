"""How many threads small matrices are worth: one."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

# Multiplications of one matrix product from which a second thread pays for itself. Below, threads
# wait for each other longer than they work, and on a busy machine many times as long.
WORTH_A_THREAD = 30_000_000


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
