"""A driver that is killed loses nothing, and none of its rows comes twice."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from bench_helpers import numbers, run_fake
from drive_fake import SPEC

from cocoloss.benchmark.plan import status_of
from cocoloss.benchmark.store import Store

pytestmark = pytest.mark.cluster
SCRIPT = Path(__file__).parent / "drive_fake.py"


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("whole") / "whole.sqlite") as store:
        run_fake(SPEC, store)
        return numbers(store, SPEC)


def start(*arguments):
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def check(where, undisturbed):
    with Store(where) as store:
        assert numbers(store, SPEC) == undisturbed
        keys = [row["key"] for row in store.rows(columns=["key"])]
        assert len(keys) == len(set(keys)) == 48
        assert set(store.unit_states(SPEC.hash).values()) == {"ok"}
        (status,) = status_of(store)
        assert status["state"] == "finished"


def test_killed_at_many_moments_it_ends_with_the_rows_of_an_undisturbed_run(where, undisturbed):
    kills, code = map(int, start("killed", where, 0).communicate()[0].split())
    assert code == 0
    assert kills >= 10
    check(where, undisturbed)


def test_killed_with_workers_it_ends_with_the_same_rows(tmp_path, undisturbed):
    where = tmp_path / "results.sqlite"
    driver = start("once", where, 2)
    while count(where) < 15:
        assert driver.poll() is None
        time.sleep(0.005)
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    assert 15 <= count(where) < 48
    driver = start("once", where, 1)
    driver.communicate()
    assert driver.returncode == 0
    check(where, undisturbed)


def count(where):
    if not where.exists():
        return 0
    with Store(where) as store:
        return len(list(store.rows(columns=["key"])))
