"""``cocoloss predict`` and ``cocoloss embed``: a model and a table in, a row for each row out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cocoloss.cli import options
from cocoloss.cli.decisions import OPTIONS, Asked, decision_options
from cocoloss.cli.messages import ADVICE, listed, note, notes_for_warnings
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

    from cocoloss.estimators.model_file import Model
    from cocoloss.tables import TableFile

CHUNK_NUMBERS = 2**20  # numbers of a table held at once; embeddings and predictions come on top
FEWEST_ROWS = 1000
Part = TypeVar("Part")
DIGITS = 8  # of probabilities, behind the point
OF_TASK = {"--interval": "numbers"} | dict.fromkeys(("--proba", *OPTIONS), "classes")
INSTEAD = {"numbers": "--interval 0.9", "classes": "--proba"}


@dataclass(frozen=True)
class Job:
    """A model, a table, and where what the model makes of it goes."""

    model: Path
    file: Path
    how: dict[str, Any]  # to read the table
    out: Path | None
    keep: tuple[str, ...]  # columns to copy

    def __post_init__(self) -> None:
        if self.out == Path("-"):
            object.__setattr__(self, "out", None)


job_options = options.packed(
    "job",
    Job,
    [
        click.argument("model", type=click.Path(path_type=Path)),
        options.table_with_gaps,
        options.out_option(
            "FILE", help="CSV, TSV or Parquet, also .gz; standard output by default, or if -."
        ),
        click.option(
            "--keep",
            multiple=True,
            metavar="COLUMN",
            help="Copy a column of the table, such as its id; repeatable.",
        ),
    ],
)


@click.command()
@job_options
@click.option("--proba", is_flag=True, help="Add the probability of each class.")
@click.option(
    "--interval",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    metavar="SHARE",
    help="Add lower and upper, the prediction interval of numbers with this coverage, such as 0.9.",
)
@click.option(
    "--rule",
    type=click.Choice(["mode", "median", "mean"]),
    help="Prediction of levels: the most probable one, the default, or the median or mean, which "
    "have smaller errors.",
)
@decision_options
@click.option("--outliers", is_flag=True, help="Add an outlier score; larger is more unusual.")
@click.option(
    "--explain",
    type=click.IntRange(min=1),
    metavar="K",
    help="Add the K columns with the largest contributions to each prediction.",
)
def predict(
    job: Job,
    asked: Asked,
    proba: bool,
    interval: float | None,
    rule: str | None,
    outliers: bool,
    explain: int | None,
) -> None:
    """Predict the class, the level or the number of each row of a table.

    Columns are matched by name, in any order; additional ones are ignored.

    \b
    cocoloss predict churn.coco new.csv --out predictions.csv --proba
    cocoloss predict churn.coco new.csv --out predictions.csv --costs yes=10,no=1
    cocoloss predict prices.coco new.csv --out predictions.csv --interval 0.9
    cocoloss predict churn.coco new.csv --out predictions.csv --explain 3
    """
    needs = {"predict_proba": asked.given[0]} if asked.given else {}
    needs |= {"predict_proba": "--proba"} if proba else {}
    needs |= {"predict_interval": "--interval"} if interval is not None else {}
    needs |= {"outlier_score": "--outliers"} if outliers else {}
    loaded = _load(job, needs)
    predicted = _by_rule(job.model, rule)
    if asked.given:
        loaded, predicted = _as_asked(job.model, loaded, asked, rule, predicted)
    classes = loaded.classes.tolist() if proba else []
    names = ["prediction", *(f"probability_{label}" for label in classes)]
    names += [] if interval is None else ["lower", "upper"]
    names += ["outlier_score"] if outliers else []
    n_explained = min(explain or 0, len(loaded.column_names))
    names += [f"{part}_{k + 1}" for k in range(n_explained) for part in ("column", "contribution")]

    def values(model: Any, X: "pd.DataFrame") -> list[Any]:
        if proba:
            P = model.predict_proba(X)
            most = model.classes[P.argmax(axis=1)]
            other = rule or asked.given
            columns = [predicted(model, X) if other else most, *P.T.round(DIGITS)]
        elif interval is not None:
            mean, ends = model.predict_with_interval(X, interval)
            columns = [mean, *ends.T]
        else:
            columns = [predicted(model, X)]
        said = columns[0]
        columns += [model.outlier_score(X)] if outliers else []
        return [*columns, *_strongest(model, X, said, n_explained)] if explain else columns

    _write_rows(job, loaded, names, values)


def _strongest(model: Any, X: "pd.DataFrame", predicted: Any, k: int) -> list[Any]:
    """Return the columns that count most for what is predicted, and what each adds to it."""
    of_classes = model.task == "classes"
    strongest = model.explain(X, of=predicted if of_classes else None, neighbours=0).top(k)
    return [part for _, part in (strongest.round(DIGITS) if of_classes else strongest).items()]


def _by_rule(path: Path, rule: str | None) -> Callable[..., Any]:
    """Return what predicts: the model, or the estimator of levels, which knows rules."""
    if rule is None:
        return lambda model, X: model.predict(X)
    from cocoloss.estimators.model_file import load  # noqa: PLC0415 - scikit-learn

    estimator = load(path)
    if not hasattr(estimator, "predict_cumulative"):
        raise CoCoError("--rule is for a model of levels, which `fit --task levels` makes")

    def by_rule(model: "Model", X: "pd.DataFrame", priors: Any = None) -> Any:
        estimator.model_ = model  # which reads the table as it is written
        return estimator.predict(X, rule=rule, priors=priors)

    return by_rule


def _as_asked(
    path: Path, model: Any, asked: Asked, rule: str | None, by_rule: Callable[..., Any]
) -> tuple[Any, Callable[..., Any]]:
    """Return the model under the priors that count, and what decides as the user asks."""
    from cocoloss.estimators.model_file import load_decider  # noqa: PLC0415 - heavy

    if rule is not None and asked.given != ["--priors"]:
        raise CoCoError(f"--rule and {asked.given[0]} both decide; leave one of them out")
    model, decided = asked.read(model, load_decider(path))
    if rule is not None:
        prior = model.prior
        return model, lambda model, X: by_rule(model, X, priors=prior)
    return model, lambda model, X: decided(model.predict_proba(X))


@click.command()
@job_options
def embed(job: Job) -> None:
    """Write the embedding of each row of a table.

    Inner products of embeddings are the learnt similarity: 1 within a class, where the network
    has learnt all, and -1/(C-1) between two of C classes.

    \b
    cocoloss embed churn.coco customers.csv --out embedding.parquet --keep id
    """
    loaded = _load(job, {})
    names = [f"embedding_{j}" for j in range(loaded.n_outputs)]
    _write_rows(job, loaded, names, lambda model, X: list(model.transform(X).T))


def _load(job: Job, needs: dict[str, str]) -> Any:
    """Return the model; ``needs`` are methods that it must have, and the option that asks."""
    from cocoloss.estimators.model_file import load_model  # noqa: PLC0415 - heavy

    if job.out is not None:
        options.check_out(job.out, [job.model, job.file])
    options.check_is_no_model(job.file)
    model: Any = load_model(job.model)
    for method, option in needs.items():
        if not model.has(method):
            if option in OF_TASK and OF_TASK[option] != model.task:
                raise CoCoError(
                    f"{option} is for {OF_TASK[option]}, and {job.model} predicts {model.task}; "
                    f"say {INSTEAD[model.task]} to know how sure it is"
                )
            raise CoCoError(f"{option} is not for this model: its head has no {method}")
    return model


def _write_rows(
    job: Job,
    model: "Model",
    names: list[str],
    values: Callable[[Any, "pd.DataFrame"], list[Any]],
) -> None:
    """Read, predict and write chunk by chunk, so that a table need not fit into memory."""
    import pandas as pd  # noqa: PLC0415 - heavy

    from cocoloss._checks import counted  # noqa: PLC0415
    from cocoloss.columns.drift import Drift  # noqa: PLC0415
    from cocoloss.columns.encoder import Coverage  # noqa: PLC0415
    from cocoloss.tables import open_table, write_table  # noqa: PLC0415

    for name in sorted(set(job.keep) & set(names)):
        raise CoCoError(f"--keep {name}: a column of the result has that name; rename it first")
    with notes_for_warnings(advice=ADVICE):
        table = open_table(job.file, **job.how)
        columns = _needed_columns(model.encoder, table, job.keep)
        table, encoder, lenient = _as_in_training(table, model.encoder)
        model, coverage = replace(model, encoder=encoder), Coverage(encoder)
        drift = Drift(encoder)
        rows = max(FEWEST_ROWS, CHUNK_NUMBERS // max(len(encoder.column_names), model.n_inputs, 1))
        chunks = table.chunks(rows, columns=columns, lenient=lenient)
        copies = table.verbatim(list(dict.fromkeys(job.keep)), rows) if job.keep else repeat(None)

        def frames() -> Iterator["pd.DataFrame"]:
            for chunk, copy in read_ahead(zip(chunks, copies, strict=bool(job.keep))):
                made = dict(zip(names, values(model, chunk), strict=True))
                frame = pd.DataFrame(made, index=chunk.index)
                coverage.see(chunk)  # after the model, which refuses what cannot be read
                drift.see(chunk)
                if copy is not None:
                    frame = pd.concat([copy.set_axis(chunk.index), frame], axis=1)
                yield frame

        if job.out is None:
            for i, frame in enumerate(frames()):
                click.echo(frame.to_csv(index=False, header=i == 0), nl=False)
        else:
            n_rows = write_table(frames(), job.out)
            click.echo(f"wrote {job.out} ({counted(n_rows, 'row')})", err=True)
    if coverage.unknown:
        shown = [f"{name} (such as {value!r})" for name, value in coverage.unknown.items()]
        note(f"no row has a category that training had: {listed(shown)}")
    if coverage.empty and coverage.n_rows > 1:  # a gap in a single row is nothing special
        note(f"no row has a value of what the model uses: {listed(coverage.empty)}")
    for line in drift.without({*coverage.unknown, *coverage.empty}).notes():
        note(line)


def read_ahead(parts: Iterator[Part]) -> Iterator[Part]:
    """Read the next part while this one is worked on."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = reader.submit(next, parts, None)
            yield part


def _needed_columns(encoder: Any, table: "TableFile", keep: tuple[str, ...]) -> list[str] | None:
    """Return the columns that the model reads by name, all if by position; refuse if they lack."""
    needed = list(encoder.kinds) if encoder.header.named else []
    for wanted, why in ((needed, "the model needs"), (keep, "--keep asks for")):
        lacking = [repr(name) for name in wanted if name not in table.column_names]
        if lacking:
            raise CoCoError(
                f"{table.path} lacks columns that {why}: {listed(lacking)}; "
                f"it has {listed(table.column_names)}"
            )
    return needed or None


def _as_in_training(table: "TableFile", encoder: Any) -> tuple["TableFile", Any, list[str]]:
    """Return how to read a table: with the decimal mark that it shows, or else the model's.

    The table has columns of categories as text, even if they hold digits; the encoder expects its
    decimal mark; last are columns of numbers in which the encoder may find text, as it did in
    training. Not where it would read another decimal mark than that of the file's numbers.
    """
    from cocoloss.columns.column_kinds import CATEGORY, NUMBER, TEXT  # noqa: PLC0415
    from cocoloss.columns.encoder import TableEncoder  # noqa: PLC0415
    from cocoloss.number_text import WITH_COMMA  # noqa: PLC0415

    by_name = encoder.header.named
    as_text = (CATEGORY, TEXT) if by_name else ()
    text = [name for name, kind in encoder.kinds.items() if kind in as_text]
    table = table.with_options(text=text)
    if not isinstance(encoder, TableEncoder):
        return table, encoder, []
    learnt = encoder.decimal
    # A form that was found in one column of a table says nothing of the others.
    forms = [] if learnt == "," or not by_name else list(encoder.forms)
    mark = table.with_options(text=[*text, *forms]).decimal
    if learnt == "," and mark != ".":
        table = table.with_options(decimal=",")
    else:
        if mark is not None and "," in (learnt, mark):
            encoder = encoder.with_decimal(mark)
        if forms:
            table = table.with_options(decimal=mark or ".")
    if not by_name:
        return table, encoder, []
    has_comma = table.decimal == ","
    lenient = [
        name
        for name, kind in encoder.kinds.items()
        if kind == NUMBER and (WITH_COMMA in encoder.forms.get(name, "")) == has_comma
    ]
    return table, encoder, lenient
