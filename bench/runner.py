"""The benchmark runner: its own time per task, two workers against one, a store of a million rows.

python bench/runner.py            (about ten minutes)
python bench/runner.py overhead   (or: workers, store)
"""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sqlalchemy as sa

from cocoloss.benchmark.export import fold_table, take_rows
from cocoloss.benchmark.plan import make_plan, status_of
from cocoloss.benchmark.runner import Session, prepare, run_benchmark
from cocoloss.benchmark.spec import Spec, load_spec
from cocoloss.benchmark.store import Store, now
from cocoloss.benchmark.store import units as units_table
from cocoloss.benchmark.tasks import Result, Unit, environment
from timing import readable, save, show

SMOKE = Path(__file__).parent.parent / "paper" / "accuracy-smoke.toml"
ROWS = 1_000_000


def idle_spec(n_models: int) -> Spec:
    """Return a benchmark of tasks that do nothing."""
    content = {
        "name": "idle",
        "kind": "idle",
        "data": {"source": "sklearn", "datasets": ["iris", "wine"]},
        "models": {"names": [f"model-{n}" for n in range(n_models)]},
    }
    return Spec.from_dict(content)


def seconds_of(work: Callable[[], object]) -> float:
    """Return how long something takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def overhead(folder: Path) -> dict[str, float]:
    """Return milliseconds per task that does nothing, by where it runs."""
    found = {}
    for name, workers in (("this process", 0), ("one worker", 1), ("two workers", 2)):
        with Store(folder / f"idle-{workers}.sqlite") as store:
            session = prepare(idle_spec(3), store)
            # Starting the workers is not the tasks' doing: what counts is from begin to end.
            summary = session.run(workers=workers)
            found[name] = 1e3 * summary.seconds / sum(summary.ran.values())
    return found


def workers(folder: Path) -> dict[str, float]:
    """Return seconds of the smoke run with one worker and with two, start of the workers too."""
    spec = load_spec(SMOKE)
    spec = replace(spec, limits=replace(spec.limits, seconds_per_task=0))
    found = {}
    for n in (1, 2):
        store = folder / f"smoke-{n}.sqlite"
        found[f"{n} workers"] = seconds_of(lambda s=store, n=n: run_benchmark(spec, s, workers=n))
    return found | {"ratio": found["1 workers"] / found["2 workers"]}


def many_rows(units: list[Unit], spec: Spec) -> Iterator[tuple[dict[str, Any], Any]]:
    """Give rows as a finished run would have written them."""
    place, written = environment(), now()
    for unit in units:
        for part in range(unit.tasks):
            stage = "fold" if part < 10 else "trial"
            rows = [{"fold": part, "balanced_accuracy": 0.5}] if stage == "fold" else []
            result = Result({"score": 0.5}, rows, {"x": part, "units": 64, "rate": 1e-3})
            task = unit.task(stage, part, {"x": part}, params_in_key=False)
            yield (
                {
                    "key": task.key,
                    "spec_hash": spec.hash,
                    **{name: getattr(task, name) for name in ("experiment", "dataset", "model")},
                    "fingerprint": unit.info.fingerprint,
                    "stage": stage,
                    "part": task.part,
                    **vars(result),
                    "traceback": "",
                    "seconds": 0.1,
                    "peak_memory": 0,
                    "environment": place.digest,
                    "finished_at": written,
                    "attempt": 1,
                    "current": True,
                },
                place,
            )


def store(folder: Path) -> dict[str, float]:
    """Return seconds of what one does with a store of a million rows."""
    path = folder / "large.sqlite"
    spec = idle_spec(ROWS // 200)
    with Store(path) as opened:
        session = prepare(spec, opened)
        units = list(session.plan.units)
        opened.begin_run("large", spec, environment())
        filled = seconds_of(lambda: take_rows(opened, many_rows(units, spec)))
        opened.open_units(units, spec.hash)
        left_open = [unit.key for unit in units[-5:]]  # what they found is looked up again
        done = sa.update(units_table).where(units_table.c.key.not_in(left_open))
        opened.database.writing(lambda c: c.execute(done.values(status="ok")))
    found = {"fill": filled, "open": seconds_of(lambda: Store(path).close())}

    def resume() -> None:
        with Store(path) as opened:
            plan = make_plan(spec, session.plan.infos)
            Session(plan, session.left, opened, session.tables).run(workers=0)

    def status() -> None:
        with Store(path, create=False) as opened:
            assert status_of(opened)[0]["tasks"]["done"] == ROWS

    def report() -> None:
        with Store(path, create=False) as opened:
            assert len(fold_table(opened)) == ROWS // 10

    found |= {"resume": seconds_of(resume), "status": seconds_of(status)}
    return found | {"table of folds": seconds_of(report)}


def main() -> None:
    """Measure, print, and write results/runner.json."""
    wanted = sys.argv[1:] or ["overhead", "workers", "store"]
    record: dict[str, object] = {}
    for name, measure in (("overhead", overhead), ("workers", workers), ("store", store)):
        if name in wanted:
            with TemporaryDirectory() as folder:
                found = measure(Path(folder))
            record[name] = found
            unit = 1e-3 if name == "overhead" else 1.0
            texts = [f"{v:.2f}" if k == "ratio" else readable(v * unit) for k, v in found.items()]
            show(name, list(found), [texts])
    print(f"written: {save('runner', record).name}")


if __name__ == "__main__":
    main()
