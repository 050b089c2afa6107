"""The driver: goes through the units of a plan, has their tasks run, and keeps what they find.

It knows nothing of what a task computes. A unit is a generator that yields tasks and is sent their
results; a task that the store knows is answered from there. So a run that was stopped, by Ctrl-C
or by a power cut, goes on where it was when it is started again.
"""

import secrets
import time
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cocoloss.benchmark.database import StoreError
from cocoloss.benchmark.environment import environment
from cocoloss.benchmark.experiments import experiment_of
from cocoloss.benchmark.json_text import storable
from cocoloss.benchmark.keys import FAILED, OK, TIMEOUT, Result, Task, Unit
from cocoloss.benchmark.pool import Pool, Running
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.worker import Finished, one_line
from cocoloss.exceptions import CoCoError

TICK = 0.25  # seconds to wait for an answer before looking at the clock
SIGN_EVERY = 5.0  # seconds between two signs of life in the store


class Listener(Protocol):
    """What is told how a run goes."""

    def begin(self, units: Sequence[Unit], done: dict[str, int]) -> None:
        """Hear of all units, and how many tasks of each are known to be done, by key."""

    def task_ended(self, unit: Unit, task: Task, finished: Finished) -> None:
        """Hear that a task has run."""

    def task_known(self, unit: Unit, task: Task) -> None:
        """Hear that a task was found in the store."""

    def unit_ended(self, unit: Unit, status: str, error: str) -> None:
        """Hear that a unit has come to its end."""

    def tick(self, running: list[Running], n_workers: int) -> None:
        """Hear that some time has gone by."""

    def state(self) -> dict[str, Any]:
        """Return what others may want to know of it: done, total, seconds left."""


@dataclass
class Summary:
    """What a run did.

    Attributes
    ----------
    ran : dict of str to int
        Tasks that ran, by how they ended: ok, failed, timeout.
    known : int
        Tasks found in the store, those of finished units not counted.
    units : dict of str to int
        Units by how they stand: ok, failed, open.
    seconds : float
        From begin to end.
    left_out : dict of str to str
        Tables that cannot be used, and why.
    """

    ran: dict[str, int] = field(default_factory=lambda: {OK: 0, FAILED: 0, TIMEOUT: 0})
    known: int = 0
    units: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    left_out: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Active:
    """A unit that has begun."""

    unit: Unit
    steps: Generator[list[Task], list[Result], None]
    tasks: list[Task] = field(default_factory=list)  # of the present step
    answers: dict[str, Result] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)  # of all steps so far
    failed: str = ""  # the first failure


class Tables(Protocol):
    """Where the runner gets tables from."""

    def load(self, dataset: str) -> Any:
        """Return a table by name."""


class Runner:
    """Runs a plan to its end.

    Parameters
    ----------
    spec : Spec
    units : list of Unit
        What to do; in this order.
    tables : Tables
    store : Store
    listener : Listener
    retry_failed : bool
        Do again what failed before.
    left_out : dict of str to str, optional
        Tables that cannot be used, and why: for the store to know.
    """

    def __init__(
        self,
        spec: Spec,
        units: Sequence[Unit],
        tables: Tables,
        store: Store,
        listener: Listener,
        *,
        retry_failed: bool = False,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self.spec, self.store, self.listener = spec, store, listener
        self.tables, self.retry_failed = tables, retry_failed
        self.planned = list(units)
        self.run_id = secrets.token_hex(6)
        self.summary = Summary(left_out=left_out or {})
        self._experiment = experiment_of(spec)
        self._hash = spec.hash
        self._active: list[_Active] = []
        self._ready: deque[tuple[_Active, Task]] = deque()
        self._flying: dict[str, tuple[_Active, Task]] = {}
        self._shared: set[str] = set()  # fingerprints of tables that the pool has
        self._signed = 0.0

    def run(self, pool: Pool) -> Summary:
        """Have a pool do everything that is not done yet.

        Raises
        ------
        CoCoError
            If the store or the cluster is lost. What was finished is kept.
        KeyboardInterrupt
            Likewise.
        """
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
        self.listener.begin(self.planned, done)
        waiting = deque(unit for unit in self.planned if unit.key not in done)
        self._uses = _count_datasets(waiting)
        while waiting or self._active:
            self._fill(waiting)
            for key, finished in self.pool.wait(TICK) if self._flying else []:
                self._take(key, finished)
            self._sign()
        states = self.store.unit_states(self._hash)
        for unit in self.planned:
            status = states[unit.key]
            self.summary.units[status] = self.summary.units.get(status, 0) + 1

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
            except CoCoError as error:
                active.failed = active.failed or storable(str(error))
                return self._end(active)
            except Exception as error:  # noqa: BLE001 - one experiment's slip stops no other
                active.failed = active.failed or one_line(error)
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
                self.listener.task_known(active.unit, task)
        return found

    def _take(self, key: str, finished: Finished) -> None:
        """Keep what a task found, and go on with its unit if it was the last one."""
        active = self._keep(key, finished)
        if all(task.key in active.answers for task in active.tasks):
            self._advance(active, [active.answers[task.key] for task in active.tasks])

    def _keep(self, key: str, finished: Finished) -> _Active:
        active, task = self._flying.pop(key)
        result = self.store.record(active.unit, task, self._hash, finished)
        self.summary.ran[finished.result.status] += 1
        self._note_failure(active, result)
        self.listener.task_ended(active.unit, task, finished)
        active.answers[key] = result
        return active

    def _note_failure(self, active: _Active, result: Result) -> None:
        if not result.ok:
            active.failed = active.failed or result.error

    def _end(self, active: _Active) -> None:
        unit, status = active.unit, FAILED if active.failed else OK
        self._active.remove(active)
        self.store.end_unit(unit, self._hash, active.failed, active.keys)
        self.listener.unit_ended(unit, status, active.failed)
        self._uses[unit.info.fingerprint] -= 1
        if not self._uses[unit.info.fingerprint]:
            self.pool.forget(unit.info.fingerprint)
            self._shared.discard(unit.info.fingerprint)

    def _sign(self) -> None:
        running = self.pool.running()
        self.listener.tick(running, self.pool.n_workers)
        if time.monotonic() - self._signed > SIGN_EVERY:
            self._signed = time.monotonic()
            busy = [[r.key, r.worker, round(r.seconds, 1)] for r in running]
            progress = {**self._state(), "running": busy, "workers": self.pool.n_workers}
            self.store.sign_of_life(self.run_id, progress)

    def _state(self) -> dict[str, Any]:
        return {**self.listener.state(), "left_out": dict(self.summary.left_out)}


def _count_datasets(units: deque[Unit]) -> dict[str, int]:
    """Count the units that use each table."""
    uses: dict[str, int] = {}
    for unit in units:
        uses[unit.info.fingerprint] = uses.get(unit.info.fingerprint, 0) + 1
    return uses
