"""The way to a Dask cluster: started here or found elsewhere, quiet, and fit for the work."""

import asyncio
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from cocoloss.benchmark.environment import SOURCE, Environment, environment
from cocoloss.benchmark.worker import one_line, run_task
from cocoloss.exceptions import CoCoError

CONNECT_SECONDS = 15
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
    """Start workers on this machine, one thread each.

    Raises
    ------
    CoCoError
        If they cannot be started.
    """
    _, distributed = load_dask()
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


def connect(scheduler: Any) -> Any:
    """Return a client of a cluster, or of the address of one.

    Raises
    ------
    CoCoError
        If no scheduler answers.
    """
    dask, distributed = load_dask()
    loader = dask.config.get("distributed.client.security-loader", None)  # keys for the client only
    if isinstance(scheduler, str) and not loader:
        _knock(scheduler)
    try:
        return distributed.Client(scheduler, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise _no_answer(scheduler) from error


def _knock(address: str) -> None:
    """See whether anybody answers: a client that finds nobody leaves noise when it is dropped."""
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
    """Refuse a cluster whose workers could run nothing, or something else.

    Raises
    ------
    CoCoError
        If a worker has no cocoloss, or another version or source than there is here, or several
        threads.
    """
    remedy = "install the same version of 'cocoloss[benchmark]' there"
    try:
        found = client.run(environment)
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


def _version(place: Environment) -> str:
    """Return the version of cocoloss, and its source, which differs between versions too."""
    source = place.versions.get(SOURCE, "unknown")
    return f"{place.versions['cocoloss']} (source {source})"


@contextmanager
def changed_dask() -> Iterator[None]:
    """Set what is set in Dask for the time of a benchmark, and keep it from logging.

    A worker that dies is our business; what matters, we say.
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
