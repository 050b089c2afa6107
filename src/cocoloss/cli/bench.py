"""``cocoloss bench``: many models on many tables, on one machine or on a cluster."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from cocoloss.cli import messages, options
from cocoloss.cli.root import INTERRUPTED, TERMINATED
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec

Function = TypeVar("Function", bound=Callable[..., Any])
NEEDED = {"sqlalchemy": "SQLAlchemy", "distributed": "dask", "optuna": "optuna"}

store_argument = click.argument("store")
name_option = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="BENCHMARK",
    help="Only this one of the store's benchmarks, as `bench status` calls it: NAME, or NAME@HASH "
    "where two have one name; repeatable. All if left out.",
)
experiments_option = click.option(
    "--experiments",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Where the file of an experiment of your own lies, if neither beside the spec nor in the "
    "current folder; repeatable.",
)


def predictions_option(text: str) -> Callable[[Function], Function]:
    """Return the option that says where predictions are."""
    folder = click.Path(file_okay=False, path_type=Path)
    return click.option("--predictions", type=folder, metavar="FOLDER", help=text)


class SpecFile(NamedTuple):
    """A spec, what the user changes of it, and where its results are kept."""

    spec: Path
    store: str | None
    models: tuple[str, ...]
    data: str | None
    datasets: tuple[str, ...]
    time_limit: str | None
    experiments: tuple[Path, ...] = ()

    def read(self) -> "Spec":
        """Return the spec with the changes."""
        from cocoloss.benchmark.spec import check_seconds, load_spec  # noqa: PLC0415
        from cocoloss.benchmark.tasks import import_from_here_too  # noqa: PLC0415

        own = {}
        for text in self.models:
            name, equals, place = text.partition("=")
            if not equals or not name:
                raise click.UsageError(f"--model takes NAME=MODULE:FACTORY, not {text!r}")
            own[name] = place
        limit = self.time_limit
        seconds = None if limit is None else check_seconds(limit, "--time-limit")
        import_from_here_too()
        return load_spec(self.spec, experiments=self.experiments).changed(
            datasets=self.datasets, own=own, seconds_per_task=seconds, source=self.data
        )

    def where(self, spec: "Spec") -> str:
        """Return where the results are kept."""
        file = spec.name.replace("/", "-").replace("\\", "-")  # which would name a folder
        return self.store or f"{file}.sqlite"


spec_file = options.packed(  # SPEC, and what changes it
    "asked",
    SpecFile,
    [
        click.argument("spec", type=click.Path(path_type=Path)),
        click.option(
            "--store",
            metavar="FILE|URL",
            help="Where results are kept: a SQLite file, or postgresql://user@host/name. "
            "NAME.sqlite in the current folder, after the spec's name, if left out.",
        ),
        click.option(
            "--model",
            "models",
            multiple=True,
            metavar="NAME=MODULE:FACTORY",
            help="A model of your own, such as mine=my_models:make_forest; repeatable.",
        ),
        click.option(
            "--data",
            metavar="SOURCE",
            help="Read the tables from here instead: folder:PATH, file:PATH#TARGET, sklearn or "
            "openml-cc18.",
        ),
        click.option(
            "--dataset", "datasets", multiple=True, metavar="NAME", help="Only this; repeatable."
        ),
        click.option("--time-limit", metavar="TIME", help="For each task, such as 90, 15m or 2h."),
        experiments_option,
    ],
)


@click.group()
def bench() -> None:
    """Compare models on many tables: tuned, resumable, on a laptop or a cluster.

    \b
    cocoloss bench plan paper/accuracy-smoke.toml
    cocoloss bench run paper/accuracy-smoke.toml
    cocoloss bench status accuracy-smoke.sqlite
    cocoloss bench report accuracy-smoke.sqlite --out report
    """


@bench.command()
@spec_file
@click.option(
    "--workers",
    type=click.IntRange(min=0),
    help="Processes of this machine; one per core if left out, 0 runs in this process.",
)
@click.option("--scheduler", metavar="URL", help="Of a Dask cluster, such as tcp://10.0.0.1:8786.")
@click.option("--retry-failed", is_flag=True, help="Do again what failed before.")
@options.DEVICE
@options.THREADS_OF_WORKERS
@predictions_option("Keep predictions of the outer folds, here instead of beside the store.")
@options.json_option
@click.pass_context
def run(
    ctx: click.Context,
    asked: SpecFile,
    workers: int | None,
    scheduler: str | None,
    retry_failed: bool,
    device: str | None,
    threads: int | None,
    predictions: Path | None,
    as_json: bool,
) -> None:
    """Run a benchmark; go on with one that was stopped.

    Each finished task is kept at once, and none is run twice: after Ctrl-C, a crash or a power
    cut the same command goes on. Keys of the spec file are explained in docs/benchmark.md.

    The exit status is 0 if all tasks of the benchmark are done, 3 if some of them failed or took
    too long, in this run or before, 130 after Ctrl-C, 143 after SIGTERM, 2 for a slip on the
    command line and 1 for anything else that stops it.

    \b
    cocoloss bench run paper/accuracy-smoke.toml --workers 4
    cocoloss bench run mine.toml --model mine=my_models:make_forest
    cocoloss bench run mine.toml --scheduler tcp://10.0.0.1:8786 \\
        --store postgresql://me@db.example.org/bench
    """
    _check_installed()
    from cocoloss.benchmark.plan import failures_of, remainder  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.runner import Session, default_workers, look, store_if_used  # noqa: PLC0415
    from cocoloss.cli import bench_texts  # noqa: PLC0415

    if scheduler is not None and workers is not None:
        raise click.UsageError("--workers starts workers here, --scheduler uses others; give one")
    at_once = None if scheduler else max(1, default_workers() if workers is None else workers)
    if scheduler is None:
        options.check_device(device)
    described = asked.read().changed(threads=threads, device=device)
    if predictions is not None:
        described = described.changed(keep_predictions=True)
    where = asked.where(described)
    made, tables = look(described, on_table=bench_texts.say_table)
    with store_if_used(where) as opened:
        left = remainder(made, opened, retry_failed=retry_failed)
        session = Session(made, left, opened, tables)
        bench_texts.say_left_out(made)
        if not as_json:
            bench_texts.say_what_is_left(session, at_once, retry_failed=retry_failed)
        # What Dask has begun and drops at Ctrl-C would be the last that the user reads.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        live = messages.is_terminal() and not as_json
        progress = bench_texts.LiveProgress() if live else bench_texts.LineProgress()
        try:
            summary = session.run(
                workers=workers,
                scheduler=scheduler,
                retry_failed=retry_failed,
                progress=progress,
                predictions=predictions,
            )
        except KeyboardInterrupt:
            progress.close()
            bench_texts.say_how_to_go_on(session)
            ctx.exit(TERMINATED if ctx.obj else INTERRUPTED)
        finally:
            progress.close()
        pairs = {(unit.model, unit.dataset) for unit in made.units}
        known = failures_of(opened, described.hash)
        failures = [each for each in known if (each.model, each.dataset) in pairs]
        bench_texts.say_what_was_done(session, summary, failures, as_json=as_json)
    if failures:
        ctx.exit(bench_texts.FAILED)


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
    from cocoloss.benchmark.runner import default_workers, look  # noqa: PLC0415
    from cocoloss.benchmark.store import Store  # noqa: PLC0415
    from cocoloss.cli import bench_texts  # noqa: PLC0415

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
            {n: getattr(u, n) for n in ("dataset", "model", "tasks")}
            | {"seconds": left.seconds_of(u)}
            for u in made.units
        ]
        messages.print_json(
            {
                "name": described.name,
                "spec_hash": described.hash,
                "deviations": described.deviations,
                "tasks": made.n_tasks,
                "done": left.done,
                "failed": left.failed,
                "left_out": made.left_out,
                "core_seconds_left": left.seconds,
                "seconds_left": left.seconds / workers,
                "workers": workers,
                "measured": left.measured,
                "units": units,
            }
        )
        return
    bench_texts.say_left_out(made)
    bench_texts.print_plan(made, left)
    click.echo(bench_texts.left_line(made.n_tasks, left, workers))


@bench.command()
@store_argument
@click.option(
    "--failures",
    "with_failures",
    is_flag=True,
    help="All that went wrong, each kind once, with the traceback of its first.",
)
@options.json_option
def status(store: str, with_failures: bool, as_json: bool) -> None:
    """Say how the benchmarks of a store stand, running or finished."""
    _check_installed()
    from dataclasses import asdict  # noqa: PLC0415

    from cocoloss.benchmark.plan import failures_of, status_of  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.store import Store  # noqa: PLC0415
    from cocoloss.cli import bench_texts  # noqa: PLC0415

    with Store(store, create=False) as opened:
        found = status_of(opened)
        if with_failures:
            for one in found:
                one["failures"] = list(map(asdict, failures_of(opened, one["spec_hash"])))
    if as_json:
        messages.print_json(found)
        return
    if not found:
        click.echo(f"{store} is empty: no benchmark was run yet")
    for one in found:
        bench_texts.print_status(one, store, with_failures=with_failures)


@bench.command()
@store_argument
@options.out_option("FILE", required=True, help="Ends in .csv or .parquet.")
@click.option(
    "--tasks", is_flag=True, help="Everything, one line per task: what `bench merge` takes."
)
@name_option
def export(store: str, out: Path, tasks: bool, names: tuple[str, ...]) -> None:
    """Write results as CSV or Parquet: a line per dataset, model and fold."""
    _check_installed()
    from cocoloss.benchmark.export import export as write_export  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.store import Store  # noqa: PLC0415

    with Store(store, create=False) as opened:
        lines = write_export(opened, out, tasks=tasks, names=names)
    click.echo(f"wrote {out}: {lines:,} results")


@bench.command()
@store_argument
@click.option(
    "--measure",
    "measures",
    multiple=True,
    required=True,
    metavar="NAME",
    help="auc, f1, log_loss, rmse, mae, kappa, a scorer of scikit-learn such as roc_auc_ovo, or "
    "package.module:function; repeatable.",
)
@predictions_option("Where they are, if not beside the store.")
@name_option
@options.json_option
def measure(
    store: str,
    measures: tuple[str, ...],
    predictions: Path | None,
    names: tuple[str, ...],
    as_json: bool,
) -> None:
    """Add a measure to results whose predictions were kept; nothing is run.

    Specs with keep_predictions = true keep what models said of the test rows. The store's rows
    then have the measure as if the run had taken it: in export, in reports, for compare.

    \b
    cocoloss bench measure mine.sqlite --measure roc_auc --measure neg_brier_score
    """
    _check_installed()
    from cocoloss.benchmark.predictions import add_measures, predictions_folder  # noqa: PLC0415
    from cocoloss.benchmark.store import Store  # noqa: PLC0415 - heavy

    Store(store, create=False).close()  # one that is not there is not made
    with Store(store) as opened:
        folder = predictions_folder(opened, predictions)
        added = add_measures(opened, folder, measures, names)
    if as_json:
        messages.print_json(added._asdict())
        return
    rows = [
        [model, *(f"{of[model]:.4f}" if model in of else "-" for of in added.means.values())]
        for model in dict.fromkeys(m for of in added.means.values() for m in of)
    ]
    title = f"means over {added.folds:,} folds"
    messages.console().print(messages.table(title, ["model"], list(added.means), rows))
    for model in added.lacking:
        messages.note(f"{model} gives no probabilities, which some of these measures need")
    if added.without:
        messages.note(f"{added.without:,} finished tasks have no predictions that were kept")
    click.echo(f"{added.tasks:,} tasks of {store} have {messages.listed(measures)} now")


@bench.command()
@store_argument
@options.out_option("FOLDER", required=True, help="Where to write; made if it is not there.")
@name_option
@click.option(
    "--missing",
    type=click.Choice(["drop_datasets", "worst"]),
    default="drop_datasets",
    show_default=True,
    help="Where a model has no result: leave the dataset out, or count the model as the worst.",
)
@click.option("--measure", metavar="NAME", help="Rank by this one of the recorded measures.")
@experiments_option
@options.json_option
def report(
    store: str,
    out: Path,
    names: tuple[str, ...],
    missing: str,
    measure: str | None,
    experiments: tuple[Path, ...],
    as_json: bool,
) -> None:
    """Write the report of a store, running or finished.

    FOLDER/index.html has tables that sort, critical-difference diagrams, every dataset with its
    folds, and what is missing and why; it needs no network. Beside it the same as Markdown, LaTeX
    and JSON, all scores as CSV, and the diagrams as SVG, PNG and PDF. Experiments of your own and
    ranks to set beside (printed.py) are found in the current folder, or by --experiments.

    \b
    cocoloss bench report accuracy-smoke.sqlite --out report
    cocoloss bench report convergence.sqlite --out report --experiments paper
    """
    from cocoloss.benchmark.store import Store  # noqa: PLC0415 - heavy
    from cocoloss.report.bench_report import write_bench_report  # noqa: PLC0415

    with Store(store, create=False) as opened:
        written = write_bench_report(
            opened, out, names=names, missing=missing, experiments=experiments, measure=measure
        )
    if as_json:
        messages.print_json({"page": str(written[-1]), "files": [str(path) for path in written]})
        return
    click.echo(f"wrote {written[-1]} and {len(written) - 1} files beside it; open it in a browser")


@bench.command()
@click.argument("sources", nargs=-1, required=True, metavar="STORE|FILE...")
@click.option("--into", required=True, metavar="STORE", help="Made if it is not there.")
def merge(sources: tuple[str, ...], into: str) -> None:
    """Put results of several stores, or files of `bench export --tasks`, into one store.

    What is in both stays as it is in the store, but for failures of which another knows a result.
    If one of them cannot be read, nothing is written.
    """
    _check_installed()
    from cocoloss.benchmark.export import merge_into  # noqa: PLC0415 - heavy

    for source, merged in zip(sources, merge_into(into, sources), strict=True):
        click.echo(f"{source}: {merged.after - merged.before:,} new, {merged.after:,} in all")


def _check_installed() -> None:
    from importlib.util import find_spec  # noqa: PLC0415

    lacking = [name for module, name in NEEDED.items() if find_spec(module) is None]
    if lacking:
        raise CoCoError(f"benchmarks need {', '.join(lacking)}; pip install 'cocoloss[benchmark]'")
