"""``cocoloss report``: one HTML page that shows how a table is learnt."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import messages, options
from cocoloss.cli.decisions import COSTS, read_costs
from cocoloss.cli.options import Training, TrainingFile, TrainingTable
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.columns.column_kinds import ColumnKind
    from cocoloss.recording import NumbersRecord, RunRecord


@click.command()
@options.training_file
@options.out_option("PAGE", required=True, help="Where to write the page, such as report.html.")
@click.option(
    "--embedding-dim",
    type=click.IntRange(min=1),
    help="Dimensions of the embedding; more than 2 are projected to a plane.",
)
@COSTS
@options.training_options
@options.json_option
def report(
    source: TrainingFile,
    training: Training,
    out: Path,
    embedding_dim: int | None,
    costs: str | None,
    as_json: bool,
) -> None:
    """Show how a table is learnt, in one HTML page.

    The model is the one that `fit` would learn from four fifths of the rows; it is tested on the
    others. The page has the confusion matrix, calibration, decision thresholds, with costs if
    --costs is given, column importances, explanations, the worst predictions, how each column was
    read, and the embedding with a slider over epochs or ridges. For numbers it has residuals and
    the coverage of prediction intervals. It is one file, which opens offline.

    \b
    cocoloss report customers.csv --target churned --out churn.html
    cocoloss report houses.csv --target price --out prices.html
    """
    from cocoloss.recording import record_fit, record_numbers  # noqa: PLC0415 - heavy
    from cocoloss.report.run_report import write_run_report  # noqa: PLC0415

    options.check_out(out, [source.file], suffixes=[".html", ".htm"])
    if embedding_dim is not None and training.solver == "kernel":
        raise CoCoError(
            "--embedding-dim is for networks; --solver kernel has one dimension less than classes"
        )
    table = source.read()
    more = {} if costs is None else {"costs": _costs_of(costs, table)}
    estimator = training.estimator(
        table.task,
        embedding_dim=embedding_dim,
        preprocess=table.preprocess,
        verbose=messages.is_terminal() and not as_json,
    )
    watch: Any = record_numbers if table.task == "numbers" else record_fit
    with messages.notes_for_warnings(advice=messages.ADVICE):
        # Columns are read once, as `fit` reads them: the rows to learn from may lack the cell that
        # tells a kind.
        X, kinds = table.typed()
        record = watch(
            estimator,
            X,
            table.y,
            data_name=table.name,
            n_left_out=table.n_left_out,
            random_state=training.seed,
            **more,
        )
    record = _with_columns_as_read(record, table, kinds)
    write_run_report(record, out)
    if not as_json:
        click.echo(f"wrote {out} ({out.stat().st_size / 1000:,.0f} kB); open it in a browser")
    elif table.task == "numbers":
        messages.print_json({"page": str(out)} | _summary_of_numbers(record))
    else:
        priors = training.priors or "uniform"
        messages.print_json({"page": str(out), "priors": priors} | _summary(record))


def _costs_of(text: str, table: TrainingTable) -> Any:
    """Return costs of the classes of a table, by their names."""
    import numpy as np  # noqa: PLC0415 - heavy
    import pandas as pd  # noqa: PLC0415

    if table.task == "numbers":
        raise CoCoError("--costs is for classes and levels, and the target is numbers")
    classes = np.unique(np.asarray(table.y))
    return pd.DataFrame(read_costs(text, classes), classes, classes)


def _with_columns_as_read(record: Any, table: TrainingTable, kinds: "dict[str, ColumnKind]") -> Any:
    """Return a record that tells the columns of the file, not what was made of them before."""
    from dataclasses import replace  # noqa: PLC0415

    from cocoloss.recording.record import how_written  # noqa: PLC0415

    used = record.column_kinds
    notes = {name: record.column_notes.get(name) or how_written(kinds[name]) for name in used}
    reasons = {name: kind.left_out for name, kind in kinds.items()} | record.dropped_columns
    return replace(
        record,
        n_features=len(kinds) + len(table.left_out),
        column_notes={name: note for name, note in notes.items() if note},
        dropped_columns=table.left_out
        | {name: reasons[name] for name in kinds if name not in used},
    )


def _summary(record: "RunRecord") -> dict[str, Any]:
    """Return what the page says first."""
    names = ("model", "n_train", "n_test", "balanced_accuracy", "accuracy", "log_loss", "seconds")
    path = record.ridge_path
    if path is None:
        how: dict[str, Any] = {"epoch_kept": record.epochs[record.kept]}
    else:
        how = {"ridge_chosen": path.ridges[record.kept], "importances": record.importances}
    if record.kappa == record.kappa:  # of levels
        how |= {"levels_off": record.levels_off, "kappa": record.kappa}
    decisions = record.decisions
    if decisions is not None:
        how["auc"] = {
            record.class_names[part.label]: part.auc for part in decisions.against["test rows"]
        }
        how |= {"costs": decisions.paid} if decisions.paid else {}
    dropped = {"dropped_columns": record.dropped_columns}
    return {name: getattr(record, name) for name in names} | how | dropped


def _summary_of_numbers(record: "NumbersRecord") -> dict[str, Any]:
    names = ("model", "n_train", "n_test", "seconds", "importances", "dropped_columns")
    coverage = {f"{asked:g}": found for asked, (found, _) in record.coverage.items()}
    return {
        **{name: getattr(record, name) for name in names},
        **{measure: getattr(record.test, measure) for measure in ("rmse", "mae", "r2")},
        "left_out_r2": record.left_out.r2,
        "guessing_rmse": record.guessing_rmse,
        "coverage": coverage,
    }
