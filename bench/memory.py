"""A million embeddings: memory of the loss, and time of the chunked backward pass.

python bench/memory.py            (about two minutes)
"""

import resource

import torch
from torch import nn

from cocoloss.losses import CoCoLoss, backward_in_chunks
from timing import interleaved, readable, save, show

N, C, Q = 1_000_000, 10, 32
D, CHUNK = 64, 8192
WIDTHS = (64, 128, 256, 512)


def peak_bytes() -> int:
    """Return the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def additional_memory() -> float:
    """Return the gigabytes that forward and backward need on top of the embeddings."""
    h = torch.randn(N, Q, requires_grad=True)
    y = torch.randint(0, C, (N,))
    loss = CoCoLoss(C, normalize=False)
    loss(torch.randn(5000, Q, requires_grad=True), y[:5000]).backward()  # libraries load
    before = peak_bytes()
    loss(h, y).backward()
    return (peak_bytes() - before) / 1e9


def chunked_time(width: int) -> dict[str, float]:
    """Compare the chunked backward pass with two plain passes over the same chunks.

    The plain passes do what any two-pass method must: the network forward without gradients, then
    forward and backward with a gradient that is given. The rest is the price of the loss.
    """
    x, y = torch.randn(N, D), torch.randint(0, C, (N,))
    network = nn.Sequential(nn.Linear(D, width), nn.ReLU(), nn.Linear(width, Q))
    loss = CoCoLoss(C, normalize=False)
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

    return interleaved({"in chunks": in_chunks, "two plain passes": two_plain_passes}, seconds=25)


def verdict(ratio: float) -> str:
    """Say whether a ratio meets the target."""
    return "met" if ratio <= 1.2 else "MISSED"


def main() -> None:
    """Measure, print, and write results/memory.json."""
    torch.set_num_threads(1)
    gigabytes = additional_memory()
    print(f"{N:,} embeddings, q={Q}: {gigabytes:.2f} GB of additional memory (target: below 1)")
    times = {}
    for width in WIDTHS:
        print(f"{D}-{width}-{Q} network ...", flush=True)
        times[width] = chunked_time(width)
    ratios = {width: t["in chunks"] / t["two plain passes"] for width, t in times.items()}
    show(
        f"backward_in_chunks, {N:,} rows, chunks of {CHUNK}, one thread; target: at most 1.2",
        ["network", "in chunks", "two plain passes", "ratio", ""],
        [
            [f"{D}-{w}-{Q}", *map(readable, t.values()), f"{ratios[w]:.3f}", verdict(ratios[w])]
            for w, t in times.items()
        ],
    )
    record = {"additional gigabytes": gigabytes, "seconds": times, "ratios": ratios}
    print(f"written: {save('memory', record).name}")


if __name__ == "__main__":
    main()
