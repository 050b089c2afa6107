"""Two processes, one loss: DistributedDataParallel under torchrun.

    torchrun --nproc-per-node 2 examples/07_distributed.py --out distributed.png
    python examples/07_distributed.py --out distributed.png             (starts torchrun itself)

Contrastive losses need all pairs, also those of rows on different machines; the usual way is to
gather every embedding everywhere. CoCo needs the class moments only. With ``process_group`` each
rank has the loss of the global batch and its exact gradient, for shards of any size.

Two ranks on this machine, which own 1,200 and 597 digits, train a network; rank 0 then trains the
same network alone on all of them. The two curves are one, and what travels does not grow with
the batch.
"""

import os
import subprocess
import sys
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import Tensor, distributed, nn
from torch.nn.parallel import DistributedDataParallel

from _gallery import BLUE, GREY, ORANGE, arguments, panels, save
from cocoloss import CoCoLoss

C, Q = 10, 16
SHARDS = (slice(0, 1200), slice(1200, None))  # the rows of each rank
MESSAGE = C * (Q + 1) + Q * Q  # numbers; tests/losses/ddp_worker.py counts what is really sent


def start_torchrun() -> int:
    """Run this very file on two ranks of this machine, and return how that ended."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    where = ["--local-addr", "127.0.0.1", "--nproc-per-node", "2"]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*launcher, *where, *sys.argv]
    return subprocess.run(command, env=one_thread, check=False).returncode  # noqa: S603 - this file


def make_network() -> nn.Module:
    """Return the same network on every rank."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, Q)).double()


def train(network: nn.Module, loss: CoCoLoss, x: Tensor, y: Tensor, steps: int) -> list[float]:
    """Take full-batch steps and return the loss before each."""
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    values = []
    for _ in range(steps):
        optimiser.zero_grad()
        value = loss(network(x), y)
        value.backward()
        optimiser.step()
        values.append(value.item())
    return values


def draw(together: list[float], alone: list[float], out: Path) -> None:
    """Draw the two loss curves, and the message beside that of gathering embeddings."""
    finding = "Two processes train as one, and what they exchange does not grow"
    figure, (curves, messages) = panels(finding, 2, size=(9.5, 3.9))
    curves.plot(alone, color=BLUE, linewidth=6, alpha=0.35)
    curves.plot(together, color=ORANGE, linewidth=1.5, linestyle=(0, (4, 3)))
    third = len(alone) // 3
    curves.text(third, alone[third] + 0.15, "one process", color=BLUE)
    curves.text(third, alone[third] + 0.08, "two ranks, dashed", color=ORANGE)
    curves.set(xlabel="step", ylim=(0, None), title="loss of all 1,797 digits")

    rows = [2**k for k in range(4, 17)]  # of each rank
    gathered = [2 * n * Q for n in rows]
    messages.loglog(rows, gathered, color=GREY)
    messages.loglog(rows, [MESSAGE] * len(rows), color=ORANGE)
    messages.text(rows[-3], gathered[-2], "gather the embeddings ", color=GREY, ha="right")
    messages.text(rows[-1], MESSAGE * 1.3, f"CoCo: {MESSAGE} numbers", color=ORANGE, ha="right")
    messages.set(xlabel="rows per rank", title="numbers exchanged per step")
    save(figure, out)


def main() -> None:
    """Train on both ranks, then on one; print how far they differ, draw both."""
    options = arguments(__doc__)
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    digits = load_digits()
    x, y = torch.tensor(digits.data / 16), torch.tensor(digits.target)
    mine = SHARDS[rank]
    steps = 20 if options.quick else 150

    parallel = DistributedDataParallel(make_network())
    together = train(parallel, CoCoLoss(C, process_group="world"), x[mine], y[mine], steps)
    if rank == 0:
        alone = train(make_network(), CoCoLoss(C), x, y, steps)
        apart = max(abs(a / b - 1) for a, b in zip(together, alone, strict=True))
        print(f"loss after {steps} steps: two ranks {together[-1]:.6f}, alone {alone[-1]:.6f}")
        print(f"largest relative difference on the way: {apart:.1e}")
        if options.out:
            draw(together, alone, options.out)
    distributed.barrier()
    sys.stdout.flush()
    os._exit(0)  # gloo's own threads abort a normal exit now and then


if __name__ == "__main__":
    if "RANK" in os.environ:
        main()
    else:
        sys.exit(start_torchrun())
