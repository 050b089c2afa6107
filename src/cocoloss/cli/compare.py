"""``cocoloss compare``: ranks, tests and the diagram for anybody's table of scores."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import messages, options
from cocoloss.cli.messages import listed, note
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

    from cocoloss.stats import Against, Comparison

SUFFIXES = (".svg", ".png", ".pdf")
LEAST_SHOWN = 0.001  # p-values below it are all shown alike
NAMES = {  # what columns are called, in small letters
    "model": {"model", "classifier", "method", "algorithm", "estimator", "learner", "framework"},
    "dataset": {"dataset", "data", "data set", "data_set", "task", "problem", "table"},
    "fold": {"fold", "split", "repeat", "seed", "run"},
    "score": {"score", "value", "balanced_accuracy", "balanced accuracy", "accuracy", "rmse"},
}
# Words of the names of scores of which less is better, unless the user says otherwise.
ERRORS = {"rmse", "mae", "mse", "mape", "error", "loss", "logloss", "brier", "dispersity"}
ERRORS |= {"seconds", "time", "duration", "rank"}
ROW_NUMBERS = {  # what columns are called that number rows; column_1 has no name in its file
    *("", "column_1", "unnamed: 0", "#", "no", "no.", "nr", "nr.", "number", "row", "id", "index"),
    *("idx", "did", "tid", "data_id", "dataset_id", "task_id", "openml_id"),
}
OPTIONS = {"model": "--model-column", "dataset": "--dataset", "score": "--score"}


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
    default=None,
    help="Which scores are better.  [default: higher, unless the column is called rmse, mae, "
    "log_loss or the like]",
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
@click.option(
    "--control",
    metavar="MODEL",
    help="Test this one against each of the others, with Holm's correction for so many tests.",
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
    control: str | None,
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
    cocoloss compare results.csv --control ours --test wilcoxon
    """
    from cocoloss.stats import against, prose  # noqa: PLC0415
    from cocoloss.stats import compare as compare_models  # noqa: PLC0415
    from cocoloss.tables import read_table  # noqa: PLC0415 - heavy

    if fold_test is not None and asked["ranking"] != "folds":
        raise CoCoError("--fold-test is for --ranking folds; add that, or leave it out")
    if out is not None:
        options.check_out(out, [file], suffixes=SUFFIXES)
    frame = read_table(file, **how)
    scores = as_scores(frame, score=score, dataset=dataset, model=model, models=models)
    if asked["higher_is_better"] is None:
        asked["higher_is_better"] = _higher_is_better(scores.attrs.get("score", ""))
    comparison = compare_models(scores, fold_test=fold_test or "wilcoxon", **asked)
    beside = against(comparison, control)
    called = str(scores.attrs.get("score", "score"))
    words = prose(comparison, beside, measure=called, is_control=control is not None)
    if out is not None:
        from cocoloss.report.cd_diagram import cd_diagram  # noqa: PLC0415 - heavy

        cd_diagram(comparison, out)
    if as_json:
        more = {
            "against": {
                "model": beside.model,
                "is_control": control is not None,
                "test": beside.test,
                "confidence": beside.confidence,
                "others": beside.table.reset_index().astype(object).to_dict("records"),
            },
            "prose": words,
        }
        messages.print_json(_as_json(comparison) | more | ({"diagram": str(out)} if out else {}))
        return
    _show(comparison, file.name)
    console = messages.console()
    console.print(_effects(beside, with_tests=control is not None))
    console.print("In words, for a paper:", style="bold")
    console.print(words, markup=False, highlight=False, soft_wrap=True)
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
        console.print(
            messages.table("Bayesian signed-rank test", ["first", "second"], columns, rows)
        )


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
        lines.append(f"Left out, a result is missing: {listed(comparison.dropped)}.")
    if comparison.filled:
        cells = [f"{model} on {dataset}" for dataset, model in comparison.filled]
        lines.append(f"Missing, counted as the worst: {listed(cells)}.")
        lines.append(f"* {comparison.describe_means()}.")
    return lines


def _ranks(comparison: "Comparison", title: str) -> Any:
    better = "higher" if comparison.higher_is_better else "lower"
    heading = f"{title}: {comparison.n_models} models on {comparison.n_datasets} datasets"
    mean = "mean score *" if comparison.filled else "mean score"  # explained below
    columns = ("average rank", "± std", mean, "wins", "ties", "losses")
    rows = [
        [model, f"{rank:.2f}", f"{spread:.2f}", f"{score:#.4g}", *(f"{int(n)}" for n in counts)]
        for model, rank, spread, score, *counts in comparison.to_frame().itertuples()
    ]
    return messages.table(f"{heading}, {better} is better", ["model"], columns, rows)


def _effects(beside: "Against", *, with_tests: bool) -> Any:
    """Return by how much one model leads over each other, and if it is a control, the tests."""
    from cocoloss.stats.effects import EFFECTS, p_text  # noqa: PLC0415 - heavy

    level = f"{beside.confidence:.0%}".replace("%", " %")
    title = f"{beside.model} against each other, with intervals of {level}"
    columns = ["mean lead", "rank-biserial", "Cliff's delta"]
    if with_tests:
        title += f"; {beside.describe_test()}"
        columns.append("adjusted p")
    rows = []
    for other in beside.table.index:
        row = [str(beside.effect(other, name)) for name in EFFECTS]
        if with_tests:
            row.append(p_text(beside.table.loc[other, "p_value"]).removeprefix("p ").lstrip("= "))
        rows.append([other, *row])
    return messages.table(title, ["other"], columns, rows)


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
    return messages.table("p-values of pairs, adjusted", ["", "model"], numbers, rows)


# Anybody's table of scores, in a form that cocoloss.stats reads.


def as_scores(
    frame: "pd.DataFrame", *, models: str | None = None, **given: str | None
) -> "pd.DataFrame":
    """Return a table of scores in one of the two forms that :func:`cocoloss.stats.compare` reads.

    Columns that the user names (``model``, ``dataset``, ``score``) come first; others are found.
    """
    given = {role: column for role, column in given.items() if column is not None}
    for role, column in given.items():
        if column not in frame.columns:
            raise CoCoError(
                f"{OPTIONS[role]}: no column {column!r}; it has {listed(frame.columns)}"
            )
        same = [OPTIONS[other] for other in OPTIONS if given.get(other) == column]
        if len(same) > 1:
            raise CoCoError(f"{' and '.join(same)} are both {column!r}; name two columns")
    frame = _without_percent_signs(frame)
    found: dict[str, str | None] = {}
    for role, names in NAMES.items():
        taken = {*given.values(), *found.values()}
        others = (str(c) for c in frame.columns if c not in taken)
        called_so = (c for c in others if c.strip().lower() in names)
        found[role] = given.get(role) or next(called_so, None)
    if found["model"] is not None:
        several = [str(c) for c in frame.columns if str(c).strip().lower() in NAMES["score"]]
        if len(several) > 1 and "score" not in given:
            note(f"compared by {several[0]}; --score {several[1]} would compare by that")
        return _long(frame, found, models)
    if "score" in given:
        raise CoCoError(
            f"--score is for long tables, which have a column 'model'; this one has "
            f"{listed(frame.columns)}; --model-column names it if it is called otherwise"
        )
    return _wide(frame, found["dataset"], found["fold"], models)


def _long(
    frame: "pd.DataFrame", found: dict[str, str | None], models: str | None
) -> "pd.DataFrame":
    """Return one row per score, with the columns dataset, model, score and perhaps fold."""
    if found["dataset"] is None:
        raise CoCoError(
            f"a table with a column {found['model']!r} needs a column 'dataset' too; it has "
            f"{listed(frame.columns)}; --dataset names it if it is called otherwise"
        )
    if found["score"] is None:
        keys = set(found.values())
        numbers = [str(c) for c in frame.columns if c not in keys and _is_number(frame[c])]
        if len(numbers) != 1:
            raise CoCoError(
                f"which column has the scores? Say --score with one of "
                f"{', '.join(numbers or map(str, frame.columns))}"
            )
        found = found | {"score": numbers[0]}
    if models is not None:
        names = frame[found["model"]].astype(str)
        frame = frame[names.isin(_chosen(models, list(names.unique()), "models"))]
    roles = {column: role for role, column in found.items() if column is not None}
    _check_one_benchmark(frame, [column for column, role in roles.items() if role != "score"])
    scores = frame[list(roles)].rename(columns=roles).reset_index(drop=True)
    counts = scores.groupby("model", sort=False)["score"].count()
    _note_empty(list(counts.index[counts == 0]))
    scores = scores[~scores["model"].isin(counts.index[counts == 0])]
    scores = _without_failures(scores) if found["fold"] is not None else scores
    scores.attrs["score"] = found["score"]  # what it is called, of which a word may be "loss"
    return scores


def _higher_is_better(score: str) -> bool:
    """Tell by the name of a column whether its scores are errors, and say so if they are."""
    if not ERRORS & set(re.split(r"[^a-z]+", score.lower())):
        return True
    note(f"less {score} is taken for better; say --higher if that is not so")
    return False


def _wide(
    frame: "pd.DataFrame", dataset: str | None, fold: str | None, models: str | None
) -> "pd.DataFrame":
    """Return one row per dataset and one column per model; a long table if there are folds."""
    there = [str(c) for c in frame.columns if c not in {dataset, fold}]
    if dataset is None:
        dataset = next((c for c in there if _has_names(frame[c])), None)
    numbering = _row_numbers(frame, [c for c in there if c != dataset]) if models is None else []
    if dataset is None and fold is not None:
        raise CoCoError(
            f"the table has a column {fold!r} but none that names datasets, so it is about one; "
            f"models are compared over two datasets or more: say --dataset with their column"
        )
    if dataset is None and numbering:
        dataset, *numbering = numbering
        note(
            f"the column {dataset!r} numbers the rows: taken for the names of the datasets; if it "
            f"is a model, say --models"
        )
    if numbering:
        note(
            f"left out {listed(map(repr, numbering))}, which numbers the rows; if it is a "
            f"model, say --models"
        )
    chosen = _chosen(models, [c for c in there if c not in {dataset, *numbering}], "columns")
    words = [c for c in chosen if _has_names(frame[c])]
    if words:
        raise CoCoError(
            f"column {words[0]!r} holds {frame[words[0]].iloc[0]!r} and no score at all; leave the "
            f"column out, or name the others with --models"
        )
    empty = [c for c in chosen if frame[c].isna().all()]
    _note_empty(empty)
    chosen = [c for c in chosen if c not in empty]
    if dataset is None:
        frame = frame.assign(dataset=[f"row {k}" for k in range(1, len(frame) + 1)])
        dataset = "dataset"
    unnamed = frame[dataset].isna().to_numpy()
    if unnamed.any():
        raise CoCoError(
            f"row {int(unnamed.argmax()) + 1} has nothing in the column {dataset!r}; fill it in, "
            f"or leave the row out"
        )
    if fold is None:
        return frame[[dataset, *chosen]].set_index(dataset)
    frame = frame[[dataset, fold, *chosen]].rename(columns={dataset: "dataset", fold: "fold"})
    return frame.melt(id_vars=["dataset", "fold"], var_name="model", value_name="score")


def _is_number(column: Any) -> bool:
    return column.dtype.kind in "biuf"


def _has_names(column: Any) -> bool:
    """Return whether a column is text, and not for the most part numbers with a "failed" in it."""
    import pandas as pd  # noqa: PLC0415 - heavy

    values = column.dropna()
    n_numbers = pd.to_numeric(values, errors="coerce").notna().sum()
    return not _is_number(values) and bool(2 * n_numbers < len(values))


def _row_numbers(frame: "pd.DataFrame", columns: list[str]) -> list[str]:
    """Return the columns of distinct integers that are called as numbers of rows are."""
    called_so = [c for c in columns if c.strip().lower() in ROW_NUMBERS and len(frame) > 1]
    numbers = [c for c in called_so if _is_number(frame[c]) and frame[c].is_unique]
    return [c for c in numbers if (frame[c] == frame[c].round()).all()]


def _chosen(text: str | None, there: list[str], what: str) -> list[str]:
    """Return what --models names, in the order of the table; all if it was not said."""
    if text is None:
        return there
    names = [text] if text in there else [name.strip() for name in text.split(",")]
    for name in names:
        if name not in there:
            raise CoCoError(f"--models names {name!r}, but the {what} are {listed(there)}")
    return [name for name in there if name in names]


def _note_empty(models: list[str]) -> None:
    if models:
        have = "which has" if len(models) == 1 else "which have"
        note(f"left out {listed(models)}, {have} no score at all")


def _without_percent_signs(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table in which 63.7% is 0.637, in columns that are for the most part percents."""
    import pandas as pd  # noqa: PLC0415 - heavy

    read = []
    for column in frame.columns:
        if _is_number(frame[column]):
            continue
        texts = frame[column].astype(object)
        digits = texts.dropna().astype(str).str.extract(r"^\s*([^%]+)%\s*$", expand=False).dropna()
        shares = pd.to_numeric(digits.str.replace(",", "."), errors="coerce").dropna() / 100
        if 2 * len(shares) > texts.notna().sum():
            frame = frame.assign(**{str(column): shares.astype(object).combine_first(texts)})
            read.append(str(column))
    if read:
        note(f"percents are read as shares, 63.7% as 0.637: {listed(read)}")
    return frame


def _without_failures(scores: "pd.DataFrame") -> "pd.DataFrame":
    """Leave out rows that have neither fold nor score: of failed runs, in `bench export`."""
    import pandas as pd  # noqa: PLC0415 - heavy

    failed = scores["fold"].isna() & scores["score"].isna()
    if not failed.any():
        return scores
    note(f"{int(failed.sum()):,} rows have neither fold nor score: taken for failed runs")
    kept = scores[~failed]
    # A dataset on which all failed stays, as one that lacks every result.
    lost = scores[failed & ~scores["dataset"].isin(kept["dataset"])].drop_duplicates("dataset")
    return pd.concat([kept, lost.assign(fold=0)]) if len(lost) else kept


def _check_one_benchmark(frame: "pd.DataFrame", keys: list[str]) -> None:
    """Refuse a `bench export` of several benchmarks, with scores of the same models in them."""
    if not {"spec", "spec_hash"} <= set(frame.columns):
        return
    kinds = frame[["spec", "spec_hash"]].drop_duplicates().astype(str)
    if len(kinds) == 1:
        return
    names = [f"{name}@{text[:6]}" for name, text in kinds.to_numpy()]
    several = f"has rows of {len(names)} benchmarks, {listed(names)}"
    if frame.dropna(subset=keys).duplicated(keys).any():
        raise CoCoError(
            f"the table {several}, with scores of the same models on the same datasets; compare "
            f"one of them: `bench export --name {names[0]}` writes it alone"
        )
    note(f"the table {several}; they are compared together")
