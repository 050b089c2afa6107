"""``cocoloss report``: one HTML page that shows a network learning a table."""

from pathlib import Path
from typing import Any

import click

from cocoloss.cli import options


@click.command()
@options.table_file
@options.target_option
@options.model_option
@options.out_option("PAGE", required=True, help="Where to write the page, such as report.html.")
@click.option(
    "--embedding-dim",
    type=click.IntRange(min=1),
    help="Width of the embedding: 2 is drawn as it is, more by its principal axes.",
)
@click.option("--epochs", type=click.IntRange(min=1), help="At most so many; 100 if left out.")
@options.seed_option
@options.json_option
def report(
    file: Path,
    how: dict[str, Any],
    target: str,
    drop: tuple[str, ...],
    model: str,
    out: Path,
    embedding_dim: int | None,
    epochs: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """Show how a network learns a table, in one HTML page.

    A fifth of the rows is held out. The page has the embedding over the epochs with a slider, the
    loss split into collapse and contrast, accuracy on the held-out rows, the confusion matrix, how
    far probabilities can be trusted, and the angles between the classes. It needs no network.

    \b
    cocoloss report customers.csv --target churned --out churn.html
    """
    from cocoloss.estimators.recording import record_fit  # noqa: PLC0415 - heavy
    from cocoloss.report.run_report import write_run_report  # noqa: PLC0415

    options.check_out(out, [file], suffixes=[".html", ".htm"])
    table = options.read_labelled(file, target, drop, how)
    given = {"embedding_dim": embedding_dim, "max_iter": epochs}
    estimator = options.make_model(
        model,
        random_state=seed,
        verbose=options.is_terminal() and not as_json,
        **{name: value for name, value in given.items() if value is not None},
    )
    with options.notes_for_warnings():
        record = record_fit(estimator, table.X, table.y, data_name=table.name, random_state=seed)
    write_run_report(record, out)
    if as_json:
        options.print_json({"page": str(out)} | _summary(record))
    else:
        click.echo(f"wrote {out} ({out.stat().st_size / 1000:,.0f} kB); open it in a browser")


def _summary(record: Any) -> dict[str, Any]:
    """Return what the page says first."""
    names = ("model", "n_train", "n_test", "balanced_accuracy", "accuracy", "log_loss", "seconds")
    return {name: getattr(record, name) for name in names} | {
        "epoch_kept": record.epochs[record.kept]
    }
