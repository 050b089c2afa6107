"""Log loss and accuracy under empirical priors: the default beside the six networks it was before.

    python bench/empirical.py --data openml-cc18 [--folds 2]    (half an hour; resumes where it was)
    python bench/empirical.py                                    (only print what is there)

The first folds of paper/accuracy-lite.toml, at most 1,000 rows of a table. The rows of results/
count classes alike, which log loss over rows as they come does not. One line of JSON per table,
model and fold is appended to bench/results/empirical.jsonl.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cocoloss import CoCoClassifier
from cocoloss.benchmark.accuracy import outer_folds
from cocoloss.benchmark.evaluation import ModelKind, evaluate_folds
from cocoloss.benchmark.models import FIRST_DEFAULT
from cocoloss.benchmark.plan import Tables
from cocoloss.benchmark.spec import load_spec
from cocoloss.benchmark.tasks import seed_of
from timing import RESULTS, show

SPEC = Path(__file__).parent.parent / "paper" / "accuracy-lite.toml"
STORE = RESULTS / "empirical.jsonl"
SETTINGS: dict[str, dict[str, Any]] = {"default": {}, "networks": FIRST_DEFAULT}


def kind(settings: dict[str, Any]) -> ModelKind:
    """Return a classifier with some settings, for plain log loss."""
    return ModelKind(
        lambda _, _params, seed: CoCoClassifier(random_state=seed, priors="empirical", **settings),
        neural=True,
    )


def finished() -> pd.DataFrame:
    """Return what is there."""
    lines = STORE.read_text().splitlines() if STORE.exists() else []
    columns = ["table", "model", "fold", "log loss", "balanced accuracy", "accuracy"]
    return pd.DataFrame(list(map(json.loads, lines)), columns=columns)


def run(data: Path, n_folds: int) -> None:
    """Fit what is missing."""
    spec = load_spec(SPEC)
    spec = replace(spec, data=replace(spec.data, source=f"folder:{data.resolve()}"))
    names = sorted(path.name.removesuffix(".csv.gz") for path in data.glob("*.csv.gz"))
    tables, done = Tables(spec), finished().groupby(["table", "model"]).size().to_dict()
    for name in names:
        for model, settings in SETTINGS.items():
            if (name, model) in done:
                continue
            table = tables.load(name)
            y = np.asarray(table.y)
            folds = dict(enumerate(outer_folds(name, y, spec)[:n_folds]))
            seeds = [seed_of(name, model, k) for k in folds]
            rows = evaluate_folds(kind(settings), {}, table.X, y, folds, seeds)
            with STORE.open("a") as file:
                for row in rows:
                    line = {"table": name, "model": model, "fold": row["fold"]}
                    line["log loss"] = row["log_loss"]
                    line["balanced accuracy"] = row["balanced_accuracy"]
                    line["accuracy"] = row["accuracy"]
                    file.write(json.dumps(line) + "\n")


def summarise() -> None:
    """Print means over tables that both have finished, and ratios."""
    frame = finished()
    of_tables = frame.groupby(["table", "model"])["log loss"].mean().unstack().dropna()
    default, networks = of_tables["default"], of_tables["networks"]
    ratio = default / networks
    show(
        f"log loss, empirical priors, {len(of_tables)} tables, {frame.fold.nunique()} folds",
        ["default", "networks", "ratio of means", "geometric mean of ratios", "better on"],
        [
            [
                f"{default.mean():.4f}",
                f"{networks.mean():.4f}",
                f"{default.mean() / networks.mean():.3f}",
                f"{np.exp(np.log(ratio).mean()):.3f}",
                f"{(ratio < 1).sum()}",
            ]
        ],
    )


def main() -> None:
    """Run what is missing, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--folds", type=int, default=2)
    options = parser.parse_args()
    if options.data is not None:
        run(options.data, options.folds)
    summarise()


if __name__ == "__main__":
    main()
