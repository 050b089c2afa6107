"""Forward and backward pass of the CoCo loss, side by side with its peers.

    python bench/losses.py            (about six minutes; --quick for a glance)

One thread, float32, q = 32 and C = 10. Every peer gets the same embeddings and labels and gives
the gradient with respect to the embeddings; cross-entropy also trains its linear layer. "coco" is
the loss as it comes, which divides by the norm; "printed" is the paper's form, which does not, and
so are "gram" and "pairwise".

The losses of linear cost take turns among themselves, those that form all pairs with "coco" again:
their matrices empty the caches, and the allocator's memory, for whatever comes next.
"""

import argparse
from collections.abc import Callable

import torch
from pytorch_metric_learning.losses import ContrastiveLoss, SupConLoss
from torch import Tensor, nn
from torch.nn import functional

from cocoloss.geometry import similarity
from cocoloss.losses import CoCoLoss, coco
from cocoloss.losses.moments import gram_is_cheaper
from timing import interleaved, machine, readable, save, show

SIZES = (8, 64, 256, 512, 1024, 2048, 4096, 8192, 65_536, 1_000_000)
C, Q = 10, 32
PAIRS = ("gram", "pairwise", "supcon", "contrastive")
BESIDE_PAIRS = "coco beside pairs"
# Where a peer materialises pairs, larger batches take minutes or all of the memory.
LARGEST = {"pairwise": 8192, "gram": 4096, "supcon": 1024, "contrastive": 1024}


def pairwise(h: Tensor, y: Tensor, G: Tensor) -> Tensor:
    """Write the printed formula as one would with autograd: all pairs at once."""
    n = len(y)
    squares = (h @ h.T - G[y][:, y]).square()
    own = squares.diagonal().sum()
    return (squares.sum() - own) / (n * (n + 1)) + own / n


def contenders(n: int) -> dict[str, Callable[[], None]]:
    """Return one training step of each loss on the same batch of ``n``."""
    generator = torch.Generator().manual_seed(n)
    h = torch.randn(n, Q, generator=generator).div(Q**0.5).requires_grad_()
    y = torch.randint(0, C, (n,), generator=generator)
    layer = nn.Linear(Q, C)
    G = torch.tensor(similarity("simplex", C), dtype=torch.float32)
    ours, printed = CoCoLoss(C), CoCoLoss(C, normalize=False)
    supcon, contrastive = SupConLoss(), ContrastiveLoss()
    losses = {
        "coco": lambda: ours(h, y),
        "printed": lambda: printed(h, y),
        "cross-entropy": lambda: functional.cross_entropy(layer(h), y),
        "pairwise": lambda: pairwise(h, y, G),
        "gram": lambda: printed(h, y),
        "supcon": lambda: supcon(h, y),
        "contrastive": lambda: contrastive(h, y),
    }

    def step(name: str) -> None:
        coco.gram_is_cheaper = (lambda *_: True) if name == "gram" else gram_is_cheaper
        losses[name]().backward()
        h.grad = None
        layer.zero_grad()

    return {name: (lambda name=name: step(name)) for name in losses if n <= LARGEST.get(name, n)}


TARGETS = [
    *(
        (
            f"n={n}: {name} at most {limit}x cross-entropy",
            lambda r, n=n, name=name: r[n][name] / r[n]["cross-entropy"],
            limit,
        )
        for name in ("coco", "printed")
        for n, limit in ((64, 1.6), (2048, 1.0))
    ),
    (
        "n=4096: at most 1/100 of the pairwise form",
        lambda r: r[4096][BESIDE_PAIRS] / r[4096]["pairwise"],
        0.01,
    ),
]


def main() -> None:
    """Measure, print, and write results/losses.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the repeats, no file")
    quick = parser.parse_args().quick
    torch.set_num_threads(1)
    seconds = 2.0 if quick else 20.0
    results = {}
    for n in SIZES:
        print(f"n = {n:,} ...", flush=True)
        losses = contenders(n)
        pairs = {name: losses.pop(name) for name in PAIRS if name in losses}
        results[n] = interleaved(losses, seconds=seconds)
        if pairs:
            taken = interleaved(pairs | {BESIDE_PAIRS: losses["coco"]}, seconds=seconds)
            results[n] |= taken

    names = ["coco", "printed", "cross-entropy", *PAIRS]
    rows = [
        [f"{n:,}"]
        + [readable(r[name]) if name in r else "-" for name in names]
        + [f"{r['coco'] / r['cross-entropy']:.3g}"]
        + [f"{r[BESIDE_PAIRS] / r[peer]:.3g}" if peer in r else "-" for peer in PAIRS]
        for n, r in results.items()
    ]
    show(
        f"forward + backward, q={Q}, C={C}, float32, {machine()['cpu']}, one thread",
        ["n", *names, *(f"coco / {peer}" for peer in names[2:])],
        rows,
    )
    targets = [
        {"target": text, "limit": limit, "measured": float(measure(results))}
        for text, measure, limit in TARGETS
    ]
    for t in targets:
        verdict = "met" if t["measured"] <= t["limit"] else "MISSED"
        print(f"{t['target']}: {t['measured']:.4g} ({verdict})")
    if not quick:
        record = {"seconds": {str(n): r for n, r in results.items()}, "targets": targets}
        print(f"written: {save('losses', record).name}")


if __name__ == "__main__":
    main()
