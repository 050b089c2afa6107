"""A task under watch: how much memory it takes, and an end to it if it takes too much or too long.

The watcher is a thread that raises an error in the thread of the task. Python looks for it between
two steps of Python code: a long call into compiled code ends first. Who cannot wait for that ends
the whole process, see :mod:`cocoloss.benchmark.cluster`. An import is never cut short: a module
that is half there would fail every later task of the process.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from cocoloss.benchmark.amounts import readable_time

EVERY = 0.05  # seconds between two looks
IMPORT_EVERY = 0.005  # while the task imports something
Answer = TypeVar("Answer")


class LimitError(BaseException):
    """A limit was reached. No ``Exception``, so that no model catches it on the way."""


class TooLongError(LimitError):
    """The time is over."""


class TooMuchMemoryError(LimitError):
    """The memory is used up."""


class Watch:
    """Watches one call in the thread that makes it.

    Parameters
    ----------
    seconds : float
        That it may last; 0 is no limit.
    memory : int
        Bytes above where it begins that it may take; 0 is no limit.

    Attributes
    ----------
    peak_memory : int
        Bytes by which the resident memory of the process rose.

    Examples
    --------
    >>> watch = Watch(seconds=10)
    >>> watch.call(lambda: len(bytearray(50_000_000)))
    50000000
    >>> watch.peak_memory >= 0
    True
    """

    def __init__(self, seconds: float = 0, memory: int = 0) -> None:
        self.seconds, self.memory = seconds, memory
        self.peak_memory = 0
        self._over = threading.Event()
        self._turn = threading.Lock()
        self._fired = False

    def call(self, work: Callable[[], Answer]) -> Answer:
        """Return what the call returns.

        Raises
        ------
        TooLongError, TooMuchMemoryError
            If it reached a limit.
        """
        self._thread = threading.get_ident()
        self._base = memory_in_use()
        self._ends = time.monotonic() + self.seconds if self.seconds else float("inf")
        watcher = threading.Thread(target=self._look, daemon=True, name="cocoloss-watch")
        watcher.start()
        try:
            try:
                return work()
            finally:
                self._stop(watcher)
        except TooLongError:
            raise TooLongError(f"took longer than {readable_time(self.seconds)}") from None
        except TooMuchMemoryError:
            raise TooMuchMemoryError(
                f"took {self.peak_memory / 1e6:,.0f} MB of memory; the limit is "
                f"{self.memory / 1e6:,.0f} MB"
            ) from None

    def _stop(self, watcher: threading.Thread) -> None:
        with self._turn:
            self._over.set()  # from here on nothing is raised
        watcher.join()
        self.peak_memory = max(self.peak_memory, memory_in_use() - self._base)
        if self._fired:  # an error that is still on its way arrives here, and not later
            for _ in range(10):
                time.sleep(0.001)

    def _look(self) -> None:
        pause = min(EVERY, max(0.0, self._ends - time.monotonic()))
        while not self._over.wait(pause):
            grown = memory_in_use() - self._base
            self.peak_memory = max(self.peak_memory, grown)
            pause = min(EVERY, max(0.0, self._ends - time.monotonic()))
            if is_importing(self._thread):
                pause = IMPORT_EVERY
                continue
            if time.monotonic() >= self._ends:
                return self._fire(TooLongError)
            if self.memory and grown > self.memory:
                return self._fire(TooMuchMemoryError)
        return None

    def _fire(self, error: type[LimitError]) -> None:
        with self._turn:
            if not self._over.is_set():
                self._fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(error)
                )


def is_importing(thread: int) -> bool:
    """Say whether a thread is within an import, at whatever depth.

    Examples
    --------
    >>> is_importing(threading.get_ident())
    False
    """
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - there is no other way to look
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def memory_in_use() -> int:
    """Return the resident memory of this process in bytes."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with dask

    resident: int = psutil.Process().memory_info().rss
    return resident
