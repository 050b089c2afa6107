"""Tasks on a Dask cluster: processes of this machine, or workers anywhere.

The driver sends each table to the scheduler once, as bytes. The first task that asks for it has a
worker unpack it, and Dask copies it from worker to worker, once each, when others ask; a worker
that goes with the only copy costs another unpacking. No shared disk is needed.
"""

import asyncio
import os
import pickle
import queue
import signal
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from cocoloss.benchmark.amounts import readable_time
from cocoloss.benchmark.dask_client import (
    changed_dask,
    check_workers,
    connect,
    load_dask,
    start_cluster,
)
from cocoloss.benchmark.environment import environment
from cocoloss.benchmark.keys import TIMEOUT, Result, Task
from cocoloss.benchmark.pool import Running
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.worker import Finished, died, one_line, readable_trace, run_task, warm_up
from cocoloss.exceptions import CoCoError

STARTS = 4  # workers that may go while a task runs before the task is held to be the cause
SENDS = 20  # times that a task is sent at most, whatever the cause
GRACE = 5.0  # seconds after the time limit in which a task may still end by itself
LOOK_EVERY = 2.0  # seconds between two looks at who works
SAID_AFTER = 0.01  # seconds in which a worker gets a word out
ONE_AT_A_TIME = threading.Lock()  # in a process; a worker that comes later may have threads
MISSED_AFTER = 20.0  # seconds in which a worker of ours may come back by itself


@dataclass
class _Sent:
    """A task on its way."""

    task: Task
    fingerprint: str
    future: Any = None
    table: Any = None  # the future that it was sent with
    worker: str = ""
    started: float | None = None  # when the worker said so
    starts: int = 0
    sends: int = 0


class _Lost(NamedTuple):
    """A task that came to no answer."""

    future: Any
    error: BaseException


class DaskPool:
    """Runs tasks on a Dask cluster.

    Parameters
    ----------
    spec : Spec
    run_id : str
        Part of the names of what is sent, so that two drivers can use one cluster.
    workers : int
        How many processes to start.
    scheduler : str, optional
        Address of a cluster to use instead.
    files : list of str
        Python files of the user's own models and experiment, which workers elsewhere lack.

    Raises
    ------
    CoCoError
        If no scheduler answers, or its workers cannot import cocoloss.
    """

    def __init__(
        self,
        spec: Spec,
        run_id: str,
        *,
        workers: int = 1,
        scheduler: str | None = None,
        files: list[str] | None = None,
    ) -> None:
        self.spec, self.run_id = spec, run_id
        self.name = scheduler or "this machine"
        _, distributed = load_dask()
        self._gone = (asyncio.CancelledError, distributed.client.FutureCancelledError)
        self._killed = distributed.scheduler.KilledWorker
        self._ended: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._sent: dict[str, _Sent] = {}
        self._tables: dict[str, tuple[Any, Any]] = {}  # fingerprint -> (bytes, future)
        self._topic = f"cocoloss-{run_id}"
        self._cluster: Any = None  # only if it is ours
        self.n_workers = workers
        self._looked = -LOOK_EVERY
        self._held = ExitStack()  # what is let go in the end, the last first
        try:
            self._held.enter_context(changed_dask())
            if scheduler is None:
                self._cluster = start_cluster(workers)
                self._held.callback(self._cluster.close, timeout=5)
            self._client = connect(scheduler or self._cluster)
            self._held.callback(self._client.close, timeout=5)
            for file in files or []:
                self._client.upload_file(file)
            if scheduler is not None:
                check_workers(self._client, scheduler)
            self._client.subscribe_topic(self._topic, self._on_start)
        except BaseException:
            self._held.close()
            raise
        self._complete = time.monotonic()  # when all workers of ours were there

    def share(self, fingerprint: str, table: Any) -> None:
        """Send a table to the scheduler, which hands it to the workers that need it."""
        if fingerprint not in self._tables:
            packed = pickle.dumps(table, protocol=pickle.HIGHEST_PROTOCOL)
            self._tables[fingerprint] = (packed, self._send_table(fingerprint, packed))

    def forget(self, fingerprint: str) -> None:
        """Let the workers drop a table."""
        self._tables.pop(fingerprint, None)

    def submit(self, task: Task, fingerprint: str) -> None:
        """Send a task."""
        self._sent[task.key] = _Sent(task, fingerprint)
        self._send(self._sent[task.key])

    def wait(self, seconds: float) -> list[tuple[str, Finished]]:
        """Return what has ended."""
        self._look_at_cluster()
        self._end_overdue()
        ended = []
        with suppress(queue.Empty):
            ended.append(self._ended.get(timeout=seconds))
            while True:
                ended.append(self._ended.get_nowait())
        return [(key, done) for key, value in ended if (done := self._judge(key, value))]

    def running(self) -> list[Running]:
        """Return what workers have said that they began."""
        now = time.monotonic()
        return [
            Running(key, sent.worker, now - sent.started)
            for key, sent in list(self._sent.items())
            if sent.started is not None
        ]

    def close(self) -> None:
        """Cancel what is on its way; end the workers if they are ours."""
        futures = [sent.future for sent in self._sent.values() if sent.future is not None]
        self._sent.clear()
        self._tables.clear()
        try:
            if futures and self._client.status == "running":
                self._client.cancel(futures, force=True)
        finally:
            self._held.close()

    def _send_table(self, fingerprint: str, packed: bytes) -> Any:
        # A name of its own each time, so that what the scheduler has forgotten can be sent again.
        key = f"table-{fingerprint}#{self.run_id}.{time.monotonic_ns()}"
        return self._client.submit(pickle.loads, packed, key=key, pure=False)

    def _send(self, sent: _Sent) -> None:
        sent.worker, sent.started = "", None
        sent.sends += 1
        sent.table = self._tables[sent.fingerprint][1]
        sent.future = self._client.submit(
            _run_and_say,
            sent.task,
            sent.table,
            self.spec,
            self._topic,
            key=f"{sent.task.key}#{self.run_id}.{sent.sends}",
            pure=False,
        )
        # Waiting for the answer and fetching it is left to the client's own thread.
        loop = self._client.loop.asyncio_loop
        asyncio.run_coroutine_threadsafe(self._fetch(sent.task.key, sent.future), loop)

    async def _fetch(self, key: str, future: Any) -> None:
        try:
            self._ended.put((key, await future))
        except BaseException as error:  # noqa: BLE001 - judged in the driver's own thread
            self._ended.put((key, _Lost(future, error)))

    def _on_start(self, event: tuple[float, Any]) -> None:
        key, worker = event[1]
        sent = self._sent.get(key)
        if sent is not None:
            sent.worker, sent.started = worker, time.monotonic()
            sent.starts += 1

    def _judge(self, key: str, value: Any) -> Finished | None:
        """Return how a task ended; None if it is sent again, or if nobody waits for it."""
        sent = self._sent.get(key)
        if sent is None or (isinstance(value, _Lost) and value.future is not sent.future):
            return None
        if isinstance(value, _Lost):
            if self._can_go_on(sent, value.error):
                self._send_again(sent, table_too=self._has_lost_its_table(sent, value.error))
                return None
            value = self._how_it_was_lost(sent, value.error)
        del self._sent[key]
        finished: Finished = replace(value, attempt=max(sent.starts, 1))
        return finished

    def _can_go_on(self, sent: _Sent, error: BaseException) -> bool:
        """Say whether a lost task is worth another worker."""
        if isinstance(error, self._gone):
            self._check_scheduler()
        by_no_fault = isinstance(error, (self._killed, *self._gone))
        return by_no_fault and sent.starts < STARTS and sent.sends < SENDS

    def _has_lost_its_table(self, sent: _Sent, error: BaseException) -> bool:
        """Say whether nobody has the table of a lost task any more.

        A neighbour may take workers down while the table waits to be unpacked on them. Dask then
        gives the table up, and whatever is sent with it ends with the table's own error.
        """
        own_death = getattr(error, "task", None) == sent.future.key  # a key, if workers died
        return not own_death or sent.table.status in ("error", "cancelled", "lost")

    def _how_it_was_lost(self, sent: _Sent, error: BaseException) -> Finished:
        if not isinstance(error, (self._killed, *self._gone)):
            return died(sent.task, one_line(error), readable_trace(error))
        if not sent.starts:  # no fault of the model's: nobody has called it
            line = (
                f"WorkerDied: workers died before it began, {sent.sends} times: for lack of memory "
                f"for its table, or as they import a model of your own"
            )
            return died(sent.task, line)
        workers = "worker" if sent.starts == 1 else "workers"
        line = f"WorkerDied: {sent.starts} {workers} died of it, perhaps of lack of memory"
        return died(sent.task, line)

    def _send_again(self, sent: _Sent, *, table_too: bool) -> None:
        """Send a task again, and its table if nobody has done so since it was lost."""
        packed, future = self._tables[sent.fingerprint]
        if table_too and sent.table is future:
            again = self._send_table(sent.fingerprint, packed)
            self._tables[sent.fingerprint] = (packed, again)
        self._send(sent)

    def _end_overdue(self) -> None:
        """End the process of a task that has not ended by itself when its time was over."""
        limit = self.spec.limits.seconds_per_task
        now = time.monotonic()
        for key, sent in list(self._sent.items()) if limit else ():
            if sent.started is None or now - sent.started < limit + GRACE:
                continue
            if sent.worker not in self._client.ncores():  # it has gone, and another will begin
                sent.started = None
                continue
            future, sent.future = sent.future, None  # what it says from now on is not heard
            self._client.cancel([future], force=True)
            # The driver waits for no answer: others have work to be sent, too.
            loop = self._client.loop.asyncio_loop
            asyncio.run_coroutine_threadsafe(self._end_worker(sent.worker), loop)
            line = f"TooLongError: took longer than {readable_time(limit)}; its worker was ended"
            result = Result(params=dict(sent.task.params), status=TIMEOUT, error=line)
            self._ended.put((key, Finished(result, now - sent.started, 0, environment())))

    async def _end_worker(self, worker: str) -> None:
        """Have a nanny end its worker, which may be unable to answer anybody."""
        with suppress(Exception):  # both may have gone by now
            await self._client.run(_end_process, workers=[worker], nanny=True, on_error="ignore")

    def _look_at_cluster(self) -> None:
        """Learn who works; bring back workers of ours that have not come back by themselves."""
        now = time.monotonic()
        if now - self._looked < LOOK_EVERY:
            return
        self._looked = now
        self._check_scheduler()
        present = sum(self._client.ncores().values())  # tasks that run at once
        if self._cluster is None:
            self.n_workers = present
        elif present >= self.n_workers:
            self._complete = now
        elif now - self._complete > MISSED_AFTER:
            self._complete = now
            self._cluster.scale(self.n_workers)

    def _check_scheduler(self) -> None:
        if self._client.status != "running":
            raise CoCoError(f"lost the scheduler at {self.name}; run the same command to go on")


def _end_process(dask_worker: Any) -> None:
    """End, as its nanny, a worker whose task does not listen; the nanny starts another."""
    if dask_worker.pid:
        os.kill(dask_worker.pid, signal.SIGKILL)


def _run_and_say(task: Task, table: Any, spec: Spec, topic: str) -> Finished:
    """Run a task on a worker, after telling the driver that it begins."""
    from distributed import get_worker  # noqa: PLC0415 - on workers only

    worker = get_worker()
    with ONE_AT_A_TIME:
        warm_up(spec)  # before the driver's clock runs, too
        worker.log_event(topic, [task.key, worker.address])
        time.sleep(SAID_AFTER)  # another thread sends it, and the task may let none have a turn
        return run_task(task, table, spec)
