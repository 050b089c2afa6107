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

    def start_worker(self, threads=1):
        here = ["--local-directory", str(self.folder), "--no-dashboard", "--host", "127.0.0.1"]
        self.start("worker", self.address, "--nthreads", str(threads), *here)

    def stop(self):
        for process in self.all:
            with suppress(ProcessLookupError):
                # A worker that can answer nobody would not see that its nanny has gone.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_on_ranks(worker, n_ranks, *arguments):
    """Run a script on so many ranks of torch.distributed; return what they printed."""
    result = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run"),
            *("--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(n_ranks)),
            *(str(worker), *arguments),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout
