"""Small benchmarks for the tests of the runner."""

import os
import threading
from dataclasses import dataclass

import pytest

from cocoloss.benchmark.plan import make_plan
from cocoloss.benchmark.runner import Progress, Runner
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.tasks import TableInfo
from cocoloss.benchmark.workers import HerePool


@dataclass(frozen=True)
class FakeTable:
    fingerprint: str


class FakeTables:
    def __init__(self, version=""):
        self.version = version
        self.loads = []

    def load(self, name):
        self.loads.append(name)
        return FakeTable(f"content of {name}{self.version}")

    def infos(self, names):
        return [TableInfo(n, 100, 5, 3, f"content of {n}{self.version}") for n in names]


class CountedTable(FakeTable):
    """Notes in a file of the process wherever it is unpacked."""

    def __init__(self, fingerprint, folder):
        super().__init__(fingerprint)
        object.__setattr__(self, "folder", folder)

    def __reduce__(self):
        return unpack, (self.fingerprint, self.folder)


def unpack(fingerprint, folder):
    with (folder / f"unpacked-{os.getpid()}").open("a") as file:
        file.write(f"{fingerprint}\n")
    return CountedTable(fingerprint, folder)


class DeadlyTable(FakeTable):
    """Takes the first workers down that unpack it, as a task in their other thread might."""

    def __init__(self, fingerprint, folder, deaths):
        super().__init__(fingerprint)
        object.__setattr__(self, "folder", folder)
        object.__setattr__(self, "deaths", deaths)

    def __reduce__(self):
        return unpack_or_die, (self.fingerprint, self.folder, self.deaths)


def unpack_or_die(fingerprint, folder, deaths):
    if len(list(folder.glob("died-*"))) < deaths:
        (folder / f"died-{os.getpid()}").touch()
        os._exit(9)
    return FakeTable(fingerprint)


class CountedTables(FakeTables):
    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def load(self, name):
        return CountedTable(super().load(name).fingerprint, self.folder)


def fake_spec(*models, folder="", trials=3, outer=3, sleep=0, limits=None, **sections):
    content = {
        "name": "fake",
        "kind": "fake",
        "data": {"source": "sklearn"},
        "models": {"names": list(models)},
        "folds": {"outer": outer},
        "options": {"trials": trials, "sleep": sleep, "folder": str(folder)},
        "limits": limits or {},
    }
    return Spec.from_dict(content | sections)


def run_fake(spec, store, *, datasets=("a", "b"), tables=None, pool=None, **options):
    """Run a fake benchmark to its end and return its summary."""
    tables = tables or FakeTables()
    plan = make_plan(spec, tables.infos(datasets))
    runner = Runner(spec, plan.units, tables, store, Progress(), **options)
    return runner.run(pool or HerePool(spec))


class Interrupted:
    """A pool whose user loses patience."""

    def __init__(self, pool, tasks):
        self.pool, self.left = pool, tasks
        self.share, self.forget, self.submit = pool.share, pool.forget, pool.submit
        self.running, self.n_workers, self.name = pool.running, 1, "impatient"

    def wait(self, seconds):
        if seconds and not self.left:
            raise KeyboardInterrupt
        self.left -= bool(seconds)
        return self.pool.wait(seconds)


def run_until(spec, store, *, tasks, **options):
    """Run a fake benchmark until so many tasks have ended."""
    with pytest.raises(KeyboardInterrupt):
        run_fake(spec, store, pool=Interrupted(HerePool(spec), tasks), **options)


def at_once(*works):
    """Call each in a thread of its own, and wait for all."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def numbers(store, spec):
    """Return all that a run found, without when, where and how long."""
    timeless = ("key", "status", "error", "measures", "rows", "params", "extra", "current")
    return sorted((repr(row) for row in store.rows(spec_hash=spec.hash, columns=timeless)), key=str)
