"""What ``cocoloss bench`` says to people."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import messages

if TYPE_CHECKING:
    from cocoloss.benchmark.plan import Failure, Plan, Remainder
    from cocoloss.benchmark.runner import Session, Summary

FAILED = 3  # exit status if tasks failed; 1 and 2 say that a run did not come to its end
INTERRUPTED = 130  # what shells expect after Ctrl-C
TERMINATED = 143  # and after SIGTERM
FAILURES_SHOWN = 5
KINDS_SHOWN = 20  # of failures, at the end of a run


def say_table(name: str) -> None:
    """Show which table is being read."""
    if messages.is_terminal():
        click.echo(f"\r\x1b[Kreading {name}", nl=False, err=True)


def say_left_out(plan: "Plan") -> None:
    """Say which tables cannot be used, a line each, now that all were read; and idle keys."""
    from cocoloss.benchmark.plan import trials_of_nobody  # noqa: PLC0415 - heavy

    if messages.is_terminal():
        click.echo("\r\x1b[K", nl=False, err=True)
    for name, why in plan.left_out.items():
        click.echo(f"{click.style('left out:', fg='yellow')} {name}: {why}", err=True)
    idle = trials_of_nobody(plan.spec)
    if idle:
        messages.note(
            f"{plan.spec.where}: tuning.trials has {messages.listed(idle)}, not among "
            f"models.names: no effect"
        )


def say_what_is_left(session: "Session", workers: int | None, *, retry_failed: bool) -> None:
    """Say what a run will do, and where its results go; workers elsewhere are not counted yet."""
    spec, plan = session.plan.spec, session.plan
    n_models = len({unit.model for unit in plan.units})
    n_tables = len(plan.infos)
    models = f"{n_models} model{'' if n_models == 1 else 's'}"
    click.echo(f"{spec.name}: {models} on {n_tables} table{'' if n_tables == 1 else 's'}")
    click.echo(left_line(plan.n_tasks, session.left, workers, retry_failed=retry_failed))
    click.echo(f"results: {session.store.name}")


def left_line(
    n_tasks: int, left: "Remainder", workers: int | None, *, retry_failed: bool = False
) -> str:
    """Return how much there is to do, how long it will take, and what failed so far."""
    from cocoloss.benchmark.spec import readable_time  # noqa: PLC0415

    failed = ""
    if left.failed_units and not retry_failed:
        pairs = _counted(left.failed_units, "pair")
        failed = (
            f"; {_counted(left.failed, 'task')} failed, in {pairs} of table and model: "
            f"`bench run --retry-failed` does them again"
        )
    done = f", {left.done:,} of them done" if left.done else ""
    if left.done >= n_tasks:
        return f"{n_tasks:,} tasks, all done{failed}"
    guess = _how_known(left)
    if workers is None:
        how_long = f"{readable_time(left.seconds)} of core time"
    else:
        at_once = f"{workers} worker{'' if workers == 1 else 's'}"
        how_long = f"{readable_time(left.seconds / workers)} with {at_once}"
    return f"{n_tasks:,} tasks{done}; about {how_long} ({guess}){failed}"


def _how_known(left: "Remainder") -> str:
    return "as measured" if left.measured else "a guess"


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def say_how_to_go_on(session: "Session") -> None:
    """Say what a stopped run has kept."""
    from cocoloss.benchmark.plan import remainder  # noqa: PLC0415

    left = remainder(session.plan, session.store)
    again = shlex.join(["cocoloss", *sys.argv[1:]])
    click.echo(
        f"stopped: {left.done:,} of {session.plan.n_tasks:,} tasks are in {session.store.name}; "
        f"go on with: {again}",
        err=True,
    )


def say_what_was_done(
    session: "Session", summary: "Summary", failures: "Sequence[Failure]", *, as_json: bool
) -> None:
    """Say how a run ended, and what is wrong with the benchmark, in this run or before."""
    from cocoloss.benchmark.spec import readable_time  # noqa: PLC0415

    ran = sum(summary.ran.values())
    bad = ran - summary.ran["ok"]
    if as_json:
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
                "failures": [_without_traceback(failure) for failure in failures],
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
    left_out = f"; {_counted(n, 'table')} {'was' if n == 1 else 'were'} left out" if n else ""
    took = readable_time(summary.seconds)
    click.echo(f"ran {_counted(ran, 'task')} in {took}, {bad:,} of them failed{left_out}")


def failure_line(failure: Mapping[str, Any]) -> str:
    """Return failures that are alike as one line: model, table, what was said, and how often."""
    n = f" ({_counted(failure['tasks'], 'task')})" if failure["tasks"] else ""
    return f"{failure['status']}: {failure['model']} on {failure['dataset']}: {failure['error']}{n}"


def _without_traceback(failure: "Failure") -> dict[str, Any]:
    return {name: value for name, value in asdict(failure).items() if name != "traceback"}


def print_plan(made: "Plan", left: "Remainder") -> None:
    """Print a line per model."""
    from cocoloss.benchmark.spec import readable_time  # noqa: PLC0415

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
        time = readable_time(seconds)
        click.echo(f"{name:<{width}}  {tables:>6}  {tasks:>9,}  {time:>{len(how_long)}}")


def print_status(one: dict[str, Any], store: str, *, with_failures: bool) -> None:
    """Print how a benchmark stands, and some of its failures, or all with their tracebacks."""
    from cocoloss.benchmark.spec import readable_time  # noqa: PLC0415

    tasks, units = one["tasks"], one["units"]
    state = one["state"]
    if state == "broken":
        ago = readable_time(one["seconds_since_seen"])
        state = f"broken off, no sign of it for {ago}; run the same command to go on"
    elif state == "stopped":
        state = "stopped; run the same command to go on"
    elif state == "running":
        state = f"running, about {readable_time(one['seconds_left'] or 0)} left"
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
    more = len(one["failures"]) - FAILURES_SHOWN
    if one["failures"]:
        others = "and more failures; " if more > 0 else ""
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
