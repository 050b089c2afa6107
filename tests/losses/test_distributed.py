"""Data-parallel exactness, on real ranks: torchrun starts them, gloo connects them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).with_name("ddp_worker.py")


@pytest.mark.parametrize("shards", [["14,1", "11,0"], ["7,8,3", "5,0,12"]], ids=["two", "three"])
def test_every_rank_has_the_loss_and_gradient_of_the_global_batch(shards):
    ranks = shards[0].count(",") + 1
    result = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run"),
            *("--standalone", "--local-addr", "127.0.0.1", "--nproc-per-node", str(ranks)),
            *(str(WORKER), *shards),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert result.returncode == 0, result.stderr[-3000:]
    for rank in range(ranks):
        assert f"rank {rank} of {ranks} agrees" in result.stdout
