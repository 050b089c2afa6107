"""What text is worth: wide sparse matrices, and a column of text beside others.

The texts are there wherever the package is: first paragraphs of docstrings, whose classes are the
packages they come from, and messages of errors, whose classes are the kinds of error.

    python bench/texts.py [SOURCE TABLE ...]    # such as folder:data/openml-cc18 vehicle credit-g
"""

import ast
import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from cocoloss import CoCoClassifier
from cocoloss.columns import sparse, texts
from cocoloss.metrics import balanced_accuracy
from cocoloss.tables import load_source

PACKAGES = ("numpy", "pandas", "scipy", "sklearn", "torch")
N_TRAIN, N_TEST = 1500, 2000
READERS = {
    "tf-idf": TfidfVectorizer(),
    "counts": CountVectorizer(),
    "tf-idf of pairs": TfidfVectorizer(ngram_range=(1, 2)),
}


def corpora() -> dict[str, list[tuple[str, str]]]:
    """Return texts and their classes, shuffled, each text once."""
    docs: dict[str, str] = {}
    errors: dict[str, str] = {}
    for package in PACKAGES:
        for node in _nodes(package):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                said = (ast.get_docstring(node) or "").split("\n\n")[0]
                if len(said.split()) >= 4:
                    docs.setdefault(" ".join(said.split())[:300], package)
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                kind = getattr(node.exc.func, "id", "")
                said = _literal(node.exc.args[0]) if node.exc.args else ""
                if len(said.split()) >= 2:
                    errors.setdefault(said[:300], kind)
    common = {kind for kind, _ in Counter(errors.values()).most_common(5)}
    kept = {said: kind for said, kind in errors.items() if kind in common}
    found = {}
    for name, pairs in (("docstrings", docs), ("errors", kept)):
        found[name] = sorted(pairs.items())
        random.Random(0).shuffle(found[name])  # noqa: S311 - no secret
    return found


def _nodes(package: str) -> Iterator[ast.AST]:
    """Give all of the code of a package but its tests."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    for path in sorted(Path(spec.origin).parent.rglob("*.py")):
        if "test" not in path.parts[-2] and not path.stem.startswith("test"):
            with suppress(SyntaxError):  # of a later Python
                yield from ast.walk(ast.parse(path.read_text(encoding="utf-8")))


def _literal(node: ast.expr) -> str:
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) for part in parts if isinstance(part, ast.Constant))


def score(model: object, X: object, y: np.ndarray, n: int) -> float:
    """Return the balanced accuracy of a model on the rows after the first n."""
    model.fit(X[:n], y[:n])  # type: ignore[attr-defined]
    return float(balanced_accuracy(y[n:], model.predict(X[n:])))  # type: ignore[attr-defined]


def wide_matrices(found: dict[str, list[tuple[str, str]]]) -> None:
    """Print how many numbers a row of a wide sparse matrix is to be, beside logistic regression."""
    print("balanced accuracy of sparse matrices; columns of the second part: numbers of a row")
    print(f"{'':32}{'logistic':>10}" + "".join(f"{q:>8}" for q in (50, 100, 200, 300)))
    for task, pairs in found.items():
        X, y = (
            np.array(part, dtype=object) for part in zip(*pairs[: N_TRAIN + N_TEST], strict=True)
        )
        for name, reader in READERS.items():
            linear = LogisticRegression(C=10, class_weight="balanced", max_iter=500)
            scores = [score(make_pipeline(reader, linear), X, y.astype(str), N_TRAIN)]
            for sparse.MOST_NUMBERS in (50, 100, 200, 300):
                pipeline = make_pipeline(reader, CoCoClassifier(random_state=0))
                scores.append(score(pipeline, X, y.astype(str), N_TRAIN))
            print(
                f"{task:12}{name:20}{scores[0]:>10.3f}" + "".join(f"{s:>8.3f}" for s in scores[1:])
            )


def text_beside_columns(pairs: list[tuple[str, str]], source: str, names: list[str]) -> None:
    """Print what a column of text does to tables: one that says nothing, and one that says some."""
    by_class = {p: [said for said, package in pairs if package == p] for p in PACKAGES[1:]}
    settings = [(30, 5.0), (30, 30.0), (100, 10.0), (100, 100.0)]
    print("\nbalanced accuracy of tables with a text; columns: its numbers, and their variance")
    print(f"{'':28}{'without':>9}" + "".join(f"{q:>6} / {v:<4g}" for q, v in settings))
    for name in names:
        table = load_source(source).load(name)
        generator = np.random.default_rng(0)
        order = generator.permutation(len(table.X))[:1600]
        X, y = table.X.iloc[order].reset_index(drop=True), np.asarray(table.y).astype(str)[order]
        without = score(CoCoClassifier(random_state=0), X, y, len(y) // 2)
        code = pd.factorize(y, sort=True)[0] % len(by_class)
        for kind, share in (("noise", 0.0), ("useful", 0.6)):
            drawn = np.where(
                generator.random(len(y)) < share,
                code,
                generator.integers(len(by_class), size=len(y)),
            )
            lists = list(by_class.values())
            X["note"] = [lists[k][generator.integers(len(lists[k]))] for k in drawn]
            scores = []
            for texts.MOST_NUMBERS, texts.VARIANCE in settings:
                scores.append(score(CoCoClassifier(random_state=0), X, y, len(y) // 2))
            print(f"{name:20}{kind:8}{without:>9.3f}" + "".join(f"{s:>13.3f}" for s in scores))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = corpora()
    print({name: len(pairs) for name, pairs in found.items()})
    wide_matrices(found)
    source, *names = sys.argv[1:] or ["sklearn", "wine", "breast_cancer", "digits"]
    text_beside_columns(found["docstrings"], source, names)
