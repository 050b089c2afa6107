"""A benchmark from spec to summary: tables, plan, store, workers, run. What ``bench run`` does."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cocoloss.benchmark.cluster import DaskPool
from cocoloss.benchmark.experiments import experiment_files
from cocoloss.benchmark.keys import FAILED, OK
from cocoloss.benchmark.plan import Plan, Remainder, make_plan, remainder
from cocoloss.benchmark.pool import HerePool, Pool
from cocoloss.benchmark.progress import Progress
from cocoloss.benchmark.runner import Runner, Summary
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tables import Tables
from cocoloss.exceptions import CoCoError


@dataclass(frozen=True)
class Session:
    """A benchmark that can begin.

    Attributes
    ----------
    plan : Plan
    left : Remainder
    store : Store
    tables : Tables
    """

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
    ) -> Summary:
        """Do what is left.

        Parameters
        ----------
        workers : int, optional
            Processes of this machine; one per core if left out, 0 is this process.
        scheduler : str, optional
            Address of a Dask scheduler to use instead.
        retry_failed : bool, default=False
            Do again what failed before.
        progress : Progress, optional
            That shows how it goes.

        Raises
        ------
        CoCoError
            If the store or the cluster is lost. What was finished is kept.
        """
        runner = Runner(
            self.plan.spec,
            self.plan.units,
            self.tables,
            self.store,
            progress or Progress(),
            retry_failed=retry_failed,
            left_out=self.plan.left_out,
        )
        if not self._anything_open(retry_failed=retry_failed):
            workers, scheduler = 0, None  # nobody is called for nothing
        pool = self._pool(workers, scheduler, runner.run_id)
        try:
            return runner.run(pool)
        finally:
            pool.close()

    def _anything_open(self, *, retry_failed: bool) -> bool:
        states = self.store.unit_states(self.plan.spec.hash)
        settled = {OK} if retry_failed else {OK, FAILED}
        return any(states.get(unit.key) not in settled for unit in self.plan.units)

    def _pool(self, workers: int | None, scheduler: str | None, run_id: str) -> Pool:
        spec = self.plan.spec
        workers = default_workers() if workers is None else workers
        if scheduler is None and workers == 0:
            return HerePool(spec)
        files = [*own_files(spec), *experiment_files(spec)] if scheduler else []
        return DaskPool(spec, run_id, workers=workers, scheduler=scheduler, files=files)


def prepare(
    spec: Spec, store: Store, *, on_table: Callable[[str], object] | None = None
) -> Session:
    """Look at the tables and at the store, and say what there is to do.

    Parameters
    ----------
    spec : Spec
    store : Store
    on_table : callable, optional
        Called with the name of each table before it is read.

    Raises
    ------
    CoCoError
        If a table that the spec names cannot be read, or none can, or the spec asks for what there
        is not.
    """
    plan, tables = look(spec, on_table=on_table)
    return Session(plan, remainder(plan, store), store, tables)


def look(spec: Spec, *, on_table: Callable[[str], object] | None = None) -> tuple[Plan, Tables]:
    """Look at the tables and plan; nothing is made or written.

    Raises
    ------
    CoCoError
        As :func:`prepare`.
    """
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
        Of :meth:`Session.run`.

    Returns
    -------
    Summary
    """
    with store_if_used(store) as opened:
        return prepare(spec, opened).run(**options)


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
    """Return the files of the user's own models that lie in the current folder.

    Workers elsewhere have installed packages, but not these.
    """
    found = []
    for place in spec.models.own.values():
        module = place.partition(":")[0]
        file = Path(f"{module}.py").resolve()
        if "." not in module and file.is_file():
            found.append(str(file))
    return sorted(set(found))


def find_own_models_here() -> None:
    """Let ``--model name=module:factory`` find a module of the current folder, here and there."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
