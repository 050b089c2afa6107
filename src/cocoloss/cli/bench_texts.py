"""What ``cocoloss bench`` says to people."""

import shlex
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import partial
from typing import Any

import click

from cocoloss._checks import counted
from cocoloss.benchmark.plan import Failure, Plan, Remainder, remainder
from cocoloss.benchmark.runner import Progress, Session, Summary
from cocoloss.benchmark.spec import readable_time
from cocoloss.benchmark.tasks import OK, Unit
from cocoloss.benchmark.workers import Running
from cocoloss.cli import messages

FAILED = 3  # exit status if tasks failed; 1 and 2 say that a run did not come to its end
FAILURES_SHOWN = 5
RUNNING_SHOWN = 8  # running tasks that a terminal shows
NOBODY = "waiting for workers: the cluster has none"
REDRAW = 0.5  # seconds between two pictures
KINDS_SHOWN = 20  # of failures, at the end of a run
TO_STDERR = partial(click.echo, err=True)


def say_table(name: str) -> None:
    """Show which table is being read."""
    if messages.is_terminal():
        click.echo(f"\r\x1b[Kreading {name}", nl=False, err=True)


def say_left_out(plan: Plan) -> None:
    """Say which tables cannot be used, a line each, now that all were read; and idle keys."""
    if messages.is_terminal():
        click.echo("\r\x1b[K", nl=False, err=True)
    for name, why in plan.left_out.items():
        click.echo(f"{click.style('left out:', fg='yellow')} {name}: {why}", err=True)
    # No error: to leave a model out for a while must not make another benchmark.
    idle = [name for name in plan.spec.tuning.trials if name not in plan.spec.models.names]
    if idle:
        messages.note(
            f"{plan.spec.where}: tuning.trials has {messages.listed(idle)}, not among "
            f"models.names: no effect"
        )


def say_what_is_left(session: Session, workers: int | None, *, retry_failed: bool) -> None:
    """Say what a run will do, and where its results go; workers elsewhere are not counted yet."""
    spec, plan = session.plan.spec, session.plan
    models = counted(len({unit.model for unit in plan.units}), "model")
    click.echo(f"{spec.name}: {models} on {counted(len(plan.infos), 'table')}")
    click.echo(left_line(plan.n_tasks, session.left, workers, retry_failed=retry_failed))
    click.echo(f"results: {session.store.name}")


def left_line(
    n_tasks: int, left: Remainder, workers: int | None, *, retry_failed: bool = False
) -> str:
    """Return how much there is to do, how long it will take, and what failed so far."""
    failed = ""
    if left.failed_units and not retry_failed:
        pairs = counted(left.failed_units, "pair")
        failed = (
            f"; {counted(left.failed, 'task')} failed, in {pairs} of table and model: "
            f"`bench run --retry-failed` does them again"
        )
    done = f", {left.done:,} of them done" if left.done else ""
    if left.done >= n_tasks:
        return f"{n_tasks:,} tasks, all done{failed}"
    how_long = f"{readable_time(left.seconds / (workers or 1))}"
    how_long += f" with {counted(workers, 'worker')}" if workers else " of core time"
    return f"{n_tasks:,} tasks{done}; about {how_long} ({_how_known(left)}){failed}"


def _how_known(left: Remainder) -> str:
    return "as measured" if left.measured else "a guess"


def say_how_to_go_on(session: Session) -> None:
    """Say what a stopped run has kept."""
    left = remainder(session.plan, session.store)
    again = shlex.join(["cocoloss", *sys.argv[1:]])
    click.echo(
        f"stopped: {left.done:,} of {session.plan.n_tasks:,} tasks are in {session.store.name}; "
        f"go on with: {again}",
        err=True,
    )


def say_what_was_done(
    session: Session, summary: Summary, failures: Sequence[Failure], *, as_json: bool
) -> None:
    """Say how a run ended, and what is wrong with the benchmark, in this run or before."""
    ran = sum(summary.ran.values())
    bad = ran - summary.ran["ok"]
    if as_json:
        kept = [f.name for f in fields(Failure) if f.name != "traceback"]
        messages.print_json(
            {
                "name": session.plan.spec.name,
                "spec_hash": session.plan.spec.hash,
                "store": session.store.name,
                "ran": summary.ran,
                "known": session.left.done,
                "units": summary.units,
                "seconds": summary.seconds,
                "left_out": summary.left_out,
                "failures": [{name: getattr(f, name) for name in kept} for f in failures],
            }
        )
        return
    for failure in failures[:KINDS_SHOWN]:
        click.echo(failure_line(asdict(failure)), err=True)
    more = len(failures) - KINDS_SHOWN
    if more > 0:
        click.echo(f"and {more:,} more kinds of failure", err=True)
    failed = summary.units.get("failed", 0)
    if failed:
        messages.note(
            f"{failed} of {len(session.plan.units)} pairs of table and model have failures: "
            f"`cocoloss bench status {session.store.name} --failures` shows their tracebacks, "
            f"--retry-failed does them again"
        )
    n = len(summary.left_out)
    left_out = f"; {counted(n, 'table')} {'was' if n == 1 else 'were'} left out" if n else ""
    took = readable_time(summary.seconds)
    click.echo(f"ran {counted(ran, 'task')} in {took}, {bad:,} of them failed{left_out}")


def failure_line(failure: Mapping[str, Any]) -> str:
    """Return failures that are alike as one line: model, table, what was said, and how often."""
    n = f" ({counted(failure['tasks'], 'task')})" if failure["tasks"] else ""
    return f"{failure['status']}: {failure['model']} on {failure['dataset']}: {failure['error']}{n}"


def print_plan(made: Plan, left: Remainder) -> None:
    """Print a line per model."""
    by_model: dict[str, tuple[int, int, float]] = {}
    for unit in made.units:
        tables, tasks, seconds = by_model.get(unit.model, (0, 0, 0.0))
        by_model[unit.model] = tables + 1, tasks + unit.tasks, seconds + left.seconds_of(unit)
    click.echo(f"{made.spec.name} ({made.spec.kind}) on {len(made.infos)} tables")
    for deviation in made.spec.deviations:
        click.echo(f"  differs from the paper: {deviation}")
    width = max(len(name) for name in [*by_model, "model"])
    how_long = f"core time, {_how_known(left)}"
    click.echo(f"{'model':<{width}}  {'tables':>6}  {'tasks':>9}  {how_long}")
    for name, (tables, tasks, seconds) in by_model.items():
        took = readable_time(seconds)
        click.echo(f"{name:<{width}}  {tables:>6}  {tasks:>9,}  {took:>{len(how_long)}}")


def print_status(one: dict[str, Any], store: str, *, with_failures: bool) -> None:
    """Print how a benchmark stands, and some of its failures, or all with their tracebacks."""
    tasks, units = one["tasks"], one["units"]
    ago = readable_time(one["seconds_since_seen"])
    state = {
        "broken": f"broken off, no sign of it for {ago}; run the same command to go on",
        "stopped": "stopped; run the same command to go on",
        "running": f"running, about {readable_time(one['seconds_left'] or 0)} left",
    }.get(one["state"], one["state"])
    click.echo(f"{one['label']} ({one['kind']}): {state}")
    click.echo(
        f"  {tasks['done']:,} of {tasks['planned']:,} tasks, "
        f"{readable_time(one['core_seconds'])} of core time; "
        f"pairs of table and model: {units['ok']} complete, {units['failed']} with failures, "
        f"{units['open']} open"
    )
    for key, worker, seconds in one["running"]:
        click.echo(f"  running {key.rpartition('/')[0]} on {worker} for {readable_time(seconds)}")
    for name, why in one["left_out"].items():
        click.echo(f"  left out: {name}: {why}")
    if with_failures:
        _print_failures(one["failures"])
        return
    for failure in one["failures"][:FAILURES_SHOWN]:
        name = failure["key"].rpartition("/")[0]
        click.echo(
            f"  {failure['status']} {name} (attempt {failure['attempt']}): {failure['error']}"
        )
    if one["failures"]:
        others = "and more failures; " if len(one["failures"]) > FAILURES_SHOWN else ""
        click.echo(f"  {others}`cocoloss bench status {store} --failures` shows the tracebacks")


def _print_failures(failures: Sequence[Mapping[str, Any]]) -> None:
    if not failures:
        click.echo("  no failures")
    for failure in failures:
        click.echo(f"\n  {failure_line(failure)}")
        click.echo(f"  first: {failure['key']}")
        trace = failure["traceback"].rstrip() or "no traceback: it was ended from outside"
        for line in trace.split("\n"):
            click.echo(f"    {line}")


class LineProgress(Progress):
    """Prints a line for each unit: for logs."""

    def __init__(self, echo: Callable[[str], object] = TO_STDERR) -> None:
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
        workers = counted(self.n_workers, "worker") if self.n_workers else NOBODY
        table = Table.grid(padding=(0, 2, 0, 0))
        longest = sorted(running, key=lambda r: -r.seconds)
        for task in longest[:RUNNING_SHOWN]:
            name = task.key.rpartition("/")[0]  # without the digest
            table.add_row(Text(name), Text(readable_time(task.seconds), style="dim"))
        if len(running) > RUNNING_SHOWN:
            table.add_row(Text(f"and {len(running) - RUNNING_SHOWN} more", style="dim"), "")
        bar = Table.grid()
        bar.add_row(ProgressBar(total=max(self.total, 1), completed=self.done, width=60))
        return Group(bar, Text(f"{numbers} · {workers}"), table)
