"""Where tasks run: what the runner asks of such a place, and the simplest one, this process."""

from collections import deque
from typing import Any, NamedTuple, Protocol

from cocoloss.benchmark.keys import Task
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.worker import Finished, run_task


class Running(NamedTuple):
    """A task that a worker is busy with."""

    key: str
    worker: str
    seconds: float


class Pool(Protocol):
    """Takes tasks, and hands back how they ended."""

    name: str

    @property
    def n_workers(self) -> int:
        """How many tasks run at once."""

    def share(self, fingerprint: str, table: Any) -> None:
        """Take a table that tasks will ask for."""

    def forget(self, fingerprint: str) -> None:
        """Drop a table that no task will ask for."""

    def submit(self, task: Task, fingerprint: str) -> None:
        """Take a task on a table that was shared before."""

    def wait(self, seconds: float) -> list[tuple[str, Finished]]:
        """Return what has ended, by key; wait so long if nothing has."""

    def running(self) -> list[Running]:
        """Return what is being worked on."""

    def close(self) -> None:
        """Drop everything."""


class HerePool:
    """Runs tasks one after the other in this process: for debugging and for tiny benchmarks.

    Parameters
    ----------
    spec : Spec
    """

    n_workers = 1
    name = "this process"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._waiting: deque[tuple[Task, str]] = deque()
        self._tables: dict[str, Any] = {}

    def share(self, fingerprint: str, table: Any) -> None:
        """Keep a table."""
        self._tables[fingerprint] = table

    def forget(self, fingerprint: str) -> None:
        """Drop a table."""
        self._tables.pop(fingerprint, None)

    def submit(self, task: Task, fingerprint: str) -> None:
        """Put a task at the end of the queue."""
        self._waiting.append((task, fingerprint))

    def wait(self, seconds: float) -> list[tuple[str, Finished]]:
        """Run the next task, if there is any time for it."""
        if not seconds:
            return []
        task, fingerprint = self._waiting.popleft()
        return [(task.key, run_task(task, self._tables[fingerprint], self.spec))]

    def running(self) -> list[Running]:
        """Return the task that is next: nothing else happens while one runs."""
        return [Running(task.key, self.name, 0.0) for task, _ in list(self._waiting)[:1]]

    def close(self) -> None:
        """Drop everything."""
        self._waiting.clear()
        self._tables.clear()
