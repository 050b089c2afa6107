"""``cocoloss evaluate``: cross-validation of our models beside two peers, as a table."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import options, saying
from cocoloss.cli.labelled import LabelledFile, labelled_file
from cocoloss.cli.training import EPOCHS, PRIORS, SEED

if TYPE_CHECKING:
    from cocoloss.benchmark.evaluation import Evaluation

CHOICES = ("coco", "dr", "ce", "rf", "ksvm")
COLUMNS = {  # measure -> (heading, digits, whether larger is better)
    "balanced_accuracy": ("balanced accuracy", 4, True),
    "accuracy": ("accuracy", 4, True),
    "log_loss": ("log loss", 4, False),
    "dispersity": ("dispersity", 3, False),
    "nc1": ("NC1", 3, False),
    "nc2": ("NC2", 3, False),
    "nc4": ("NC4", 3, False),
}


@click.command()
@labelled_file
@click.option(
    "--model",
    "models",
    type=click.Choice(CHOICES),
    multiple=True,
    help="Only these models; may be given several times. All five if left out.",
)
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@PRIORS
@EPOCHS
@SEED
@options.json_option
def evaluate(
    source: LabelledFile,
    models: tuple[str, ...],
    folds: int,
    priors: str,
    epochs: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Cross-validate models on a table.

    CoCo, dot regression and cross-entropy, whose folds train at once, beside a random forest and
    a kernel SVM with their usual settings, on the same folds; their class weights follow
    --priors. Dispersity and NC1, NC2, NC4 say
    how far the embedding of the test rows has collapsed: 0 is all the way.

    \b
    cocoloss evaluate customers.csv --target churned
    """
    table = source.read()
    with saying.notes_for_warnings(advice=saying.ADVICE):
        # Columns are read once, as `fit` reads them: a fold may lack the cell that tells a kind.
        X = table.settled()
        evaluations = run(X, table.y, models or CHOICES, folds, priors, epochs, seed)
    _note_few_rows(table.y.value_counts(), folds, len(evaluations[0].folds["accuracy"]))
    if as_json:
        saying.print_json(as_plain(evaluations))
    else:
        show(evaluations, f"{table.name}: {len(table.X):,} rows, {source.target}", priors)


def _note_few_rows(counts: Any, asked: int, n_folds: int) -> None:
    """Say if there are fewer folds than asked for, or classes that are not in every one."""
    if n_folds < asked:
        saying.note(
            f"{n_folds} folds instead of {asked}: the largest class, {counts.index[0]}, has "
            f"{counts.iloc[0]:,} rows"
        )
    rare = counts[counts < n_folds]
    if len(rare):
        names = saying.some_of(f"{name} ({count})" for name, count in rare.items())
        saying.note(f"classes with fewer rows than the {n_folds} folds are not in each: {names}")


def run(
    X: Any,
    y: Any,
    models: Sequence[str],
    folds: int,
    priors: str,
    epochs: int | None,
    seed: int,
) -> "list[Evaluation]":
    """Return the evaluations, with a line that says whose turn it is."""
    from cocoloss.benchmark.evaluation import evaluate_models  # noqa: PLC0415 - heavy

    with _turns(len(models)) as on_model:
        return evaluate_models(
            X,
            y,
            models,
            n_folds=folds,
            priors=priors,
            seed=seed,
            network_options={} if epochs is None else {"max_iter": epochs},
            on_model=on_model,
        )


@contextmanager
def _turns(n_models: int) -> Iterator[Callable[[str], None]]:
    from rich.console import Console  # noqa: PLC0415 - heavy
    from rich.progress import (  # noqa: PLC0415
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    from cocoloss.benchmark.evaluation import NAMES  # noqa: PLC0415

    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), MofNCompleteColumn()
    with Progress(
        *columns,
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as progress:
        task = progress.add_task("", total=n_models, completed=-1)
        yield lambda model: progress.update(task, advance=1, description=NAMES[model])


def as_plain(evaluations: "list[Evaluation]") -> list[dict[str, Any]]:
    """Return what machines read: means, and every fold."""
    return [
        {
            "model": evaluation.model,
            "seconds": evaluation.seconds,
            **{measure: evaluation.mean(measure) for measure in COLUMNS},
            "folds": evaluation.folds,
        }
        for evaluation in evaluations
    ]


def show(evaluations: "list[Evaluation]", title: str, priors: str) -> None:
    """Print the table; the best of each column is bold, and what it means stands below."""
    import numpy as np  # noqa: PLC0415 - heavy
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from cocoloss.benchmark.evaluation import NAMES  # noqa: PLC0415

    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("model")
    shown = [m for m in COLUMNS if any(np.isfinite(e.mean(m)) for e in evaluations)]
    for measure in shown:
        table.add_column(COLUMNS[measure][0], justify="right")
    table.add_column("s/fit", justify="right")
    for evaluation in evaluations:
        cells = []
        for measure in shown:
            _, digits, larger = COLUMNS[measure]
            means = [e.mean(measure) for e in evaluations]
            mean = evaluation.mean(measure)
            text = "" if np.isnan(mean) else f"{mean:.{digits}f}"
            if measure == "balanced_accuracy":
                text += f" ± {evaluation.spread(measure):.3f}"
            best = np.nanmax(means) if larger else np.nanmin(means)
            cells.append(f"[bold]{text}[/]" if len(means) > 1 and mean == best else text)
        table.add_row(NAMES[evaluation.model], *cells, f"{evaluation.seconds:.2f}")
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # a file or a pipe has no width of its own
    console.print(table)
    n_folds = len(evaluations[0].folds["accuracy"])
    alike = "count alike for every model" if priors == "uniform" else "count as often as they occur"
    click.echo(f"Means over the test rows of {n_folds} folds; classes {alike}.")
