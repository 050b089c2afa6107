"""``cocoloss compare``: ranks, tests and the diagram for anybody's table of scores."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import options, saying
from cocoloss.cli.compare_scores import as_scores
from cocoloss.cli.compare_texts import as_plain, show
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.stats import Comparison

SUFFIXES = (".svg", ".png", ".pdf", ".tex")


@click.command()
@options.table_file
@click.option(
    "--score", metavar="COLUMN", help="Of a long table, if it has several: the one to compare."
)
@click.option("--dataset", metavar="COLUMN", help="That names the datasets; found if left out.")
@click.option("--models", metavar="A,B,...", help="Only these; all if left out.")
@click.option("--higher/--lower", default=True, help="Which scores are better.  [default: higher]")
@click.option(
    "--ranking",
    type=click.Choice(["scores", "folds"]),
    default="scores",
    show_default=True,
    help="Rank models on a dataset by their mean, or by what is significant over its folds.",
)
@click.option(
    "--fold-test",
    type=click.Choice(["wilcoxon", "corrected_t"]),
    help="With --ranking folds: the paper's test, or Nadeau and Bengio's for few folds.  "
    "[default: wilcoxon]",
)
@click.option(
    "--test",
    type=click.Choice(["nemenyi", "wilcoxon"]),
    default="nemenyi",
    show_default=True,
    help="Between models, over datasets: by average ranks, or by scores with Holm's correction.",
)
@click.option("--alpha", type=float, default=0.05, show_default=True, help="Significance level.")
@click.option(
    "--missing",
    type=click.Choice(["raise", "drop_datasets", "worst"]),
    default="raise",
    show_default=True,
    help="Refuse gaps, leave their datasets out, or count them as the worst.",
)
@click.option(
    "--rope",
    type=float,
    help="Add a Bayesian comparison in which differences up to this do not matter.",
)
@options.out_option(
    "DIAGRAM", help="Critical-difference diagram: .svg, .png, .pdf, or .tex (TikZ)."
)
@options.json_option
def compare(
    file: Path,
    how: dict[str, Any],
    score: str | None,
    dataset: str | None,
    models: str | None,
    higher: bool,
    ranking: str,
    fold_test: str | None,
    test: str,
    alpha: float,
    missing: str,
    rope: float | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Compare models by a table of their scores on datasets.

    Either one row per dataset and one column per model, the first column of text naming the
    datasets; or one row per score with the columns dataset, model and score, and fold if there
    are several scores of a model on a dataset. A column that numbers the rows is no model.

    \b
    cocoloss compare results.csv --out ranks.svg
    cocoloss compare folds.csv --ranking folds --rope 0.01
    """
    from cocoloss.stats import compare as compare_models  # noqa: PLC0415
    from cocoloss.tables import read_table  # noqa: PLC0415 - heavy

    if fold_test is not None and ranking != "folds":
        raise CoCoError("--fold-test is for --ranking folds; add that, or leave it out")
    if out is not None:
        _check_out(out)
    try:
        comparison = compare_models(
            as_scores(read_table(file, **how), score, dataset=dataset, models=models),
            higher_is_better=higher,
            ranking=ranking,
            fold_test=fold_test or "wilcoxon",
            test=test,
            alpha=alpha,
            missing=missing,
            rope=rope,
        )
    except CoCoError as error:
        raise CoCoError(_in_options(str(error))) from error
    if out is not None:
        _draw(comparison, out)
    if as_json:
        saying.print_json(as_plain(comparison) | ({"diagram": str(out)} if out else {}))
        return
    show(comparison, file.name)
    if out is not None:
        click.echo(f"wrote {out}")


def _in_options(message: str) -> str:
    """Say what to do in words of the command line."""
    remedy = "--fold-test corrected_t" if " fold" in message else "--test nemenyi"
    message = re.sub(r"\bor (another test|the corrected t-test)", f"or {remedy}", message)
    message = re.sub(r"\b(missing|ranking)='(\w+)'", r"--\1 \2", message)
    return re.sub(r"\b(alpha|rope) (must|needs)\b", r"--\1 \2", message)


def _check_out(out: Path) -> None:
    from cocoloss.files import check_can_write  # noqa: PLC0415 - heavy

    if out.suffix.lower() not in SUFFIXES:
        raise CoCoError(f"cannot draw {out.name}: the name must end in {', '.join(SUFFIXES)}")
    check_can_write(out)


def _draw(comparison: "Comparison", out: Path) -> None:
    from cocoloss.files import write_whole  # noqa: PLC0415 - heavy
    from cocoloss.report.cd_diagram import cd_diagram, cd_diagram_tikz  # noqa: PLC0415

    if out.suffix.lower() != ".tex":
        cd_diagram(comparison, out)
        return
    with write_whole(out) as aside:
        aside.write_text(cd_diagram_tikz(comparison), encoding="utf-8")
