"""How seconds and memory of a fit grow with rows, columns and classes, beside boosted trees.

    python bench/scaling.py                                 (half an hour; resumes where it was)
    python bench/scaling.py --most-rows 100000              (five minutes)
    python bench/scaling.py --summary --picture scaling.svg (only print and draw what is there)

The default CoCoClassifier, LightGBM and scikit-learn's HistGradientBoostingClassifier, all by their
defaults, on made-up tables: half of the columns show eight hidden numbers through noise, the other
half are noise. Classes follow from them by smooth functions and by thresholds, and by chance.

Each cell is fitted in a process of its own, on one thread. Seconds are processor time (wall time is
kept beside it), memory is what the process has at its peak beyond table and libraries, measured
apart for fit and for predicting 10,000 rows. Cells go from small to large, contenders take turns.
One line of JSON per cell is appended to bench/results/scaling.jsonl; what is there is not run
again. ``python results/page.py`` makes docs/results/scaling.md of it.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from ctypes import CDLL
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import balanced_accuracy_score

import cocoloss
from cocoloss import CoCoClassifier
from cocoloss.benchmark.tasks import source_digest
from cocoloss.report.figures import figure_bytes
from cocoloss.threads import at_most_threads
from tables import peak_megabytes
from timing import RESULTS, show

sys.path.append(str(Path(__file__).parents[1] / "results"))
from costs import scaling_parts

AXES = {  # what grows -> its sizes; what stays is (rows, columns, classes), with None for it
    "rows": ((1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000), (None, 20, 2)),
    "columns": ((10, 30, 100, 300, 1_000), (2_000, None, 2)),
    "classes": ((2, 5, 10, 30, 100), (5_000, 20, None)),
}
PREDICTED = 10_000
HIDDEN, SMOOTH, STEPS = 8, 32, 16  # numbers behind a table, and functions of them
SHARPNESS = 4.0  # of two classes; their noise has a standard deviation of 1.3
NOISE = 0.3  # of a column that shows hidden numbers of standard deviation 1
THREADS = 1
STORE = RESULTS / "scaling.jsonl"


def contenders() -> dict[str, Callable[[], Any]]:
    """Return who takes part; LightGBM if it is installed."""
    found: dict[str, Callable[[], Any]] = {
        "CoCoClassifier()": lambda: CoCoClassifier(random_state=0),
        "HistGradientBoosting": lambda: HistGradientBoostingClassifier(random_state=0),
    }
    try:
        from lightgbm import LGBMClassifier  # noqa: PLC0415 - a guest
    except ImportError:
        return found
    quiet = {"random_state": 0, "n_jobs": THREADS, "verbose": -1}
    return found | {"LightGBM": lambda: LGBMClassifier(**quiet)}


def made_up(
    n_rows: int, n_columns: int, n_classes: int, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return a table and its classes; the first rows are the same however many there are."""
    rng = np.random.default_rng([seed, n_columns, n_classes])
    n_shown = max(HIDDEN, n_columns // 2)
    shown_by = rng.normal(size=(HIDDEN, n_shown)) / HIDDEN**0.5
    smooth_by = 2 * rng.normal(size=(HIDDEN, SMOOTH)) / HIDDEN**0.5
    steps_by, at = rng.normal(size=(HIDDEN, STEPS)), rng.uniform(-0.5, 0.5, size=STEPS)
    weights = rng.normal(size=(SMOOTH + STEPS, n_classes))
    weights /= np.linalg.norm(weights, axis=0)
    sharpness = SHARPNESS * np.log2(n_classes)  # the more classes, the closer are the best
    X, y = np.empty((n_rows, n_columns)), np.empty(n_rows, dtype=np.intp)
    for start in range(0, n_rows, PREDICTED):  # in blocks, so that nothing but the table is large
        z = rng.normal(size=(PREDICTED, HIDDEN))
        functions = np.hstack([np.tanh(z @ smooth_by), np.sign(z @ steps_by - at)])
        chance = rng.gumbel(size=(PREDICTED, n_classes))
        y_block = (sharpness * functions @ weights + chance).argmax(axis=1)
        X_block = rng.normal(size=(PREDICTED, n_columns))
        X_block[:, :n_shown] = z @ shown_by + NOISE * X_block[:, :n_shown]
        n = min(PREDICTED, n_rows - start)
        X[start : start + n], y[start : start + n] = X_block[:n], y_block[:n]
    return X, y


def cells(most_rows: int) -> Iterator[tuple[str, int, tuple[int, int, int]]]:
    """Yield what grows, its size, and the shape of the table; those with few rows come first."""
    found = [
        (axis, size, tuple(size if fixed is None else fixed for fixed in shape))
        for axis, (sizes, shape) in AXES.items()
        for size in sizes
    ]
    yield from sorted((cell for cell in found if cell[2][0] <= most_rows), key=lambda c: c[2][0])


def run_apart(*arguments: Any) -> dict[str, Any]:
    """Run a cell in a process of its own, which has the table and the libraries already."""
    context = get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=lambda: there.send(run_cell(*arguments)))
    process.start()
    there.close()  # so that nobody waits for a process that has died
    found: dict[str, Any] = here.recv()
    process.join()
    return found


def run_cell(model: str, X: Any, y: Any, X_test: Any, y_test: Any) -> dict[str, Any]:
    """Fit and predict, and say what it took; in a process that has done nothing before."""
    warnings.simplefilter("ignore")  # LightGBM and scikit-learn disagree about names of columns
    contenders()[model]().fit(X[:200], y[:200] % 2).predict(
        X_test[:10]
    )  # what is imported late, is
    classifier, found = contenders()[model](), {}
    calls = {"fit": lambda: classifier.fit(X, y), "predict": lambda: classifier.predict(X_test)}
    for name, call in calls.items():
        forget_peak()
        before = peak_megabytes()
        wall, processor = time.perf_counter(), time.process_time()
        predicted = call()
        found[f"{name} seconds"] = time.process_time() - processor
        found[f"{name} wall seconds"] = time.perf_counter() - wall
        found[f"{name} megabytes"] = peak_megabytes() - before
    return found | {"balanced accuracy": balanced_accuracy_score(y_test, predicted)}


def forget_peak() -> None:
    """Let the most memory that this process ever had be what it needs now (Linux alone can)."""
    CDLL(None).malloc_trim(0)  # what was freed goes back, or the next call would live on it
    Path("/proc/self/clear_refs").write_text("5")


def run(most_rows: int) -> None:
    """Run what is missing."""
    lines = STORE.read_text().splitlines() if STORE.exists() else []
    done = {(line["axis"], line["size"], line["model"]) for line in map(json.loads, lines)}
    source = source_digest(Path(cocoloss.__file__).parent)
    for axis, size, shape in cells(most_rows):
        missing = [model for model in contenders() if (axis, size, model) not in done]
        if not missing:
            continue
        n_rows, n_columns, n_classes = shape
        X, y = made_up(n_rows + PREDICTED, n_columns, n_classes)
        parts = (X[PREDICTED:], y[PREDICTED:], X[:PREDICTED], y[:PREDICTED])
        for model in missing:
            found = run_apart(model, *parts)
            key = {"axis": axis, "size": size, "model": model, "rows": n_rows}
            key |= {"columns": n_columns, "classes": n_classes, "threads": THREADS}
            with STORE.open("a") as file:
                file.write(json.dumps(key | found | {"source": source}) + "\n")
            print(f"{axis} {size:,} {model}: {found}", flush=True)


def summarise(picture: Path | None) -> None:
    """Print what is there, and draw it."""
    parts = scaling_parts(STORE)
    for grid in (parts["fit"], parts["predict"], parts["slopes"]):
        show(grid.title, list(grid.columns), grid.texts(str, "{}"))
    if picture is not None:
        picture.write_bytes(figure_bytes(parts["growth"].figure, picture.suffix))


def main() -> None:
    """Run what is missing, sum up, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most-rows", type=int, default=1_000_000)
    parser.add_argument("--summary", action="store_true", help="only print what is there")
    parser.add_argument("--picture", type=Path, help="where to draw it: .svg, .png or .pdf")
    options = parser.parse_args()
    if not options.summary:
        with at_most_threads(THREADS):
            run(options.most_rows)
    summarise(options.picture)


if __name__ == "__main__":
    main()
