"""``cocoloss compare``: ranks, tests and the diagram for anybody's table of scores."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import messages, options
from cocoloss.cli.score_file import as_scores
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.stats import Comparison

SUFFIXES = (".svg", ".png", ".pdf")
LEAST_SHOWN = 0.001  # p-values below it are all shown alike


@click.command()
@options.table_file
@click.option(
    "--score", metavar="COLUMN", help="Of a long table, if it has several: the one to compare."
)
@click.option("--dataset", metavar="COLUMN", help="That names the datasets; found if left out.")
@click.option(
    "--model-column",
    "model",
    metavar="COLUMN",
    help="Of a long table: that names the models; found if left out.",
)
@click.option("--models", metavar="A,B,...", help="Only these; all if left out.")
@click.option(
    "--higher/--lower",
    "higher_is_better",
    default=True,
    help="Which scores are better.  [default: higher]",
)
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
@options.out_option("DIAGRAM", help="Critical-difference diagram: .svg, .png or .pdf.")
@options.json_option
def compare(
    file: Path,
    how: dict[str, Any],
    score: str | None,
    dataset: str | None,
    model: str | None,
    models: str | None,
    fold_test: str | None,
    out: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Compare models by a table of their scores on datasets.

    Either one row per dataset and one column per model, the first column of text naming the
    datasets; or one row per score with the columns dataset, model and score, and fold if there
    are several scores of a model on a dataset. A column that numbers the rows is no model.
    Where columns are called otherwise, --dataset, --model-column and --score name them.

    \b
    cocoloss compare results.csv --out ranks.svg
    cocoloss compare folds.csv --ranking folds --rope 0.01
    cocoloss compare amlb.csv --model-column framework --score result
    """
    from cocoloss.stats import compare as compare_models  # noqa: PLC0415
    from cocoloss.tables import read_table  # noqa: PLC0415 - heavy

    if fold_test is not None and asked["ranking"] != "folds":
        raise CoCoError("--fold-test is for --ranking folds; add that, or leave it out")
    if out is not None:
        options.check_out(out, [file], suffixes=SUFFIXES)
    frame = read_table(file, **how)
    scores = as_scores(frame, score=score, dataset=dataset, model=model, models=models)
    comparison = compare_models(scores, fold_test=fold_test or "wilcoxon", **asked)
    if out is not None:
        from cocoloss.report.cd_diagram import cd_diagram  # noqa: PLC0415 - heavy

        cd_diagram(comparison, out)
    if as_json:
        messages.print_json(_as_json(comparison) | ({"diagram": str(out)} if out else {}))
        return
    _show(comparison, file.name)
    if out is not None:
        click.echo(f"wrote {out}")


def _as_json(comparison: "Comparison") -> dict[str, Any]:
    """Return what machines read."""
    friedman = comparison.friedman
    frame = comparison.to_frame().astype(object)  # counts stay integers
    return {
        "n_datasets": comparison.n_datasets,
        "mean_scores_over": comparison.common_datasets,
        "higher_is_better": comparison.higher_is_better,
        "models": [{"model": model, **frame.loc[model].to_dict()} for model in comparison.models],
        "friedman": {name: getattr(friedman, name) for name in ("chi2", "df", "p_value")},
        "iman_davenport": {"f": friedman.f, "df": friedman.f_df, "p_value": friedman.f_p_value},
        "test": comparison.test,
        "alpha": comparison.alpha,
        "critical_distance": comparison.critical_distance,
        "p_values": comparison.p_values.to_dict(),
        "not_different": comparison.cliques,
        "bayes": [] if comparison.bayes is None else comparison.bayes.to_dict("records"),
        "dropped": comparison.dropped,
        "filled": comparison.filled,
    }


def _show(comparison: "Comparison", title: str) -> None:
    """Print ranks, tests, p-values and groups."""
    console = messages.console()
    console.print(_ranks(comparison, title))
    for line in _in_words(comparison):
        console.print(line, markup=False, highlight=False)
    console.print(_p_values(comparison))
    if comparison.bayes is not None:
        columns = ("P(first better)", "P(equal)", "P(second better)")
        rows = [
            [first, second, *(f"{share:.3f}" for share in shares)]
            for first, second, *shares in comparison.bayes.itertuples(index=False)
        ]
        console.print(_table("Bayesian signed-rank test", ["first", "second"], columns, rows))


def _in_words(comparison: "Comparison") -> list[str]:
    """Say what the tests found, a sentence a line."""
    friedman = comparison.friedman
    differ = "differ" if friedman.f_p_value < comparison.alpha else "do not differ significantly"
    overall = (
        f"The models {differ}: Friedman chi2 = {friedman.chi2:.2f}, p = {friedman.p_value:.2g}; "
        f"Iman-Davenport F = {friedman.f:.2f}, p = {friedman.f_p_value:.2g}."
    )
    lines = [overall, f"Between models: {comparison.describe_test()}."]
    lines += [f"Not different: {', '.join(group)}." for group in comparison.cliques]
    if not comparison.cliques:
        lines.append("Every pair differs.")
    if comparison.dropped:
        lines.append(f"Left out, a result is missing: {messages.listed(comparison.dropped)}.")
    if comparison.filled:
        cells = [f"{model} on {dataset}" for dataset, model in comparison.filled]
        lines.append(f"Missing, counted as the worst: {messages.listed(cells)}.")
        lines.append(f"* {comparison.describe_means()}.")
    return lines


def _table(
    title: str, texts: Sequence[str], numbers: Sequence[str], rows: Iterable[Sequence[Any]]
) -> Any:
    """Return a table with columns of text and of numbers; names are no markup."""
    from rich.table import Table  # noqa: PLC0415 - heavy
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=Text(title, style="bold"), title_justify="left")
    for name in texts:
        table.add_column(name)
    for name in numbers:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def _ranks(comparison: "Comparison", title: str) -> Any:
    better = "higher" if comparison.higher_is_better else "lower"
    heading = f"{title}: {comparison.n_models} models on {comparison.n_datasets} datasets"
    mean = "mean score *" if comparison.filled else "mean score"  # explained below
    columns = ("average rank", "± std", mean, "wins", "ties", "losses")
    rows = [
        [model, f"{rank:.2f}", f"{spread:.2f}", f"{score:#.4g}", *(f"{int(n)}" for n in counts)]
        for model, rank, spread, score, *counts in comparison.to_frame().itertuples()
    ]
    return _table(f"{heading}, {better} is better", ["model"], columns, rows)


def _p_values(comparison: "Comparison") -> Any:
    """Return the p-value of each pair, once; columns are numbered, as names would not fit."""
    from rich.text import Text  # noqa: PLC0415 - heavy

    rows = []
    for i, model in enumerate(comparison.models):
        cells = []
        for p_value, differs in zip(
            comparison.p_values.iloc[i, :i], comparison.different.iloc[i, :i], strict=True
        ):
            text = f"{p_value:.3f}" if p_value >= LEAST_SHOWN else f"<{LEAST_SHOWN:g}"
            cells.append(Text(text, style="bold" if differs else ""))
        rows.append([str(i + 1), model, *cells])
    numbers = [str(number) for number in range(1, comparison.n_models)]
    return _table("p-values of pairs, adjusted", ["", "model"], numbers, rows)
