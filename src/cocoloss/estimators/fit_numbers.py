"""A fit of numbers, step by step: from a table to a fitted regression.

table ->  rows ``read_number_rows``  ->  kernels, in kernels/numbers.py  ->  FittedRegression
"""

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from cocoloss._checks import check_option
from cocoloss.estimators.fit import (
    LANDMARKS,
    as_table,
    check_possible,
    new_seed,
    read_inputs,
    unchanged_on_failure,
)
from cocoloss.estimators.model import WORTH_A_THREAD, History, threads_for
from cocoloss.estimators.regression import FittedRegression
from cocoloss.estimators.targets import make_copies, read_numbers
from cocoloss.kernels import numbers
from cocoloss.kernels.closed_form import THREADED
from cocoloss.pace import Pace

SOLVERS = ("auto", "kernel")


class LeftOutNumbers(NamedTuple):
    """What fits without them say of the rows that ``fit`` was given."""

    prediction: NDArray[np.float64]  # (n,) or (n, t)
    score: float  # R^2


class NumberTable(NamedTuple):
    """What ``fit`` was given, read."""

    table: Any  # as it was given
    positions: NDArray[np.int64]  # (n,), in the table: each of its rows as often as it weighs
    y: NDArray[np.float64]  # (n, t)
    weights: NDArray[np.float64]  # (n,), what no copies of rows could say
    preprocessor: Any  # fitted; has made the inputs
    inputs: NDArray[np.float32]  # (n, d)
    one_column: bool  # whether y was a column


def fit_numbers(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> numbers.Numbers:
    """Fit a regressor in closed form, by kernels; return what was found, for who wants to look."""
    check_option(estimator.solver, "solver", SOLVERS)
    check_option(estimator.landmarks, "landmarks", LANDMARKS)
    check_possible(estimator, "time_limit")
    pace = Pace(estimator.time_limit, verbose=estimator.verbose)
    with unchanged_on_failure(estimator):
        rows = read_number_rows(estimator, X, y, sample_weight)
        n, d = rows.inputs.shape
        pace.say(f"{n} rows, {d} columns of numbers")
        seed = new_seed(estimator)
        with threads_for(WORTH_A_THREAD if n >= THREADED else 0):
            found = numbers.fit_numbers(
                rows.inputs,
                rows.y,
                rows.weights,
                seed,
                means=estimator.landmarks == "kmeans",
                pace=pace,
            )
        encoder = getattr(rows.preprocessor, "encoder_", rows.preprocessor)
        t = rows.y.shape[1]
        model = FittedRegression(
            encoder, found.machine, np.eye(t)[None], np.zeros(t), found.readout, rows.one_column
        )
        losses = [setting.loss for setting in found.recipe.members]
        history = History([losses], np.zeros(1, np.int64), seed, rows.weights.sum(keepdims=True))
        loo = _left_out(rows, found.honest, model)
        pace.say(f"of the rows, each left out, R2 is {loo.score:.3f}")
        pace.end()
        estimator.keep(model, history, rows.preprocessor, loo)
        return found


def read_number_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> NumberTable:
    """Read a table, its numbers and weights, and learn the preprocessing."""
    reader = type(estimator).__name__
    X = as_table(estimator, X)
    given, weights = read_numbers(X, y, sample_weight, reader)
    one_column, targets = given.ndim == 1, given.reshape(len(given), -1)
    # Every row as often as it weighs, as for classes: equal rows have equal numbers.
    codes = pd.util.hash_array(targets[:, 0] + 0.0)
    for column in targets.T[1:]:
        codes = codes * np.uint64(0x100000001B3) ^ pd.util.hash_array(column + 0.0)
    copies = make_copies(X, codes.view(np.int64), weights, reader, in_lowest_terms=True)
    table = _safe_indexing(X, copies.rows)
    known = given[copies.rows]
    preprocessor, inputs = read_inputs(estimator, table, known, learn=True, ranks=True)
    y, weights = targets[copies.rows], copies.weights
    return NumberTable(X, copies.rows, y, weights, preprocessor, inputs, one_column)


def _left_out(
    rows: NumberTable, honest: NDArray[np.float64], model: FittedRegression
) -> LeftOutNumbers:
    """Return predictions of each row of the table, from those of its copies.

    The fit has not seen rows that weigh nothing: what the model predicts is honest.
    """
    n = _num_samples(rows.table)
    result = np.empty((n, honest.shape[1]))
    unseen = np.setdiff1d(np.arange(n), rows.positions)
    if len(unseen):
        predicted = model.predict(_safe_indexing(rows.table, unseen))
        result[unseen] = predicted.reshape(len(unseen), -1)
    result[rows.positions] = honest
    score = 1.0
    if len(rows.y) > 1:
        score = float(r2_score(rows.y, honest, sample_weight=rows.weights))
    return LeftOutNumbers(result[:, 0] if rows.one_column else result, score)
