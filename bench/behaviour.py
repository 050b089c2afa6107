"""What the software answers, as hashes: run before a change and after it, and compare.

    python bench/behaviour.py DATA --out before.json
    python bench/behaviour.py DATA --against before.json

DATA is a folder of tables with a ``schema.json`` (OpenML-CC18, as the benchmark has it). Hashes are
of all bits, so they hold for one machine and one set of versions; only public names are used. What
differs is printed, and then the exit status is 1.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

# numbers, categories, gaps, imbalance, many columns, 46 classes
TABLES = [
    "vehicle",
    "credit-g",
    "sick",
    "MiceProtein",
    "cylinder-bands",
    "balance-scale",
    "splice",
    "dresses-sales",
    "eucalyptus",
    "ozone-level-8hr",
    "cnae-9",
    "Devnagari-Script",
]
QUICK = {"max_iter": 6, "n_members": 2, "random_state": 0}
ROWS = 600
PAPER = Path(__file__).parents[1] / "paper"


def digest(*values):
    """Return a hash of arrays, frames and anything that prints, to the last bit."""
    total = hashlib.sha256()
    for value in values:
        if isinstance(value, pd.DataFrame):
            value = value.to_csv()  # noqa: PLW2901
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            total.update(str((value.dtype, value.shape)).encode())
            total.update(np.ascontiguousarray(value).tobytes())
        else:
            listed = value.tolist() if isinstance(value, np.ndarray) else value
            total.update(repr(listed).encode())
    return total.hexdigest()[:16]


def answers(model, X):
    """Return everything that a fitted classifier says of some rows."""
    parts = [model.predict(X), model.transform(X)]
    parts += [getattr(model, m)(X) for m in ("predict_proba", "outlier_score") if hasattr(model, m)]
    return digest(*parts, model.decision_function(X))


def load_tables(folder):
    from cocoloss.data import FolderSource, cap_rows

    source = FolderSource(folder)
    return {name: cap_rows(source.load(name), ROWS, seed=0) for name in TABLES}


def dated_table():
    """Return a table with dates, text, booleans, gaps and numbers written as text."""
    rng = np.random.default_rng(0)
    n = 300
    y = rng.integers(0, 3, n)
    X = pd.DataFrame(
        {
            "when": pd.Timestamp("2020-01-01")
            + pd.to_timedelta(y * 40 + rng.integers(0, 90, n), unit="D"),
            "size": np.where(rng.random(n) < 0.1, np.nan, y + rng.normal(size=n)),
            "kind": rng.choice(["a", "b", None], n),
            "flag": rng.random(n) < 0.3,
            "price": [f"{v:.2f}".replace(".", ",") for v in rng.gamma(2 + y, 100.0)],
            "code": [f"{v:04d}" for v in rng.integers(0, 12, n)],
        }
    )
    return X, np.array(["low", "mid", "high"])[y]


def classifiers(tables):
    from cocoloss import (
        CoCoClassifier,
        CrossEntropyClassifier,
        DotRegressionClassifier,
        cross_validate_lockstep,
        load,
    )

    kinds = [CoCoClassifier, DotRegressionClassifier, CrossEntropyClassifier]
    for name, table in tables.items():
        for kind in kinds:
            yield f"{kind.__name__}/{name}", answers(kind(**QUICK).fit(table.X, table.y), table.X)
    X, y = dated_table()
    for kind in kinds:
        yield f"{kind.__name__}/dates", answers(kind(**QUICK).fit(X, y), X)

    vehicle, credit = tables["vehicle"], tables["credit-g"]
    for head in ("gaussian", "centroid", "angular", "readout", "ridge", "svm", "auto"):
        for kind in kinds:
            try:
                model = kind(**QUICK, head=head).fit(vehicle.X, vehicle.y)
            except ValueError as error:
                yield f"head/{head}/{kind.__name__}", type(error).__name__
            else:
                yield f"head/{head}/{kind.__name__}", answers(model, vehicle.X)

    rng = np.random.default_rng(1)
    whole, parts = rng.integers(0, 4, len(credit.y)), rng.random(len(credit.y))
    for label, weights in (("whole", whole), ("parts", parts)):
        for kind in kinds:
            model = kind(**QUICK).fit(credit.X, credit.y, sample_weight=weights)
            yield f"weights/{label}/{kind.__name__}", answers(model, credit.X)
    settings = {
        "balanced": {"class_weight": "balanced"},
        "class_weight": {"class_weight": {"good": 1.0, "bad": 3.0}},
        "empirical": {"priors": "empirical"},
        "no_early_stopping": {"early_stopping": False, "normalize": False},
        "dropout": {"dropout": 0.3, "learning_rate": "constant", "clip_norm": 1.0},
        "tanh": {"output": "tanh", "hidden_layer_sizes": (16,), "embedding_dim": 3},
        "warm": {"warm_start": True},
    }
    for label, extra in settings.items():
        for kind in kinds:
            model = kind(**QUICK, **extra).fit(credit.X, credit.y)
            yield f"settings/{label}/{kind.__name__}", answers(model, credit.X)
            if label == "warm":
                yield (
                    f"settings/warmer/{kind.__name__}",
                    answers(model.fit(credit.X, credit.y), credit.X),
                )
    for label, extra in {
        "loss": {"loss": "balanced"},
        "plain": {"loss": "coco"},
        "packing": {"similarity": "packing", "embedding_dim": 2},
        "orthoplex": {"similarity": "orthoplex"},
    }.items():
        model = CoCoClassifier(**QUICK, **extra).fit(vehicle.X, vehicle.y)
        yield f"settings/{label}", answers(model, vehicle.X)

    for kind in kinds:
        model = kind(**QUICK)
        for start in range(0, 600, 200):
            part = slice(start, start + 200)
            model.partial_fit(credit.X.iloc[part], credit.y.iloc[part], classes=["bad", "good"])
        yield f"partial_fit/{kind.__name__}", answers(model, credit.X)
        model = kind(**QUICK).fit(credit.X, credit.y)
        model.partial_fit(credit.X.iloc[:200], credit.y.iloc[:200])
        yield f"partial_fit_after_fit/{kind.__name__}", answers(model, credit.X)

    for kind in kinds:
        for name in ("vehicle", "credit-g"):
            table = tables[name]
            scores = cross_validate_lockstep(
                kind(**QUICK), table.X, table.y, cv=5, return_estimator=True
            )
            parts = [e.predict_proba(table.X) for e in scores["estimator"]]
            yield f"lockstep/{kind.__name__}/{name}", digest(scores["test_score"], *parts)

    with tempfile.TemporaryDirectory() as folder:
        for kind in kinds:
            model = kind(**QUICK).fit(credit.X, credit.y)
            path = Path(folder) / "model.coco"
            model.save(path)
            yield f"file/{kind.__name__}", answers(load(path), credit.X)


def preprocessing(folder, tables):
    from cocoloss.data import FolderSource, read_table
    from cocoloss.preprocessing import TablePreprocessor

    source = FolderSource(folder)
    for name in source.names():
        if (Path(folder) / f"{name}.csv.gz").stat().st_size < 4e5:
            table = source.load(name)
            made = TablePreprocessor().fit(table.X)
            matrix = np.asarray(made.transform(table.X))
            yield f"fingerprint/{name}", table.fingerprint
            yield f"preprocessing/{name}", digest(matrix, made.get_feature_names_out())
    X, _ = dated_table()
    made = TablePreprocessor().fit(X)
    yield "preprocessing/dates", digest(np.asarray(made.transform(X)), made.get_feature_names_out())
    with tempfile.TemporaryDirectory() as where:
        for label, text in MESSY.items():
            path = Path(where) / f"{label}.csv"
            path.write_bytes(text)
            frame = read_table(path)
            yield f"read/{label}", digest(frame, [str(t) for t in frame.dtypes])
    _ = tables


MESSY = {
    "semicolons": b"a;b;c\n1,5;x;01\n2,25;y;02\n3,0;z;03\n",
    "windows": "name;größe\nMüller;1,5\nJosé;2,5\n".encode("cp1252"),
    "utf16": "a\tb\n1\tx\n2\ty\n".encode("utf-16"),
    "money": "price,y\n€12.50,a\n€1,300.00,b\n€7.00,a\n".replace(
        "€1,300.00", '"€1,300.00"'
    ).encode(),
    "dates": b"day,y\n01.02.2020,a\n15.03.2021,b\n28.11.2022,a\n",
    "quoted": b'a,b\n"one, two",1\n"three\nfour",2\n',
    "gaps": b"a,b,y\n1,NA,x\n,2,y\n3,?,x\n",
    "codes": b"zip,y\n01234,a\n00456,b\n98765,a\n",
    "thousands": b"n;y\n1.234,50;a\n2.500,25;b\n12.000,00;a\n",
}


def run(*command, cwd):
    env = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "cocoloss", *map(str, command)],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


def command_line(folder):
    with tempfile.TemporaryDirectory() as where:
        for name, target in (("credit-g", None), ("vehicle", None), ("dresses-sales", None)):
            schema = json.loads((Path(folder) / "schema.json").read_text())
            entry = schema.get(name, schema.get("tables", {}).get(name, {}))
            target = target or entry.get("target", "target")  # noqa: PLW2901
            path = Path(folder) / f"{name}.csv.gz"
            run("fit", path, "--target", target, "--epochs", 5, "--out", "m.coco", cwd=where)
            run("predict", "m.coco", path, "--proba", "--out", "p.csv", cwd=where)
            yield f"cli/predict/{name}", digest((Path(where) / "p.csv").read_text())
            run("embed", "m.coco", path, "--out", "e.csv", cwd=where)
            yield f"cli/embed/{name}", digest((Path(where) / "e.csv").read_text())
            found = run(
                *("evaluate", path, "--target", target, "--epochs", 5, "--folds", 4, "--json"),
                cwd=where,
            )
            for model in json.loads(found):
                model.pop("seconds")
                folds = {k: v for k, v in model.pop("folds").items() if "seconds" not in k}
                yield f"cli/evaluate/{name}/{model['model']}", digest(model, folds)


def benchmark():
    for kind in ("accuracy", "imbalance", "convergence", "evolution"):
        with tempfile.TemporaryDirectory() as where:
            spec = Path(PAPER) / f"{kind}-smoke.toml"
            text = spec.read_text()
            for old, new in (
                ("epochs = 20", "epochs = 5"),
                ("outer = 10", "outer = 6"),
                ("trials_per_hyperparameter = 2", "trials_per_hyperparameter = 1"),
                ('["iris", "wine", "breast_cancer"]', '["iris", "wine"]'),
            ):
                text = text.replace(old, new)
            text = text.replace('"coco-s1"]', '"coco-s1", "coco-balanced-printed"]')
            (Path(where) / spec.name).write_text(text)
            for extra in PAPER.glob("*.py"):  # experiments that lie beside their specs
                (Path(where) / extra.name).write_bytes(extra.read_bytes())
            run("bench", "run", spec.name, "--store", "s.sqlite", "--workers", 0, cwd=where)
            run("bench", "export", "s.sqlite", "--tasks", "--out", "t.parquet", cwd=where)
            frame = pd.read_parquet(Path(where) / "t.parquet")
            frame = frame[frame["dataset"] != ""]  # those are of the run itself
            for (dataset, model), rows in frame.groupby(["dataset", "model"]):
                lines = sorted(
                    str([untimed(row[name]) for name in KEPT]) for _, row in rows.iterrows()
                )
                yield f"bench/{kind}/{dataset}/{model}", digest(lines)


KEPT = (
    "spec_hash",
    "key",
    "fingerprint",
    "stage",
    "part",
    "status",
    "error",
    "measures",
    "rows",
    "params",
)


def untimed(text):
    """Return a cell of exported results without what differs from run to run."""

    def pruned(value):
        if isinstance(value, dict):
            return {k: pruned(v) for k, v in value.items() if "seconds" not in k}
        return [pruned(v) for v in value] if isinstance(value, list) else value

    return pruned(json.loads(text)) if text.startswith(("[", "{")) else text


def cases(folder, only):
    tables = load_tables(folder)
    groups = {
        "classifiers": lambda: classifiers(tables),
        "preprocessing": lambda: preprocessing(folder, tables),
        "cli": lambda: command_line(folder),
        "bench": benchmark,
    }
    for group, make in groups.items():
        if not only or group in only:
            yield from make()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("--out", help="write the hashes into this file")
    parser.add_argument("--against", help="compare with the hashes of this file")
    parser.add_argument("--only", action="append", help="classifiers, preprocessing, cli or bench")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    before = json.loads(Path(asked.against).read_text()) if asked.against else {}
    found, differ = {}, 0
    for name, value in cases(Path(asked.data).resolve(), asked.only):
        found[name] = value
        if before and before.get(name) != value:
            differ += 1
            print(f"differs: {name}: {before.get(name)} -> {value}", flush=True)
    if asked.out:
        Path(asked.out).write_text(json.dumps(found, indent=1) + "\n")
    print(f"{len(found)} cases, {differ} differ")
    return differ > 0


if __name__ == "__main__":
    sys.exit(main())
