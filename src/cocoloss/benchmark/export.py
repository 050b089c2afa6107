"""Results as tables for other programs, and back.

Two forms. "folds" has one line per dataset, model and fold, with a column per measure: what one
analyses. "tasks" has one line per task, trials too, with everything: what a store can be filled
from again. Both are CSV or Parquet, by the ending of the name.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cocoloss.benchmark.json_text import dump_json, load_json
from cocoloss.benchmark.schema import COLUMNS
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.worker import Environment
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole

if TYPE_CHECKING:
    import pandas as pd

TEXTS = ("measures", "rows", "params", "extra")  # columns of JSON
FIRST = ("spec", "experiment", "dataset", "model", "stage", "part", "fold")
LAST = (
    *("status", "error", "params", "task_seconds", "peak_memory", "attempt", "finished_at"),
    *("host", "versions", "fingerprint", "spec_hash", "key"),
)


def fold_table(store: Store, spec_hash: str | None = None) -> "pd.DataFrame":
    """Return one line per dataset, model and fold, with measures as columns.

    A task that failed is a line without a fold. Trials of the tuning are not part of it.

    Parameters
    ----------
    store : Store
    spec_hash : str, optional
        Of one benchmark; of all if left out.
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    names = {run["spec_hash"]: run["name"] for run in store.runs()}
    places = store.environments()
    lines: list[dict[str, Any]] = []
    for one in [spec_hash] if spec_hash else names:
        for row in store.rows(spec_hash=one, tuning=False):
            lines += _fold_lines(row, names.get(one, ""), places)
    measures = dict.fromkeys(name for line in lines for name in line)
    middle = [name for name in measures if name not in FIRST + LAST]
    table = pd.DataFrame(lines, columns=[*FIRST, *middle, *LAST])
    return table.astype({"fold": "Int64"})


def task_table(store: Store) -> "pd.DataFrame":
    """Return one line per task with everything that the store knows of it."""
    import pandas as pd  # noqa: PLC0415 - heavy

    places = store.environments()
    lines = []
    for row in store.rows():
        place = places[row["environment"]]
        texts = {name: dump_json(row[name]) for name in TEXTS}
        texts |= {"machine": dump_json(place.machine), "versions": dump_json(place.versions)}
        lines.append(row | texts)
    return pd.DataFrame(lines, columns=[*COLUMNS, "machine", "versions"])


def export(store: Store, path: str | Path, *, tasks: bool = False) -> int:
    """Write results to a file; return how many lines it has.

    Parameters
    ----------
    store : Store
    path : path
        Ends in .csv or .parquet.
    tasks : bool, default=False
        Everything, one line per task, instead of one line per fold.

    Raises
    ------
    CoCoError
        If the name has another ending, or cannot be written to.
    """
    path = Path(path)
    _check_ending(path)
    with write_whole(path) as aside:
        table = task_table(store) if tasks else fold_table(store)
        if path.suffix == ".csv":
            table.to_csv(aside, index=False)
        else:
            _parquet(table.to_parquet, aside, index=False)
    return len(table)


def read_tasks(path: str | Path) -> Iterator[tuple[dict[str, Any], Environment]]:
    """Give the rows of a file of tasks, each with where it ran.

    Raises
    ------
    CoCoError
        If the file is no such file.
    """
    import pandas as pd  # noqa: PLC0415 - heavy

    path = Path(path)
    _check_ending(path)
    try:
        if path.suffix == ".csv":
            table = pd.read_csv(path, dtype=str, keep_default_na=False)
        else:
            table = _parquet(pd.read_parquet, path)
    except (OSError, ValueError) as error:
        raise CoCoError(f"cannot read {path}: {' '.join(str(error).split())}") from error
    lacking = [name for name in [*COLUMNS, "machine", "versions"] if name not in table.columns]
    if lacking:
        raise CoCoError(
            f"{path} has no column {lacking[0]!r}; export with --tasks what shall be merged"
        )
    try:
        for line in table.to_dict("records"):
            yield _task_row(line)
    except (ValueError, TypeError, json.JSONDecodeError) as error:
        raise CoCoError(f"{path} is damaged: {' '.join(str(error).split())}") from error


def _task_row(line: Mapping[str, Any]) -> tuple[dict[str, Any], Environment]:
    import pandas as pd  # noqa: PLC0415 - heavy

    row = {name: line[name] for name in COLUMNS}
    row |= {name: load_json(line[name]) for name in TEXTS}
    row["seconds"] = float(row["seconds"])
    row["peak_memory"], row["attempt"] = int(row["peak_memory"]), int(row["attempt"])
    row["current"] = str(row["current"]) == "True"
    row["finished_at"] = pd.Timestamp(row["finished_at"]).to_pydatetime()
    return row, Environment(load_json(line["machine"]), load_json(line["versions"]))


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


def _check_ending(path: Path) -> None:
    if path.suffix not in {".csv", ".parquet"}:
        raise CoCoError(f"{path}: the name must end in .csv or .parquet")


def _parquet(work: Any, path: Path, **options: Any) -> Any:
    try:
        return work(path, **options)
    except ImportError as error:
        raise CoCoError(
            "Parquet needs pyarrow, which is not installed; pip install 'cocoloss[parquet]'"
        ) from error
