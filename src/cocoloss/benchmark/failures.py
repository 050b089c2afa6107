"""What went wrong in a benchmark: failures that are alike told once, with a traceback."""

from dataclasses import dataclass, replace

from cocoloss.benchmark.keys import FAILED
from cocoloss.benchmark.store import Store

READ = ("key", "dataset", "model", "status", "error", "traceback")


@dataclass(frozen=True)
class Failure:
    """Tasks of a model on a table that failed with the same words.

    Attributes
    ----------
    model, dataset : str
    status : str
        "failed" or "timeout".
    error : str
        One line.
    tasks : int
        How many; 0 if it was no task that failed but what brings them forth.
    key : str
        Of the first.
    traceback : str
        Of the first; empty if it was ended from outside, at its limit or with its worker.
    """

    model: str
    dataset: str
    status: str
    error: str
    tasks: int
    key: str
    traceback: str


def failures_of(store: Store, spec_hash: str) -> list[Failure]:
    """Return what went wrong in a benchmark, those of a model together, the most frequent first.

    Parameters
    ----------
    store : Store
    spec_hash : str
        Of the benchmark.
    """
    found: dict[tuple[str, ...], Failure] = {}
    for row in store.rows(spec_hash=spec_hash, failed_only=True, columns=READ):
        alike = tuple(row[name] for name in ("model", "dataset", "status", "error"))
        found.setdefault(alike, Failure(**row, tasks=0))
        found[alike] = replace(found[alike], tasks=found[alike].tasks + 1)
    of_tasks = {(failure.model, failure.dataset) for failure in found.values()}
    for unit in store.planned(spec_hash):
        pair = unit["model"], unit["dataset"]
        if unit["status"] == FAILED and pair not in of_tasks:
            found[pair] = Failure(*pair, FAILED, unit["error"], 0, unit["key"], "")
    return sorted(found.values(), key=lambda f: (f.model, f.dataset, -f.tasks, f.error))
