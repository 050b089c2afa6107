"""How many threads the products of numpy, scipy and torch may use: one where they are small."""

import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from threading import Lock, get_ident
from typing import Any

from threadpoolctl import ThreadpoolController

# Multiplications of one step from which a second thread is worth its risk. On idle cores it pays
# from some 3e7 on, by a third; on busy ones the threads wait for each other, and ten folds that
# take 3 s on one thread were seen to take 130 s on two.
WORTH_A_THREAD = 1_000_000_000
# What libraries read when they are loaded, and processes that are started; the last is joblib's.
VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


def use_threads(n: int) -> Any:
    """Bound the threads of each library that is loaded, or will be; return what can undo it.

    Libraries of numpy and scikit-learn, torch, and what joblib takes for the number of cores.
    """
    os.environ.update(dict.fromkeys(VARIABLES, str(n)))
    limits = _libraries().limit(limits=n)
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != n:
        torch.set_num_threads(n)
    return limits


_last_look: tuple[frozenset[str], ThreadpoolController] | None = None


def _libraries() -> ThreadpoolController:
    """Look at the loaded libraries; again only if a module came since, as libraries come with them.

    A look takes milliseconds, which the many tasks of a benchmark would each pay.
    """
    global _last_look  # noqa: PLW0603 - one for the process, as are libraries
    modules = frozenset(sys.modules)
    if _last_look is None or _last_look[0] != modules:
        _last_look = modules, ThreadpoolController()
    return _last_look[1]


@contextmanager
def at_most_threads(n: int) -> Iterator[None]:
    """Bound the threads of each library from here to there."""
    before = {name: os.environ.get(name) for name in VARIABLES}
    torch = sys.modules.get("torch")
    torch_before = torch.get_num_threads() if torch is not None else None
    limits = use_threads(n)
    try:
        yield
    finally:
        limits.restore_original_limits()
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        if torch is not None:
            torch.set_num_threads(torch_before)


@contextmanager
def threads_for(work: int) -> Iterator[None]:
    """Let numpy's products of so many multiplications use one thread, or as many as there are."""
    with ExitStack() as stack:
        if work < WORTH_A_THREAD:
            with _looking:  # two threads that look at once would count apart
                limits = _blas_limits()
            for limit in limits:
                stack.enter_context(limit.held())
        yield


class OneThread:
    """A library kept to one thread while anybody wants that: fits may run side by side.

    Who comes second finds the limit of the first, and must not take it for what was there before.
    So the first to come notes the number, and that is what is put back. Where every thread has a
    number of its own (``per_thread``), each lowers and restores it; else the first to come lowers
    it for all, and the last to go restores it.
    """

    def __init__(
        self, get: Callable[[], int], put: Callable[[int], object], *, per_thread: bool
    ) -> None:
        self._get, self._put, self._per_thread = get, put, per_thread
        self._lock = Lock()
        self._inside: Counter[int] = Counter()  # how often each thread is
        self._before = 1

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep to one thread from here to there."""
        me = get_ident()
        with self._lock:
            if not self._inside:
                self._before = self._get()
            if self._is_free() and self._before != 1:
                self._put(1)
                if self._get() != 1:  # somebody else rules, so there will be nothing to restore
                    self._before = 1
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                if self._is_free() and self._before != 1:
                    self._put(self._before)

    def _is_free(self) -> bool:
        """Return whether nobody holds the number that this thread sees."""
        return get_ident() not in self._inside if self._per_thread else not self._inside


_looking = Lock()


@cache
def _blas_limits() -> list[OneThread]:
    """Look at every loaded library, once."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return [_limit(library) for library in found]


def _limit(library: Any) -> OneThread:
    # Only the thread that has set a number may change it until it lets go; older ones do not care.
    let_go = getattr(library, "clear_controlling_thread", lambda: None)
    openmp = getattr(library, "threading_layer", None) == "openmp"

    def put(number: int) -> None:
        library.set_num_threads(number)
        let_go()

    return OneThread(library.get_num_threads, put, per_thread=openmp)
