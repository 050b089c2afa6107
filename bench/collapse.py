"""Neural collapse beside a naive float32 version: time, and memory on top of the rows.

    python bench/collapse.py            (two minutes; --imagenet streams 1.28M x 2048: ten)

One thread; seconds are the processor's, since machines are shared. Each number is a process of its
own, so that nobody inherits another's peak: what numpy allocates (tracemalloc) and what the process
grew by (ru_maxrss), once the rows are there. Three naive versions are measured: as people write it
in numpy with a centred copy of all rows, the same in torch, and class by class, which is slower to
write and needs less.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import numpy as np

SIZES = {"MNIST": (60_000, 512, 10), "1,000 classes": (20_000, 256, 1000)}
IMAGENET = (1_281_167, 2048, 1000)
CHUNK = 4096
REPEATS = 5


def rows_of(n, q, n_classes):
    """Return float32 rows about random centres, and their labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, n_classes, n)
    h = rng.standard_normal((n, q), dtype=np.float32)
    centres = rng.standard_normal((n_classes, q), dtype=np.float32)
    for start in range(0, n, 1000):  # in parts, which do not raise the peak that is measured
        h[start : start + 1000] += centres[labels[start : start + 1000]]
    return h, labels


def shape_of(means, within, between, n_classes):
    """Return NC1 and NC2 from the moments, as the literature prints them."""
    nc1 = np.trace(within @ np.linalg.pinv(between)) / n_classes
    centred = means - means.mean(0)
    gram = centred @ centred.T
    simplex = (np.eye(n_classes) - 1 / n_classes) / np.sqrt(n_classes - 1)
    return float(nc1), float(np.linalg.norm(gram / np.linalg.norm(gram) - simplex))


def naive(h, y):
    """Centre all rows at once, in float32."""
    n_classes = int(y.max()) + 1
    means = np.stack([h[y == c].mean(0) for c in range(n_classes)])
    centred = h - means[y]
    within = centred.T @ centred / len(h)
    apart = means - h.mean(0)
    between = apart.T @ apart / n_classes
    distances = (h**2).sum(1)[:, None] - 2 * h @ means.T + (means**2).sum(1)
    return *shape_of(means, within, between, n_classes), float((distances.argmin(1) != y).mean())


def naive_torch(h, y):
    """Do the same in torch."""
    import torch  # noqa: PLC0415 - in this process only

    h, y = torch.from_numpy(h), torch.from_numpy(y)
    n_classes = int(y.max()) + 1
    means = torch.stack([h[y == c].mean(0) for c in range(n_classes)])
    centred = h - means[y]
    within = centred.T @ centred / len(h)
    apart = means - h.mean(0)
    between = apart.T @ apart / n_classes
    wrong = (torch.cdist(h, means).argmin(1) != y).float().mean()
    parts = (x.numpy() for x in (means, within, between))
    return *shape_of(*parts, n_classes), float(wrong)


def naive_by_class(h, y):
    """Centre the rows of one class after the other."""
    n_classes = int(y.max()) + 1
    means, within, n_wrong = [], 0, 0
    for c in range(n_classes):
        own = h[y == c]
        means.append(own.mean(0))
        centred = own - means[-1]
        within = within + centred.T @ centred
    means = np.stack(means)
    for c in range(n_classes):
        own = h[y == c]
        distances = (own**2).sum(1)[:, None] - 2 * own @ means.T + (means**2).sum(1)
        n_wrong += int((distances.argmin(1) != c).sum())
    apart = means - h.mean(0)
    between = apart.T @ apart / n_classes
    return *shape_of(means, within / len(h), between, n_classes), n_wrong / len(h)


def ours(h, y):
    """Return the same three by the package."""
    from cocoloss.metrics import neural_collapse  # noqa: PLC0415 - in this process only

    found = neural_collapse(h, y)
    return found.nc1, found.nc2, found.nc4


def ours_streamed(h, y):
    """Return them from moments of chunks, and a second look at these."""
    from cocoloss.metrics import ClassMoments, neural_collapse_of  # noqa: PLC0415

    chunks = [(h[i : i + CHUNK], y[i : i + CHUNK]) for i in range(0, len(h), CHUNK)]
    moments = ClassMoments()
    for chunk in chunks:
        moments.update(*chunk)
    found = neural_collapse_of(moments, rows=chunks)
    return found.nc1, found.nc2, found.nc4


WAYS = {f.__name__: f for f in (naive, naive_torch, naive_by_class, ours, ours_streamed)}


def one(way, size, *, traced):
    """Measure one way in this process, and print it."""
    h, y = rows_of(*SIZES[size])
    WAYS[way](h[:2000].copy(), y[:2000] % 2)  # libraries load
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    if traced:
        tracemalloc.start()
    answer = WAYS[way](h, y)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    record = {"answer": answer, "grown": grown}
    if traced:
        record["allocated"] = tracemalloc.get_traced_memory()[1] / 1e6
    else:
        times = []
        for _ in range(REPEATS):
            started = time.process_time()
            WAYS[way](h, y)
            times.append(time.process_time() - started)
        record["seconds"] = statistics.median(times)
    print(json.dumps(record))


def measured(way, size):
    """Return what two processes of their own found: one timed, one with its memory traced."""
    record = {}
    for traced in ("", "--traced"):
        command = [sys.executable, __file__, "--one", way, size, *filter(None, [traced])]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        record = json.loads(done.stdout.splitlines()[-1]) | record
    return record


def memory(record):
    """Return what numpy allocated, or what the process grew by: torch's share is not traced."""
    return max(record["allocated"], record["grown"])


def imagenet(share):
    """Stream rows of ImageNet's size, made chunk by chunk, and say what it took."""
    from cocoloss.metrics import ClassMoments, neural_collapse_of  # noqa: PLC0415

    n, q, n_classes = IMAGENET
    centres = np.random.default_rng(0).standard_normal((n_classes, q), dtype=np.float32)

    def chunks(n_rows):
        for start in range(0, n_rows, CHUNK):
            rng = np.random.default_rng(start)
            y = rng.integers(0, n_classes, min(CHUNK, n_rows - start))
            h = rng.standard_normal((len(y), q), dtype=np.float32)
            h += centres[y]
            yield h, y

    n_rows, spent = int(n * share), 0.0
    moments = ClassMoments()
    for h, y in chunks(n_rows):
        started = time.process_time()
        moments.update(h, y)
        spent += time.process_time() - started
    started = time.process_time()
    found = neural_collapse_of(moments)
    last = time.process_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{n_rows:,} rows of {q}, {n_classes} classes")
    print(f"update {spent:.0f} s, the answer {last:.1f} s")
    whole = n_rows * q * 4 / 2**20
    print(f"peak of the process {peak:.0f} MB (all rows in float32: {whole:,.0f} MB)")
    print(found)


def main():
    """Measure, print, and write results/collapse.json."""
    from timing import machine, save, show  # noqa: PLC0415 - the measured processes need no torch

    results = {size: {way: measured(way, size) for way in WAYS} for size in SIZES}
    for size, found in results.items():
        base = found["naive"]
        show(
            f"{size}: {SIZES[size]}, one thread, {machine()['cpu']}",
            ["", "seconds", "MB allocated", "MB grown", "time", "memory", "NC1", "NC2", "NC4"],
            [
                [
                    way,
                    f"{r['seconds']:.2f}",
                    f"{r['allocated']:.1f}",
                    f"{r['grown']:.0f}",
                    f"{r['seconds'] / base['seconds']:.2f}",
                    f"{memory(r) / memory(base):.3f}",
                    *(f"{x:.7g}" for x in r["answer"]),
                ]
                for way, r in found.items()
            ],
        )
    print(f"written: {save('collapse', results).name}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", nargs=2, metavar=("WAY", "SIZE"), help=argparse.SUPPRESS)
    parser.add_argument("--traced", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--imagenet", type=float, nargs="?", const=1.0, metavar="SHARE")
    given = parser.parse_args()
    if given.one:
        one(*given.one, traced=given.traced)
    elif given.imagenet:
        imagenet(given.imagenet)
    else:
        main()
