"""``cocoloss predict`` and ``cocoloss embed``: a model and a table in, a row for each row out."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cocoloss.cli import options, saying

if TYPE_CHECKING:
    import pandas as pd

    from cocoloss.columns.encoder import Coverage

CHUNK_NUMBERS = 2**20  # numbers of a table held at once; embeddings and answers come on top
FEWEST_ROWS = 1000
Part = TypeVar("Part")
DIGITS = 8  # of probabilities, behind the point
MODEL = click.argument("model", type=click.Path(path_type=Path))
KEEP = click.option(
    "--keep", multiple=True, metavar="COLUMN", help="Copy a column of the table, such as its id."
)


@click.command()
@MODEL
@options.table_with_gaps
@options.out_option("FILE", help="CSV, TSV or Parquet, also .gz; standard output if left out.")
@click.option("--proba", is_flag=True, help="Add the probability of each class.")
@click.option("--outliers", is_flag=True, help="Add how strange each row is: larger is stranger.")
@KEEP
def predict(
    model: Path,
    file: Path,
    how: dict[str, Any],
    out: Path | None,
    proba: bool,
    outliers: bool,
    keep: tuple[str, ...],
) -> None:
    """Predict the class of each row of a table.

    Columns are found by their names, in any order; further ones do not matter.

    \b
    cocoloss predict churn.coco new.csv --out predictions.csv --proba
    """

    def answer(classifier: Any, X: "pd.DataFrame") -> "pd.DataFrame":
        import pandas as pd  # noqa: PLC0415 - heavy

        if proba:
            P = classifier.predict_proba(X)
            columns = [classifier.classes_[P.argmax(axis=1)], *P.T.round(DIGITS)]
        else:
            columns = [classifier.predict(X)]
        if outliers:
            columns.append(classifier.outlier_score(X))
        made = dict(zip(names(classifier), columns, strict=True))
        return pd.DataFrame(made, index=X.index)

    def names(classifier: Any) -> list[str]:
        classes = classifier.classes_.tolist() if proba else []
        last = ["outlier_score"] if outliers else []
        return ["prediction", *(f"probability_{label}" for label in classes), *last]

    _answer_rows(model, file, how, out, keep, answer, names, needs=_needs(proba, outliers))


@click.command()
@MODEL
@options.table_with_gaps
@options.out_option("FILE", help="CSV, TSV or Parquet, also .gz; standard output if left out.")
@KEEP
def embed(
    model: Path,
    file: Path,
    how: dict[str, Any],
    out: Path | None,
    keep: tuple[str, ...],
) -> None:
    """Write the embedding of each row of a table.

    Inner products of embeddings are the learnt similarity: 1 within a class, where the network
    has learnt all, and -1/(C-1) between two of C classes.

    \b
    cocoloss embed churn.coco customers.csv --out embedding.parquet --keep id
    """

    def answer(classifier: Any, X: "pd.DataFrame") -> "pd.DataFrame":
        import pandas as pd  # noqa: PLC0415 - heavy

        return pd.DataFrame(classifier.transform(X), columns=names(classifier), index=X.index)

    def names(classifier: Any) -> list[str]:
        return [f"embedding_{j}" for j in range(classifier._n_features_out)]  # noqa: SLF001

    _answer_rows(model, file, how, out, keep, answer, names, needs=[])


def _needs(proba: bool, outliers: bool) -> list[tuple[str, str]]:
    return [
        *([("predict_proba", "--proba")] if proba else []),
        *([("outlier_score", "--outliers")] if outliers else []),
    ]


def _answer_rows(
    model: Path,
    file: Path,
    how: dict[str, Any],
    out: Path | None,
    keep: tuple[str, ...],
    answer: Callable[[Any, "pd.DataFrame"], "pd.DataFrame"],
    names: Callable[[Any], list[str]],
    *,
    needs: list[tuple[str, str]],
) -> None:
    """Read, answer and write part by part, so that a table need not fit into memory."""
    from cocoloss.columns.column_kinds import CATEGORY  # noqa: PLC0415
    from cocoloss.columns.encoder import Coverage  # noqa: PLC0415
    from cocoloss.estimators.saved import load_answers  # noqa: PLC0415
    from cocoloss.tables import iter_columns, iter_tables, write_table  # noqa: PLC0415 - heavy

    if out is not None:
        options.check_out(out, [model, file])
    options.check_is_no_model(file)
    classifier = load_answers(model)
    _check_asked(classifier, needs, set(keep) & set(names(classifier)))
    width = max(classifier.n_features_in_, classifier.layer_sizes_[0], 1)
    rows = max(FEWEST_ROWS, CHUNK_NUMBERS // width)
    coverage = Coverage(classifier.preprocessor_)

    def answered(part: "pd.DataFrame") -> "pd.DataFrame":
        answers = answer(classifier, part)  # first, as it refuses what cannot be read
        coverage.see(part)
        return answers

    def answers() -> Iterator["pd.DataFrame"]:
        import pandas as pd  # noqa: PLC0415

        kinds = _kinds_of_columns(classifier, file, how, keep)
        text = [name for name, kind in kinds.items() if kind == CATEGORY]  # also if of digits
        reading = _read_as_in_training(classifier, file, how, text)
        coverage.encoder = classifier.preprocessor_
        parts = iter_tables(
            file,
            rows=rows,
            text=text,
            columns=list(kinds) or None,  # a model without names takes them all
            lenient=_may_hold_text(classifier.preprocessor_, file, reading, text),
            **reading,
        )
        if not keep:
            yield from (answered(part) for part in _ahead(parts))
            return
        # Read a second time, to the letter: what the model takes for a number is copied as text.
        to_the_letter = {name: value for name, value in how.items() if name != "missing"}
        copies = iter_columns(file, list(dict.fromkeys(keep)), rows=rows, **to_the_letter)
        for part, copy in _ahead(zip(parts, copies, strict=True)):
            copied = copy.set_axis(part.index)
            yield pd.concat([copied, answered(part)], axis=1)

    with saying.notes_for_warnings(advice=saying.ADVICE):
        if out is None:
            for i, part in enumerate(answers()):
                click.echo(part.to_csv(index=False, header=i == 0), nl=False)
        else:
            n_rows = write_table(answers(), out)
            click.echo(f"wrote {out} ({n_rows:,} rows)", err=True)
    _note_what_tells_nothing(coverage)


def _check_asked(classifier: Any, needs: list[tuple[str, str]], twice: set[str]) -> None:
    """Refuse what the model cannot answer, and names that two columns would have."""
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415

    for method, option in needs:
        if not hasattr(classifier.heads_[0], method):
            raise CoCoError(f"{option} is not for this model: its head has no {method}")
    for name in sorted(twice):
        raise CoCoError(f"--keep {name}: a column of the answers has that name; rename it first")


def _note_what_tells_nothing(coverage: "Coverage") -> None:
    if coverage.unknown:
        shown = [f"{name} (such as {value!r})" for name, value in coverage.unknown.items()]
        saying.note(f"no row has a category that training had: {saying.some_of(shown)}")
    if coverage.empty and coverage.n_rows > 1:  # a gap in a single row is nothing special
        saying.note(f"no row has a value of what the model uses: {saying.some_of(coverage.empty)}")


def _ahead(parts: Iterator[Part]) -> Iterator[Part]:
    """Make the next part while this one is worked on."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

    with ThreadPoolExecutor(1) as maker:
        coming = maker.submit(next, parts, None)
        while (part := coming.result()) is not None:
            coming = maker.submit(next, parts, None)
            yield part


def _kinds_of_columns(
    classifier: Any, file: Path, how: dict[str, Any], keep: tuple[str, ...]
) -> dict[str, str]:
    """Return the columns that the model reads by name, and their kinds; refuse a table without."""
    from cocoloss.exceptions import CoCoError  # noqa: PLC0415
    from cocoloss.tables import iter_tables  # noqa: PLC0415 - heavy

    plainly = how | {"decimal": how.get("decimal") or "."}  # there is nothing to say of numbers yet
    names = list(next(iter_tables(file, rows=1, **plainly)).columns)
    encoder = classifier.preprocessor_
    kinds: dict[str, str] = encoder.kinds if encoder.header.named else {}
    for wanted, why in ((kinds, "the model needs"), (keep, "--keep asks for")):
        lacking = [repr(name) for name in wanted if name not in names]
        if lacking:
            raise CoCoError(
                f"{file} lacks columns that {why}: {saying.some_of(lacking)}; "
                f"it has {saying.some_of(names)}"
            )
    return kinds


def _may_hold_text(
    preprocessor: Any, file: Path, reading: dict[str, Any], text: list[str]
) -> list[str]:
    """Return the columns whose text the model reads as it read that of training.

    Not where it would read another decimal mark than the one in which the file's numbers are read.
    """
    from cocoloss.columns.column_kinds import NUMBER  # noqa: PLC0415
    from cocoloss.columns.encoder import TableEncoder  # noqa: PLC0415
    from cocoloss.number_text import WITH_COMMA  # noqa: PLC0415
    from cocoloss.tables import find_writing  # noqa: PLC0415 - heavy

    if not isinstance(preprocessor, TableEncoder) or not preprocessor.header.named:
        return []
    has_comma = find_writing(file, **reading, text=text).decimal == ","
    return [
        name
        for name, kind in preprocessor.kinds.items()
        if kind == NUMBER and (WITH_COMMA in preprocessor.forms.get(name, "")) == has_comma
    ]


def _read_as_in_training(
    classifier: Any, file: Path, how: dict[str, Any], text: list[str]
) -> dict[str, Any]:
    """Return how to read a table so that its decimal mark is the one it shows, or the model's."""
    from cocoloss.columns.encoder import TableEncoder  # noqa: PLC0415
    from cocoloss.tables import find_writing  # noqa: PLC0415 - heavy

    preprocessor = classifier.preprocessor_
    if not isinstance(preprocessor, TableEncoder):
        return how
    learnt = preprocessor.options.decimal
    by_name = preprocessor.header.named
    # A form that was found in one column of a table says nothing of the others.
    forms = [] if learnt == "," or not by_name else list(preprocessor.forms)
    mark = find_writing(file, **how, text=[*text, *forms]).decimal
    if learnt == "," and mark != ".":
        return how | {"decimal": ","}
    if mark is not None and "," in (learnt, mark):
        classifier.preprocessor_ = preprocessor.with_decimal(mark)
    return how | {"decimal": mark or "."} if forms else how
