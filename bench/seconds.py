"""Processor seconds of one fit of each model of accuracy-lite, on one thread.

    python bench/seconds.py --data FOLDER                   (half an hour; resumes where it was)
    python bench/seconds.py                                 (only print what is there)

The rows of results/accuracy-lite.parquet have the seconds of busy hours, and of folds that are
trained at once. Here each model is fitted once a table, to the rows of the first outer fold, with
the hyperparameters that its row there has; models take turns table by table, those that cost least
first. Preprocessing counts. The folder is that of the benchmark: ``<name>.csv.gz`` files and
``schema.json``. One line of JSON per table and model is appended to bench/results/seconds.jsonl;
what is there is not run again. ``python results/page.py`` draws quality over seconds of it.
"""

import argparse
import json
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import _safe_indexing

import cocoloss
from cocoloss.benchmark.accuracy import outer_folds, seconds_of_fit
from cocoloss.benchmark.evaluation import balanced_accuracy_of, fit_folds
from cocoloss.benchmark.models import find_model
from cocoloss.benchmark.plan import Tables
from cocoloss.benchmark.spec import Spec, load_spec
from cocoloss.benchmark.tasks import TableInfo, Task, source_digest
from cocoloss.threads import at_most_threads
from timing import RESULTS, show

ROOT = Path(__file__).parents[1]
SPEC, ROWS = ROOT / "paper" / "accuracy-lite.toml", ROOT / "results" / "accuracy-lite.parquet"
MODELS = (
    *("coco-default", "coco-kernel", "coco-networks", "lightgbm-default", "ksvm-w", "rf-w"),
    *("hgb-w", "ce-w", "coco-w", "dr-w"),
)
STORE = RESULTS / "seconds.jsonl"


def chosen_arguments(rows: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """Return with which arguments each model was fitted to each table."""
    fits = rows[rows["stage"].isin(["fold", "folds"]) & (rows["status"] == "ok")]
    fits = fits.drop_duplicates(["dataset", "model"])  # tuned once, for all folds
    triples = zip(fits["dataset"], fits["model"], fits["params"], strict=True)
    return {(dataset, model): json.loads(params) for dataset, model, params in triples}


def cheapest_first(rows: pd.DataFrame, spec: Spec) -> list[str]:
    """Return the tables by the seconds that all models took, or are guessed to take."""
    fits = rows[rows["stage"].isin(["fold", "folds"])]
    known = fits.groupby(["dataset", "model"])["seconds"].sum() / spec.folds.outer
    units = rows[rows["stage"] == "unit"].drop_duplicates("dataset").set_index("dataset")["extra"]
    costs = {}
    for name, extra in units.items():
        info = TableInfo(**json.loads(extra))
        costs[name] = sum(
            known.get((name, model), 0)
            or seconds_of_fit(
                model.removesuffix("-default"),
                find_model(model, spec.models.own),
                info,
                spec.training.epochs,
                info.n_rows,
                n_folds=1,
            )
            for model in MODELS
        )
    return sorted(costs, key=costs.__getitem__)


def fit_once(
    model: str, params: dict[str, Any], name: str, table: Any, spec: Spec
) -> dict[str, Any]:
    """Fit a model to the first fold as the benchmark does; say what it took, and how good it is."""
    y = np.asarray(table.y)
    fold = outer_folds(name, y, spec)[0]
    seed = Task(spec.kind, name, model, "fold", "0", root=spec.folds.seed).seed
    kind = find_model(model, spec.models.own)
    before = time.process_time()
    [(classifier, _)] = fit_folds(kind, params, table.X, y, [fold], [seed])
    seconds = time.process_time() - before
    score = balanced_accuracy_of(classifier, _safe_indexing(table.X, fold.test), y[fold.test])
    return {"fit seconds": seconds, "balanced accuracy": score, "rows": len(fold.train)}


def run(folder: Path) -> None:
    """Fit what is missing."""
    spec = load_spec(SPEC)
    spec = replace(spec, data=replace(spec.data, source=f"folder:{folder.resolve()}"))
    rows = pd.read_parquet(ROWS)
    arguments, tables = chosen_arguments(rows), Tables(spec)
    lines = STORE.read_text().splitlines() if STORE.exists() else []
    done = {(line["table"], line["model"]) for line in map(json.loads, lines)}
    source = source_digest(Path(cocoloss.__file__).parent)
    warm = set()  # models that have imported what they need
    for name in cheapest_first(rows, spec):
        missing = [model for model in MODELS if (name, model) not in done]
        table = tables.load(name) if missing else None
        for model in missing:
            params = arguments.get((name, model), {})  # a peer whose row is still to come has none
            if model not in warm:
                fit_once(model, params, name, table, spec)
                warm.add(model)
            found = fit_once(model, params, name, table, spec)
            with STORE.open("a") as file:
                line = {"table": name, "model": model} | found | {"threads": 1, "source": source}
                file.write(json.dumps(line) + "\n")
        print(name, flush=True)


def summarise() -> None:
    """Print the seconds of a fit over the tables that all models have finished."""
    frame = pd.DataFrame([json.loads(line) for line in STORE.read_text().splitlines()])
    seconds = frame.pivot(index="table", columns="model", values="fit seconds").dropna()
    show(
        f"processor seconds of a fit, {len(seconds)} tables",
        ["model", "geometric mean", "median", "least", "most", "sum"],
        [
            [model, *(f"{value:.3g}" for value in (np.exp(np.log(x).mean()), x.median()))]
            + [f"{value:.3g}" for value in (x.min(), x.max(), x.sum())]
            for model, x in seconds.items()
        ],
    )


def main() -> None:
    """Run what is missing, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    if options.data is not None:
        warnings.simplefilter("ignore")  # LightGBM and scikit-learn disagree about names of columns
        with at_most_threads(1):
            run(options.data)
    summarise()


if __name__ == "__main__":
    main()
