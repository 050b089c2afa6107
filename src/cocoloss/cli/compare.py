"""``cocoloss compare``: ranks, tests and the diagram for anybody's table of scores."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import options
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

    from cocoloss.stats import Comparison

SUFFIXES = (".svg", ".png", ".pdf", ".tex")
NAMES = {  # what columns of a long table are called, in small letters
    "dataset": {"dataset", "data", "data set", "data_set", "task", "problem", "table"},
    "model": {"model", "classifier", "method", "algorithm", "estimator", "learner"},
    "fold": {"fold", "split", "repeat", "seed", "run"},
    "score": {"score", "value", "balanced_accuracy", "balanced accuracy", "accuracy"},
}


@click.command()
@options.table_file
@click.option(
    "--score", metavar="COLUMN", help="Of a long table, if it has several: the one to compare."
)
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
    default="wilcoxon",
    show_default=True,
    help="With --ranking folds: the paper's test, or Nadeau and Bengio's for few folds.",
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
    higher: bool,
    ranking: str,
    fold_test: str,
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
    are several scores of a model on a dataset.

    \b
    cocoloss compare results.csv --out ranks.svg
    cocoloss compare folds.csv --ranking folds --rope 0.01
    """
    from cocoloss.data import read_table  # noqa: PLC0415 - heavy
    from cocoloss.stats import compare as compare_models  # noqa: PLC0415

    if out is not None:
        _check_out(out)
    try:
        comparison = compare_models(
            as_scores(read_table(file, **how), score),
            higher_is_better=higher,
            ranking=ranking,
            fold_test=fold_test,
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
        options.print_json(as_plain(comparison) | ({"diagram": str(out)} if out else {}))
        return
    show(comparison, file.name)
    if out is not None:
        click.echo(f"wrote {out}")


def as_scores(frame: "pd.DataFrame", score: str | None = None) -> "pd.DataFrame":
    """Return a table in one of the two forms that :func:`cocoloss.stats.compare` reads.

    Parameters
    ----------
    frame : DataFrame
        Wide or long, with names as people give them.
    score : str, optional
        Column of a long table.

    Raises
    ------
    CoCoError
        If it is neither, or a long one with several columns that could be meant.
    """
    found = {role: _column(frame, names) for role, names in NAMES.items()}
    if found["model"] is not None:
        return _long(frame, found, score)
    if score is not None:
        raise CoCoError(
            "--score is for long tables, which have a column 'model'; this one has none"
        )
    return _wide(frame, found)


def _column(frame: "pd.DataFrame", names: set[str]) -> str | None:
    for column in frame.columns:
        if str(column).strip().lower() in names:
            return str(column)
    return None


def _long(frame: "pd.DataFrame", found: dict[str, str | None], score: str | None) -> "pd.DataFrame":
    dataset = found["dataset"] or _first_text(frame, {found["model"]})
    if dataset is None:
        raise CoCoError(
            f"a long table needs a column 'dataset'; it has {options.some_of(frame.columns)}"
        )
    chosen = score or _score_column(frame, {dataset, found["model"], found["fold"]}, found["score"])
    if chosen not in frame.columns:
        raise CoCoError(f"no column {chosen!r}; it has {options.some_of(frame.columns)}")
    roles = {dataset: "dataset", found["model"]: "model", chosen: "score"}
    if found["fold"] is not None:
        roles[found["fold"]] = "fold"
    scores = frame[list(roles)].rename(columns=roles)
    without = scores.groupby("model", sort=False)["score"].count()
    empty = list(without.index[without == 0])
    if empty:
        options.note(f"left out {options.some_of(empty)}, which have no {chosen} at all")
    return scores[~scores["model"].isin(empty)]


def _score_column(frame: "pd.DataFrame", keys: set[str | None], named: str | None) -> str:
    numbers = [c for c in frame.columns if c not in keys and _is_number(frame[c])]
    if named is not None and named in numbers:
        return named
    if len(numbers) == 1:
        return str(numbers[0])
    if not numbers:
        raise CoCoError("a long table needs a column of numbers, 'score'; there is none")
    raise CoCoError(f"which column has the scores? Say --score with one of {', '.join(numbers)}")


def _wide(frame: "pd.DataFrame", found: dict[str, str | None]) -> "pd.DataFrame":
    dataset = found["dataset"] or _first_text(frame, set())
    fold = found["fold"]
    keys = [column for column in (dataset, fold) if column is not None]
    models = [c for c in frame.columns if c not in keys]
    text = [c for c in models if not _is_number(frame[c]) and frame[c].notna().any()]
    if text:
        raise CoCoError(
            f"column {text[0]!r} holds {frame[text[0]].dropna().iloc[0]!r}, which is no score; "
            f"leave the column out, and a failed run empty"
        )
    if dataset is None:
        frame = frame.assign(dataset=[f"row {k}" for k in range(1, len(frame) + 1)])
        dataset = "dataset"
    frame = frame.rename(columns={dataset: "dataset"})
    if fold is None or frame["dataset"].is_unique:
        return frame.drop(columns=[fold] if fold else []).set_index("dataset")
    frame = frame.rename(columns={fold: "fold"})
    return frame.melt(id_vars=["dataset", "fold"], var_name="model", value_name="score")


def _first_text(frame: "pd.DataFrame", without: set[str | None]) -> str | None:
    for column in frame.columns:
        if column not in without and not _is_number(frame[column]):
            return str(column)
    return None


def _is_number(column: Any) -> bool:
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - heavy

    return bool(is_numeric_dtype(column))


def _in_options(message: str) -> str:
    """Say what to do in words of the command line."""
    remedy = "--fold-test corrected_t" if " folds " in message else "--test nemenyi"
    message = re.sub(r"\bor (another test|the corrected t-test)", f"or {remedy}", message)
    return re.sub(r"\b(missing|ranking)='(\w+)'", r"--\1 \2", message)


def _check_out(out: Path) -> None:
    from cocoloss.files.whole import check_can_write  # noqa: PLC0415 - heavy

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


def as_plain(comparison: "Comparison") -> dict[str, Any]:
    """Return what machines read."""
    friedman = comparison.friedman
    frame = comparison.to_frame().astype(object)  # counts stay whole numbers
    return {
        "n_datasets": comparison.n_datasets,
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
        lines.append(f"Left out, a result is missing: {options.some_of(comparison.dropped)}.")
    if comparison.filled:
        cells = [f"{model} on {dataset}" for dataset, model in comparison.filled]
        lines.append(f"Missing, counted as the worst: {options.some_of(cells)}.")
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
    for name in ("average rank", "± std", "mean score", "wins", "ties", "losses"):
        table.add_column(name, justify="right")
    for model, row in comparison.to_frame().iterrows():
        whole = [f"{int(row[name])}" for name in ("wins", "ties", "losses")]
        numbers = [f"{row['rank']:.2f}", f"{row['spread']:.2f}", f"{row['score']:.4g}"]
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
