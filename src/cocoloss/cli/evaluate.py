"""``cocoloss evaluate`` and ``demo``: cross-validation of our models beside peers."""

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
CLASSES = ("coco", "dr", "ce", "rf", "ksvm")
BEYOND = ("coco-median", "coco-classes", "hgb", "svr", "ridge", "lightgbm")  # classes
# Measure -> heading, digits, and whether larger is better, None if neither is.
COLUMNS: dict[str, dict[str, tuple[str, int | None, bool | None]]] = {  # of a task
    "classes": {
        "balanced_accuracy": ("balanced accuracy", 4, True),
        "accuracy": ("accuracy", 4, True),
        "log_loss": ("log loss", 4, False),
        "dispersity": ("dispersity", 3, False),
        "nc1": ("NC1", 3, False),
        "nc2": ("NC2", 3, False),
        "nc4": ("NC4", 3, False),
    },
    "levels": {
        "balanced_accuracy": ("balanced accuracy", 4, True),
        "mae": ("levels off", 3, False),
        "kappa": ("weighted kappa", 3, True),
    },
    "numbers": {
        "rmse": ("RMSE", None, False),
        "mae": ("MAE", None, False),
        "r2": ("R2", 3, True),
        "coverage": ("in 90% intervals", 3, None),
    },
}
WITH_SPREAD = ("balanced_accuracy", "rmse")
GEOMETRY = ("dispersity", "nc1", "nc2", "nc4")  # below the others where a terminal is narrow
SECONDS = "seconds"
UNBOUNDED = 10_000  # characters in a line


@click.command()
@training_file
@click.option(
    "--model",
    "models",
    type=click.Choice([*CLASSES, *BEYOND]),
    multiple=True,
    help="Only these models; may be given several times. All that the task has if left out.",
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
    priors: str | None,
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

    Numbers are judged by RMSE, MAE, R2 and how many of the test rows are in their intervals of 90%,
    beside boosted trees, a random forest, support vectors and ridge regression; levels by how many
    levels predictions are off and by kappa with quadratic weights, beside a forest of classes and
    boosted trees of numbers that are rounded.

    \b
    cocoloss evaluate customers.csv --target churned
    cocoloss evaluate houses.csv --target price
    """
    table = source.read()
    classes = table.task == "classes"
    if not classes:
        given = {"--priors": priors, "--epochs": epochs}
        options.refuse_given(given, f"is for classes, and the target is {table.task}")
    with messages.notes_for_warnings(advice=messages.ADVICE):
        # Columns are read once, as `fit` reads them: a fold may lack the cell that tells a kind.
        X, y = table.typed()[0], table.y
        if classes:
            X, y = _without_lone_rows(X, y)
            evaluations = _run(
                X,
                y,
                models,
                folds,
                seed,
                priors=priors or "uniform",
                solver=solver,
                network_options=_networks(epochs),
            )
        else:
            evaluations = _run(X, y, models, folds, seed, task=table.task)
    if classes:
        _note_few_rows(y.value_counts(), folds, len(evaluations[0].folds["accuracy"]))
    if as_json:
        messages.print_json(_as_json(evaluations, table.task))
    else:
        title = f"{table.name}: {len(X):,} rows, {source.target}"
        _show(evaluations, title, priors or "uniform", table.task)


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
            evaluations = _run(X, y, CLASSES, folds, seed, network_options=_networks(epochs))
            estimator = Training(epochs=epochs, seed=seed).estimator()
            record = record_fit(estimator, X, y, data_name=name, random_state=seed)
        page = out / f"{name.replace(' ', '-')}.html"
        write_run_report(record, page)
        results[name] = {"models": _as_json(evaluations, "classes"), "page": str(page)}
        if not as_json:
            _show(
                evaluations, f"{name}: {len(X):,} rows, {X.shape[1]} columns", "uniform", "classes"
            )
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


def _networks(epochs: int | None) -> dict[str, Any]:
    return {} if epochs is None else {"max_iter": epochs}


def _run(
    X: Any,
    y: Any,
    models: Sequence[str],
    folds: int,
    seed: int,
    *,
    task: str = "classes",
    **of_classes: Any,
) -> "list[Evaluation]":
    """Return the evaluations, with a line that says whose turn it is."""
    from rich import progress  # noqa: PLC0415 - heavy
    from rich.console import Console  # noqa: PLC0415

    names = _names(task)
    for model in models:
        if model not in names:
            raise CoCoError(f"--model {model} is not for {task}; there are {', '.join(names)}")
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
        line = bar.add_task("", total=len(models or names), completed=-1)

        def on_model(model: str) -> None:
            bar.update(line, advance=1, description=names[model])

        asked: dict[str, Any] = {"models": models or tuple(names), "n_folds": folds, "seed": seed}
        if task == "classes":
            from cocoloss.benchmark.evaluation import evaluate_models  # noqa: PLC0415

            return evaluate_models(X, y, **asked, **of_classes, on_model=on_model)
        from cocoloss.benchmark.numbers_and_levels import evaluate_task  # noqa: PLC0415

        return evaluate_task(X, y, task, **asked, on_model=on_model)


def _names(task: str) -> dict[str, str]:
    """Return the models of a task in words, by their short names."""
    if task == "classes":
        from cocoloss.benchmark.evaluation import NAMES  # noqa: PLC0415 - heavy

        return NAMES
    from cocoloss.benchmark.numbers_and_levels import TASKS  # noqa: PLC0415 - heavy

    return {name: model.name for name, model in TASKS[task].models.items()}


def _as_json(evaluations: "list[Evaluation]", task: str) -> list[dict[str, Any]]:
    """Return what machines read: means, and every fold."""
    return [
        {
            "model": evaluation.model,
            "seconds": evaluation.seconds,
            **{measure: evaluation.mean(measure) for measure in COLUMNS[task]},
            "folds": evaluation.folds,
        }
        for evaluation in evaluations
    ]


def _show(evaluations: "list[Evaluation]", title: str, priors: str, task: str) -> None:
    """Print the table; the best of each column is bold, and what it means stands below."""
    import numpy as np  # noqa: PLC0415 - heavy
    from rich.measure import Measurement  # noqa: PLC0415

    shown = [m for m in COLUMNS[task] if any(np.isfinite(e.mean(m)) for e in evaluations)]
    console = messages.console()
    tables = [_table(evaluations, [*shown, SECONDS], task, title)]
    unbounded = console.options.update(width=UNBOUNDED)
    if Measurement.get(console, unbounded, tables[0]).maximum > console.width:  # nothing is cut
        geometry = [m for m in shown if m in GEOMETRY]
        quality = [*(m for m in shown if m not in GEOMETRY), SECONDS]
        tables = [_table(evaluations, quality, task, title)]
        tables += [_table(evaluations, geometry, task)] if geometry else []
    n_folds = len(evaluations[0].folds[shown[0]])
    alike = "count alike for every model" if priors == "uniform" else "count as often as they occur"
    with messages.escaped_output():
        for table in tables:
            console.print(table)
        of_classes = f"; classes {alike}" if task == "classes" else ""
        click.echo(f"Means over the test rows of {n_folds} folds{of_classes}.")


def _table(
    evaluations: "list[Evaluation]", shown: Sequence[str], task: str, title: str = ""
) -> Any:
    headings = ["s/fit" if m == SECONDS else COLUMNS[task][m][0] for m in shown]
    columns = [_cells(evaluations, measure, task) for measure in shown]
    words = _names(task)
    names = [words[evaluation.model] for evaluation in evaluations]
    rows = zip(names, *columns, strict=True)
    return messages.table(title, ["model"], headings, rows, no_wrap=True)


def _cells(evaluations: "list[Evaluation]", measure: str, task: str) -> list[Any]:
    """Return a column of the table; the best is bold."""
    import numpy as np  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415

    from cocoloss._checks import amount  # noqa: PLC0415

    if measure == SECONDS:
        return [f"{evaluation.seconds:.2f}" for evaluation in evaluations]
    _, digits, larger = COLUMNS[task][measure]

    def write(value: float, digits: int | None) -> str:
        return amount(value) if digits is None else f"{value:.{digits}f}"

    means = [evaluation.mean(measure) for evaluation in evaluations]
    texts = ["" if np.isnan(mean) else write(mean, digits) for mean in means]
    if measure in WITH_SPREAD:
        between = " ± " if messages.can_print("±") else " +- "
        spreads = [write(e.spread(measure), digits and 3) for e in evaluations]
        texts = [f"{t}{between}{spread}" for t, spread in zip(texts, spreads, strict=True)]
    best = None
    if larger is not None and len(means) > 1:
        best = np.nanmax(means) if larger else np.nanmin(means)
    return [Text(t, "bold" if m == best else "") for t, m in zip(texts, means, strict=True)]
