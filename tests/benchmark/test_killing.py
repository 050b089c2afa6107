"""A driver that is killed loses nothing, and none of its rows comes twice."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from bench_helpers import numbers, run_fake, wait_for_rows
from drive_fake import N_TASKS, SPEC

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
        assert len(keys) == len(set(keys)) == N_TASKS
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
    wait_for_rows(driver, where, 10)
    os.kill(driver.pid, signal.SIGKILL)
    driver.communicate()
    with Store(where) as store:
        assert 10 <= len(list(store.rows())) < N_TASKS
    driver = start("once", where, 1)
    driver.communicate()
    assert driver.returncode == 0
    check(where, undisturbed)
