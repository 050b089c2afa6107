"""``cocoloss describe``: how a table will be read and what is in it, before anything is trained."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli import messages, options
from cocoloss.cli.options import TrainingFile, TrainingTable

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

MOST_SHOWN = 3  # values of a category
LONGEST = 24  # characters of one
MOST_ROWS = 2_000  # from which a column alone predicts the target
TELLS_ALL = 0.95  # balanced accuracy, or R2, of a column that may be a leak
FEWEST_ROWS = 20  # below which a column alone is not tried


@dataclass(frozen=True)
class ColumnFacts:
    """What there is to know of a column."""

    column: str
    kind: str  # as which it is read; "" if it is left out
    form: str  # how its numbers or dates are written, where that is not the plain way
    values: str  # a range, or the most frequent ones
    gaps: int
    distinct: int
    alone: float | None  # balanced accuracy, or R2, of a tree that sees nothing else
    remark: str  # why it is left out, or what it may be


@click.command()
@options.training_file
@options.json_option
def describe(source: TrainingFile, as_json: bool) -> None:
    """Show how the columns of a table will be read, and what is in them, without training.

    It reads as `fit` does, with the same options. For each column: its kind, its range or most
    frequent values, gaps, how many values differ, how well it predicts the target alone, and
    whether it may be a leak or only names the rows.

    \b
    cocoloss describe customers.csv --target churned
    """
    table = source.read()
    facts = _facts(table, source)
    if as_json:
        messages.print_json(facts)
    else:
        with messages.escaped_output():
            _print(facts, table.task)


def _facts(table: TrainingTable, source: TrainingFile) -> dict[str, Any]:
    from cocoloss.columns import make_preprocessor  # noqa: PLC0415 - heavy
    from cocoloss.tables.table import find_identifiers  # noqa: PLC0415

    preprocessor = make_preprocessor(table.preprocess, ranks=True)
    with messages.notes_for_warnings(advice=messages.ADVICE, but=messages.LEFT_OUT):
        inputs = preprocessor.fit(table.X).transform(table.X)
    encoder = preprocessor.encoder_
    alone = _alone(inputs, encoder.origins, table)
    remarks = dict.fromkeys(find_identifiers(table.X), "may only name the rows")
    what = "balanced accuracy" if table.task != "numbers" else "R2"
    for name, score in alone.items():
        if score >= TELLS_ALL:
            remarks[name] = f"predicts {source.target} alone; is it known by then?"
    leaks = messages.find_leaks(table.X, table.y, table.task)
    remarks |= dict.fromkeys(leaks, f"is {source.target} written again?")
    dropped = encoder.dropped_columns.items()
    remarks |= {name: why.partition(", such as ")[0] for name, why in dropped}  # shown as values
    columns = _columns(table, encoder, alone, remarks)
    columns += [
        ColumnFacts(name, "", "", "", 0, 0, None, why) for name, why in table.left_out.items()
    ]
    columns += [ColumnFacts(name, "", "", "", 0, 0, None, "--drop") for name in source.drop]
    return {
        "table": table.name,
        "rows": len(table.y),
        "rows_without_target": table.n_left_out,
        "target": source.target,
        "task": table.task,
        **_of_target(table),
        "inputs": int(inputs.shape[1]),
        "alone": what,
        "columns": [asdict(column) for column in columns],
    }


def _of_target(table: TrainingTable) -> dict[str, Any]:
    if table.task == "numbers":
        y = table.y
        least, quarter, median, three, most = y.quantile([0, 0.25, 0.5, 0.75, 1]).tolist()
        return {
            "numbers": {
                "least": least,
                "quarter": quarter,
                "median": median,
                "three_quarters": three,
                "most": most,
                "mean": y.mean(),
                "deviation": y.std(ddof=0),
            }
        }
    counts = table.y.value_counts(sort=table.task == "classes")
    if table.task == "levels":
        counts = counts.reindex(table.y.cat.categories)
    return {"classes": {str(name): int(n) for name, n in counts.items()}}


def _columns(
    table: TrainingTable, encoder: Any, alone: dict[str, float], remarks: dict[str, str]
) -> list[ColumnFacts]:
    from cocoloss.columns.frames import read_table  # noqa: PLC0415 - heavy

    read = read_table(table.X, "describe")
    gaps, found = encoder.n_gaps(table.X), []
    for j, name in enumerate(read.names):
        column = read.column(j)
        is_used = name in encoder.kinds
        n_gaps = gaps.get(name, 0) if is_used else int((column.distinct.codes < 0).sum())
        found.append(
            ColumnFacts(
                name,
                encoder.kinds.get(name, ""),
                encoder.forms.get(name, ""),
                _values(encoder, name, column.distinct),
                n_gaps,
                len(column.distinct.values),
                alone.get(name),
                remarks.get(name, ""),
            )
        )
    return found


def _values(encoder: Any, name: str, distinct: Any) -> str:
    """Return the range of a quantity, the most frequent categories, or the first of the texts."""
    import numpy as np  # noqa: PLC0415 - heavy

    from cocoloss._checks import amount  # noqa: PLC0415
    from cocoloss.columns.column_kinds import DATE, DURATION, TEXT  # noqa: PLC0415
    from cocoloss.columns.quantities import as_timestamps  # noqa: PLC0415

    if not len(distinct.values):
        return ""
    if name in encoder.quantity_names:
        j, scaler = encoder.quantity_names.index(name), encoder.scaler
        low, middle, high = scaler.box.low[j], scaler.center[j], scaler.box.high[j]
        if encoder.kinds[name] == DATE:
            low, middle, high = (str(t)[:10] for t in as_timestamps(np.array([low, middle, high])))
        else:
            low, middle, high = map(amount, (low, middle, high))
        unit = " s" if encoder.kinds[name] == DURATION else ""
        return f"{low} to {high}{unit}, median {middle}"
    if encoder.kinds.get(name, TEXT) == TEXT:
        return f"such as {_short(distinct.values[0])!r}"
    order = np.argsort(-distinct.counts, kind="stable")
    total = distinct.counts.sum()
    shown = [
        f"{_short(distinct.values[k])} {distinct.counts[k] / total:.0%}" for k in order[:MOST_SHOWN]
    ]
    return ", ".join(shown) + (", ..." if len(order) > MOST_SHOWN else "")


def _short(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _alone(
    inputs: "NDArray[np.float32]", origins: list[str], table: TrainingTable
) -> dict[str, float]:
    """Return how well a small tree of each column predicts the target of rows it has not seen."""
    import numpy as np  # noqa: PLC0415 - heavy
    from sklearn.metrics import r2_score  # noqa: PLC0415
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: PLC0415

    from cocoloss.metrics import balanced_accuracy  # noqa: PLC0415

    is_number = table.task == "numbers"
    y = np.asarray(table.y) if is_number else _codes(table.y)
    rows = np.random.default_rng(0).permutation(len(y))[:MOST_ROWS]
    learn, test = rows[::2], rows[1::2]
    if len(rows) < FEWEST_ROWS or len(np.unique(y[learn])) < 2 or len(np.unique(y[test])) < 2:
        return {}
    small: dict[str, Any] = {"max_leaf_nodes": 32, "min_samples_leaf": 3, "random_state": 0}
    found = {}
    for name in dict.fromkeys(origins):
        X = inputs[:, [j for j, origin in enumerate(origins) if origin == name]]
        if is_number:
            predicted = DecisionTreeRegressor(**small).fit(X[learn], y[learn]).predict(X[test])
            found[name] = max(0.0, float(r2_score(y[test], predicted)))
        else:
            tree = DecisionTreeClassifier(class_weight="balanced", **small).fit(X[learn], y[learn])
            found[name] = float(balanced_accuracy(y[test], tree.predict(X[test])))
    return found


def _codes(y: "pd.Series[Any]") -> "NDArray[np.int64]":
    import numpy as np  # noqa: PLC0415 - heavy
    import pandas as pd  # noqa: PLC0415

    return np.asarray(pd.factorize(y)[0], dtype=np.int64)


def _print(facts: dict[str, Any], task: str) -> None:
    from cocoloss._checks import amount, counted  # noqa: PLC0415 - heavy

    used = [column for column in facts["columns"] if column["kind"]]
    click.echo(f"rows      {facts['rows']:,}")
    left_out = len(facts["columns"]) - len(used)
    more = f", {left_out:,} left out" if left_out else ""
    inputs = counted(facts["inputs"], "input")
    click.echo(f"columns   {len(used):,} used, as {inputs} of kernels{more}")
    if task == "numbers":
        of = {name: amount(value) for name, value in facts["numbers"].items()}
        click.echo(
            f"target    {facts['target']}: numbers, {of['least']} to {of['most']}, median "
            f"{of['median']}, mean {of['mean']}, standard deviation {of['deviation']}"
        )
    else:
        between = " < " if task == "levels" else ", "
        shown = [f"{name} ({n:,}, {n / facts['rows']:.0%})" for name, n in facts["classes"].items()]
        n_classes = len(shown)
        click.echo(
            f"target    {facts['target']}: {n_classes:,} {task}, {messages.listed(shown, between)}"
        )
    rows = [
        (
            column["column"],
            f"{column['kind'] or 'left out'} {column['form']}".strip(),
            column["values"],
            column["remark"],
            f"{column['gaps']:,}" if column["gaps"] else "",
            f"{column['distinct']:,}" if column["distinct"] else "",
            "" if column["alone"] is None else f"{column['alone']:.2f}",
        )
        for column in facts["columns"]
    ]
    texts, numbers = ["column", "read as", "values", "remark"], ["missing", "distinct", "alone"]
    messages.console().print(messages.table("", texts, numbers, rows, overflow="fold"))
    click.echo(f"alone: {facts['alone']} of a small tree on this column only")
