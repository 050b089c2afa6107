"""A million embeddings: memory of the loss, and time of the chunked backward pass.

python bench/memory.py            (about a minute)
"""

import resource

import torch
from torch import nn

from cocoloss.losses import CoCoLoss, backward_in_chunks
from timing import interleaved, readable, save

N, C, Q = 1_000_000, 10, 32
D, HIDDEN, CHUNK = 32, 128, 8192


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def additional_memory() -> float:
    """Return the gigabytes that forward and backward need on top of the embeddings."""
    h = torch.randn(N, Q, requires_grad=True)
    y = torch.randint(0, C, (N,))
    loss = CoCoLoss(C)
    loss(h[:5000], y[:5000]).backward()  # libraries load what they load
    h.grad = None
    before = peak_bytes()
    loss(h, y).backward()
    return (peak_bytes() - before) / 1e9


def chunked_time() -> dict[str, float]:
    """Compare the chunked backward pass with two plain passes over the same chunks."""
    x, y = torch.randn(N, D), torch.randint(0, C, (N,))
    network = nn.Sequential(nn.Linear(D, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, Q))
    loss = CoCoLoss(C)
    given = torch.randn(CHUNK, Q) / N

    def two_plain_passes() -> None:
        with torch.no_grad():
            for rows in x.split(CHUNK):
                network(rows)
        for rows in x.split(CHUNK):
            network(rows).backward(given[: len(rows)])
        network.zero_grad()

    def in_chunks() -> None:
        backward_in_chunks(network, loss, x, y, CHUNK)
        network.zero_grad()

    return interleaved({"in chunks": in_chunks, "two plain passes": two_plain_passes}, seconds=30)


def main() -> None:
    """Measure, print, and write results/memory.json."""
    torch.set_num_threads(1)
    gigabytes = additional_memory()
    times = chunked_time()
    ratio = times["in chunks"] / times["two plain passes"]
    print(f"{N:,} embeddings, q={Q}: {gigabytes:.2f} GB of additional memory (target: below 1)")
    print(
        f"backward_in_chunks, {N:,} rows, {D}-{HIDDEN}-{Q}, chunks of {CHUNK}: "
        f"{readable(times['in chunks'])}, two plain passes {readable(times['two plain passes'])}, "
        f"ratio {ratio:.3f} (target: at most 1.2)"
    )
    record = {"additional gigabytes": gigabytes, "seconds": times, "ratio": ratio}
    print(f"written: {save('memory', record).name}")


if __name__ == "__main__":
    main()
