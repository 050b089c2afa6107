"""``cocoloss bench``: many models on many tables, on one machine or on a cluster."""

import functools
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, cast

import click

from cocoloss.cli import bench_texts, options, saying
from cocoloss.cli.bench_report import report
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec

NEEDED = {"sqlalchemy": "SQLAlchemy", "distributed": "dask", "optuna": "optuna"}


@click.group()
def bench() -> None:
    """Compare models on many tables: tuned, resumable, on a laptop or a cluster.

    \b
    cocoloss bench plan paper/accuracy-smoke.toml
    cocoloss bench run paper/accuracy-smoke.toml
    cocoloss bench status accuracy-smoke.sqlite
    cocoloss bench report accuracy-smoke.sqlite --out report
    """


bench.add_command(report)


class SpecFile(NamedTuple):
    """A spec, what the user changes of it, and where its results are kept."""

    spec: Path
    store: str | None
    models: tuple[str, ...]
    data: str | None
    datasets: tuple[str, ...]
    time_limit: str | None

    def read(self) -> "Spec":
        """Return the spec with the changes."""
        from cocoloss.benchmark.amounts import check_seconds  # noqa: PLC0415
        from cocoloss.benchmark.session import find_own_models_here  # noqa: PLC0415
        from cocoloss.benchmark.spec import load_spec  # noqa: PLC0415

        own = {}
        for text in self.models:
            name, equals, place = text.partition("=")
            if not equals or not name:
                raise click.UsageError(f"--model takes NAME=MODULE:FACTORY, not {text!r}")
            own[name] = place
        limit = self.time_limit
        seconds = None if limit is None else check_seconds(limit, "--time-limit")
        find_own_models_here()
        return load_spec(self.spec).changed(
            datasets=self.datasets, own=own, seconds_per_task=seconds, source=self.data
        )

    def where(self, spec: "Spec") -> str:
        """Return where the results are kept."""
        return self.store or f"{spec.name}.sqlite"


def spec_file(command: options.Command) -> options.Command:
    """Add SPEC and what changes it, which the command gets as the one argument ``asked``."""

    @functools.wraps(command)
    def wrapper(
        spec: Path,
        store: str | None,
        models: tuple[str, ...],
        data: str | None,
        datasets: tuple[str, ...],
        time_limit: str | None,
        **rest: Any,
    ) -> Any:
        return command(asked=SpecFile(spec, store, models, data, datasets, time_limit), **rest)

    added = (
        click.option("--time-limit", metavar="TIME", help="For each task, such as 90, 15m or 2h."),
        click.option(
            "--dataset", "datasets", multiple=True, metavar="NAME", help="Only this; repeatable."
        ),
        click.option(
            "--data",
            metavar="SOURCE",
            help="Read the tables from here instead: folder:PATH, file:PATH#TARGET, sklearn or "
            "openml-cc18.",
        ),
        click.option(
            "--model",
            "models",
            multiple=True,
            metavar="NAME=MODULE:FACTORY",
            help="A model of your own, such as mine=my_models:make_forest; repeatable.",
        ),
        click.option(
            "--store",
            metavar="FILE|URL",
            help="Where results are kept: a SQLite file, or postgresql://user@host/name. "
            "NAME.sqlite in the current folder, after the spec's name, if left out.",
        ),
        click.argument("spec", type=click.Path(path_type=Path)),
    )
    return options.combined(cast("options.Command", wrapper), added)


def store_argument(command: Any) -> Any:
    """Add STORE."""
    return click.argument("store")(command)


@bench.command()
@spec_file
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    help="Processes of this machine; one per core if left out, 0 runs in this process.",
)
@click.option("--scheduler", metavar="URL", help="Of a Dask cluster, such as tcp://10.0.0.1:8786.")
@click.option("--retry-failed", is_flag=True, help="Do again what failed before.")
@options.json_option
@click.pass_context
def run(
    ctx: click.Context,
    asked: SpecFile,
    workers: int | None,
    scheduler: str | None,
    retry_failed: bool,
    as_json: bool,
) -> None:
    """Run a benchmark; go on with one that was stopped.

    Each finished task is kept at once, and none is run twice: after Ctrl-C, a crash or a power
    cut the same command goes on. Keys of the spec file are explained in docs/benchmark.md.

    \b
    cocoloss bench run paper/accuracy-smoke.toml --workers 4
    cocoloss bench run mine.toml --model mine=my_models:make_forest
    cocoloss bench run mine.toml --scheduler tcp://10.0.0.1:8786 \\
        --store postgresql://me@db.example.org/bench
    """
    _check_installed()
    from cocoloss.benchmark.plan import remainder  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.session import Session, default_workers, look  # noqa: PLC0415
    from cocoloss.benchmark.store import Store  # noqa: PLC0415

    if scheduler is not None and workers is not None:
        raise click.UsageError("--workers starts workers here, --scheduler uses others; give one")
    at_once = None if scheduler else max(1, default_workers() if workers is None else workers)
    described = asked.read()
    where = asked.where(described)
    made, tables = look(described, on_table=bench_texts.say_table)
    with Store(where) as opened, _stopped_cleanly():
        session = Session(made, remainder(made, opened), opened, tables)
        if not as_json:
            bench_texts.say_what_is_left(session, at_once)
        progress = _progress(quiet=as_json)
        try:
            summary = session.run(
                workers=workers, scheduler=scheduler, retry_failed=retry_failed, progress=progress
            )
        except KeyboardInterrupt:
            progress.close()
            bench_texts.say_how_to_go_on(ctx, session)
        finally:
            progress.close()
        bench_texts.say_what_was_done(session, summary, as_json=as_json)


@bench.command()
@spec_file
@click.option(
    "--workers", type=click.IntRange(min=1), help="To reckon with; one per core if left out."
)
@options.json_option
def plan(asked: SpecFile, workers: int | None, as_json: bool) -> None:
    """Say how many tasks a benchmark has, and roughly how long they take.

    Times are guesses from the size of the tables, and better ones as soon as the store has some
    that were measured.
    """
    _check_installed()
    from cocoloss.benchmark.plan import remainder  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.session import default_workers, look  # noqa: PLC0415
    from cocoloss.benchmark.store import Store  # noqa: PLC0415

    described = asked.read()
    where = asked.where(described)
    made, _ = look(described, on_table=bench_texts.say_table)
    if "://" in where or Path(where).exists():
        with Store(where, create=False) as opened:
            left = remainder(made, opened)
    else:
        left = remainder(made, None)
    workers = workers or default_workers()
    if as_json:
        units = [
            {n: getattr(u, n) for n in ("dataset", "model", "tasks", "seconds")} for u in made.units
        ]
        saying.print_json(
            {
                "name": described.name,
                "spec_hash": described.hash,
                "deviations": described.deviations,
                "tasks": made.n_tasks,
                "done": left.done,
                "core_seconds_left": left.seconds,
                "seconds_left": left.seconds / workers,
                "workers": workers,
                "measured": left.measured,
                "units": units,
            }
        )
        return
    bench_texts.print_plan(made)
    click.echo(bench_texts.left_line(made.n_tasks, left, workers))


@bench.command()
@store_argument
@options.json_option
def status(store: str, as_json: bool) -> None:
    """Say how the benchmarks of a store stand, running or finished."""
    _check_installed()
    from cocoloss.benchmark.status import status_of  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.store import Store  # noqa: PLC0415

    with Store(store, create=False) as opened:
        found = status_of(opened)
    if as_json:
        saying.print_json(found)
        return
    if not found:
        click.echo(f"{store} is empty: no benchmark was run yet")
    for one in found:
        bench_texts.print_status(one)


@bench.command()
@store_argument
@options.out_option("FILE", required=True, help="Ends in .csv or .parquet.")
@click.option(
    "--tasks", is_flag=True, help="Everything, one line per task: what `bench merge` takes."
)
def export(store: str, out: Path, tasks: bool) -> None:
    """Write results as CSV or Parquet: a line per dataset, model and fold."""
    _check_installed()
    from cocoloss.benchmark import export as exporting  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.store import Store  # noqa: PLC0415

    with Store(store, create=False) as opened:
        lines = exporting.export(opened, out, tasks=tasks)
    click.echo(f"wrote {out}: {lines:,} results")


@bench.command()
@click.argument("sources", nargs=-1, required=True, metavar="STORE|FILE...")
@click.option("--into", required=True, metavar="STORE", help="Made if it is not there.")
def merge(sources: tuple[str, ...], into: str) -> None:
    """Put results of several stores, or files of `bench export --tasks`, into one store.

    What is in both stays as it is in the store, but for failures of which another knows a result.
    """
    _check_installed()
    from cocoloss.benchmark import merge as merging  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.store import Store  # noqa: PLC0415

    with Store(into) as opened:
        for source in sources:
            merged = merging.merge(opened, source)
            click.echo(f"{source}: {merged.after - merged.before:,} new, {merged.after:,} in all")


def _check_installed() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    lacking = [name for module, name in NEEDED.items() if find_spec(module) is None]
    if lacking:
        raise CoCoError(f"benchmarks need {', '.join(lacking)}; pip install 'cocoloss[benchmark]'")


def _progress(*, quiet: bool) -> Any:
    from cocoloss.benchmark.progress import LineProgress, LiveProgress  # noqa: PLC0415

    if saying.is_terminal() and not quiet:
        return LiveProgress()
    return LineProgress(lambda line: click.echo(line, err=True))


@contextmanager
def _stopped_cleanly() -> Iterator[None]:
    """Treat an ending cluster job (SIGTERM) like Ctrl-C."""

    def stop(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
