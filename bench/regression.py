"""The regressor beside boosted trees: errors, coverage of intervals, seconds.

    python bench/regression.py --data FOLDER [--most-rows 1500] [--splits 2] [--table NAME ...]
    python bench/regression.py --summary                          (only print what is there)

A folder holds tables NAME.csv.gz with a column "target" and an index.csv. Four fifths of a table,
at most so many of its rows, are learnt from, and at most 5,000 of the others predicted. LightGBM
and CatBoost take part if they are installed, CatBoost only where rows are few. One line of JSON per
table, split and model is appended to bench/results/regression.jsonl, and is not run again.
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from cocoloss import CoCoRegressor
from timing import RESULTS, show

MOST_PREDICTED = 5_000
FEW = 2_000  # rows up to which CatBoost takes part
STORE = RESULTS / "regression.jsonl"
OURS = "CoCoRegressor()"


def models(n_rows: int) -> dict[str, Callable[[], Any]]:
    """Return who takes part."""
    found: dict[str, Callable[[], Any]] = {
        OURS: lambda: CoCoRegressor(random_state=0),
        "hgb": lambda: HistGradientBoostingRegressor(random_state=0),
        "rf": lambda: RandomForestRegressor(random_state=0, n_jobs=1),
    }
    try:
        from lightgbm import LGBMRegressor  # noqa: PLC0415 - a guest

        found["lightgbm"] = lambda: LGBMRegressor(random_state=0, n_jobs=1, verbose=-1)
        if n_rows <= FEW:
            from catboost import CatBoostRegressor  # noqa: PLC0415 - a guest

            quiet = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
            found["catboost"] = lambda: CatBoostRegressor(random_seed=0, **quiet)
    except ImportError:
        pass
    return found


def parts(folder: Path, name: str, split: int, most_rows: int) -> list[Any]:
    """Return rows to learn from and rows to predict, each with numbers."""
    table = pd.read_csv(folder / f"{name}.csv.gz")
    order = np.random.default_rng(split).permutation(len(table))
    n = min(most_rows, int(0.8 * len(table)))
    X, y = table.drop(columns="target"), table["target"].to_numpy()
    train, test = order[:n], order[n:][:MOST_PREDICTED]
    return [X.iloc[train], y[train], X.iloc[test], y[test]]


def measured(model: Any, rows: list[Any]) -> dict[str, float]:
    """Return the error of a model, its seconds, and how many numbers its intervals hold."""
    X, y, X_test, y_test = rows
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    missed = model.predict(X_test) - y_test
    line = {"rmse": float(np.sqrt(np.mean(missed**2))), "mae": float(np.mean(np.abs(missed)))}
    line |= {"fit seconds": seconds, "deviation": float(np.std(y_test))}
    if hasattr(model, "predict_interval"):
        low, high = model.predict_interval(X_test, coverage=0.9).T
        line["coverage"] = float(np.mean((low <= y_test) & (y_test <= high)))
        line["width"] = float(np.mean(high - low))
    return line


def summarise() -> None:
    """Print errors of ours relative to each peer, and the coverage, table by table."""
    frame = pd.DataFrame([json.loads(line) for line in STORE.read_text().splitlines()])
    for cap, lines in frame.groupby("cap"):
        runs = lines.set_index(["table", "split", "model"])
        log = np.log(runs["rmse"].unstack())
        ratios = log.rsub(log[OURS], axis=0).groupby("table").mean()
        ratios = ratios.drop(columns=OURS).dropna(axis=1)
        ratios.loc["geometric mean"] = ratios.mean()
        ours = runs.xs(OURS, level="model").groupby("table")[["coverage", "fit seconds"]].mean()
        ours.loc["geometric mean"] = ours.mean()
        grid = np.exp(ratios).join(ours).round(3)
        rows = [[name, *(f"{value:.3f}" for value in row)] for name, row in grid.iterrows()]
        title = (
            f"RMSE of {OURS} over that of each, at most {cap:,} rows (last line: of ours, means)"
        )
        show(title, ["table", *grid.columns], rows)


def main() -> None:
    """Run what is missing, and sum up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--most-rows", type=int, default=1500)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--table", nargs="+")
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    done = set()
    if STORE.exists():
        lines = map(json.loads, STORE.read_text().splitlines())
        done = {(line["table"], line["split"], line["cap"], line["model"]) for line in lines}
    names: list[str] = []
    if not options.summary:
        names = options.table or pd.read_csv(options.data / "index.csv")["name"].tolist()
    for name in names:
        for split in range(options.splits):
            rows = parts(options.data, name, split, options.most_rows)
            for model, make in models(len(rows[1])).items():
                if (name, split, options.most_rows, model) in done:
                    continue
                line = {"table": name, "split": split, "cap": options.most_rows, "model": model}
                line |= {"rows": len(rows[1])} | measured(make(), rows)
                with STORE.open("a") as file:
                    file.write(json.dumps(line) + "\n")
    summarise()


if __name__ == "__main__":
    main()
