"""What ``cocoloss compare`` says: a table of ranks, the tests in words, and all of it as JSON."""

from typing import TYPE_CHECKING, Any

from cocoloss.cli import saying

if TYPE_CHECKING:
    from cocoloss.stats import Comparison


def as_plain(comparison: "Comparison") -> dict[str, Any]:
    """Return what machines read."""
    friedman = comparison.friedman
    frame = comparison.to_frame().astype(object)  # counts stay whole numbers
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


def show(comparison: "Comparison", title: str) -> None:
    """Print ranks, tests and groups."""
    from rich.console import Console  # noqa: PLC0415 - heavy

    console = Console()
    if not console.is_terminal:
        console = Console(width=160)  # a file or a pipe has no width of its own
    console.print(_ranks(comparison, title))
    for line in in_words(comparison):
        console.print(line, markup=False, highlight=False)
    if comparison.bayes is not None:
        console.print(_bayes(comparison))


def in_words(comparison: "Comparison") -> list[str]:
    """Say what the tests found, a sentence a line."""
    friedman = comparison.friedman
    differ = "differ" if friedman.f_p_value < comparison.alpha else "do not differ significantly"
    whole = (
        f"The models {differ}: Friedman chi2 = {friedman.chi2:.2f}, p = {friedman.p_value:.2g}; "
        f"Iman-Davenport F = {friedman.f:.2f}, p = {friedman.f_p_value:.2g}."
    )
    lines = [whole, f"Between models: {comparison.describe_test()}."]
    lines += [f"Not different: {', '.join(group)}." for group in comparison.cliques]
    if not comparison.cliques:
        lines.append("Every pair differs.")
    if comparison.dropped:
        lines.append(f"Left out, a result is missing: {saying.some_of(comparison.dropped)}.")
    if comparison.filled:
        cells = [f"{model} on {dataset}" for dataset, model in comparison.filled]
        lines.append(f"Missing, counted as the worst: {saying.some_of(cells)}.")
        lines.append(f"* {comparison.describe_means()}.")
    return lines


def _ranks(comparison: "Comparison", title: str) -> Any:
    from rich.markup import escape  # noqa: PLC0415 - heavy
    from rich.table import Table  # noqa: PLC0415

    better = "higher" if comparison.higher_is_better else "lower"
    heading = f"{title}: {comparison.n_models} models on {comparison.n_datasets} datasets"
    table = Table(
        title=escape(f"{heading}, {better} is better"), title_justify="left", title_style="bold"
    )
    table.add_column("model")
    mean = "mean score *" if comparison.filled else "mean score"  # explained below
    for name in ("average rank", "± std", mean, "wins", "ties", "losses"):
        table.add_column(name, justify="right")
    for model, row in comparison.to_frame().iterrows():
        whole = [f"{int(row[name])}" for name in ("wins", "ties", "losses")]
        numbers = [f"{row['rank']:.2f}", f"{row['spread']:.2f}", f"{row['score']:#.4g}"]
        table.add_row(escape(str(model)), *numbers, *whole)
    return table


def _bayes(comparison: "Comparison") -> Any:
    from rich.markup import escape  # noqa: PLC0415 - heavy
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="Bayesian signed-rank test", title_justify="left", title_style="bold")
    for name in ("first", "second"):
        table.add_column(name)
    for name in ("P(first better)", "P(equal)", "P(second better)"):
        table.add_column(name, justify="right")
    for row in comparison.bayes.itertuples():
        shares = (row.first_better, row.equal, row.second_better)
        table.add_row(escape(row.first), escape(row.second), *(f"{s:.3f}" for s in shares))
    return table
