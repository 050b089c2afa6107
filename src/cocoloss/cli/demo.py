"""``cocoloss demo``: two data sets that come with scikit-learn, five models, two pages."""

from pathlib import Path

import click

from cocoloss.cli import messages, options
from cocoloss.cli.evaluate import CHOICES, as_json_values, run, show
from cocoloss.cli.options import EPOCHS, SEED, Training

SETS = {"breast cancer": "load_breast_cancer", "digits": "load_digits"}


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

    from cocoloss.exceptions import CoCoError  # noqa: PLC0415
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
            evaluations = run(X, y, CHOICES, folds, "uniform", epochs, seed)
            # Two dimensions where they suffice: two classes are drawn as they are.
            width = 2 if y.nunique() == 2 else None
            estimator = Training(epochs=epochs, seed=seed).classifier(embedding_dim=width)
            record = record_fit(estimator, X, y, data_name=name, random_state=seed)
        page = out / f"{name.replace(' ', '-')}.html"
        write_run_report(record, page)
        results[name] = {"models": as_json_values(evaluations), "page": str(page)}
        if not as_json:
            show(evaluations, f"{name}: {len(X):,} rows, {X.shape[1]} columns", "uniform")
            click.echo(f"How CoCo learns it: {page}\n")
    if as_json:
        messages.print_json(results)
