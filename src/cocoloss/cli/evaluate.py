"""``cocoloss evaluate`` and ``demo``: cross-validation of our models beside two peers."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import messages, options
from cocoloss.cli.options import (
    EPOCHS,
    PRIORS,
    SEED,
    SOLVER,
    Training,
    TrainingFile,
    training_file,
)
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.benchmark.evaluation import Evaluation

SETS = {"breast cancer": "load_breast_cancer", "digits": "load_digits"}
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
GEOMETRY = ("dispersity", "nc1", "nc2", "nc4")  # below the others where a terminal is narrow
SECONDS = "seconds"
UNBOUNDED = 10_000  # characters in a line


@click.command()
@training_file
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
@SOLVER
@options.json_option
def evaluate(
    source: TrainingFile,
    models: tuple[str, ...],
    folds: int,
    priors: str,
    epochs: int | None,
    seed: int,
    solver: str | None,
    as_json: bool,
) -> None:
    """Cross-validate models on a table.

    CoCo, dot regression and cross-entropy beside a random forest and a kernel SVM with their usual
    settings, on the same folds; their class weights follow --priors. With --epochs CoCo is trained
    as networks, whose folds train at once. Dispersity and NC1, NC2, NC4 say
    how far the embedding of the test rows has collapsed: 0 is all the way.

    \b
    cocoloss evaluate customers.csv --target churned
    """
    table = source.read()
    with messages.notes_for_warnings(advice=messages.ADVICE):
        # Columns are read once, as `fit` reads them: a fold may lack the cell that tells a kind.
        X, y = _without_lone_rows(table.typed()[0], table.y)
        evaluations = _run(X, y, models or CHOICES, folds, priors, epochs, seed, solver)
    _note_few_rows(y.value_counts(), folds, len(evaluations[0].folds["accuracy"]))
    if as_json:
        messages.print_json(_as_json(evaluations))
    else:
        _show(evaluations, f"{table.name}: {len(X):,} rows, {source.target}", priors)


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("cocoloss-demo"),
    show_default=True,
    help="Folder for the pages; made if it is not there.",
)
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@EPOCHS
@SEED
@options.json_option
def demo(out: Path, folds: int, epochs: int | None, seed: int, as_json: bool) -> None:
    """Compare models on two data sets and write a report of each.

    CoCo, dot regression and cross-entropy beside a random forest and a kernel SVM, on the breast
    cancer and digits data that come with scikit-learn.
    """
    from sklearn import datasets  # noqa: PLC0415 - heavy

    from cocoloss.recording import record_fit  # noqa: PLC0415
    from cocoloss.report.run_report import write_run_report  # noqa: PLC0415

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CoCoError(f"cannot make the folder {out}: {error.strerror}") from error
    results = {}
    for name, loader in SETS.items():
        X, y = getattr(datasets, loader)(return_X_y=True, as_frame=True)
        with messages.notes_for_warnings():
            evaluations = _run(X, y, CHOICES, folds, "uniform", epochs, seed)
            estimator = Training(epochs=epochs, seed=seed).classifier()
            record = record_fit(estimator, X, y, data_name=name, random_state=seed)
        page = out / f"{name.replace(' ', '-')}.html"
        write_run_report(record, page)
        results[name] = {"models": _as_json(evaluations), "page": str(page)}
        if not as_json:
            _show(evaluations, f"{name}: {len(X):,} rows, {X.shape[1]} columns", "uniform")
            click.echo(f"How CoCo learns it: {page}\n")
    if as_json:
        messages.print_json(results)


def _without_lone_rows(X: Any, y: Any) -> tuple[Any, Any]:
    """Return a table without classes of one row: no fold can both learn one and be judged by it."""
    counts = y.value_counts()
    lone = counts.index[counts == 1]
    if not len(lone) or len(lone) > len(counts) - 2:  # or nothing is left to tell apart
        return X, y
    messages.note(
        f"left out, as a class of one row cannot be both learnt and judged by: "
        f"{messages.listed(lone)}"
    )
    kept = ~y.isin(lone).to_numpy()
    return X[kept].reset_index(drop=True), y[kept].reset_index(drop=True)


def _note_few_rows(counts: Any, asked: int, n_folds: int) -> None:
    """Say if there are fewer folds than asked for, or classes that are not in every one."""
    if n_folds < asked:
        messages.note(
            f"{n_folds} folds instead of {asked}: the largest class, {counts.index[0]}, has "
            f"{counts.iloc[0]:,} rows"
        )
    rare = counts[counts < n_folds]
    if len(rare):
        names = messages.listed(f"{name} ({count})" for name, count in rare.items())
        messages.note(f"classes with fewer rows than the {n_folds} folds are not in each: {names}")


def _run(
    X: Any,
    y: Any,
    models: Sequence[str],
    folds: int,
    priors: str,
    epochs: int | None,
    seed: int,
    solver: str | None = None,
) -> "list[Evaluation]":
    """Return the evaluations, with a line that says whose turn it is."""
    from rich import progress  # noqa: PLC0415 - heavy
    from rich.console import Console  # noqa: PLC0415

    from cocoloss.benchmark.evaluation import NAMES, evaluate_models  # noqa: PLC0415

    console = Console(stderr=True)
    with progress.Progress(
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}"),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("", total=len(models), completed=-1)
        return evaluate_models(
            X,
            y,
            models,
            n_folds=folds,
            priors=priors,
            seed=seed,
            solver=solver,
            network_options={} if epochs is None else {"max_iter": epochs},
            on_model=lambda model: bar.update(task, advance=1, description=NAMES[model]),
        )


def _as_json(evaluations: "list[Evaluation]") -> list[dict[str, Any]]:
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


def _show(evaluations: "list[Evaluation]", title: str, priors: str) -> None:
    """Print the table; the best of each column is bold, and what it means stands below."""
    import numpy as np  # noqa: PLC0415 - heavy
    from rich.measure import Measurement  # noqa: PLC0415

    shown = [m for m in COLUMNS if any(np.isfinite(e.mean(m)) for e in evaluations)]
    console = messages.console()
    tables = [_table(evaluations, [*shown, SECONDS], title)]
    unbounded = console.options.update(width=UNBOUNDED)
    if Measurement.get(console, unbounded, tables[0]).maximum > console.width:  # nothing is cut
        geometry = [m for m in shown if m in GEOMETRY]
        quality = [*(m for m in shown if m not in GEOMETRY), SECONDS]
        tables = [_table(evaluations, quality, title)]
        tables += [_table(evaluations, geometry)] if geometry else []
    n_folds = len(evaluations[0].folds["accuracy"])
    alike = "count alike for every model" if priors == "uniform" else "count as often as they occur"
    with messages.escaped_output():
        for table in tables:
            console.print(table)
        click.echo(f"Means over the test rows of {n_folds} folds; classes {alike}.")


def _table(evaluations: "list[Evaluation]", shown: Sequence[str], title: str = "") -> Any:
    from cocoloss.benchmark.evaluation import NAMES  # noqa: PLC0415 - heavy

    headings = ["s/fit" if m == SECONDS else COLUMNS[m][0] for m in shown]
    columns = [_cells(evaluations, measure) for measure in shown]
    names = [NAMES[evaluation.model] for evaluation in evaluations]
    rows = zip(names, *columns, strict=True)
    return messages.table(title, ["model"], headings, rows, no_wrap=True)


def _cells(evaluations: "list[Evaluation]", measure: str) -> list[Any]:
    """Return a column of the table; the best is bold."""
    import numpy as np  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415

    if measure == SECONDS:
        return [f"{evaluation.seconds:.2f}" for evaluation in evaluations]
    _, digits, larger = COLUMNS[measure]
    means = [evaluation.mean(measure) for evaluation in evaluations]
    texts = ["" if np.isnan(mean) else f"{mean:.{digits}f}" for mean in means]
    if measure == "balanced_accuracy":
        between = " ± " if messages.can_print("±") else " +- "
        spreads = [evaluation.spread(measure) for evaluation in evaluations]
        texts = [f"{t}{between}{spread:.3f}" for t, spread in zip(texts, spreads, strict=True)]
    best = np.nanmax(means) if larger else np.nanmin(means)
    stands_out = [len(means) > 1 and mean == best for mean in means]
    return [Text(t, "bold" if out else "") for t, out in zip(texts, stands_out, strict=True)]
