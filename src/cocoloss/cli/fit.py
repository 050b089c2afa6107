"""``cocoloss fit``: a table in, a model file out."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from cocoloss.cli import messages, options
from cocoloss.cli.options import Training, TrainingBlocks, TrainingFiles, TrainingTable
from cocoloss.exceptions import CoCoError

IMBALANCED = 1.5  # largest class to smallest: more is worth a word on priors


@click.command()
@options.training_files
@options.out_option("MODEL", required=True, help="Where to save the model, such as model.coco.")
@click.option(
    "--tune",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Try N settings by cross-validation first; the default settings are the first of them.",
)
@click.option(
    "--unlabelled",
    type=click.Choice(["soft", "ignore"]),
    default="ignore",
    show_default=True,
    help="Use rows without a target, or ignore them.",
)
@options.training_options
@options.json_option
def fit(
    source: TrainingFiles,
    training: Training,
    out: Path,
    tune: int,
    unlabelled: str,
    as_json: bool,
) -> None:
    """Learn a model from a table and save it.

    The target may be classes, ordered levels or numbers; see --task. Columns may be numbers,
    categories, dates, booleans and text, with missing values. The model file is safe to open;
    if it contains training rows, as those of kernels do unless --landmarks is kmeans, the last
    line says so.

    Several files, or a folder of them, are one table. With --solver kernel it is read block by
    block, as is a large file, and need not fit into memory.

    Rows without a target are ignored, or used with --unlabelled soft.

    \b
    cocoloss fit customers.csv --target churned --out churn.coco
    cocoloss fit houses.csv --target price --out prices.coco
    cocoloss fit big/*.parquet --target churned --solver kernel --out churn.coco
    """
    import time  # noqa: PLC0415

    options.check_out(out, source.files, never=(".gz", *options.TABLES))
    if tune and training.solver == "kernel":
        raise CoCoError("--tune is for networks; --solver kernel tries its settings by itself")
    soft = unlabelled == "soft"
    if soft and (tune or training.model != "coco"):
        raise CoCoError("--unlabelled soft is for --model coco, without --tune")
    table = source.read("keep" if soft else "drop")
    if tune and table.task == "numbers":
        raise CoCoError("--tune is for networks; numbers have kernels, which try their settings")
    if soft and table.task == "numbers":
        raise CoCoError("--unlabelled soft is for classes and levels, and the target is numbers")
    more = {"unlabelled": "soft"} if soft else {}
    estimator = training.estimator(
        table.task,
        preprocess=table.preprocess,
        verbose=messages.is_terminal() and not as_json,
        **more,
    )
    started = time.perf_counter()
    tuned: dict[str, Any] | None = None
    with messages.notes_for_warnings(advice=messages.ADVICE, but=messages.LEFT_OUT):  # listed below
        if tune:
            if isinstance(table, TrainingBlocks):
                raise CoCoError(
                    "--tune needs the whole table in memory; leave it out, or name one file"
                )
            tuned = _tune(estimator, table, tune, training.seed)
            estimator.set_params(**tuned["params"])
        estimator.fit(table.X, table.y)
    seconds = time.perf_counter() - started
    estimator.save(out)
    facts = _facts(estimator, table, out, seconds) | ({"tuned": tuned} if tuned else {})
    if as_json:
        messages.print_json(facts)
    else:
        with messages.escaped_output():
            _print(facts)


def _tune(estimator: Any, table: TrainingTable, n_trials: int, seed: int) -> dict[str, Any]:
    """Return the best settings, with a bar that shows the best so far."""
    from rich.console import Console  # noqa: PLC0415 - heavy
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415
    from sklearn.base import clone  # noqa: PLC0415

    from cocoloss.benchmark.study import tune_classifier  # noqa: PLC0415

    console = Console(stderr=True)
    columns = (
        TextColumn("setting {task.completed}/{task.total}"),
        BarColumn(),
        TextColumn("best balanced accuracy {task.fields[best]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=n_trials, best=float("nan"))

        def show(number: int, score: float, best: float) -> None:  # noqa: ARG001
            progress.update(bar, completed=number + 1, best=best)

        quiet = clone(estimator).set_params(verbose=False)
        result = tune_classifier(
            quiet, table.typed()[0], table.y, n_trials=n_trials, random_state=seed, on_trial=show
        )
    return {
        "params": result.best_params,
        "balanced_accuracy": result.best_score,
        "trials": n_trials,
    }


def _facts(
    estimator: Any, table: TrainingTable | TrainingBlocks, out: Path, seconds: float
) -> dict[str, Any]:
    preprocessor = estimator.preprocessor_
    of_target = _of_numbers if table.task == "numbers" else _of_classes
    return {
        "model": str(out),
        "bytes": out.stat().st_size,
        "class": type(estimator).__name__,
        "task": table.task,
        "columns": len(preprocessor.column_names_) + len(table.left_out),
        "features": preprocessor.n_features_out_,
        "kinds": preprocessor.kinds_,
        "dropped_columns": table.left_out | preprocessor.dropped_columns_,
        "seconds": round(seconds, 3),
        **of_target(estimator, table),
        **_of_kernels(estimator),
        "quality": _quality(estimator),
    }


def _quality(estimator: Any) -> dict[str, Any]:
    """Return how good the fit is, in a line and in numbers, or why that is not known."""
    try:
        found = estimator.quality_
    except AttributeError as error:
        return {"text": str(error)}
    measures = {name: measure._asdict() for name, measure in found.measures.items()}
    return {"text": str(found), "rows": found.n_rows, "how": found.how, "measures": measures}


def _of_classes(estimator: Any, table: TrainingTable | TrainingBlocks) -> dict[str, Any]:
    """Return the classes or levels, in their order, and how good the fit is."""
    import numpy as np  # noqa: PLC0415 - heavy

    labels, counts = estimator.classes_, estimator.history_.class_masses.astype(np.int64)
    if isinstance(table, TrainingTable):
        counts = np.asarray(table.y.value_counts()[labels])
    facts = {
        "rows": int(counts.sum()),
        "classes": dict(zip(map(str, labels.tolist()), counts.tolist(), strict=True)),
        "priors": estimator.priors,
    }
    if isinstance(table, TrainingTable) and (n := int(table.y.isna().sum())):
        facts["unlabelled_rows"] = n
    if estimator.model_.machine is None:
        return facts | {"members": len(estimator.heads_), "epochs": estimator.n_iter_}
    facts |= {"networks": len(estimator.heads_) - 1, "loo_accuracy": estimator.loo_score_}
    if table.task == "levels" and isinstance(table, TrainingTable):
        ranks = table.y.cat.codes.to_numpy()  # -1 without a label
        missed = np.abs(estimator.loo_proba_.argmax(axis=1) - ranks)
        facts["loo_mae"] = missed[ranks >= 0].mean()
    return facts


def _of_numbers(estimator: Any, table: TrainingTable | TrainingBlocks) -> dict[str, Any]:
    """Return what the numbers are like, and how far off rows are that were left out."""
    import numpy as np  # noqa: PLC0415 - heavy

    facts: dict[str, Any]
    if isinstance(table, TrainingTable):
        y = np.asarray(table.y)
        facts = {"least": y.min(), "mean": y.mean(), "most": y.max(), "deviation": y.std()}
        facts = {"rows": len(y), "numbers": facts}
        facts["loo_rmse"] = float(np.sqrt(np.mean(np.square(estimator.loo_prediction_ - y))))
    else:
        seen = estimator.loo_.numbers
        facts = {name: getattr(seen, name).item() for name in ("least", "mean", "most")}
        facts |= {"deviation": float(np.sqrt(seen.scatter.item() / seen.n_rows))}
        facts = {"rows": seen.n_rows, "numbers": facts}
        facts["loo_rmse"] = estimator.quality_.measures["RMSE"].value
    facts["loo_r2"] = estimator.loo_score_
    facts["networks"] = len(estimator.model_.mixing) - (estimator.model_.machine is not None)
    return facts


def _of_kernels(estimator: Any) -> dict[str, Any]:
    """Return what kernels there are, and what of the table the file holds."""
    model = estimator.model_
    if not model.n_rows_held:
        return {}
    held = model.n_rows_held if estimator.landmarks == "rows" else 0
    kernels = [] if model.machine is None else [each.kind for each in model.machine.kernels]
    return {"kernels": kernels, "landmarks": estimator.landmarks, "rows_in_file": held}


def _target_lines(facts: dict[str, Any]) -> tuple[str, str]:
    """Return what the target is, and what was fitted."""
    from cocoloss._checks import amount, counted  # noqa: PLC0415 - heavy

    if facts["task"] == "numbers":
        least, mean, most, _ = map(amount, facts["numbers"].values())
        what = f"numbers   {least} to {most}, mean {mean}"
    else:
        between = " < " if facts["task"] == "levels" else ", "
        shown = [f"{name} ({count:,})" for name, count in facts["classes"].items()]
        what = f"{facts['task']:<10}{messages.listed(shown, between)}"
        counts = facts["classes"].values()
        if facts["priors"] == "uniform" and max(counts) > IMBALANCED * min(counts):
            what += "\n          taken as equally likely; --priors empirical uses their frequencies"
    if "kernels" not in facts:
        networks, epochs = counted(facts["members"], "network"), counted(facts["epochs"], "epoch")
        return what, f"trained   {networks}, {epochs}, {facts['seconds']:.1f} s"
    parts = {"kernel": len(facts["kernels"]), "network": facts.get("networks", 0)}
    fitted = " and ".join(counted(n, noun) for noun, n in parts.items() if n)
    return what, f"fitted    {fitted}, {facts['seconds']:.1f} s"


def _print(facts: dict[str, Any]) -> None:
    from cocoloss._checks import counted  # noqa: PLC0415 - heavy

    dropped = facts["dropped_columns"]
    kinds = Counter(facts["kinds"].values())  # in the order in which they first come
    plurals = {"category": "categories"}
    without = facts.get("unlabelled_rows", 0)
    more = f", and {without:,} without a label" if without else ""
    click.echo(f"rows      {facts['rows']:,}{more}")
    used = facts["columns"] - len(dropped)
    click.echo(f"columns   {used:,} used, as {counted(facts['features'], 'input')}")
    of_kind = [counted(n, kind, plurals.get(kind, "")) for kind, n in kinds.items()]
    click.echo(f"          {', '.join(of_kind)}")
    if dropped:
        click.echo(
            f"          left out: {messages.listed(f'{n} ({why})' for n, why in dropped.items())}"
        )
    for line in (*_target_lines(facts), f"quality   {facts['quality']['text']}"):
        click.echo(line if messages.can_print(line) else line.replace("±", "+-"))
    if "tuned" in facts:
        tuned = facts["tuned"]
        click.echo(
            f"tuned     {tuned['trials']} settings; balanced accuracy "
            f"{tuned['balanced_accuracy']:.4f} in cross-validation"
        )
        best = ", ".join(f"{name}={value}" for name, value in tuned["params"].items())
        click.echo(f"          the best of them: {best or 'the default settings'}")
    click.echo(f"saved     {facts['model']} ({facts['bytes'] / 1000:,.0f} kB)")
    if "kernels" in facts:
        held = counted(facts["rows_in_file"], "row")
        if facts["landmarks"] == "rows":
            may = "share it only with people who may see them"
            click.echo(f"          it contains {held} of the table: {may}")
        else:
            click.echo("          it contains means of rows, and no row")
