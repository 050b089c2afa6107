"""``cocoloss bench report``: a store as a page, Markdown, LaTeX, JSON and diagrams."""

from pathlib import Path

import click

from cocoloss.cli import messages, options
from cocoloss.cli.bench_spec import experiments_option

name_option = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="BENCHMARK",
    help="Only this one of the store's benchmarks, as `bench status` calls it: NAME, or NAME@HASH "
    "where two have one name; repeatable. All if left out.",
)


@click.command()
@click.argument("store")
@options.out_option("FOLDER", required=True, help="Where to write; made if it is not there.")
@name_option
@click.option(
    "--missing",
    type=click.Choice(["drop_datasets", "worst"]),
    default="drop_datasets",
    show_default=True,
    help="Where a model has no result: leave the dataset out, or count the model as the worst.",
)
@experiments_option
@options.json_option
def report(
    store: str,
    out: Path,
    names: tuple[str, ...],
    missing: str,
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
            opened, out, names=names, missing=missing, experiments=experiments
        )
    if as_json:
        messages.print_json({"page": str(written[-1]), "files": [str(path) for path in written]})
        return
    click.echo(f"wrote {written[-1]} and {len(written) - 1} files beside it; open it in a browser")
