"""How a run of ``cocoloss bench`` is shown: lines for logs, a bar for terminals."""

import time
from collections.abc import Callable
from typing import Any

from cocoloss._checks import counted
from cocoloss.benchmark.runner import Progress
from cocoloss.benchmark.spec import readable_time
from cocoloss.benchmark.tasks import OK, Unit
from cocoloss.benchmark.workers import Running

SHOWN = 8  # running tasks that a terminal shows
NOBODY = "waiting for workers: the cluster has none"
REDRAW = 0.5  # seconds between two pictures


class LineProgress(Progress):
    """Prints a line for each unit: for logs."""

    def __init__(self, echo: Callable[[str], object]) -> None:
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
            self._echo(NOBODY)
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
        workers = (
            counted(self.n_workers, "worker")
            if self.n_workers
            else "waiting for workers: the cluster has none"
        )
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


TICK = 0.25  # seconds to wait for an answer before looking at the clock
SIGN_EVERY = 5.0  # seconds between two signs of life in the store
