"""Drivers in processes of their own, for tests that kill them.

python drive_fake.py once STORE WORKERS    runs the fake benchmark to its end
python drive_fake.py killed STORE SEED     runs it again and again, killed at random moments
"""

import os
import random
import signal
import sys
import time

from bench_helpers import fake_spec, run_fake

from cocoloss.benchmark.store import Store
from cocoloss.benchmark.workers import DaskPool

SPEC = fake_spec("good", "better", trials=5, sleep=0.01)
N_TASKS = 2 * 2 * (5 + 3)  # on two tables


def once(where, workers=0):
    pool = DaskPool(SPEC, "test", workers=workers) if workers else None
    with Store(where) as store:
        run_fake(SPEC, store, pool=pool)
    if pool is not None:
        pool.close()


def killed(where, seed):
    """Fork drivers and kill each after a moment, until one comes to its end; print how many."""
    moments = random.Random(seed)  # noqa: S311 - nothing to protect
    kills, longest = 0, 0.05
    while True:
        longest *= 1.1  # the first ones die while they open the store, later ones at work
        child = os.fork()
        if child == 0:
            once(where)
            os._exit(0)
        time.sleep(moments.uniform(0, longest))
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        kills += 1
    print(kills, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    command, where, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    {"once": once, "killed": killed}[command](where, number)
