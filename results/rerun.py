"""Compute random cells of the rows in this folder again, and say whether the numbers are the same.

    python results/rerun.py --data folder:openml-cc18 [--cells 5] [--seed 0] [--benchmark NAME]

A cell is a model on a table: its tuning, if it is tuned, and its outer folds. Cells are drawn from
those that took at most ``--most-seconds``. Exit status 1 if a number differs, or a cell fails.
``coco-networks`` is left out: its rows were made under another name, which gives other random
numbers.
"""

import argparse
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

from cocoloss.benchmark import Store, fold_table, run_benchmark
from cocoloss.benchmark.export import merge_into
from cocoloss.benchmark.spec import Spec, load_spec
from cocoloss.exceptions import CoCoError

HERE = Path(__file__).parent
RENAMED = ("coco-networks",)
NOT_MEASURED = ("fold", "attempt", "peak_memory")
EQUAL = 1e-9  # shares of test rows that are predicted right
# Of other numbers, which hang on the last digits of an embedding: processors round differently.
ENOUGH = 0.01


def cells_of(file: Path, most_seconds: float) -> pd.DataFrame:
    """Return which models on which tables have all their rows, and took so many seconds."""
    tasks = pd.read_parquet(file, columns=["dataset", "model", "stage", "status", "seconds"])
    tasks = tasks[~tasks["stage"].isin(["unit", "start"]) & ~tasks["model"].isin(RENAMED)]
    cells = tasks.groupby(["dataset", "model"]).agg(
        seconds=("seconds", "sum"), sound=("status", lambda status: (status == "ok").all())
    )
    return cells[cells["sound"] & (cells["seconds"] <= most_seconds)].reset_index()


def one_cell(spec: Spec, dataset: str, model: str, data: str) -> Spec:
    """Return the benchmark of one model on one table."""
    content = spec.content()
    own = content["models"]["own"]
    content["models"] = {
        "names": [] if model in own else [model],
        "own": {model: own[model]} if model in own else {},
    }
    if "trials" in content["tuning"]:  # a regression is tuned if its spec names trials at all
        content["tuning"]["trials"] = {
            name: n for name, n in content["tuning"]["trials"].items() if name == model
        }
    alone = Spec.from_dict(content, folder=spec.folder, experiments=spec.experiments)
    return alone.changed(datasets=[dataset], source=data)


def computed_again(spec: Spec, dataset: str, model: str, data: str, folder: Path) -> pd.DataFrame:
    """Return the rows of one cell, computed now."""
    store = folder / f"{dataset}-{model}.sqlite"
    run_benchmark(one_cell(spec, dataset, model, data), store, workers=0)
    with Store(store, create=False) as opened:
        return fold_table(opened)


def largest_difference(then: pd.DataFrame, now: pd.DataFrame) -> tuple[float, str]:
    """Return by how much two tables of rows differ at most, and in which measure.

    Relative to the measure, but for scores that count predictions: those must be equal.
    """
    measures = [
        name
        for name in then.select_dtypes("number").columns.intersection(now.columns)
        if name not in NOT_MEASURED and not name.endswith("seconds") and then[name].notna().any()
    ]
    old, new = (table.set_index("fold")[measures].sort_index() for table in (then, now))
    apart = ((new - old) / old.where(old != 0, 1)).abs().max()
    counted = apart[[name for name in measures if "accuracy" in name]]
    found = counted if counted.max() > EQUAL else apart
    return float(found.max()), str(found.idxmax())


def main() -> None:
    """Draw, compute, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    names = sorted(file.stem for file in HERE.glob("*.parquet"))
    parser.add_argument("--benchmark", default="accuracy-lite", choices=names)
    parser.add_argument("--cells", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most-seconds", type=float, default=60)
    options = parser.parse_args()
    file = HERE / f"{options.benchmark}.parquet"
    cells = cells_of(file, options.most_seconds)
    drawn = cells.sample(min(options.cells, len(cells)), random_state=options.seed)
    spec = load_spec(HERE.parent / "paper" / f"{options.benchmark}.toml")
    different = 0
    with TemporaryDirectory() as name:
        folder = Path(name)
        merge_into(folder / "then.sqlite", [file])
        with Store(folder / "then.sqlite", create=False) as store:
            then = fold_table(store)
        for cell in drawn.itertuples():
            now = computed_again(spec, cell.dataset, cell.model, options.data, folder)
            if (now["status"] != "ok").all():
                print(f"{cell.model} on {cell.dataset}: failed here; is what it needs installed?")
                different += 1
                continue
            old = then[(then["dataset"] == cell.dataset) & (then["model"] == cell.model)]
            apart, measure = largest_difference(old, now)
            limit = EQUAL if "accuracy" in measure else ENOUGH
            same = np.isfinite(apart) and apart <= limit and len(old) == len(now)
            different += not same
            said = "the same" if same else "other numbers"
            said += f", at most {apart:.1g} apart ({measure})" if apart > EQUAL else ""
            print(f"{cell.model} on {cell.dataset}: {len(now)} folds, {said}", flush=True)
    sys.exit(f"{different} of {len(drawn)} cells differ or failed" if different else 0)


if __name__ == "__main__":
    try:
        main()
    except CoCoError as error:
        sys.exit(f"error: {error}")
