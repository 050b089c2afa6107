"""Results as tables for other programs.

Two forms. "folds" has one line per dataset, model and fold, with a column per measure: what one
analyses. "tasks" is everything, see :mod:`cocoloss.benchmark.task_file`: what a store can be
filled from again. Both are CSV or Parquet, by the ending of the name.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocoloss.benchmark.environment import Environment
from cocoloss.benchmark.json_text import dump_json
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.task_file import (
    START,
    UNIT,
    check_ending,
    task_table,
    whole_table,
    with_parquet,
)
from cocoloss.benchmark.variants import chosen_variants
from cocoloss.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["export", "fold_table", "task_table"]

FIRST = ("spec", "experiment", "dataset", "model", "stage", "part", "fold")
LAST = (
    *("status", "error", "params", "task_seconds", "peak_memory", "attempt", "finished_at"),
    *("host", "versions", "fingerprint", "spec_hash", "key"),
)


def fold_table(
    store: Store, spec_hash: str | None = None, *, names: Sequence[str] = ()
) -> "pd.DataFrame":
    """Return one line per dataset, model and fold, with measures as columns.

    A task that failed is a line without a fold. Trials of the tuning are not part of it.

    Parameters
    ----------
    store : Store
    spec_hash : str, optional
        Of one benchmark; of all if left out.
    names : sequence of str
        Only benchmarks of these names, NAME or NAME@HASH; all if empty.
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    runs = store.runs()
    called = {run["spec_hash"]: run["name"] for run in runs}
    wanted = [spec_hash] if spec_hash else chosen_variants(runs, names, store.name)
    places = store.environments()
    lines: list[dict[str, Any]] = []
    for one in wanted:
        for row in store.rows(spec_hash=one, tuning=False):
            lines += _fold_lines(row, called.get(one, ""), places)
    measures = dict.fromkeys(name for line in lines for name in line)
    middle = [name for name in measures if name not in FIRST + LAST]
    table = pd.DataFrame(lines, columns=[*FIRST, *middle, *LAST])
    return table.astype({"fold": "Int64"})


def export(
    store: Store, path: str | Path, *, tasks: bool = False, names: Sequence[str] = ()
) -> int:
    """Write results to a file; return how many there are, tasks or folds.

    The same store gives the same file, byte for byte, with the same version of pandas.

    Parameters
    ----------
    store : Store
    path : path
        Ends in .csv or .parquet.
    tasks : bool, default=False
        Everything, one line per task, and what was planned, instead of one line per fold.
    names : sequence of str
        Only benchmarks of these names, NAME or NAME@HASH; all if empty.

    Raises
    ------
    CoCoError
        If the name has another ending, or cannot be written to; if there is no such benchmark.
    """
    path = Path(path)
    check_ending(path)
    wanted = chosen_variants(store.runs(), names, store.name)
    with write_whole(path) as aside:
        table = whole_table(store) if tasks else fold_table(store, names=names)
        table = table[table["spec_hash"].isin(wanted)] if names else table
        if path.suffix == ".csv":
            table.to_csv(aside, index=False)
        else:
            with_parquet(table.to_parquet, aside, index=False, compression="zstd")
    return int((~table["stage"].isin([UNIT, START])).sum())


def _fold_lines(
    row: Mapping[str, Any], spec: str, places: Mapping[str, Environment]
) -> Iterator[dict[str, Any]]:
    place = places[row["environment"]]
    common = {name: row[name] for name in row if name in FIRST + LAST}
    common |= {
        "spec": spec,
        "params": dump_json(row["params"]),
        "task_seconds": row["seconds"],
        "host": place.machine.get("host", ""),
        "versions": dump_json(place.versions),
    }
    for measures in row["rows"] or [row["measures"]]:
        yield {"fold": None, **measures, **common}
