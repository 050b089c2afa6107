"""Few labels and many rows: unlabelled="soft" beside "ignore" and scikit-learn's three ways.

    python bench/few_labels.py --data FOLDER [FOLDER ...]     (half an hour; resumes where it was)
    python bench/few_labels.py --summary                      (only print what is there)

Tables of up to 1,000 training rows, of which 5, 10 or 20 of each class have a label; up to 1,000
other rows are scored by balanced accuracy. Several draws of rows and labels. Self-training is
scikit-learn's SelfTrainingClassifier around ``CoCoClassifier``; label spreading and label
propagation see what our preprocessing makes of the table. One line of JSON per table, draw, number
of labels and way is appended to results/few_labels.jsonl.

The folders hold ``<name>.csv.gz`` files (class column ``target``) and ``schema.json``.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.semi_supervised import LabelPropagation, LabelSpreading, SelfTrainingClassifier

from cocoloss import CoCoClassifier
from cocoloss.columns import TablePreprocessor
from cocoloss.tables import FolderSource
from timing import RESULTS

CHOSE = (  # tables that what "soft" does was chosen on
    *("cardiotocography", "column3C", "dermatology", "heart-statlog", "hypothyroid", "mozilla4"),
    *("nursery", "vote", "waveform-5000", "banknote-authentication", "car", "churn", "credit-g"),
    *("mfeat-zernike", "pendigits", "phoneme", "satimage", "segment", "splice", "vehicle"),
    *("wall-robot-navigation", "wdbc", "balance-scale", "breast-w", "cmc", "diabetes"),
    *("eucalyptus", "ilpd", "kr-vs-kp", "mfeat-morphological", "optdigits", "qsar-biodeg"),
    *("spambase", "steel-plates-fault", "tic-tac-toe", "vowel"),
)
# That took no part: twelve, and all others with 40 rows of each class and at most 300 columns.
OTHERS = (
    *("analcatdata_authorship", "cylinder-bands", "dna", "ecoli", "first-order-theorem-proving"),
    *("heart-c", "kc2", "letter", "mfeat-fourier", "ozone-level-8hr", "semeion", "wilt"),
    *("Satellite", "autoUniv-au6-1000", "breast-cancer", "haberman", "hill-valley", "sonar"),
    *("tae", "GesturePhaseSegmentationProcessed", "MiceProtein", "PhishingWebsites", "adult"),
    *("analcatdata_dmft", "bank-marketing", "blood-transfusion-service-center"),
    *("climate-model-simulation-crashes", "connect-4", "credit-approval", "dresses-sales"),
    *("electricity", "jm1", "jungle_chess_2pcs_raw_endgame_complete", "kc1", "mfeat-factors"),
    *("mfeat-karhunen", "mfeat-pixel", "pc1", "pc3", "pc4", "sick", "texture"),
)
TABLES = (*OTHERS, *CHOSE)
MOST_ROWS, MOST_TEST, NO_LABEL = 1000, 1000, -1
STORE = RESULTS / "few_labels.jsonl"
SCORE = "balanced accuracy"


def networks(unlabelled: str) -> CoCoClassifier:
    """Return networks as they come."""
    return CoCoClassifier(solver="network", unlabelled=unlabelled, random_state=0)


WAYS: dict[str, Callable[[], Any]] = {
    "ignore": lambda: CoCoClassifier(unlabelled="ignore", random_state=0),
    "soft": lambda: CoCoClassifier(unlabelled="soft", random_state=0),
    "kernels, soft": lambda: CoCoClassifier(solver="kernel", unlabelled="soft", random_state=0),
    "self-training": lambda: SelfTrainingClassifier(CoCoClassifier(random_state=0)),
    "label spreading": lambda: make_pipeline(TablePreprocessor(), LabelSpreading("knn")),
    "label propagation": lambda: make_pipeline(TablePreprocessor(), LabelPropagation("knn")),
    "networks, ignore": lambda: networks("ignore"),
    "networks, soft": lambda: networks("soft"),
}


def drawn(
    y: NDArray[np.int64], n_labels: int, draw: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return training rows, their classes or -1, and rows to score."""
    n_test = min(MOST_TEST, max(len(y) // 4, len(y) - MOST_ROWS))
    train, test = train_test_split(
        np.arange(len(y)),
        test_size=n_test,
        train_size=min(MOST_ROWS, len(y) - n_test),
        stratify=y if np.bincount(y).min() > 3 else None,
        random_state=draw,
    )
    generator = np.random.default_rng([draw, n_labels])
    given = np.full(len(train), NO_LABEL)
    for c in np.unique(y[train]):
        chosen = generator.permutation(np.flatnonzero(y[train] == c))[:n_labels]
        given[chosen] = c
    return train, given, test


def balanced_log_loss(y: NDArray[np.int64], proba: Any, classes: Any) -> float:
    """Return the log loss, all classes alike."""
    inside = np.isin(y, classes)
    y, proba = y[inside], np.asarray(proba)[inside]
    said = np.maximum(proba[np.arange(len(y)), np.searchsorted(classes, y)], 1e-12)
    return float(np.average(-np.log(said), weights=1 / np.bincount(y)[y]))


def run(
    folders: Sequence[Path],
    tables: Sequence[str],
    labels: Sequence[int],
    draws: Sequence[int],
    ways: Sequence[str],
) -> None:
    """Append what is not in the store yet."""
    done = set()
    if STORE.exists():
        lines = map(json.loads, STORE.read_text(encoding="utf-8").splitlines())
        done = {tuple(line[key] for key in ("table", "labels", "draw", "way")) for line in lines}
    homes = {
        name: folder
        for name in tables
        for folder in folders
        if (folder / f"{name}.csv.gz").exists()
    }
    for draw in draws:
        for name, folder in homes.items():
            table = FolderSource(folder).load(name)
            y = np.unique(table.y.to_numpy(str), return_inverse=True)[1]
            for n_labels in labels:
                train, given, test = drawn(y, n_labels, draw)
                for way in ways:
                    if (name, n_labels, draw, way) in done:
                        continue
                    started = time.process_time()
                    classifier = WAYS[way]().fit(table.X.iloc[train], given)
                    seconds = time.process_time() - started
                    found = classifier.predict(table.X.iloc[test])
                    line = {"table": name, "labels": n_labels, "draw": draw, "way": way}
                    line["chose"] = name in CHOSE
                    line[SCORE] = balanced_accuracy_score(y[test], found)
                    line["seconds"] = round(seconds, 3)
                    if hasattr(classifier, "predict_proba"):
                        proba = classifier.predict_proba(table.X.iloc[test])
                        loss = balanced_log_loss(y[test], proba, classifier.classes_)
                        if np.isfinite(loss):  # label spreading may say nothing of a row
                            line["log loss"] = loss
                    with STORE.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(line) + "\n")


def summary() -> None:
    """Print means over tables, and the tables themselves."""
    rows = pd.read_json(STORE, lines=True)
    which = rows["table"].isin(CHOSE).map({True: "that chose", False: "other"})
    for (n_labels, group), part in rows.groupby(["labels", which]):
        scores = part.pivot_table(index=["table", "draw"], columns="way", values=SCORE)
        print(f"\n{n_labels} labels of each class, {scores.index.unique(0).size} {group} tables")
        for way in scores:
            against = "networks, ignore" if way.startswith("networks") else "ignore"
            if against not in scores:
                continue
            both = scores[list({way, against})].dropna()  # on the same draws
            gain = (both[way] - both[against]).groupby("table").mean().sort_values()
            seconds = part.loc[part["way"] == way, "seconds"].median()
            print(
                f"{way:18s} {both[way].groupby('table').mean().mean():.4f}  "
                f"{gain.mean():+.4f} ± {gain.sem():.4f}, {(gain > 0).sum()} of {len(gain)} better, "
                f"{len(both)} fits, {seconds:.1f} s"
            )
            if way == "soft":
                losses = part.pivot_table(index=["table", "draw"], columns="way", values="log loss")
                change = losses[way] - losses[against]
                print(f"  balanced log loss {change.groupby('table').mean().mean():+.3f}")
                print("  " + ", ".join(f"{name} {value:+.3f}" for name, value in gain.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", default=[])
    parser.add_argument("--tables", nargs="+", default=list(TABLES), choices=TABLES)
    parser.add_argument("--labels", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    if not given.summary:
        run(given.data, given.tables, given.labels, given.draws, given.ways)
    summary()
