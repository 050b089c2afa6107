"""One task on one worker: run it alone on one thread, watch it, and report whatever happens."""

import os
import signal
import sys
import threading
import time
import traceback
import warnings
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from cocoloss.benchmark.environment import Environment, environment
from cocoloss.benchmark.experiments import experiment_of, load_experiment
from cocoloss.benchmark.json_text import plain, storable
from cocoloss.benchmark.keys import FAILED, TIMEOUT, Result, Task
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.watch import TooLongError, Watch

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
LONGEST_ERROR = 500  # letters of the one line
_IMPORTING = threading.RLock()


@dataclass(frozen=True)
class Finished:
    """How a task ended.

    Attributes
    ----------
    result : Result
    seconds : float
        From start to end on the worker, imports before it not counted.
    peak_memory : int
        Bytes by which the worker's resident memory rose above where it stood when the task began,
        looked at twenty times a second.
    environment : Environment
    traceback : str
        Of a failure.
    attempt : int
        How often it was started.
    """

    result: Result
    seconds: float
    peak_memory: int
    environment: Environment
    traceback: str = ""
    attempt: int = 1


def dask_setup(_worker: Any) -> None:
    """Be deaf to Ctrl-C, as Dask calls this in each worker of ours: the driver ends them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def run_task(task: Task, table: Any, spec: Spec) -> Finished:
    """Run one task of an experiment; a failure is an answer like any other.

    Parameters
    ----------
    task : Task
    table : cocoloss.tables.Table
        Not to be changed: other tasks use it too.
    spec : Spec

    Returns
    -------
    Finished
    """
    warm_up(spec)
    use_one_thread()
    params = plain(task.params)
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
        _import_once(spec.kind, spec.experiments, tuple(sorted(spec.models.own.items())))


@cache
def _import_once(
    kind: str, experiments: tuple[Path, ...], own: tuple[tuple[str, str], ...]
) -> None:
    use_one_thread()  # libraries look at it when they are loaded
    environment()  # the source as it is loaded, not as it is when a task ends
    with suppress(Exception, SystemExit):
        load_experiment(kind, experiments)
        models = sys.modules.get("cocoloss.benchmark.models")  # which all our experiments use
        if models is not None:
            models.import_what_models_need(dict(own))


def one_line(error: BaseException) -> str:
    """Return the kind and the message of an error, as a database takes it."""
    try:
        said = str(error)
    except Exception as slip:  # noqa: BLE001 - an error of a model's own may have any slip
        said = f"(its message fails with {type(slip).__name__})"
    text: str = storable(" ".join(f"{type(error).__name__}: {said}".split()))
    return text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1] + "…"


def use_one_thread() -> None:
    """Keep linear algebra to one thread in this process: tasks run side by side, not inside."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 - on workers only

    for name in THREADS:  # for libraries that are loaded later
        os.environ[name] = "1"
    threadpool_limits(1)
    torch = sys.modules.get("torch")
    if torch is not None and torch.get_num_threads() != 1:
        torch.set_num_threads(1)


def died(task: Task, error: str, trace: str = "") -> Finished:
    """Return the end of a task that took its worker with it, or was lost on the way."""
    result = Result(params=plain(task.params), status=FAILED, error=error)
    return Finished(result, 0.0, 0, environment(), trace)


def _checked(result: Any) -> Result:
    """Return a result that a store can keep."""
    if not isinstance(result, Result):
        raise TypeError(f"run must return a Result, not {type(result).__name__}")
    return replace(
        result,
        measures=storable(plain(result.measures)),
        rows=storable(plain(result.rows)),
        params=plain(result.params),  # a study must find what it asked for; see read_findings
        extra=storable(plain(result.extra)),
    )
