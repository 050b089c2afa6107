"""What ``cocoloss bench`` says to people."""

import shlex
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from cocoloss.cli import saying

if TYPE_CHECKING:
    from cocoloss.benchmark.plan import Plan, Remainder
    from cocoloss.benchmark.runner import Summary
    from cocoloss.benchmark.session import Session

INTERRUPTED = 130  # what shells expect after Ctrl-C
FAILURES_SHOWN = 5


def say_table(name: str) -> None:
    """Show which table is being read."""
    if saying.is_terminal():
        click.echo(f"\r\x1b[Kreading {name}", nl=False, err=True)


def say_what_is_left(session: "Session", workers: int | None) -> None:
    """Say what a run will do, and where its results go; workers elsewhere are not counted yet."""
    if saying.is_terminal():
        click.echo("\r\x1b[K", nl=False, err=True)
    spec, plan = session.plan.spec, session.plan
    n_models = len({unit.model for unit in plan.units})
    n_tables = len(plan.infos)
    models = f"{n_models} model{'' if n_models == 1 else 's'}"
    click.echo(f"{spec.name}: {models} on {n_tables} table{'' if n_tables == 1 else 's'}")
    click.echo(left_line(plan.n_tasks, session.left, workers))
    click.echo(f"results: {session.store.name}")


def left_line(n_tasks: int, left: "Remainder", workers: int | None) -> str:
    """Return how much there is to do, and how long it will take."""
    from cocoloss.benchmark.amounts import readable_time  # noqa: PLC0415

    done = f", {left.done:,} of them done" if left.done else ""
    if left.done >= n_tasks:
        return f"{n_tasks:,} tasks, all done"
    guess = "as measured" if left.measured else "a guess"
    if workers is None:
        how_long = f"{readable_time(left.seconds)} of core time"
    else:
        at_once = f"{workers} worker{'' if workers == 1 else 's'}"
        how_long = f"{readable_time(left.seconds / workers)} with {at_once}"
    return f"{n_tasks:,} tasks{done}; about {how_long} ({guess})"


def say_how_to_go_on(ctx: click.Context, session: "Session") -> NoReturn:
    """Say what a stopped run has kept, and end."""
    from cocoloss.benchmark.plan import remainder  # noqa: PLC0415

    left = remainder(session.plan, session.store)
    again = shlex.join(["cocoloss", *sys.argv[1:]])
    click.echo(
        f"stopped: {left.done:,} of {session.plan.n_tasks:,} tasks are in {session.store.name}; "
        f"go on with: {again}",
        err=True,
    )
    ctx.exit(INTERRUPTED)


def say_what_was_done(session: "Session", summary: "Summary", *, as_json: bool) -> None:
    """Say how a run ended."""
    from cocoloss.benchmark.amounts import readable_time  # noqa: PLC0415

    ran = sum(summary.ran.values())
    bad = ran - summary.ran["ok"]
    if as_json:
        saying.print_json(
            {
                "name": session.plan.spec.name,
                "spec_hash": session.plan.spec.hash,
                "store": session.store.name,
                "ran": summary.ran,
                "known": session.left.done,
                "units": summary.units,
                "seconds": summary.seconds,
            }
        )
        return
    click.echo(f"ran {ran:,} tasks in {readable_time(summary.seconds)}, {bad:,} of them failed")
    failed = summary.units.get("failed", 0)
    if failed:
        saying.note(
            f"{failed} of {len(session.plan.units)} pairs of table and model have failures: see "
            f"`cocoloss bench status {session.store.name}`; --retry-failed does them again"
        )


def print_plan(made: "Plan") -> None:
    """Print a line per model."""
    from cocoloss.benchmark.amounts import readable_time  # noqa: PLC0415

    by_model: dict[str, tuple[int, int, float]] = {}
    for unit in made.units:
        tables, tasks, seconds = by_model.get(unit.model, (0, 0, 0.0))
        by_model[unit.model] = tables + 1, tasks + unit.tasks, seconds + unit.seconds
    click.echo(f"{made.spec.name} ({made.spec.kind}) on {len(made.infos)} tables")
    for deviation in made.spec.deviations:
        click.echo(f"  differs from the paper: {deviation}")
    width = max(len(name) for name in [*by_model, "model"])
    click.echo(f"{'model':<{width}}  {'tables':>6}  {'tasks':>9}  {'core time, a guess':>18}")
    for name, (tables, tasks, seconds) in by_model.items():
        time = readable_time(seconds)
        click.echo(f"{name:<{width}}  {tables:>6}  {tasks:>9,}  {time:>18}")


def print_status(one: dict[str, Any]) -> None:
    """Print how a benchmark stands."""
    from cocoloss.benchmark.amounts import readable_time  # noqa: PLC0415

    tasks, units = one["tasks"], one["units"]
    state = one["state"]
    if state == "broken":
        ago = readable_time(one["seconds_since_seen"])
        state = f"broken off, no sign of it for {ago}; run the same command to go on"
    elif state == "stopped":
        state = "stopped; run the same command to go on"
    elif state == "running":
        state = f"running, about {readable_time(one['seconds_left'] or 0)} left"
    click.echo(f"{one['name']} ({one['kind']}): {state}")
    click.echo(
        f"  {tasks['done']:,} of {tasks['planned']:,} tasks, "
        f"{readable_time(one['core_seconds'])} of core time; "
        f"pairs of table and model: {units['ok']} complete, {units['failed']} with failures, "
        f"{units['open']} open"
    )
    for key, worker, seconds in one["running"]:
        click.echo(f"  running {key.rpartition('/')[0]} on {worker} for {readable_time(seconds)}")
    for failure in one["failures"][:FAILURES_SHOWN]:
        name = failure["key"].rpartition("/")[0]
        click.echo(
            f"  {failure['status']} {name} (attempt {failure['attempt']}): {failure['error']}"
        )
    more = len(one["failures"]) - FAILURES_SHOWN
    if more > 0:
        click.echo("  and more failures: see --json, or `cocoloss bench export`")
