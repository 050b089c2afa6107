"""Watch a fit of numbers: test rows, rows that were left out, intervals, and how kernels came."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.utils import _safe_indexing

from cocoloss._checks import RandomState, amount, as_generator, check_integer, check_share
from cocoloss.estimators.regressor import CoCoRegressor
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.fit import as_table, unchanged_on_failure
from cocoloss.fitting.fit_numbers import fit_numbers
from cocoloss.fitting.targets import read_numbers
from cocoloss.kernels.numbers import SolvedNumbers
from cocoloss.recording.decisions import WORST, WorstRows, worst_rows
from cocoloss.recording.measure import ROUNDING, metrics_by_round
from cocoloss.recording.record import Covered, NumberOutcome, NumbersRecord, about
from cocoloss.recording.why import index_of, why_of_numbers

ASKED = (0.5, 0.8, 0.9, 0.95)  # shares of the truth that intervals are to hold
SHOWN = 0.9  # the one that is drawn
MOST_GROUPS, FEWEST_IN_GROUP = 10, 10  # of test rows with intervals of a like width
FEWEST_ROWS = 5


def record_numbers(
    estimator: CoCoRegressor,
    X: Any,
    y: Any,
    *,
    test_size: float = 0.2,
    random_state: RandomState = 0,
    data_name: str = "",
    n_left_out: int = 0,
) -> NumbersRecord:
    """Fit a regressor on a part of the rows, and test it and its intervals on the other rows.

    What :func:`record_fit` is for classes. The estimator is fitted in place, as its ``fit`` would
    fit it on the same rows.

    Parameters
    ----------
    estimator : CoCoRegressor
        Fitted in place.
    X : DataFrame or array of shape (n, d)
    y : array of shape (n,)
        Numbers: one column of them.
    test_size : float, default=0.2
        Share of the rows that are kept apart.
    random_state : int, numpy generator or None, default=0
        Chooses test rows; the estimator has a seed of its own.
    data_name : str
        What to call the data.
    n_left_out : int, default=0
        Rows without a number that the data had besides, for the record.

    Returns
    -------
    NumbersRecord

    Raises
    ------
    CoCoError
        If the estimator is no CoCoRegressor, or there are fewer than five rows.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cocoloss import CoCoRegressor
    >>> from cocoloss.recording import record_numbers
    >>> X, y = load_diabetes(return_X_y=True)
    >>> record = record_numbers(CoCoRegressor(random_state=0), X, y, data_name="diabetes")
    >>> record.test.rmse < record.guessing_rmse
    True
    >>> 0.8 < record.coverage[0.9][0] < 1
    True
    """
    if not isinstance(estimator, CoCoRegressor):
        raise CoCoError(
            f"record_numbers looks into a CoCoRegressor, but got {type(estimator).__name__}; "
            f"record_fit is for classifiers"
        )
    check_share(test_size, "test_size")
    X = as_table(estimator, X)
    numbers, _ = read_numbers(X, y, None, type(estimator).__name__)
    if numbers.ndim != 1:
        raise CoCoError(f"y has {numbers.shape[1]} columns; a record is of one: choose it")
    if len(numbers) < FEWEST_ROWS:
        raise CoCoError(f"{len(numbers)} rows are too few for a record; it needs {FEWEST_ROWS}")
    order = as_generator(random_state).permutation(len(numbers))
    n_test = int(np.clip(round(test_size * len(numbers)), 2, len(numbers) - 2))
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    with unchanged_on_failure(estimator):
        started = time.perf_counter()
        found = fit_numbers(estimator, _safe_indexing(X, train), numbers[train])
        seconds = time.perf_counter() - started
        model = estimator.model_
        X_test = _safe_indexing(X, test)
        tested = _tested(estimator, X_test, numbers[test], numbers[train].mean())
        widths, trained = tested["upper"] - tested["lower"], index_of(X)[train]
        return NumbersRecord(
            model=type(estimator).__name__,
            data_name=str(data_name),
            n_train=len(train),
            n_test=len(test),
            n_features=X.shape[1],
            layer_sizes=(model.n_inputs, model.networks.width),
            n_members=model.networks.n_networks if found is None else len(found.machine.kernels),
            seconds=seconds,
            n_left_out=check_integer(n_left_out, "n_left_out", minimum=0),
            left_out=_outcome(numbers[train], estimator.loo_prediction_),
            power=float(model.readout.response.powers[0]),
            **_of_kernels(found, model, len(train)),
            why=why_of_numbers(model, X_test, numbers[test], widths, trained),
            **tested,
            **(described := about(estimator, X)),
            worst=_worst(X_test, test, numbers[test], tested["test"].predicted, described),
        )


def _of_kernels(found: SolvedNumbers | None, model: Any, n_train: int) -> dict[str, Any]:
    """Return what a record says of kernels; networks alone have tried none."""
    if found is None:
        return {"n_rows": n_train, "is_sample": False, "chosen": (), "tried": (), "metrics": {}}
    rows = found.criterion.rows
    return {
        "n_rows": len(rows.X),
        "is_sample": bool(rows.mass.sum() < (1 - ROUNDING) * n_train),
        "chosen": found.recipe.members[: len(found.machine.kernels)],
        "tried": found.recipe.tried,
        "metrics": metrics_by_round(rows, found.recipe, model),
    }


def _tested(estimator: CoCoRegressor, X: Any, y: NDArray[Any], mean: float) -> dict[str, Any]:
    """Return what a record says of test rows; the mean is that of the training rows."""
    tested = _outcome(y, np.asarray(estimator.predict(X)))
    ends = {asked: estimator.predict_interval(X, asked).T for asked in ASKED}
    lower, upper = ends[SHOWN]
    guessed = y - mean
    # Of each row: by how much its squared error is less than that of the mean, in a unit in which
    # squares of squares are floats.
    unit = float(np.abs(guessed).max()) or 1.0
    gain = np.square(guessed / unit) - np.square((y - tested.predicted) / unit)
    return {
        "test": tested,
        "lower": lower,
        "upper": upper,
        "coverage": {
            asked: (float(np.mean((low <= y) & (y <= high))), float(np.mean(high - low)))
            for asked, (low, high) in ends.items()
        },
        "by_width": _by_width(y, lower, upper),
        "guessing_rmse": float(np.sqrt(np.mean(np.square(guessed)))),
        "guessing_mae": float(np.mean(np.abs(guessed))),
        "is_better": bool(gain.mean() > 2 * gain.std() / np.sqrt(len(gain))),
    }


def _worst(
    X: Any,
    places: NDArray[np.int64],
    y: NDArray[Any],
    predicted: NDArray[Any],
    described: dict[str, Any],
) -> WorstRows:
    """Return the rows that predictions are farthest from."""
    off = y - predicted
    order = np.argsort(-np.abs(off), kind="stable")[:WORST]
    remarks = [(amount(y[i]), amount(predicted[i]), float(off[i])) for i in order]
    return worst_rows(X, places, order, remarks, described["importances"])


def _outcome(y: NDArray[Any], predicted: NDArray[Any]) -> NumberOutcome:
    return NumberOutcome(
        y,
        predicted,
        rmse=float(root_mean_squared_error(y, predicted)),
        mae=float(mean_absolute_error(y, predicted)),
        r2=float(r2_score(y, predicted)),
    )


def _by_width(y: NDArray[Any], lower: NDArray[Any], upper: NDArray[Any]) -> tuple[Covered, ...]:
    """Return how many rows are covered in groups of equal size, from narrow intervals to wide."""
    n_groups = int(np.clip(len(y) // FEWEST_IN_GROUP, 1, MOST_GROUPS))
    width, holds = upper - lower, (lower <= y) & (y <= upper)
    return tuple(
        Covered(
            float(width[group].min()),
            float(width[group].max()),
            len(group),
            float(holds[group].mean()),
        )
        for group in np.array_split(np.argsort(width, kind="stable"), n_groups)
    )
