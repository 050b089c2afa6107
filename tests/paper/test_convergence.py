"""Early convergence: the printed sizes and counts, and heads that are the same for all."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

from cocoloss.benchmark.analysis import Ranking, read_findings
from cocoloss.benchmark.store import Store
from cocoloss.benchmark.tasks import load_experiment
from cocoloss.columns import TablePreprocessor
from cocoloss.losses import CoCoLoss, CrossEntropyLoss, DotRegressionLoss
from play import iris, play, spec_of, table_of, wine
from synthetic_store import PAPER, fill_convergence, infos_of, make_spec

convergence = load_experiment("convergence", [PAPER])
FOLDS = {"folds": {"outer": 3}}


def result_of(model, table, **sections):
    ((_, result),) = play(convergence, spec_of("convergence", [model], **(FOLDS | sections)), table)
    assert result.ok, result.error
    return result


def curve(result, head):
    return [
        np.mean(
            [r["balanced_accuracy"] for r in result.rows if (r["head"], r["n_terms"]) == (head, n)]
        )
        for n in result.extra["n_terms"]
    ]


@pytest.mark.parametrize(
    ("d", "n_classes", "units"),
    [
        (4, 3, (40, 8)),  # 10 d; at least 8
        (1, 2, (10, 8)),
        (2, 26, (104, 8)),  # 4 C; 3 d = 6 is below 8
        (16, 26, (160, 48)),  # 3 d below 2 C
        (784, 10, (1024, 20)),  # at most 1024; 2 C below 3 d
    ],
)
def test_the_layers_are_as_printed(d, n_classes, units):
    assert convergence.hidden_units(d, n_classes) == units


def test_the_preprocessing_is_not_fitted_on_test_rows(monkeypatch):
    fitted_on = []

    class Spy(TablePreprocessor):
        def fit(self, X, y=None):
            fitted_on.append(np.asarray(X).tolist())
            return super().fit(X, y)

    monkeypatch.setattr(convergence, "TablePreprocessor", Spy)
    table = iris()
    result_of("dr", table)
    spec = spec_of("convergence", ["dr"], **FOLDS)
    folds = convergence.outer_folds(table.name, np.asarray(table.y), spec)
    assert fitted_on == [np.asarray(table.X)[fold.train].tolist() for fold in folds]


def test_a_term_is_what_the_losses_say_and_those_that_do_not_fill_a_step_are_not_taken():
    batch = 8
    for name, loss in {
        "coco": CoCoLoss(3, normalize=False),
        "dr": DotRegressionLoss(3, 2, random_state=0),
        "ce": CrossEntropyLoss(3, None),
    }.items():
        one = loss.n_terms(batch)
        for n_terms in (64, 128, 256, 512, 1024):
            steps = convergence.steps_within(n_terms, batch, pairwise=convergence.PAIRWISE[name])
            assert steps * one == n_terms
    assert convergence.steps_within(63, batch, pairwise=True) == 0
    assert convergence.steps_within(130, batch, pairwise=True) == 2


@pytest.fixture(scope="module")
def results():
    """Results of every model on iris, by name."""
    return {name: result_of(name, iris()) for name in ("coco", "dr", "ce")}


def test_the_printed_counts_are_the_default(results):
    coco = results["coco"]
    assert coco.extra == {"n_terms": [64, 128, 256, 512, 1024], "steps": [1, 2, 4, 8, 16]}
    assert results["dr"].extra["steps"] == [8, 16, 32, 64, 128]
    assert len(coco.rows) == 3 * 5 * 3  # folds, numbers of terms, heads


def test_the_same_spec_gives_the_same_rows(results):
    assert result_of("ce", iris()).rows == results["ce"].rows
    assert result_of("ce", iris(), folds={"outer": 3, "seed": 1}).rows != results["ce"].rows


def test_coco_classifies_by_gaussians_and_the_others_by_what_they_have_learnt(results):
    coco = results["coco"]
    assert curve(coco, "paper") == curve(coco, "gaussian")
    assert curve(coco, "gaussian")[0] > 0.85
    assert curve(coco, "centroid")[0] > 0.75
    for name in ("dr", "ce"):
        assert curve(results[name], "paper") != curve(results[name], "gaussian")


def test_before_the_first_step_all_losses_are_alike_under_one_head():
    options = {"options": {"n_terms": [0]}}
    results = [result_of(name, wine(), **options) for name in ("coco", "dr", "ce")]
    for head in ("gaussian", "centroid"):
        assert len({tuple(curve(result, head)) for result in results}) == 1
    assert len({tuple(curve(result, "paper")) for result in results}) > 1


def test_networks_learn_if_they_may():
    table = table_of(*load_digits(n_class=4, return_X_y=True))
    options = {"n_terms": [0, 2000], "learning_rate": 1e-2}
    for name in ("dr", "ce"):
        before, after = curve(result_of(name, table, options=options), "paper")
        assert after > before + 0.2


def test_imbalance_makes_coco_the_balanced_loss(monkeypatch):
    given, original = [], convergence._weights  # noqa: SLF001
    monkeypatch.setattr(
        convergence, "_weights", lambda *args: given.append(original(*args)) or given[-1]
    )
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.array([0] * 45 + [1] * 15)
    for name, labels in (("coco", y), ("coco", np.arange(60) % 2), ("ce", y)):
        result_of(name, table_of(X, labels))
    weights, *others = given
    assert others == [None, None]
    assert weights[0].max() / weights[0].min() == pytest.approx(np.sqrt(3), rel=1e-3)


def test_folds_of_different_width_and_classes_are_survived():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=61), "b": ["once"] + ["u", "v", "w"] * 20})
    y = np.array(["rare"] + ["x", "y"] * 30)
    for name in ("coco", "dr", "ce"):
        rows = result_of(name, table_of(X, y)).rows
        assert {row["fold"] for row in rows} == {0, 1, 2}


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    spec = make_spec("convergence", models=["ce", "coco", "dr"])
    with Store(tmp_path_factory.mktemp("store") / "s.sqlite") as store:
        fill_convergence(store, spec, infos_of(6), n_terms=(64, 256))
        return read_findings(store)[0]


def test_convergence_means_are_over_datasets_that_have_all(findings):
    rows = findings.rows
    lacking = rows[~((rows["dataset"] == "table-05") & (rows["model"] == "ce"))]
    analysis = convergence.analyse(replace(findings, rows=lacking))
    assert analysis.models == ("coco", "dr", "ce")
    assert analysis.heads == ("paper", "gaussian", "centroid")
    chosen = rows.query("head == 'gaussian' and n_terms == 64 and model == 'dr'")
    expected = chosen[chosen["dataset"] != "table-05"].groupby("dataset")["balanced_accuracy"]
    found = analysis.means.set_index(["head", "model", "n_terms"]).loc["gaussian", "dr", 64]
    assert found["balanced_accuracy"] == pytest.approx(expected.mean().mean())
    assert found["n_datasets"] == 5
    ranking = analysis.rankings["paper", 64]
    assert isinstance(ranking, Ranking)
    assert ranking.printed is convergence.printed.CONVERGENCE[64]
    assert ranking.comparison.models[0] == "coco"
    assert analysis.rankings["gaussian", 64].printed is None


def test_convergence_grids_show_means_and_ranks_both_ways(findings):
    analysis = convergence.analyse(findings)
    rows = findings.rows.query("head == 'centroid' and n_terms == 256")
    scores = rows.groupby(["dataset", "model"])["balanced_accuracy"].mean().unstack()

    def shown(grid):
        return {row[0].text: row[2].value for row in grid.rows}

    means = shown(convergence.mean_grid(analysis, "centroid"))
    assert means == pytest.approx(scores.mean().to_dict())
    expected = scores.rank(axis=1, ascending=False).mean()
    ranks = shown(convergence.rank_grid(analysis, "centroid", by_mean=True))
    assert {model: ranks[model] for model in expected.index} == pytest.approx(expected.to_dict())
    folds = shown(convergence.rank_grid(analysis, "centroid"))
    ranking = analysis.rankings["centroid", 256]
    assert folds["coco"] == ranking.comparison.average_ranks["coco"]
