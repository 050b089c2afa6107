"""Data-parallel exactness, on real ranks, which gloo connects."""

from pathlib import Path

import pytest

from cluster import run_on_ranks

WORKER = Path(__file__).with_name("ddp_worker.py")


@pytest.mark.parametrize("shards", [["14,1", "11,0"], ["7,8,3", "5,0,12"]], ids=["two", "three"])
def test_every_rank_has_the_loss_and_gradient_of_the_global_batch(shards):
    ranks = shards[0].count(",") + 1
    printed = run_on_ranks(WORKER, ranks, *shards)
    for rank in range(ranks):
        assert f"rank {rank} of {ranks} agrees" in printed
