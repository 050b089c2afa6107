"""What cannot be compared is refused, with what came and what to do: one case per family."""

import numpy as np
import pandas as pd
import pytest

from cocoloss.exceptions import CoCoError
from cocoloss.stats import (
    bayesian_correlated_t,
    bayesian_signed_rank,
    cliques,
    compare,
    corrected_t,
    critical_distance,
    friedman,
    holm,
    nemenyi,
    pairwise_p_values,
    rank_models,
    read_scores,
    significance_ranks,
    wilcoxon_paired,
)

NAN, INF = np.nan, np.inf
PAIR = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.1, 0.3, 0.5, 0.4, 0.6]
WIDE = pd.DataFrame(np.random.default_rng(0).random((8, 3)), columns=list("abc"))
LONG = pd.DataFrame(
    [(d, m, f, 0.1 * f) for d in ("iris", "wine") for m in ("svm", "coco") for f in (0, 1)],
    columns=["dataset", "model", "fold", "score"],
)


def with_cell(frame, row, column, value):
    frame = frame.astype({column: object})
    frame.loc[row, column] = value
    return frame


OPTIONS = [
    (compare, (WIDE,), {"test": "t-test"}, "test must be one of 'nemenyi', 'wilcoxon'"),
    (compare, (WIDE,), {"ranking": "means"}, "ranking must be one of 'scores', 'folds'"),
    (compare, (WIDE,), {"ranking": "folds"}, "needs the score of every fold.*or rank by scores"),
    (compare, (WIDE,), {"fold_test": "nemenyi"}, "fold_test must be one of"),
    (compare, (WIDE,), {"missing": "ignore"}, "missing must be one of 'raise', 'drop_datasets', "),
    (compare, (WIDE,), {"ties": "dense"}, "ties must be one of"),
    (rank_models, (WIDE,), {"ties": "dense"}, "ties must be one of 'average', 'competition'"),
    (pairwise_p_values, (WIDE, "anova"), {}, "test must be one of 'wilcoxon', 'corrected_t'"),
    (wilcoxon_paired, PAIR, {"zeros": "pratt"}, "zeros must be one of 'split', 'drop'"),
]
NUMBERS = [
    *[(critical_distance, (3, 10, bad), {}, "alpha must be a number") for bad in (0, 5, NAN)],
    *[
        (corrected_t, PAIR, {"test_fraction": bad}, "test_fraction must be a number between 0 and")
        for bad in (0, 1, -0.1, NAN, True, "0.1")
    ],
    *[
        (test, PAIR, {"rope": bad}, "rope must be a finite number of at least 0")
        for test in (bayesian_signed_rank, bayesian_correlated_t)
        for bad in (-0.1, NAN, INF, "wide", True)
    ],
    *[(holm, ([0.1, bad, 0.2],), {}, "0 and 1, but number 1") for bad in (NAN, -0.1, 1.1, INF)],
    (holm, ([[0.1, 0.2], [0.3, 0.4]],), {}, r"must be a list.*\(2, 2\)"),
    (critical_distance, (1, 10), {}, "n_models must be at least 2"),
    (critical_distance, (3, 0), {}, "n_datasets must be at least 1"),
    (critical_distance, (3.0, 10), {}, "n_models must be a whole number"),
    *[
        (nemenyi, (bad, 10), {}, "two or more finite numbers")
        for bad in ([1.0], [1.0, NAN], [[1.0, 2.0]])
    ],
    *[(cliques, (bad,), {}, "symmetric matrix") for bad in ([0, 1], [[0, 1], [0, 0]])],
]
SCORES = [
    *[
        (ranks, (scores,), {}, message)
        for ranks in (rank_models, significance_ranks)
        for scores, message in [
            ([[0.1, NAN]] * 10, r"no number for \w+ 0, model 1"),
            ([[0.1]] * 10, "1 model"),
            ([0.1, 0.2], r"shape \(2,\)"),
            (np.zeros((0, 3)), "has no"),
        ]
    ],
    (friedman, ([[1, 2, 3]],), {}, "two datasets or more"),
    (friedman, ([[1, 2, 3], [NAN, 1, 2]],), {}, "no number for dataset 1, model 0"),
    (wilcoxon_paired, ([0.1] * 6, [0.1] * 7), {}, r"equal length.*\(6,\) and \(7,\)"),
    (wilcoxon_paired, ([[0.1] * 6], [[0.1] * 6]), {}, "two lists"),
    (wilcoxon_paired, ([0.1] * 5 + [NAN], [0.1] * 6), {}, "no number for row 5"),
    (wilcoxon_paired, (["a"] * 6, [0.1] * 6), {}, "first must hold numbers"),
    (wilcoxon_paired, ([], []), {}, "no row"),
    (corrected_t, ([INF, 0.1], [0.1, 0.1]), {}, "corrected t-test needs finite scores"),
    (corrected_t, ([0.1], [0.2]), {}, "two folds or more"),
    *[
        (test, ([0.1, 0.2, bad], [0.1, 0.2, 0.3]), {}, message)
        for test in (bayesian_signed_rank, bayesian_correlated_t)
        for bad, message in ((INF, "needs finite scores"), (NAN, "no number for row 2"))
    ],
    (compare, (WIDE.replace(WIDE.iloc[0, 0], INF),), {"rope": 0.01}, "needs finite scores"),
]
TOO_FEW = [  # a test that could find nothing, whatever the scores
    *[
        (
            wilcoxon_paired,
            (range(n), [0] * n),
            {},
            rf"over {n} pairs? .*p < 0\.05.*or the corrected t",
        )
        for n in (1, 5)
    ],
    (significance_ranks, (WIDE[:5],), {}, r"over 5 folds can never reach p < 0\.05.*0\.0625"),
    (pairwise_p_values, (WIDE[:5],), {"unit": "folds"}, "over 5 folds can never reach"),
    (compare, (WIDE[:5],), {"test": "wilcoxon"}, "over 5 datasets can never.*or Nemenyi's test"),
    (
        compare,
        (WIDE[:6].assign(d=0.1),),
        {"test": "wilcoxon"},
        "4 models and 6 datasets.*Use 8 or more datasets, fewer models, or Nemenyi's test",
    ),
    (
        significance_ranks,
        (np.arange(6.0)[:, None] * [1.0, 2.0],),
        {"alpha": 0.01},
        r"alpha = 0\.01.*Use 8 or more folds",
    ),
    (
        compare,
        (LONG.assign(fold=LONG.fold + 1),),
        {"ranking": "folds"},
        "dataset 'iris': a Wilcoxon test over 2 folds can never",
    ),
]
TABLES = [
    ({"a": [0.1, 0.2]}, "scores has one model, 'a'; a comparison needs two"),
    ({"a": [0.1], "b": [0.2]}, r"one dataset, '0'.*significance_ranks"),
    ({"a": [0.1], "b": [0.2, 0.3]}, "one list per model"),
    ({"a": ["0.5", "failed"], "b": [0.2, 0.3]}, r"model 'a' has 'failed' at 1; leave a failed"),
    (np.zeros((2, 3, 4)), r"shape \(2, 3, 4\); for folds"),
    ([["a", "b"]], "must hold numbers only"),
    (pd.DataFrame([[1, 2], [3, 4]], columns=["1", 1]), "model names must differ.*'1'"),
    (pd.DataFrame([[1, 2], [3, 4]], index=["x", "x"]), "dataset names must differ.*'x'; for sev"),
    (LONG.drop(columns="score"), r"'score' is missing; the columns are 'dataset'"),
    (LONG.drop(columns="dataset"), r"'dataset' is missing"),
    (LONG.iloc[:0], "scores has no model"),
    (pd.concat([LONG, LONG.iloc[[3]]]), r"1 score.*'iris', fold '1', model 'coco'; number all"),
    (LONG.drop(columns="fold"), "4 scores repeat earlier ones.*add a column 'fold'"),
    *[(with_cell(LONG, 2, key, None), rf"row 2 .* has no {key}") for key in LONG.columns[:3]],
    (with_cell(LONG, 4, "score", "timeout"), "column 'score' has 'timeout' at row 4"),
    (pd.concat([LONG, LONG[["score"]]], axis=1), "column 'score' comes twice"),
]


@pytest.mark.parametrize(
    ("function", "arguments", "options", "message"), [*OPTIONS, *NUMBERS, *SCORES, *TOO_FEW]
)
def test_refuses_what_cannot_be_tested(function, arguments, options, message):
    with pytest.raises(CoCoError, match=message):
        function(*arguments, **options)


@pytest.mark.parametrize(("scores", "message"), TABLES)
def test_refuses_what_is_no_table_of_scores(scores, message):
    with pytest.raises(CoCoError, match=message):
        read_scores(scores)
