"""Where tasks run: in this process, on processes of this machine, or on a Dask cluster anywhere.

The driver sends each table to the scheduler once, as bytes. The first task that asks for it has a
worker unpack it, and Dask copies it from worker to worker, once each, when others ask; a worker
that goes with the only copy costs another unpacking. No shared disk is needed.
"""

import asyncio
import ctypes
import logging
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cocoloss.benchmark.spec import Spec, readable_time
from cocoloss.benchmark.tasks import (
    FAILED,
    SOURCE,
    TIMEOUT,
    Environment,
    Finished,
    Result,
    Task,
    environment,
    experiment_of,
    load_experiment,
)
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import json_value, storable
from cocoloss.threads import use_threads

EVERY = 0.05  # seconds between two looks
IMPORT_EVERY = 0.005  # while the task imports something
Answer = TypeVar("Answer")


class LimitError(BaseException):
    """A limit was reached. No ``Exception``, so that no model catches it on the way."""


class TooLongError(LimitError):
    """The time is over."""


class TooMuchMemoryError(LimitError):
    """The memory is used up."""


class Watch:
    """Watches one call in the thread that makes it.

    Its limits are seconds, and bytes above where it begins; 0 is none.
    """

    def __init__(self, seconds: float = 0, memory: int = 0) -> None:
        self.seconds, self.memory = seconds, memory
        self.peak_memory = 0
        self._over = threading.Event()
        self._turn = threading.Lock()
        self._fired = False

    def call(self, work: Callable[[], Answer]) -> Answer:
        """Return what the call returns, or raise TooLongError or TooMuchMemoryError."""
        self._thread = threading.get_ident()
        self._base = memory_in_use()
        self._ends = time.monotonic() + self.seconds if self.seconds else float("inf")
        watcher = threading.Thread(target=self._look, daemon=True, name="cocoloss-watch")
        watcher.start()
        try:
            try:
                return work()
            finally:
                self._stop(watcher)
        except TooLongError:
            raise TooLongError(f"took longer than {readable_time(self.seconds)}") from None
        except TooMuchMemoryError:
            raise TooMuchMemoryError(
                f"took {self.peak_memory / 1e6:,.0f} MB of memory; the limit is "
                f"{self.memory / 1e6:,.0f} MB"
            ) from None

    def _stop(self, watcher: threading.Thread) -> None:
        with self._turn:
            self._over.set()  # from here on nothing is raised
        watcher.join()
        self.peak_memory = max(self.peak_memory, memory_in_use() - self._base)
        if self._fired:  # an error that is still on its way arrives here, and not later
            for _ in range(10):
                time.sleep(0.001)

    def _look(self) -> None:
        pause = min(EVERY, max(0.0, self._ends - time.monotonic()))
        while not self._over.wait(pause):
            grown = memory_in_use() - self._base
            self.peak_memory = max(self.peak_memory, grown)
            pause = min(EVERY, max(0.0, self._ends - time.monotonic()))
            if is_importing(self._thread):
                pause = IMPORT_EVERY
                continue
            if time.monotonic() >= self._ends:
                return self._fire(TooLongError)
            if self.memory and grown > self.memory:
                return self._fire(TooMuchMemoryError)
        return None

    def _fire(self, error: type[LimitError]) -> None:
        with self._turn:
            if not self._over.is_set():
                self._fired = True
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(self._thread), ctypes.py_object(error)
                )


def is_importing(thread: int) -> bool:
    """Say whether a thread is within an import, at whatever depth."""
    frame = sys._current_frames().get(thread)  # noqa: SLF001 - there is no other way to look
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def memory_in_use() -> int:
    """Return the resident memory of this process in bytes."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with dask

    resident: int = psutil.Process().memory_info().rss
    return resident


LONGEST_ERROR = 500  # letters of the one line
_IMPORTING = threading.RLock()


def dask_setup(_worker: Any) -> None:
    """Ignore Ctrl-C; Dask calls this in each worker of ours, and the driver ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_task(task: Task, table: Any, spec: Spec) -> Finished:
    """Run one task on a table that others use too; a failure is an answer like any other."""
    warm_up(spec)
    use_threads(spec.limits.threads)  # one, usually: tasks run side by side, not inside
    params = json_value(task.params)
    task = replace(task, params=deepcopy(params))  # a model may do with them what it likes
    started = time.perf_counter()
    trace = ""
    limits = spec.limits
    watch = Watch(limits.seconds_per_task, limits.memory_per_task)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # thousands of fits say the same thing
            result = watch.call(lambda: _checked(experiment_of(spec).run(task, table, spec)))
    except TooLongError as error:
        result = Result(params=params, status=TIMEOUT, error=one_line(error))
    except KeyboardInterrupt:  # the user's
        raise
    except BaseException as error:  # noqa: BLE001 - a model may raise anything
        trace = readable_trace(error)
        result = Result(params=params, status=FAILED, error=one_line(error))
    seconds = time.perf_counter() - started
    return Finished(result, seconds, watch.peak_memory, environment(), trace)


def readable_trace(error: BaseException) -> str:
    """Return a traceback whose files begin with their package: rows are shared, folders are not."""
    trace = "".join(traceback.format_exception(error))
    for place in sorted(filter(None, sys.path), key=len, reverse=True):
        trace = trace.replace(f'File "{place}{os.sep}', 'File "')
    return str(storable(trace))


def warm_up(spec: Spec) -> None:
    """Import what the tasks of a spec need, once in a process, before the clock of any runs.

    What cannot be imported is no failure here: the task that needs it will say so. Threads take
    turns: none may see a module that another has half imported.
    """
    with _IMPORTING:
        own = tuple(sorted(spec.models.own.items()))
        _import_once(spec.kind, spec.experiments, own, spec.limits.threads)


@cache
def _import_once(
    kind: str, experiments: tuple[Path, ...], own: tuple[tuple[str, str], ...], threads: int
) -> None:
    use_threads(threads)  # libraries look at it when they are loaded
    environment()  # the source as it is loaded, not as it is when a task ends
    with suppress(Exception, SystemExit):
        load_experiment(kind, experiments)
        models = sys.modules.get("cocoloss.benchmark.models")  # which all our experiments use
        if models is not None:
            models.import_what_models_need(dict(own))


def one_line(error: BaseException) -> str:
    """Return the kind and the message of an error, as a database takes it."""
    try:
        message = str(error)
    except Exception as slip:  # noqa: BLE001 - an error of a model's own may have any slip
        message = f"(its message fails with {type(slip).__name__})"
    text: str = storable(" ".join(f"{type(error).__name__}: {message}".split()))
    return text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…"


def died(task: Task, error: str, trace: str = "") -> Finished:
    """Return the end of a task that took its worker with it, or was lost on the way."""
    result = Result(params=json_value(task.params), status=FAILED, error=error)
    return Finished(result, 0.0, 0, environment(), trace)


def _checked(result: Any) -> Result:
    """Return a result that a store can keep."""
    if not isinstance(result, Result):
        raise TypeError(f"run must return a Result, not {type(result).__name__}")
    return replace(
        result,
        measures=storable(json_value(result.measures)),
        rows=storable(json_value(result.rows)),
        params=json_value(result.params),  # a study must find what it asked for; see read_findings
        extra=storable(json_value(result.extra)),
    )


class Running(NamedTuple):
    """A task that a worker is busy with."""

    key: str
    worker: str
    seconds: float


class HerePool:
    """Runs tasks one after the other in this process: for debugging and for tiny benchmarks.

    ``n_workers`` is how many tasks run at once.
    """

    n_workers = 1
    name = "this process"

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self._waiting: deque[tuple[Task, str]] = deque()
        self._tables: dict[str, Any] = {}

    def share(self, fingerprint: str, table: Any) -> None:
        """Take a table that tasks will ask for."""
        self._tables[fingerprint] = table

    def forget(self, fingerprint: str) -> None:
        """Drop a table that no task will ask for."""
        self._tables.pop(fingerprint, None)

    def submit(self, task: Task, fingerprint: str) -> None:
        """Take a task on a table that was shared before."""
        self._waiting.append((task, fingerprint))

    def wait(self, seconds: float) -> list[tuple[str, Finished]]:
        """Return what has ended, by key: the next task, if there is any time for it."""
        if not seconds:
            return []
        task, fingerprint = self._waiting.popleft()
        return [(task.key, run_task(task, self._tables[fingerprint], self.spec))]

    def running(self) -> list[Running]:
        """Return the task that is next: nothing else happens while one runs."""
        return [Running(task.key, self.name, 0.0) for task, _ in list(self._waiting)[:1]]

    def close(self) -> None:
        """Drop everything."""
        self._waiting.clear()
        self._tables.clear()


CONNECT_SECONDS = 15
RETRY_SECONDS = 0.2
CLOSE_SECONDS = 5
SETTINGS = {
    # A worker of ours that dies again and again is started again and again.
    "distributed.deploy.lost-worker-timeout": "1000 days",
    # Tables are large, and sent on purpose.
    "distributed.admin.large-graph-warning-threshold": "1 TB",
}


def load_dask() -> tuple[Any, Any]:
    """Import Dask and its distributed half, or say how to get them."""
    try:
        import dask  # noqa: PLC0415 - optional, and heavy
        import distributed  # noqa: PLC0415
    except ImportError as error:
        raise CoCoError(
            "workers need dask, which is not installed; pip install 'cocoloss[benchmark]'"
        ) from error
    return dask, distributed


def start_cluster(workers: int) -> Any:
    """Start workers on this machine, one thread each."""
    dask, distributed = load_dask()
    spawns = dask.config.get("distributed.worker.multiprocessing-method") == "spawn"
    if spawns and _lacks_main_guard():
        raise CoCoError(
            "cannot start workers on this machine: each of them would import your script, which "
            'then starts workers itself; call run_benchmark under `if __name__ == "__main__":`, '
            "or with workers=0"
        )
    try:
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",  # any port: several benchmarks may run at once
            silence_logs=logging.CRITICAL,
            preload=[run_task.__module__],
        )
    except (OSError, RuntimeError) as error:
        raise CoCoError(f"cannot start workers on this machine: {one_line(error)}") from error


def _lacks_main_guard() -> bool:
    """Say whether this process is a script whose main part runs again in each new process."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if getattr(main, "__spec__", None) is not None:  # python -m, which is not imported again
        return False
    try:
        return file is not None and "__main__" not in Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return False


def connect(scheduler: Any) -> Any:
    """Return a client of a cluster, or of the address of one."""
    dask, distributed = load_dask()
    loader = dask.config.get("distributed.client.security-loader", None)  # keys for the client only
    if isinstance(scheduler, str) and not loader:
        _knock(scheduler)
    try:
        return distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise _no_answer(scheduler) from error


def _knock(address: str) -> None:
    """Check that a scheduler answers: a client that finds none logs errors when it is dropped."""
    _, distributed = load_dask()

    async def knock() -> None:
        security = distributed.Security().get_connection_args("client")
        comm = await distributed.comm.connect(address, timeout=CONNECT_SECONDS, **security)
        comm.abort()

    # In a thread of its own, since a notebook has a loop that runs in this one.
    with ThreadPoolExecutor(1) as thread:
        try:
            thread.submit(asyncio.run, knock()).result()
        except ValueError as error:
            raise CoCoError(
                f"{address!r} is no address of a Dask scheduler ({error}); it is written like "
                f"tcp://10.0.0.1:8786"
            ) from error
        except Exception as error:  # what answers may be anything
            raise _no_answer(address) from error


def _no_answer(scheduler: Any) -> CoCoError:
    return CoCoError(
        f"no Dask scheduler answers at {scheduler}; start one with `dask scheduler` and workers "
        f"with `dask worker {scheduler} --nthreads 1`"
    )


def check_workers(client: Any, name: str) -> None:
    """Refuse workers with another cocoloss than is here, or none, or with several threads."""
    remedy = "install the same version of 'cocoloss[benchmark]' there"
    try:
        found = _environments(client)
    except Exception as error:
        raise CoCoError(
            f"the workers of {name} cannot import cocoloss as it is here ({one_line(error)}); "
            f"{remedy}"
        ) from error
    ours = _version(environment())
    for worker, theirs in found.items():
        version = _version(theirs)
        if version != ours:
            raise CoCoError(f"worker {worker} has cocoloss {version}, here is {ours}; {remedy}")
    for worker, threads in client.nthreads().items():
        if threads > 1:
            raise CoCoError(
                f"worker {worker} has {threads} threads, but what a task does to its process "
                f"(imports, limits, threads of its own) must not reach another; start workers with "
                f"`dask worker {name} --nthreads 1 --nworkers auto`"
            )


def _environments(client: Any) -> dict[str, Environment]:
    """Return what each worker has; one that dies as it is asked, or comes, is asked again."""
    latest = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            found: dict[str, Environment] = client.run(environment)
        except OSError:  # a lost connection
            if time.monotonic() > latest:
                raise
            time.sleep(RETRY_SECONDS)
        else:
            return found


def _version(place: Environment) -> str:
    """Return the version of cocoloss, and its source, which differs between versions too."""
    source = place.versions.get(SOURCE, "unknown")
    return f"{place.versions['cocoloss']} (source {source})"


@contextmanager
def changed_dask() -> Iterator[None]:
    """Set what is set in Dask for the time of a benchmark, and keep it from logging.

    A worker that dies is handled here, and reported as the end of its task.
    """
    dask, _ = load_dask()
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        with dask.config.set(SETTINGS):
            yield
    finally:
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


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
    started: float | None = None  # as the worker reported
    starts: int = 0
    sends: int = 0


class _Lost(NamedTuple):
    """A task that came to no answer."""

    future: Any
    error: BaseException


def _close_in_time(cluster_or_client: Any) -> None:
    """Close; where a machine is too busy for it, why the run ends is still what the user reads."""
    with suppress(TimeoutError):
        cluster_or_client.close(timeout=CLOSE_SECONDS)


class DaskPool:
    """Runs tasks on a Dask cluster: so many processes of this machine, or the one of an address.

    ``run_id`` is part of the names of what is sent, so that two drivers can use one cluster.
    ``files`` are of the user's own models and experiment, which workers elsewhere lack.
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
                self._held.callback(_close_in_time, self._cluster)
            self._client = connect(scheduler or self._cluster)
            self._held.callback(_close_in_time, self._client)
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
        """Return the tasks that workers have reported as begun."""
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
        """Return how a task ended; None if it is sent again, or is not awaited any more."""
        sent = self._sent.get(key)
        if sent is None or (isinstance(value, _Lost) and value.future is not sent.future):
            return None
        if isinstance(value, _Lost):
            if isinstance(value.error, self._gone):
                self._check_scheduler()
            by_no_fault = isinstance(value.error, (self._killed, *self._gone))
            if by_no_fault and sent.starts < STARTS and sent.sends < SENDS:
                packed, table = self._tables[sent.fingerprint]
                if sent.table is table and self._has_lost_its_table(sent, value.error):
                    again = self._send_table(sent.fingerprint, packed)  # nobody has done so yet
                    self._tables[sent.fingerprint] = (packed, again)
                self._send(sent)
                return None
            value = self._how_it_was_lost(sent, value.error)
        del self._sent[key]
        finished: Finished = replace(value, attempt=max(sent.starts, 1))
        return finished

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

    def _end_overdue(self) -> None:
        """End the process of a task that has not ended by itself when its time was over."""
        limit = self.spec.limits.seconds_per_task
        now = time.monotonic()
        for key, sent in list(self._sent.items()) if limit else ():
            if sent.started is None or now - sent.started < limit + GRACE:
                continue
            if sent.future.done():  # but not fetched: its worker is busy with another, and will end
                continue
            if sent.worker not in self._client.ncores():  # it has gone, and another will begin
                sent.started = None
                continue
            future, sent.future = sent.future, None  # later results are ignored
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


Pool = HerePool | DaskPool


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
