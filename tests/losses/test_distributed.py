"""Data-parallel exactness, on real ranks: three processes, connected by gloo."""

import os
import subprocess
import sys
from pathlib import Path

WORKER = Path(__file__).with_name("ddp_worker.py")
SIZES = ["7,8,3", "5,0,12", "14,1,0"]  # rows of each rank; none is fine


def test_every_rank_has_the_loss_and_gradient_of_the_global_batch(tmp_path):
    ranks = [
        subprocess.Popen(
            [sys.executable, str(WORKER), *SIZES],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "RANK": str(rank), "MEETING": str(tmp_path / "ranks")},
        )
        for rank in range(3)
    ]
    try:
        for rank, process in enumerate(ranks):
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output[-3000:]
            for sizes in SIZES:
                assert f"rank {rank} agrees on {sizes}" in output
    finally:
        for process in ranks:
            process.kill()
