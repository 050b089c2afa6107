"""All that a store knows as one table, and back: what is sent, committed and merged.

One line per task, trials too. Beside them one line per unit, stage "unit", and one per start of a
driver, stage "start": so that a store that is filled from a file knows what was planned, under
which spec, and what is missing. A CSV has no other place for that, so a Parquet file has it there
too. Lines are sorted by key, and the same store gives the same bytes.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from cocoloss.benchmark.environment import Environment
from cocoloss.benchmark.json_text import dump_json, load_json
from cocoloss.benchmark.keys import FAILED, OK, OPEN, TIMEOUT
from cocoloss.benchmark.schema import COLUMNS
from cocoloss.benchmark.store import Store
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

UNIT, START = "unit", "start"  # stages of lines that are no tasks
TEXTS = ("measures", "rows", "params", "extra")  # columns of JSON
ALL_COLUMNS = (*COLUMNS, "machine", "versions")
NOWHERE = Environment({}, {})  # where a unit ran: its tasks know
EMPTY: Mapping[str, Any] = {  # of lines that are no tasks
    **dict.fromkeys(("dataset", "model", "fingerprint", "part", "error", "traceback"), ""),
    "measures": {},
    "rows": [],
    "environment": "",
    **dict.fromkeys(("seconds", "peak_memory", "attempt"), 0),
    "current": True,
}
Reader = Callable[[dict[str, Any]], dict[str, Any]]  # of a line
STATUSES = {  # of lines that are no tasks
    UNIT: (OPEN, OK, FAILED),
    START: ("running", "finished", "stopped", "broken"),
}
OF_LINE = (  # columns that hold a text in every line
    *("key", "spec_hash", "experiment", "dataset", "fingerprint", "model", "stage", "part"),
    *("status", "error", "traceback", "environment"),
)
OF_UNIT = ("key", "spec_hash", "experiment", "dataset", "fingerprint", "model", "status", "error")


class Placed(NamedTuple):
    """A row of a store's table, and where it was made."""

    row: dict[str, Any]
    place: Environment


def task_table(store: Store) -> "pd.DataFrame":
    """Return one line per task with everything that the store knows of it, sorted by key."""
    return _table(_task_lines(store))


def whole_table(store: Store) -> "pd.DataFrame":
    """Return one line per task, per unit and per start of a driver, sorted by key."""
    # Tasks are read last: a driver may be at work, and a unit that has ended has all its results.
    return _table([*_start_lines(store), *_unit_lines(store), *_task_lines(store)])


def _table(lines: list[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd  # noqa: PLC0415 - heavy

    return pd.DataFrame(sorted(lines, key=lambda line: line["key"]), columns=[*ALL_COLUMNS])


def _task_lines(store: Store) -> list[dict[str, Any]]:
    places = store.environments()
    return [_line(row, places[row["environment"]]) for row in store.rows()]


def _unit_lines(store: Store) -> list[dict[str, Any]]:
    return [
        _line(
            {
                **EMPTY,
                **{name: unit[name] for name in OF_UNIT},
                "stage": UNIT,
                "params": {"tasks": unit["tasks"], "seconds": unit["seconds"]},
                "extra": unit["info"],
                "finished_at": None,
            },
            NOWHERE,
        )
        for unit in store.planned()
    ]


def _start_lines(store: Store) -> list[dict[str, Any]]:
    places = store.environments()
    return [
        _line(
            {
                **EMPTY,
                "key": f"{START}/{run['id']}",
                "spec_hash": run["spec_hash"],
                "experiment": run["spec"]["kind"],
                "stage": START,
                "part": run["id"],
                "status": run["state"],
                "params": run["spec"],
                "extra": {
                    "name": run["name"],
                    "started_at": run["started_at"].isoformat(),
                    "progress": run["progress"],
                },
                "environment": run["environment"],
                "finished_at": run["seen_at"],
            },
            places.get(run["environment"], NOWHERE),
        )
        for run in store.runs()
    ]


def _line(row: Mapping[str, Any], place: Environment) -> dict[str, Any]:
    texts = {name: dump_json(row[name]) for name in TEXTS}
    texts |= {"machine": dump_json(place.machine), "versions": dump_json(place.versions)}
    return {**row, **texts}


class TaskFile:
    """A file of :func:`whole_table`, read back.

    Parameters
    ----------
    path : path
        Ends in .csv or .parquet.

    Raises
    ------
    CoCoError
        If the file is no such file; by every method too, if it is damaged.
    """

    def __init__(self, path: str | Path) -> None:
        import pandas as pd  # noqa: PLC0415 - heavy

        self.path = Path(path)
        check_ending(self.path)
        try:
            if self.path.suffix == ".csv":
                table = pd.read_csv(self.path, dtype=str, keep_default_na=False)
            else:
                table = with_parquet(pd.read_parquet, self.path)
        except (OSError, ValueError) as error:
            raise CoCoError(f"cannot read {path}: {' '.join(str(error).split())}") from error
        lacking = [name for name in ALL_COLUMNS if name not in table.columns]
        if lacking:
            raise CoCoError(
                f"{path} has no column {lacking[0]!r}; export with --tasks what shall be merged"
            )
        self._table = table

    def tasks(self) -> Iterator[Placed]:
        """Give rows of results, each with where it ran."""
        others = self._table["stage"].isin([UNIT, START])
        return self._read(self._table[~others], _task_row)

    def units(self) -> list[dict[str, Any]]:
        """Return rows of units; none if the file was written before it held any."""
        return [row for row, _ in self._read(self._table[self._table["stage"] == UNIT], _unit_row)]

    def starts(self) -> list[Placed]:
        """Return rows of runs, each with where its driver ran."""
        return list(self._read(self._table[self._table["stage"] == START], _start_row))

    def _read(self, lines: Any, read: Reader) -> Iterator[Placed]:
        try:
            for line in lines.to_dict("records"):
                _check_texts(line)
                for name in (*TEXTS, "machine", "versions"):
                    line[name] = load_json(line[name])
                yield Placed(read(line), Environment(line["machine"], line["versions"]))
        except (ValueError, TypeError, KeyError, json.JSONDecodeError) as error:
            reason = " ".join(str(error).split())
            raise CoCoError(f"{self.path} is damaged: {reason}") from error


def _check_texts(line: dict[str, Any]) -> None:
    """Refuse a line whose names or status are none."""
    stage = line["stage"]
    named = ("key", "spec_hash", "experiment", *(() if stage == START else ("dataset", "model")))
    for name in OF_LINE:
        if not isinstance(line[name], str) or (name in named and not line[name]):
            raise ValueError(f"the line of {line['key'] or 'no key'!r} has no {name}")
    if line["status"] not in STATUSES.get(stage, (OK, FAILED, TIMEOUT)):
        raise ValueError(f"the line of {line['key']!r} has the status {line['status']!r}")


def _task_row(line: dict[str, Any]) -> dict[str, Any]:
    row = {name: line[name] for name in COLUMNS}
    row["seconds"] = float(row["seconds"])
    row["peak_memory"], row["attempt"] = int(row["peak_memory"]), int(row["attempt"])
    row["current"] = str(row["current"]) == "True"
    row["finished_at"] = _time(row["finished_at"])
    return row


def _unit_row(line: dict[str, Any]) -> dict[str, Any]:
    planned = {"tasks": int(line["params"]["tasks"]), "seconds": float(line["params"]["seconds"])}
    return {**{name: line[name] for name in OF_UNIT}, **planned, "info": line["extra"]}


def _start_row(line: dict[str, Any]) -> dict[str, Any]:
    extra = line["extra"]
    return {
        "id": line["part"],
        "name": extra["name"],
        "spec_hash": line["spec_hash"],
        "spec": line["params"],
        "environment": line["environment"],
        "state": line["status"],
        "started_at": datetime.fromisoformat(extra["started_at"]),
        "seen_at": _time(line["finished_at"]),
        "progress": extra["progress"],
    }


def _time(value: Any) -> datetime:
    import pandas as pd  # noqa: PLC0415 - heavy

    if pd.isna(value) or not str(value):
        raise ValueError("a line has no finished_at")
    time: datetime = pd.Timestamp(value).to_pydatetime()
    return time


def check_ending(path: Path) -> None:
    """Refuse a file that is neither CSV nor Parquet by its name."""
    if path.suffix not in {".csv", ".parquet"}:
        raise CoCoError(f"{path}: the name must end in .csv or .parquet")


def with_parquet(work: Callable[..., Any], path: Path, **options: Any) -> Any:
    """Read or write a Parquet file, or say what that needs."""
    try:
        return work(path, **options)
    except ImportError as error:
        raise CoCoError(
            "Parquet needs pyarrow, which is not installed; pip install 'cocoloss[parquet]'"
        ) from error
