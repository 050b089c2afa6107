"""Small benchmarks for the tests of the runner."""

import threading
import time

import pytest
from fake_tables import FakeTables

from cocoloss.benchmark.export import merge_into
from cocoloss.benchmark.plan import make_plan
from cocoloss.benchmark.runner import Progress, Runner
from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.workers import HerePool


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
    return Runner(plan, tables, store, Progress(), **options).run(pool or HerePool(spec))


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


def merge(store, source):
    """Take another store, or a file of tasks, into a store that is open."""
    url = store.database.url
    where = url.database if store.database.is_file else url.render_as_string(hide_password=False)
    return merge_into(where, [source])[0]


def at_once(*works):
    """Call each in a thread of its own, and wait for all."""
    threads = [threading.Thread(target=work) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def wait_for_rows(driver, path, rows):
    """Wait until a driver in a process of its own has kept so many results."""
    while not path.exists():
        assert driver.poll() is None
        time.sleep(0.02)
    with Store(path) as store:
        while len(list(store.rows(columns=["key"]))) < rows:
            assert driver.poll() is None
            time.sleep(0.02)


def numbers(store, spec):
    """Return all that a run found, without when, where and how long."""
    timeless = ("key", "status", "error", "measures", "rows", "params", "extra", "current")
    return sorted((repr(row) for row in store.rows(spec_hash=spec.hash, columns=timeless)), key=str)
