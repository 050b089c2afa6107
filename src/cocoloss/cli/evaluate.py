"""``cocoloss evaluate`` and ``demo``: cross-validation of our models beside peers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from cocoloss.cli.root import INTERRUPTED, TERMINATED
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.benchmark.evaluation import Evaluation, FoldScores

CLASSES = ("coco", "dr", "ce", "hgb", "rf", "ksvm")
BEYOND = ("coco-median", "coco-classes", "svr", "ridge", "lightgbm")  # classes
# Measure -> heading, digits, and whether larger is better, None if neither is.
COLUMNS: dict[str, dict[str, tuple[str, int | None, bool | None]]] = {  # of a task
    "classes": {
        "balanced_accuracy": ("balanced accuracy", 4, True),
        "accuracy": ("accuracy", 4, True),
        "auc": ("AUC", 4, True),
        "f1": ("F1", 4, True),
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
MOST_WORKERS = 4  # of the demo; each needs some 300 MB
BANDS = (300, ("a", "b", "c", "d", "e", "f"))  # rows and columns of the demo's made-up table
TIE = 1e-12  # scores of a fold that differ by less are alike


@click.command()
@training_file
@click.option(
    "--model",
    "models",
    type=click.Choice([*CLASSES, *BEYOND]),
    multiple=True,
    help="Only these models; repeatable. By default all that the task has.",
)
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@click.option(
    "--svm-rows",
    type=click.IntRange(min=2),
    metavar="N",
    help="Maximum number of training rows of support vector machines; 10,000 by default.",
)
@PRIORS
@EPOCHS
@SEED
@SOLVER
@options.DEVICE
@options.THREADS
@options.json_option
@click.pass_context
def evaluate(
    ctx: click.Context,
    source: TrainingFile,
    models: tuple[str, ...],
    folds: int,
    svm_rows: int | None,
    priors: str | None,
    epochs: int | None,
    seed: int,
    solver: str | None,
    device: str | None,
    as_json: bool,
) -> None:
    """Cross-validate models on a table.

    CoCo, dot regression, cross-entropy, boosted trees, a random forest and a kernel SVM with
    default settings, on the same folds; class weights follow --priors. With --epochs CoCo is
    trained as networks. AUC and F1 of more than two classes are means over classes, one against
    the rest; F1 of two is of the rarer one. Dispersity and NC1, NC2, NC4 measure how far the
    embedding of the test rows has collapsed; 0 is full collapse.

    Regression has RMSE, MAE, R2 and the coverage of 90% intervals, next to boosted trees, a random
    forest, a support vector machine and ridge regression; ordinal regression has the mean absolute
    error in levels and quadratic weighted kappa, next to a random forest and rounded boosted trees.

    The first fold of every model gives an estimate of the total time. Ctrl-C prints the results so
    far; the exit status is then 130.

    \b
    cocoloss evaluate customers.csv --target churned
    cocoloss evaluate houses.csv --target price
    """
    options.check_device(device)
    table = source.read()
    classes = table.task == "classes"
    if not classes:
        given = {"--priors": priors, "--epochs": epochs}
        options.refuse_given(given, f"is for classes, and the target is {table.task}")
    how: dict[str, Any] = {"n_folds": folds, "seed": seed}
    if svm_rows is not None:
        how["svm_rows"] = svm_rows
    if classes:
        how |= {"priors": priors or "uniform", "solver": solver}
        how["network_options"] = _networks(epochs, device)
    else:
        how["device"] = device
    with messages.notes_for_warnings(advice=messages.ADVICE):
        # Columns are read once, as `fit` reads them: a fold may lack the cell that tells a kind.
        X, y = table.typed()[0], table.y
        if classes:
            X, y = _without_lone_rows(X, y)
        run = _run(X, y, models, table.task, how, quiet=as_json)
    if classes:
        _note_few_rows(y.value_counts(), folds, run.n_folds)
    if as_json:
        messages.print_json(_as_json(run.evaluations, table.task))
    else:
        title = f"{table.name}: {len(X):,} rows, {source.target}"
        _show(run, title, priors or "uniform", table.task, y)
    run.end(ctx)


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("cocoloss-demo"),
    show_default=True,
    help="Folder for the pages; created if needed.",
)
@click.option("--folds", type=click.IntRange(min=2), default=10, show_default=True)
@EPOCHS
@SEED
@options.DEVICE
@options.THREADS
@options.json_option
@click.pass_context
def demo(
    ctx: click.Context,
    out: Path,
    folds: int,
    epochs: int | None,
    seed: int,
    device: str | None,
    as_json: bool,
) -> None:
    """Compare models on three data sets and write a report of each.

    CoCo, dot regression, cross-entropy, boosted trees, a random forest and a kernel SVM, on the
    breast cancer and digits data of scikit-learn, and on a synthetic table that suits trees, as its
    classes change at thresholds of two columns. The last lines say where CoCo is better, where
    it is not, and why.
    """
    options.check_device(device)
    from cocoloss.recording import record_fit  # noqa: PLC0415 - heavy
    from cocoloss.report.run_report import write_run_report  # noqa: PLC0415

    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CoCoError(f"cannot make the folder {out}: {error.strerror}") from error
    how = {"n_folds": folds, "seed": seed, "network_options": _networks(epochs, device)}
    how["workers"] = _cores() if device in (None, "cpu") else 1
    words, results = _names("classes"), {}
    for name, X, y, class_names in demo_tables():
        with messages.notes_for_warnings():
            run = _run(X, y, CLASSES, "classes", how, quiet=as_json)
        if not as_json:
            title = f"{name}: {len(X):,} rows, {X.shape[1]} columns"
            names = dict(enumerate(class_names))
            _show(run, title, "uniform", "classes", y.map(lambda c, names=names: names.get(c, c)))
        run.end(ctx)
        scores = {each.model: each.folds["balanced_accuracy"] for each in run.evaluations}
        verdict = better_or_worse(scores, _single_tree(X, y, folds, seed))
        with messages.notes_for_warnings():
            estimator = Training(epochs=epochs, seed=seed, device=device).estimator()
            record = record_fit(
                estimator, X, y, random_state=seed, data_name=name, class_names=class_names
            )
        page = out / f"{name.replace(' ', '-')}.html"
        beside = {words[model]: of_folds.tolist() for model, of_folds in scores.items()}
        write_run_report(record, page, beside=beside, verdict=verdict)
        models = _as_json(run.evaluations, "classes")
        results[name] = {"models": models, "page": str(page), "verdict": verdict}
        if not as_json:
            click.echo(f"Report: {page}\n")
    if as_json:
        messages.print_json(results)
    else:
        for name, result in results.items():
            click.echo(f"{name}: {result['verdict']}")


def _cores() -> int:
    """Return how many processes may fit side by side: as many as cores, or as --threads says."""
    from joblib import cpu_count  # noqa: PLC0415 - heavy

    return min(int(cpu_count()), MOST_WORKERS)


def demo_tables() -> Iterator[tuple[str, Any, Any, list[str]]]:
    """Give name, columns, target and classes of the tables of the demo; nothing is downloaded."""
    import numpy as np  # noqa: PLC0415 - heavy
    import pandas as pd  # noqa: PLC0415
    from sklearn import datasets  # noqa: PLC0415

    cancer, digits = datasets.load_breast_cancer(as_frame=True), datasets.load_digits(as_frame=True)
    for name, known in {"breast cancer": cancer, "digits": digits}.items():
        yield name, known.data, known.target, [str(kind) for kind in known.target_names]
    # Bands of one column, turned over above a threshold of another; the others say nothing. A tree
    # needs a cut for each edge, a smooth function many rows on both sides of each.
    n_rows, columns = BANDS
    X = pd.DataFrame(np.random.default_rng(0).random((n_rows, len(columns))), columns=columns)
    odd = (np.floor(4 * X["a"]) % 2 == 1) != (X["b"] > 0.7)
    yield "bands", X, odd.map({True: "odd", False: "even"}), ["even", "odd"]


def _single_tree(X: Any, y: Any, folds: int, seed: int) -> float:
    """Return the balanced accuracy of one decision tree, on the folds of the other models."""
    import numpy as np  # noqa: PLC0415 - heavy
    from sklearn.model_selection import cross_val_score  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier  # noqa: PLC0415

    from cocoloss.benchmark.evaluation import stratified  # noqa: PLC0415

    tree = DecisionTreeClassifier(class_weight="balanced", random_state=seed)
    cv = stratified(np.asarray(y), folds, seed)
    return float(cross_val_score(tree, X, y, cv=cv, scoring="balanced_accuracy").mean())


def better_or_worse(scores: Mapping[str, Any], single_tree: float) -> str:
    """Return whether CoCo is better or worse than the best other model, and what suits the table.

    ``scores`` are the balanced accuracies of the folds of each model. Better is the higher mean and
    the higher score in more folds; "ahead" and "behind" are kept for significance tests. What suits
    a table is told by the simplest model that cuts at thresholds of single columns, and the
    simplest smooth one.
    """
    from cocoloss._checks import counted  # noqa: PLC0415 - heavy

    rival = max((model for model in scores if model != "coco"), key=lambda m: scores[m].mean())
    leads = scores["coco"] - scores[rival]
    won, lost, lead = (leads > TIE).sum(), (leads < -TIE).sum(), leads.mean()
    which = "about as good as"
    if abs(lead) > TIE and lead * (won - lost) > 0:  # by the mean and by folds
        which = "better than" if lead > 0 else "worse than"
    told = f"the best other model, {_names('classes')[rival]}"
    means = f"{scores['coco'].mean():.4f} against {scores[rival].mean():.4f}"
    of = counted(len(leads), "fold")
    svm = scores["ksvm"].mean()
    suits = "combinations of columns, which suits kernels"
    if single_tree > svm:
        suits = "thresholds of single columns, which suits trees"
    return (
        f"CoCo is {which} {told}: {means}, better in {won} and worse in {lost} of {of}. "
        f"A decision tree has {single_tree:.4f}, the kernel SVM {svm:.4f}: the classes differ in "
        f"{suits}."
    )


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


def _networks(epochs: int | None, device: str | None) -> dict[str, Any]:
    given = {"max_iter": epochs, "device": device}
    return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True)
class Run:
    """What models made of a table, as far as they came."""

    scores: "list[FoldScores]"
    n_models: int
    stopped: bool  # by Ctrl-C

    @property
    def evaluations(self) -> "list[Evaluation]":
        """The folds of each model."""
        from cocoloss.benchmark.evaluation import gathered  # noqa: PLC0415 - heavy

        return gathered(self.scores)

    @property
    def n_folds(self) -> int:
        """How many folds each model was to have."""
        return self.scores[0].n_folds

    def end(self, ctx: click.Context) -> None:
        """End the command if it was stopped, and say what was not done."""
        if self.stopped:
            total = self.n_models * self.n_folds
            messages.note(f"stopped after {len(self.scores):,} of {total:,} fits")
            ctx.exit(TERMINATED if ctx.obj else INTERRUPTED)


def _run(
    X: Any, y: Any, models: Sequence[str], task: str, how: dict[str, Any], *, quiet: bool
) -> Run:
    """Cross-validate models, with a bar."""
    from cocoloss.benchmark.evaluation import score_folds  # noqa: PLC0415 - heavy
    from cocoloss.benchmark.numbers_and_levels import score_task_folds  # noqa: PLC0415
    from cocoloss.cli.fold_by_fold import watch  # noqa: PLC0415

    names = _names(task)
    for model in models:
        if model not in names:
            raise CoCoError(f"--model {model} is not for {task}; there are {', '.join(names)}")
    asked = {model: names[model] for model in models or names}
    if task == "classes":
        folds = score_folds(X, y, tuple(asked), **how)
    else:
        folds = score_task_folds(X, y, task, tuple(asked), **how)
    scores, stopped = watch(folds, asked, quiet=quiet)
    return Run(scores, len(asked), stopped)


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
            "training_rows": evaluation.n_train,
            "training_rows_left_out": evaluation.n_left_out,
            **{measure: evaluation.mean(measure) for measure in COLUMNS[task]},
            "folds": evaluation.folds,
        }
        for evaluation in evaluations
    ]


def _show(run: Run, title: str, priors: str, task: str, y: Any) -> None:
    """Print the table; the best of each column is bold, and what it means stands below."""
    import numpy as np  # noqa: PLC0415 - heavy
    from rich.measure import Measurement  # noqa: PLC0415

    evaluations = run.evaluations
    shown = [m for m in COLUMNS[task] if any(np.isfinite(e.mean(m)) for e in evaluations)]
    console = messages.console()
    tables = [_table(evaluations, [*shown, SECONDS], task, title)]
    unbounded = console.options.update(width=UNBOUNDED)
    if Measurement.get(console, unbounded, tables[0]).maximum > console.width:  # nothing is cut
        below = [m for m in shown if m in GEOMETRY]
        above = [m for m in shown if m not in GEOMETRY]
        (below or above).append(SECONDS)
        tables = [_table(evaluations, above, task, title)]
        tables += [_table(evaluations, below, task)] if below else []
    weights = "equally" if priors == "uniform" else "by their frequencies"
    with messages.escaped_output():
        for table in tables:
            console.print(table)
        of_classes = f"; all models weight classes {weights}" if task == "classes" else ""
        click.echo(f"Means over the test rows of {_folds_done(evaluations, task)}{of_classes}.")
        for line in (*_f1_line(y, task), *_cap_lines(evaluations, task)):
            click.echo(line)


def _folds_done(evaluations: "list[Evaluation]", task: str) -> str:
    """Return how many folds there are, of each model where they differ."""
    counts = {each.model: each.n_folds for each in evaluations}
    if len(set(counts.values())) == 1:
        from cocoloss._checks import counted  # noqa: PLC0415 - heavy

        return counted(evaluations[0].n_folds, "fold")
    names = _names(task)
    done = ", ".join(f"{names[model]} {n}" for model, n in counts.items())
    return f"the folds that are finished ({done})"


def _f1_line(y: Any, task: str) -> list[str]:
    """Return which class F1 is of, where it is of one."""
    if task != "classes":
        return []
    import numpy as np  # noqa: PLC0415 - heavy

    from cocoloss.benchmark.evaluation import rarer_class  # noqa: PLC0415

    positive = rarer_class(np.asarray(y))
    if positive is None:
        return []
    n_rows = int(np.sum(np.asarray(y) == positive))
    which = "the rarer class" if 2 * n_rows < len(y) else "the second of two equally frequent ones"
    return [f"F1 is of class {positive}, {which}."]


def _cap_lines(evaluations: "list[Evaluation]", task: str) -> list[str]:
    """Return who learnt from fewer rows than there were."""
    names = _names(task)
    return [
        f"{names[each.model]}: learnt from {each.n_train:,} of {each.n_train + each.n_left_out:,} "
        f"training rows, as it is slow; --svm-rows N changes that."
        for each in evaluations
        if each.n_left_out
    ]


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
        for i, each in enumerate(evaluations):
            if each.n_folds > 1:  # one fold has no spread
                texts[i] += between + write(each.spread(measure), digits and 3)
    best = None
    alike = len({evaluation.n_folds for evaluation in evaluations}) == 1
    if larger is not None and len(means) > 1 and alike:
        best = np.nanmax(means) if larger else np.nanmin(means)
    return [Text(t, "bold" if m == best else "") for t, m in zip(texts, means, strict=True)]
