"""A fit of numbers, step by step: from a table to a fitted regression.

table ->  rows ``read_number_rows``  ->  a problem, and its solution in kernels/numbers.py
->  and by networks ``train_networks``  ->  FittedRegression
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples
from torch import Tensor

from cocoloss._checks import check_option
from cocoloss.fitting.explain import Reference
from cocoloss.fitting.fit import (
    FEWEST_EPOCHS,
    LANDMARKS,
    Honest,
    as_table,
    check_counts,
    check_device,
    check_possible,
    new_seed,
    read_inputs,
    solver_of,
    training_settings,
    unchanged_on_failure,
)
from cocoloss.fitting.jobs import one_thread_unless
from cocoloss.fitting.model import Ensemble, History, Together, machine_in
from cocoloss.fitting.regression import FittedRegression
from cocoloss.fitting.targets import make_copies, read_numbers
from cocoloss.kernels.closed_form import MOST_EXACT, THREADED
from cocoloss.kernels.kernel import Kernel
from cocoloss.kernels.numbers import (
    NumberProblem,
    SolvedNumbers,
    plain_kernel,
    pose,
    solve_numbers,
)
from cocoloss.losses.base import Batch
from cocoloss.networks import LockstepMLP
from cocoloss.pace import Pace
from cocoloss.threads import WORTH_A_THREAD, threads_for
from cocoloss.training import Schedule, TrainingData, train

FEWEST_HELD_OUT = 5  # rows of a part; below, networks hold them out, and do not stop by them
PARTS_OF_ONE = 6  # of the rows, of which a single network holds one out
FEWEST_WEIGHED = 30  # rows that neither has seen, by which networks are weighed against kernels
ROWS_A_SECOND = 150_000  # that one network is trained on; to foresee how long it takes


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


class Solved(NamedTuple):
    """What a solver leaves: what embeds rows, how that becomes target points, and its history."""

    networks: Any
    mixing: NDArray[np.float64]  # (K, t, t)
    kernel: Kernel  # that says which rows are alike
    honest: NDArray[np.float64]  # (p, t)
    known: NDArray[np.bool_]  # (p,)
    loss_curves: list[list[float]]
    best_epochs: NDArray[np.int64]
    found: SolvedNumbers | None = None  # of kernels: what was tried, for who wants to look
    how: str = "left out"  # where honest predictions come from


def fit_numbers(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, pace: Pace | None = None
) -> SolvedNumbers | None:
    """Fit a regressor: by kernels in closed form, which are returned, by networks, or by both."""
    pace = pace or Pace(estimator.time_limit, verbose=estimator.verbose)
    solver = solver_of(estimator)
    check_option(estimator.landmarks, "landmarks", LANDMARKS)
    for name in ("time_limit", "learning_rate_init", "weight_decay"):
        check_possible(estimator, name)
    check_counts(estimator, "max_iter", "batch_size")
    with unchanged_on_failure(estimator):
        rows = read_number_rows(estimator, X, y, sample_weight)
        n, d = rows.inputs.shape
        pace.say(f"{n} rows, {d} columns of numbers")
        seed = new_seed(estimator)
        threaded = n >= THREADED and pace.limit is None
        with threads_for(WORTH_A_THREAD if threaded else 0):
            problem = pose(rows.inputs, rows.y, rows.weights, seed, rows.positions)
            if solver == "network":
                solved = _by_networks(estimator, problem, seed, pace)
            else:
                solved = _by_kernels(estimator, problem, seed, pace)
            many = len(problem.rows.X) > MOST_EXACT
            if solver == "both" or (solver == "auto" and many and _has_time(n, estimator, pace)):
                solved = _by_both(solved, _by_networks(estimator, problem, seed, pace), problem)
            model, said = regression_of(
                problem,
                solved,
                rows.preprocessor,
                seed,
                means=estimator.landmarks == "kmeans",
                one_column=rows.one_column,
            )
        if not (estimator.landmarks == "kmeans" and model.machine):  # else they are means of rows
            known = rows.inputs, rows.positions, rows.y
            model = replace(model, reference=Reference.of_held(model.held.rows, *known))
        masses = rows.weights.sum(keepdims=True)
        history = History(solved.loss_curves, solved.best_epochs, seed, masses)
        one_row = len(problem.rows.row) == 1  # of which nothing is known without it
        seen = solved.known[problem.pair] | one_row
        loo: LeftOutNumbers | None = None
        honest: Any = Honest(solved.how, said[seen], rows.y[seen], rows.weights[seen])
        if not seen.any():
            honest = f"a network alone holds rows out if there are {PARTS_OF_ONE * FEWEST_HELD_OUT}"
        if seen.all():
            loo = _left_out(rows, said, model)
            pace.say(f"of the rows, each left out, R2 is {loo.score:.3f}")
        pace.end()
        estimator.keep(model, history, rows.preprocessor, loo, honest)
        return solved.found


def regression_of(
    problem: NumberProblem,
    solved: Solved,
    preprocessor: Any,
    seed: int,
    *,
    means: bool,
    one_column: bool,
) -> tuple[FittedRegression, NDArray[np.float64]]:
    """Return what predicts, and what it says of each row of the problem without that row, (n, t).

    With ``means`` kernels hold means of rows, and so does what tells how large residuals are.
    """
    machine = machine_in(solved.networks)
    held = machine.rows if machine and means else None
    readout = problem.readout(solved.kernel, solved.honest, solved.known, seed, held)
    encoder = getattr(preprocessor, "encoder_", preprocessor)  # a user's own has none
    model = FittedRegression(encoder, solved.networks, solved.mixing, readout, one_column)
    return model, problem.numbers(readout, solved.honest)


def _has_time(n_rows: int, estimator: Any, pace: Pace) -> bool:
    seconds = FEWEST_EPOCHS * n_rows * estimator.n_members / ROWS_A_SECOND
    return pace.has(seconds, "networks beside the kernels")


def _by_kernels(estimator: Any, problem: NumberProblem, seed: int, pace: Pace) -> Solved:
    means = estimator.landmarks == "kmeans"
    return of_kernels(solve_numbers(problem, seed, means=means, pace=pace))


def of_kernels(found: SolvedNumbers) -> Solved:
    """Return what kernels leave as what any solver does."""
    losses = [[setting.loss for setting in found.recipe.members]]
    mixing = np.eye(found.machine.width)[None]
    kernel = found.machine.kernels[0]
    never = np.zeros(1, np.int64)
    return Solved(found.machine, mixing, kernel, found.honest, found.known, losses, never, found)


def _by_networks(estimator: Any, problem: NumberProblem, seed: int, pace: Pace) -> Solved:
    rows = problem.rows
    inputs = rows.X[rows.row]
    pace.say(f"{estimator.n_members} networks")
    found = train_networks(estimator, inputs, rows.targets, rows.mass, seed, pace)
    K, t = found.ensemble.n_networks, rows.targets.shape[1]
    mixing = np.tile(np.eye(t) / K, (K, 1, 1))
    return Solved(
        found.ensemble,
        mixing,
        plain_kernel(rows.X),
        found.honest,
        found.known,
        found.loss_curves,
        found.best_epochs,
        how="held out",
    )


def _by_both(kernels: Solved, networks: Solved, problem: NumberProblem) -> Solved:
    """Add what kernels and networks say, weighted as pairs find best that neither has seen."""
    seen = networks.known
    if seen.sum() < FEWEST_WEIGHED:
        return kernels
    roots = np.sqrt(problem.rows.mass[seen])[:, None]
    each = [(roots * solved.honest[seen]).ravel() for solved in (kernels, networks)]
    a, b = nnls(np.stack(each, axis=1), (roots * problem.rows.targets[seen]).ravel())[0]
    return Solved(
        Together(kernels.networks, networks.networks),
        np.concatenate([a * kernels.mixing, b * networks.mixing]),
        kernels.kernel,
        a * kernels.honest + b * networks.honest,
        kernels.known & networks.known,
        [*kernels.loss_curves, *networks.loss_curves],
        np.r_[kernels.best_epochs, networks.best_epochs],
        kernels.found,
        networks.how,
    )


def read_number_rows(estimator: Any, X: Any, y: Any, sample_weight: Any) -> NumberTable:
    """Read a table, its numbers and weights, and learn the preprocessing."""
    reader = type(estimator).__name__
    X = as_table(estimator, X)
    given, weights = read_numbers(X, y, sample_weight, reader)
    one_column, targets = given.ndim == 1, given.reshape(len(given), -1)
    # Every row as often as it weighs, as for classes: equal rows have equal numbers.
    copies = make_copies(X, number_codes(targets), weights, reader, in_lowest_terms=True)
    table = _safe_indexing(X, copies.rows)
    known = given[copies.rows]
    preprocessor, inputs = read_inputs(estimator, table, known, learn=True, ranks=True)
    y, weights = targets[copies.rows], copies.weights
    return NumberTable(X, copies.rows, y, weights, preprocessor, inputs, one_column)


def number_codes(y: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return 64 bits for the numbers of each row, (n, t)."""
    codes = pd.util.hash_array(y[:, 0] + 0.0)
    for column in y.T[1:]:
        codes = codes * np.uint64(0x100000001B3) ^ pd.util.hash_array(column + 0.0)
    return np.asarray(codes.view(np.int64))


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


# Networks ---------------------------------------------------------------------------------------
# They are trained onto the target points themselves. The pair loss has the same minimiser up to a
# rotation, which would have to be read off afterwards. Each network holds out a part of the rows,
# so that every row has a prediction by one that has not seen it.


class NumberNetworks(NamedTuple):
    """Trained networks, and what they say of rows that they have not seen."""

    ensemble: Ensemble
    honest: NDArray[np.float64]  # (n, t)
    loss_curves: list[list[float]]
    best_epochs: NDArray[np.int64]
    known: NDArray[np.bool_]  # (n,), whether a network has held the row out


class SquaredDistance:
    """The mean squared distance of outputs from target points, as the trainer wants a loss."""

    def evaluate(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return values (K,) and gradients (K, m, t)."""
        missed = batch.embeddings - batch.labels
        weighted = missed if batch.weight is None else missed * batch.weight.unsqueeze(-1)
        m = missed.shape[1]
        return (weighted * missed).sum((1, 2)) / m, weighted * (2 / m)


def train_networks(
    estimator: Any,
    inputs: NDArray[np.float32],
    points: NDArray[np.float64],
    weights: NDArray[np.float64],
    seed: int,
    pace: Pace,
) -> NumberNetworks:
    """Train networks on rows and their target points, (n, d) and (n, t)."""
    n, d = inputs.shape
    K, t = estimator.n_members, points.shape[1]
    n_parts = K if K > 1 else PARTS_OF_ONE
    part = np.random.default_rng([seed, 1]).permutation(n) % n_parts
    stops = n >= n_parts * FEWEST_HELD_OUT
    holds_out = stops or min(n, K) > 1
    everything = np.arange(n)
    rows = [everything[part != k] if holds_out else everything for k in range(K)]
    settings = training_settings(estimator, min(map(len, rows)))
    patience = settings["n_iter_no_change"]
    schedule = Schedule(
        n_epochs=settings["max_iter"],
        batch_size=settings["batch_size"],
        learning_rate=settings["learning_rate_init"],
        decay=settings["learning_rate"],
        weight_decay=estimator.weight_decay,
        patience=patience if stops else None,
        validate_every=1,
        seconds=None if pace.limit is None else max(pace.left, 0.1),
    )
    even, relative = np.ptp(weights) == 0, weights / weights.mean()
    device = estimator.device
    check_device(device)
    data = TrainingData(
        torch.from_numpy(inputs).to(device),
        torch.from_numpy(points.astype(np.float32)).to(device),
        None if even else torch.from_numpy(relative.astype(np.float32)).to(device),
        rows,
        n_classes=0,
    )
    generators = [np.random.default_rng(seed + k) for k in range(K)]
    hidden = np.atleast_1d(estimator.hidden_layer_sizes).tolist()
    sizes = (d, *map(int, hidden), t)
    with one_thread_unless(sizes, K * schedule.batch_size):
        activation = settings["activation"]
        network = LockstepMLP(sizes, generators, activation=activation, device=device)

        size = n // n_parts  # parts differ by a row at most
        held_out = np.stack([np.flatnonzero(part == k)[:size] for k in range(K)])

        @torch.no_grad()
        def validate(network: Any, models: NDArray[np.int64]) -> NDArray[np.float64]:
            rows = torch.from_numpy(held_out[models]).to(device)  # (K, size)
            squares = (network.forward(data.inputs[rows]) - data.labels[rows]).square().sum(-1)
            if data.weights is not None:
                squares = squares * data.weights[rows]
            found = np.asarray(squares.mean(1).cpu(), dtype=np.float64)
            return np.where(np.isnan(found), np.inf, found)

        outcome = train(
            network,
            SquaredDistance(),
            data,
            schedule,
            generators,
            validate=validate if stops else None,
        )
        pace.note_epochs(max(map(len, outcome.loss_curves)), schedule.n_epochs)
    parameters = np.ascontiguousarray(outcome.parameters.cpu().numpy())
    ensemble = Ensemble(sizes, parameters, activation=activation)
    said = ensemble.outputs(inputs)  # (K, n, t)
    known = (part < K) & holds_out
    honest = np.where(known[:, None], said[part % K, everything], said.mean(axis=0))
    return NumberNetworks(ensemble, honest, outcome.loss_curves, outcome.best_epochs, known)
