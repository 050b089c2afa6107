"""Several processes: a Dask cluster that is started by hand, as users start it, and torch ranks."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress


class Processes:
    """A scheduler and workers, each started by hand."""

    def __init__(self, folder):
        self.folder, self.all = folder, []
        file = folder / "scheduler.json"
        arguments = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show"]
        self.start("scheduler", *arguments, "--scheduler-file", str(file))
        self.address = ""
        while not self.address:
            time.sleep(0.02)
            with suppress(FileNotFoundError, json.JSONDecodeError):  # not there, or half-written
                self.address = json.loads(file.read_text())["address"]

    def start(self, kind, *arguments):
        with (self.folder / f"{kind}.log").open("a") as log:
            self.all.append(
                subprocess.Popen(
                    [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments],
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                    env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                    start_new_session=True,  # a group of its own, which its children are in
                )
            )

    def start_workers(self, n=1, threads=1):
        here = ["--local-directory", str(self.folder), "--no-dashboard", "--host", "127.0.0.1"]
        how_many = ["--nworkers", str(n), "--nthreads", str(threads)]
        self.start("worker", self.address, *how_many, *here)

    def stop(self):
        for process in self.all:
            with suppress(ProcessLookupError):
                # A worker that can answer nobody would not see that its nanny has gone.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


# As torchrun does it, but what takes seconds to import is imported once, before the ranks part.
RANKS = """
import os, runpy, signal, sys, traceback
import cocoloss.losses, cocoloss.metrics
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

n_ranks, sys.argv = sys.argv[1], sys.argv[2:]
store = distributed.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "WORLD_SIZE": n_ranks}
os.environ.update(where, TORCHELASTIC_USE_AGENT_STORE="True")
ranks = set()
for rank in map(str, range(int(n_ranks))):
    ranks.add(os.fork())
    if 0 in ranks:
        os.environ.update(RANK=rank, LOCAL_RANK=rank)
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        sys.stdout.flush()
        os._exit(0)
while ranks:
    ended, status = os.wait()
    ranks.remove(ended)
    if status:
        for rank in ranks:
            os.kill(rank, signal.SIGKILL)
        sys.exit(1)
"""


def run_on_ranks(worker, n_ranks, *arguments):
    """Run a script on so many ranks of torch.distributed; return what they printed."""
    result = subprocess.run(
        [sys.executable, "-c", RANKS, str(n_ranks), str(worker), *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout
