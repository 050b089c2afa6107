"""The scripts that read posteriors off embeddings, and compare networks with the closed form."""

import importlib
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, make_blobs

from cocoloss import CoCoClassifier
from cocoloss.geometry import simplex_frame, target_points
from cocoloss.tables import make_table

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture(scope="module")
def bench():
    """Import one of the scripts in bench/."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCH)
        yield importlib.import_module


class One:
    """A source of one table."""

    def __init__(self, X, y):
        frame = pd.DataFrame(X, columns=[f"V{j}" for j in range(X.shape[1])])
        self.table = make_table("made", frame.assign(target=y.astype(str)), "target")

    def load(self, _):
        return self.table


@pytest.fixture(scope="module")
def wdbc():
    """The table of OpenML, which has six decimal places, and the other class first."""
    X, y = load_breast_cancer(return_X_y=True)
    return One(X.round(6), 1 - y)


def rows(name, **wanted):
    lines = (BENCH / "results" / f"{name}.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if wanted.items() <= line.items()]


def test_the_formula_reads_the_posterior_off_a_turned_conditional_mean(bench):
    posteriors = bench("posteriors")
    rng = np.random.default_rng(0)
    C, q = 4, 6
    vertices = simplex_frame(C, q, random_state=1)
    y = np.repeat(np.arange(C), 5)
    true = rng.dirichlet(np.ones(C), size=30)
    turn = np.linalg.qr(rng.normal(size=(q, q)))[0]
    h = [part @ vertices @ turn for part in (np.eye(C)[y], true)]
    read = posteriors.by_formula(posteriors.turned(h, y, C)[1], n_rows=10**9)
    np.testing.assert_allclose(read, true, atol=1e-8)


def test_bayes_rule_brings_uniform_priors_to_class_shares(bench):
    under_shares = bench("posteriors").under_shares
    density, share = np.array([[0.2, 0.6], [0.5, 0.5]]), np.array([0.9, 0.1])
    uniform = density / density.sum(axis=1, keepdims=True)
    expected = [[0.18 / 0.24, 0.06 / 0.24], [0.9, 0.1]]
    np.testing.assert_allclose(under_shares(uniform, share), expected)


def test_likeness_of_kernels_is_one_for_rotations_and_scales_and_near_zero_for_strangers(bench):
    script = bench("two_solvers")
    rng = np.random.default_rng(0)
    h = rng.normal(size=(3, 200, 5))
    h[1] = 2 * h[0] @ np.linalg.qr(rng.normal(size=(5, 5)))[0]
    kernels = script.kernels_of(h)
    found = script.compared(kernels[[0, 1]], kernels[0], kernels[1])
    np.testing.assert_allclose(list(found.values()), 1)
    assert abs(script.correlation(kernels[0], kernels[2])) < 0.05
    # The centred alignment as defined: with the matrix that takes off the means.
    H = np.eye(200) - 1 / 200
    K, L = H @ kernels[0] @ H, H @ kernels[2] @ H
    defined = np.trace(K @ L) / np.sqrt(np.trace(K @ K) * np.trace(L @ L))
    assert script.alignment(kernels[0], kernels[2]) == pytest.approx(defined)
    above = np.triu_indices(200, 1)
    expected = np.corrcoef(kernels[0][above], kernels[2][above])[0, 1]
    assert script.correlation(kernels[0], kernels[2]) == pytest.approx(expected)


def test_a_split_yields_what_is_planned_and_the_same_again(bench, monkeypatch):
    posteriors = bench("posteriors")
    monkeypatch.setattr(posteriors, "EPOCHS", 4)
    few = {"network": {"max_iter": 2, "n_members": 1}, "kernel": {}}
    made_by = lambda solver, **given: CoCoClassifier(solver=solver, **few[solver], **given)  # noqa: E731
    monkeypatch.setattr(posteriors, "CoCoClassifier", made_by)
    X, y = make_blobs(120, n_features=3, centers=2, cluster_std=4.0, random_state=0)
    made = list(posteriors.run(One(X, y), "made", 0))
    scores = [line for line in made if "log loss" in line]
    assert {posteriors.key_of(line) for line in scores} == posteriors.planned("made", 0)
    assert len({(posteriors.key_of(line), "sums" in line) for line in made}) == len(made)
    for line in made:
        if "bins" in line:
            like = [
                of for of in scores if posteriors.key_of(of)[:-1] == posteriors.key_of(line)[:-1]
            ]
            n, sure, right = np.sum(line["bins"], axis=0)
            assert n == 24  # a fifth
            assert right / n == pytest.approx(like[0]["accuracy"], abs=1e-4)
            assert 0.5 <= sure / n <= 1
    assert made[:2] == list(itertools.islice(posteriors.run(One(X, y), "made", 0), 2))


def test_rows_of_the_closed_form_are_reproduced(bench, wdbc):
    posteriors = bench("posteriors")
    table, y, parts = posteriors.split_rows(wdbc, "wdbc", 0)
    found = {
        (kind, way): posteriors.scored(p, y[parts[2]])
        for kind, way, p in itertools.islice(posteriors.read_estimators(table, y, parts, 0), 4)
    }
    assert len(found) == 4  # networks come after these
    for (kind, way), scores in found.items():
        wanted = {"table": "wdbc", "split": 0, "trained": kind, "read by": way}
        (row,) = [line for line in rows("posteriors", **wanted) if "bins" not in line]
        assert scores == pytest.approx({name: row[name] for name in scores}, abs=1e-3)


def test_rows_of_two_solvers_are_reproduced(bench, wdbc):
    script = bench("two_solvers")
    made = list(script.run(wdbc, "wdbc", ["norm weight 0"], (0, 10)))
    assert len(made) == 3
    for line in made:
        wanted = {name: line[name] for name in ("table", "trained", "epoch") if name in line}
        (row,) = rows("two_solvers", **wanted)
        assert line == pytest.approx(row, abs=1e-3)


def test_the_closed_form_has_the_vertices_as_points(bench):
    """Rows that say all about their class are embedded near its vertex, under any class shares."""
    script = bench("two_solvers")
    torch = pytest.importorskip("torch")
    X, y = make_blobs([80, 20, 20], n_features=2, random_state=3, centers=[[0, 9], [9, 0], [0, 0]])
    x = torch.from_numpy(X.astype(np.float32) / 9)
    f = script.closed_form([x, x], y)
    assert np.abs(f - target_points("simplex", 3)[y]).mean() < 0.05
