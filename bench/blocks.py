"""A table of ten million rows x 20 in Parquet, fitted by two Dask workers of one thread each.

    python bench/blocks.py FOLDER [--rows 10000000] [--workers 2] [--numbers]

Writes the table into a new folder within FOLDER, which is removed at the end. Prints seconds, the
peak memory of each worker and of this process, and how good the model is on other rows. Targets for
ten million rows: 60 minutes, 3 GB a worker.
"""

import argparse
import logging
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster
from sklearn.metrics import balanced_accuracy_score, r2_score

from cocoloss import CoCoClassifier, CoCoRegressor

COLUMNS = 20
FILE_ROWS = 250_000
MINUTES, GIGABYTES = 60, 3  # to reach


def table(n: int, seed: int, *, numbers: bool) -> pd.DataFrame:
    """Return rows of which three columns matter, and their classes or numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, COLUMNS)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n) / 2
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(COLUMNS)])
    return frame.assign(y=y if numbers else np.where(y > 0, "above", "below"))


def write(folder: Path, n_rows: int, *, numbers: bool) -> int:
    """Write the table as files of a quarter of a million rows; return its bytes."""
    needed = n_rows * COLUMNS * 6  # with room to spare
    if shutil.disk_usage(folder).free < needed:
        raise SystemExit(f"{folder} has no {needed / 1e9:.1f} GB left; name another folder")
    for start in range(0, n_rows, FILE_ROWS):
        part = table(min(FILE_ROWS, n_rows - start), 1 + start // FILE_ROWS, numbers=numbers)
        part.to_parquet(folder / f"{start:09d}.parquet", index=False)
    return sum(path.stat().st_size for path in folder.iterdir())


def peak_gigabytes() -> float:
    """Return the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def measure(folder: Path, n_rows: int, n_workers: int, *, numbers: bool) -> None:
    """Write, fit, and print one line."""
    size = write(folder, n_rows, numbers=numbers)
    test = table(20_000, 0, numbers=numbers)
    estimator = CoCoRegressor if numbers else CoCoClassifier
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": None}
    with (
        LocalCluster(host="127.0.0.1", silence_logs=logging.ERROR, **options) as cluster,
        Client(cluster) as client,
    ):
        start = time.perf_counter()
        model = estimator(solver="kernel", random_state=0).fit(dd.read_parquet(folder), "y")
        seconds = time.perf_counter() - start
        peaks = list(client.run(peak_gigabytes).values())
    predicted = model.predict(test.drop(columns="y"))
    judge, name = (r2_score, "R2") if numbers else (balanced_accuracy_score, "balanced accuracy")
    score = judge(test["y"], predicted)
    memory = " and ".join(f"{peak:.2f}" for peak in peaks)
    met = "met" if seconds <= 60 * MINUTES and max(peaks) <= GIGABYTES else "MISSED"
    print(
        f"{n_rows:,} rows x {COLUMNS} ({size / 1e9:.2f} GB of Parquet), {n_workers} workers: "
        f"{seconds:.0f} s; peak memory of the workers {memory} GB, "
        f"of this process {peak_gigabytes():.2f} GB; {name} {score:.4f}; "
        f"{MINUTES} min and {GIGABYTES} GB a worker: {met}",
        flush=True,
    )


def main() -> None:
    """Measure, in a folder that is removed afterwards."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--numbers", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure(Path(folder), given.rows, given.workers, numbers=given.numbers)


if __name__ == "__main__":
    main()
