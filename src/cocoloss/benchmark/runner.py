"""A run from spec to summary: tables, plan, store, workers, and the driver that goes through it.

The driver knows nothing of what a task computes. A unit is a generator that yields tasks and is
sent their results; a task that the store knows is answered from there. So a run that was stopped,
by Ctrl-C or by a power cut, goes on where it was when it is started again.
"""

import os
import secrets
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cocoloss.benchmark.plan import Pace, Plan, Remainder, Tables, make_plan, remainder
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.store import Store, StoreError
from cocoloss.benchmark.tasks import (
    FAILED,
    OK,
    TIMEOUT,
    Finished,
    Result,
    Task,
    Unit,
    environment,
    experiment_files,
    experiment_of,
)
from cocoloss.benchmark.workers import DaskPool, HerePool, Pool, Running, one_line
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import storable

TICK = 0.25  # seconds to wait for an answer before looking at the clock
SIGN_EVERY = 5.0  # seconds between two signs of life in the store


class Progress:
    """Counts what a run has done and has left; subclasses display it."""

    def __init__(self) -> None:
        self.total = self.done = self.failed = 0
        self.n_workers = 1
        self._remaining: dict[str, int] = {}  # tasks, by key of unit
        self._pace = Pace()
        self._left: dict[str, float] = {}  # seconds of what is left, as planned, by model
        self._began = time.monotonic()

    def begin(self, units: Sequence[Unit], done: dict[str, int]) -> None:
        """Learn what there is to do."""
        self._began = time.monotonic()
        for unit in units:
            known = done.get(unit.key, 0)
            self.total += unit.tasks
            self.done += known
            self._remaining[unit.key] = unit.tasks - known
            left = unit.seconds * (1 - known / max(unit.tasks, 1))
            self._left[unit.model] = self._left.get(unit.model, 0.0) + left

    def task_ended(self, unit: Unit, task: Task, finished: Finished) -> None:  # noqa: ARG002
        """Count a task, and learn from its time."""
        self.failed += finished.result.status != OK
        self._pace.add(unit.model, finished.seconds, unit.seconds / max(unit.tasks, 1))
        self._count(unit, 1)

    def task_known(self, unit: Unit, task: Task) -> None:  # noqa: ARG002
        """Count a task that was in the store."""
        self._count(unit, 1)

    def unit_ended(self, unit: Unit, status: str, error: str) -> None:  # noqa: ARG002
        """Count what the unit did not need."""
        self._count(unit, self._remaining[unit.key])

    def tick(self, running: list[Running], n_workers: int) -> None:  # noqa: ARG002
        """Learn how many there are to share the work."""
        self.n_workers = n_workers

    def state(self) -> dict[str, Any]:
        """Return the numbers."""
        return {
            "done": self.done,
            "total": self.total,
            "failed": self.failed,
            "seconds": round(time.monotonic() - self._began, 1),
            "seconds_left": round(self.seconds_left(), 1),
        }

    def seconds_left(self) -> float:
        """Return how long the rest will take, by what tasks of each model took so far."""
        left = {model: seconds for model, seconds in self._left.items() if seconds > 0}
        whole = sum(seconds * self._pace.ratio(model) for model, seconds in left.items())
        return whole / max(self.n_workers, 1)

    def close(self) -> None:
        """Leave the terminal as it was."""

    def _count(self, unit: Unit, tasks: int) -> None:
        tasks = min(tasks, self._remaining[unit.key])  # there may be more than was planned
        self._remaining[unit.key] -= tasks
        self.done += tasks
        self._left[unit.model] -= unit.seconds * tasks / max(unit.tasks, 1)


@dataclass
class Summary:
    """What a run did."""

    # tasks that ran, by how they ended
    ran: dict[str, int] = field(default_factory=lambda: {OK: 0, FAILED: 0, TIMEOUT: 0})
    known: int = 0  # tasks found in the store, those of finished units not counted
    units: dict[str, int] = field(default_factory=dict)  # by how they stand: ok, failed, open
    seconds: float = 0.0  # from begin to end
    left_out: Mapping[str, str] = field(default_factory=dict)  # tables that cannot be used, and why


@dataclass
class _Active:
    """A unit that has begun."""

    unit: Unit
    steps: Generator[list[Task], list[Result], None]
    tasks: list[Task] = field(default_factory=list)  # of the present step
    answers: dict[str, Result] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)  # of all steps so far
    failed: str = ""  # the first failure


class Runner:
    """Runs the units of a plan, in their order, to the end."""

    def __init__(
        self,
        plan: Plan,
        tables: Tables,
        store: Store,
        progress: Progress,
        *,
        retry_failed: bool = False,
        predictions: Path | None = None,
    ) -> None:
        self.predictions = predictions  # the folder in which they are kept, if they are
        self.spec, self.store, self.progress = plan.spec, store, progress
        self.tables, self.retry_failed = tables, retry_failed
        self.planned = list(plan.units)
        self.run_id = secrets.token_hex(6)
        self.summary = Summary(left_out=plan.left_out)
        self._experiment = experiment_of(plan.spec)
        self._hash = plan.spec.hash
        self._active: list[_Active] = []
        self._ready: deque[tuple[_Active, Task]] = deque()
        self._flying: dict[str, tuple[_Active, Task]] = {}
        self._shared: set[str] = set()  # fingerprints of tables that the pool has
        self._signed = 0.0

    def run(self, pool: Pool) -> Summary:
        """Have a pool do all that is not done yet; what was finished is kept, whatever happens."""
        self.pool = pool
        began = time.monotonic()
        self.store.begin_run(self.run_id, self.spec, environment(), self._state())
        state = "broken"
        try:
            self._go_through()
            state = "finished"
        except KeyboardInterrupt:
            state = "stopped"
            for key, finished in self.pool.wait(0) if self._flying else []:
                self._keep(key, finished)
            raise
        except StoreError:
            state = ""  # nothing more can be written
            raise
        finally:
            self.summary.seconds = time.monotonic() - began
            for active in self._active:
                active.steps.close()
            if state:
                self.store.sign_of_life(self.run_id, self._state(), state)
        return self.summary

    def _go_through(self) -> None:
        states = self.store.open_units(self.planned, self._hash, retry_failed=self.retry_failed)
        done = {unit.key: unit.tasks for unit in self.planned if states[unit.key] != "open"}
        self.progress.begin(self.planned, done)
        waiting = deque(unit for unit in self.planned if unit.key not in done)
        self._uses = Counter(unit.info.fingerprint for unit in waiting)
        while waiting or self._active:
            self._fill(waiting)
            for key, finished in self.pool.wait(TICK) if self._flying else []:
                self._take(key, finished)
            self._sign()
        states = self.store.unit_states(self._hash)
        self.summary.units = dict(Counter(states[unit.key] for unit in self.planned))

    def _fill(self, waiting: deque[Unit]) -> None:
        """Keep every worker busy, with a task in reserve, and begin units only when it needs be."""
        room = self.pool.n_workers + max(1, self.pool.n_workers // 4)
        while len(self._flying) < room:
            if self._ready:
                self._submit(*self._ready.popleft())
            elif waiting:
                self._begin(waiting.popleft(), n_open=len(waiting) + len(self._active) + 1)
            else:
                return

    def _submit(self, active: _Active, task: Task) -> None:
        fingerprint = active.unit.info.fingerprint
        if fingerprint not in self._shared:  # what the store knows needs no table
            self.pool.share(fingerprint, self.tables.load(active.unit.dataset))
            self._shared.add(fingerprint)
        self._flying[task.key] = (active, task)
        self.pool.submit(task, fingerprint)

    def _begin(self, unit: Unit, n_open: int) -> None:
        parallel = self.spec.tuning.parallel or max(1, self.pool.n_workers // n_open)
        active = _Active(unit, self._experiment.drive(unit, self.spec, parallel=parallel))
        self._active.append(active)
        self._advance(active, None)

    def _advance(self, active: _Active, answers: list[Result] | None) -> None:
        """Go on with a unit until it has a task that must run, or ends."""
        while True:
            try:
                tasks = next(active.steps) if answers is None else active.steps.send(answers)
            except StopIteration:
                return self._end(active)
            except Exception as error:  # noqa: BLE001 - one experiment's slip stops no other
                ours = isinstance(error, CoCoError)
                active.failed = active.failed or (storable(str(error)) if ours else one_line(error))
                return self._end(active)
            active.tasks, active.answers = tasks, self._known(active, tasks)
            active.keys.update(task.key for task in tasks)
            missing = [task for task in tasks if task.key not in active.answers]
            self._ready.extend((active, task) for task in missing)
            if missing:
                return None
            answers = [active.answers[task.key] for task in tasks]

    def _known(self, active: _Active, tasks: list[Task]) -> dict[str, Result]:
        """Return the answers that the store has."""
        found = self.store.find([task.key for task in tasks])
        if self.retry_failed:
            found = {key: result for key, result in found.items() if result.ok}
        for task in tasks:
            if task.key in found:
                self.summary.known += 1
                self._note_failure(active, found[task.key])
                self.progress.task_known(active.unit, task)
        return found

    def _take(self, key: str, finished: Finished) -> None:
        """Keep what a task found, and go on with its unit if it was the last one."""
        active = self._keep(key, finished)
        if all(task.key in active.answers for task in active.tasks):
            self._advance(active, [active.answers[task.key] for task in active.tasks])

    def _keep(self, key: str, finished: Finished) -> _Active:
        active, task = self._flying.pop(key)
        # First the predictions: a result that is in the store has them, whenever it is killed.
        if self.predictions is not None and finished.result.predictions:
            from cocoloss.benchmark.predictions import keep  # noqa: PLC0415 - imports torch

            keep(self.predictions, key, finished.result.predictions)
        result = self.store.record(active.unit, task, self._hash, finished)
        self.summary.ran[finished.result.status] += 1
        self._note_failure(active, result)
        self.progress.task_ended(active.unit, task, finished)
        active.answers[key] = result
        return active

    def _note_failure(self, active: _Active, result: Result) -> None:
        if not result.ok:
            active.failed = active.failed or result.error

    def _end(self, active: _Active) -> None:
        unit, status = active.unit, FAILED if active.failed else OK
        self._active.remove(active)
        self.store.end_unit(unit, self._hash, active.failed, active.keys)
        self.progress.unit_ended(unit, status, active.failed)
        self._uses[unit.info.fingerprint] -= 1
        if not self._uses[unit.info.fingerprint]:
            self.pool.forget(unit.info.fingerprint)
            self._shared.discard(unit.info.fingerprint)

    def _sign(self) -> None:
        running = self.pool.running()
        self.progress.tick(running, self.pool.n_workers)
        if time.monotonic() - self._signed > SIGN_EVERY:
            self._signed = time.monotonic()
            busy = [[r.key, r.worker, round(r.seconds, 1)] for r in running]
            progress = {**self._state(), "running": busy, "workers": self.pool.n_workers}
            self.store.sign_of_life(self.run_id, progress)

    def _state(self) -> dict[str, Any]:
        return {**self.progress.state(), "left_out": dict(self.summary.left_out)}


@dataclass(frozen=True)
class Session:
    """A benchmark that can begin."""

    plan: Plan
    left: Remainder
    store: Store
    tables: Tables

    def run(
        self,
        *,
        workers: int | None = None,
        scheduler: str | None = None,
        retry_failed: bool = False,
        progress: Progress | None = None,
        predictions: str | os.PathLike[str] | None = None,
    ) -> Summary:
        """Do what is left.

        ``workers`` are processes of this machine: one per core if left out, 0 is this process.
        ``scheduler`` is the address of a Dask scheduler to use instead. ``predictions`` is the
        folder that they are kept in, if the spec says so and it is not the one beside the store.
        """
        progress = progress or Progress()
        folder = None
        if self.plan.spec.keep_predictions:
            from cocoloss.benchmark.predictions import (  # noqa: PLC0415 - imports torch
                open_folder,
                predictions_folder,
            )

            folder = open_folder(predictions_folder(self.store, predictions))
        runner = Runner(
            self.plan,
            self.tables,
            self.store,
            progress,
            retry_failed=retry_failed,
            predictions=folder,
        )
        states = self.store.unit_states(self.plan.spec.hash)
        ended = {OK} if retry_failed else {OK, FAILED}
        if all(states.get(unit.key) in ended for unit in self.plan.units):
            workers, scheduler = 0, None  # no workers are needed
        pool = self._pool(workers, scheduler, runner.run_id)
        try:
            return runner.run(pool)
        finally:
            pool.close()

    def _pool(self, workers: int | None, scheduler: str | None, run_id: str) -> Pool:
        spec = self.plan.spec
        workers = default_workers() if workers is None else workers
        if scheduler is None and workers == 0:
            return HerePool(spec)
        files = [*own_files(spec), *experiment_files(spec)] if scheduler else []
        return DaskPool(spec, run_id, workers=workers, scheduler=scheduler, files=files)


def look(spec: Spec, *, on_table: Callable[[str], object] | None = None) -> tuple[Plan, Tables]:
    """Look at the tables and plan; nothing is made or written."""
    tables = Tables(spec)
    infos = tables.infos(on_table)
    return make_plan(spec, infos, tables.left_out), tables


def run_benchmark(spec: Spec, store: str | os.PathLike[str], **options: Any) -> Summary:
    """Run a benchmark; what the store has already is not run again.

    Parameters
    ----------
    spec : Spec
    store : str or path
        A SQLite file, which is made if it is not there, or ``postgresql://user@host/name``.
    **options
        ``workers``: processes of this machine; one per core if left out, 0 is this process.
        ``scheduler``: address of a Dask scheduler to use instead. ``retry_failed``: do again what
        failed before. ``progress``: a Progress that shows how it goes. ``predictions``: the folder
        that they are kept in, if not the one beside the store.

    Returns
    -------
    Summary

    Raises
    ------
    CoCoError
        If the store or the cluster is lost. What was finished is kept.
    """
    if not isinstance(spec, Spec):
        raise CoCoError(f"spec must be a Spec, such as load_spec(path) returns, not {spec!r}")
    with store_if_used(store) as opened:
        plan, tables = look(spec)
        return Session(plan, remainder(plan, opened), opened, tables).run(**options)


@contextmanager
def store_if_used(where: str | os.PathLike[str]) -> Iterator[Store]:
    """Open a store; a file that was made for it goes again if no run began, for whatever reason."""
    path = os.fspath(where)
    is_new = "://" not in path and not Path(path).exists()
    unused = False
    try:
        with Store(where) as opened:
            try:
                yield opened
            finally:
                with suppress(CoCoError):  # it refuses; then it stays
                    unused = is_new and not opened.runs()
    except BaseException:
        if unused:
            Path(path).unlink(missing_ok=True)
        raise


def default_workers() -> int:
    """Return the number of cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def own_files(spec: Spec) -> list[str]:
    """Return the files of own models in the current folder, which workers elsewhere lack."""
    modules = {place.partition(":")[0] for place in spec.models.own.values()}
    files = [Path(f"{module}.py").resolve() for module in modules if "." not in module]
    return sorted(str(file) for file in files if file.is_file())
