"""How a run goes: what is done, what is running, and how long it will take."""

import time
from collections.abc import Sequence
from typing import Any

from cocoloss.benchmark.amounts import readable_time
from cocoloss.benchmark.keys import OK, Task, Unit
from cocoloss.benchmark.pool import Running
from cocoloss.benchmark.worker import Finished

SHOWN = 8  # running tasks that a terminal shows
REDRAW = 0.5  # seconds between two pictures


class Progress:
    """Counts, and shows nothing."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = 0
        self.n_workers = 1
        self._remaining: dict[str, int] = {}  # tasks, by key of unit
        self._thought: dict[str, float] = {}  # seconds of what has run, as planned, by model
        self._took: dict[str, float] = {}  # and as measured
        self._left: dict[str, float] = {}  # seconds of what is left, as planned, by model
        self._began = time.monotonic()

    def begin(self, units: Sequence[Unit], done: dict[str, int]) -> None:
        """Learn what there is to do."""
        self._began = time.monotonic()
        for unit in units:
            known = done.get(unit.key, 0)
            self.total += unit.tasks
            self.done += known
            self._remaining[unit.key] = unit.tasks - known
            self._left[unit.model] = self._left.get(unit.model, 0.0) + (
                unit.seconds * (1 - known / max(unit.tasks, 1))
            )

    def task_ended(self, unit: Unit, task: Task, finished: Finished) -> None:  # noqa: ARG002
        """Count a task, and learn from its time."""
        self.failed += finished.result.status != OK
        thought = unit.seconds / max(unit.tasks, 1)
        for model in (unit.model, ""):  # "" is all of them
            self._took[model] = self._took.get(model, 0.0) + finished.seconds
            self._thought[model] = self._thought.get(model, 0.0) + thought
        self._count(unit, 1)

    def task_known(self, unit: Unit, task: Task) -> None:  # noqa: ARG002
        """Count a task that was in the store."""
        self._count(unit, 1)

    def unit_ended(self, unit: Unit, status: str, error: str) -> None:  # noqa: ARG002
        """Count what the unit did not need."""
        self._count(unit, self._remaining[unit.key])

    def tick(self, running: list[Running], n_workers: int) -> None:  # noqa: ARG002
        """Learn how many there are to share the work."""
        self.n_workers = n_workers

    def state(self) -> dict[str, Any]:
        """Return the numbers."""
        return {
            "done": self.done,
            "total": self.total,
            "failed": self.failed,
            "seconds": round(time.monotonic() - self._began, 1),
            "seconds_left": round(self.seconds_left(), 1),
        }

    def seconds_left(self) -> float:
        """Return how long the rest will take, by what tasks of each model took so far."""
        whole = sum(
            seconds * self._ratio(model) for model, seconds in self._left.items() if seconds > 0
        )
        return whole / max(self.n_workers, 1)

    def close(self) -> None:
        """Leave the terminal as it was."""

    def _ratio(self, model: str) -> float:
        known = model if model in self._thought else ""
        thought = self._thought.get(known, 0.0)
        return self._took[known] / thought if thought > 0 else 1.0

    def _count(self, unit: Unit, tasks: int) -> None:
        tasks = min(tasks, self._remaining[unit.key])  # there may be more than was planned
        self._remaining[unit.key] -= tasks
        self.done += tasks
        self._left[unit.model] -= unit.seconds * tasks / max(unit.tasks, 1)


class LineProgress(Progress):
    """Prints a line for each unit: for logs."""

    def __init__(self, echo: Any) -> None:
        super().__init__()
        self._echo = echo

    def unit_ended(self, unit: Unit, status: str, error: str) -> None:
        """Print how it ended."""
        super().unit_ended(unit, status, error)
        end = "done" if status == OK else f"FAILED: {error}"
        left = readable_time(self.seconds_left())
        count = f"{self.done:,}/{self.total:,} tasks, about {left} left"
        self._echo(f"{count}: {unit.dataset} / {unit.model} {end}")

    def tick(self, running: list[Running], n_workers: int) -> None:
        """Say when there is nobody to do the work."""
        if n_workers == 0 != self.n_workers:
            self._echo("waiting for workers: the cluster has none")
        super().tick(running, n_workers)


class LiveProgress(Progress):
    """Draws a bar and the running tasks on a terminal."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console  # noqa: PLC0415 - for terminals only
        from rich.live import Live  # noqa: PLC0415

        self._live = Live(console=Console(stderr=True), auto_refresh=False, transient=True)
        self._live.start()
        self._drawn = 0.0

    def tick(self, running: list[Running], n_workers: int) -> None:
        """Draw."""
        super().tick(running, n_workers)
        if time.monotonic() - self._drawn > REDRAW:
            self._drawn = time.monotonic()
            self._live.update(self._picture(running), refresh=True)

    def unit_ended(self, unit: Unit, status: str, error: str) -> None:
        """Print failures above the bar."""
        super().unit_ended(unit, status, error)
        if status != OK:
            from rich.text import Text  # noqa: PLC0415

            where = f" {unit.dataset} / {unit.model}: {error}"
            self._live.console.print(Text.assemble(("failed", "red"), where))

    def close(self) -> None:
        """Leave the terminal as it was."""
        self._live.stop()

    def _picture(self, running: list[Running]) -> Any:
        from rich.console import Group  # noqa: PLC0415
        from rich.progress_bar import ProgressBar  # noqa: PLC0415
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        numbers = f"{self.done:,}/{self.total:,} tasks"
        numbers += f", {self.failed:,} failed" if self.failed else ""
        gone = readable_time(time.monotonic() - self._began)
        numbers += f" · {gone} gone, about {readable_time(self.seconds_left())} left"
        workers = f"{self.n_workers} worker{'' if self.n_workers == 1 else 's'}"
        workers = workers if self.n_workers else "waiting for workers: the cluster has none"
        table = Table.grid(padding=(0, 2, 0, 0))
        longest = sorted(running, key=lambda r: -r.seconds)
        for task in longest[:SHOWN]:
            name = task.key.rpartition("/")[0]  # without the digest
            table.add_row(Text(name), Text(readable_time(task.seconds), style="dim"))
        if len(running) > SHOWN:
            table.add_row(Text(f"and {len(running) - SHOWN} more", style="dim"), "")
        bar = Table.grid()
        bar.add_row(ProgressBar(total=max(self.total, 1), completed=self.done, width=60))
        return Group(bar, Text(f"{numbers} · {workers}"), table)
