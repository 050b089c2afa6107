"""A fit in closed form, step by step: from a table to kernels, and networks beside them.

    table ->  rows ``read_rows``  ->  kernels ``fit_closed_form``  ->  ``finish_kernels``

Where there are many rows, networks are trained, too, and rows that nobody has learnt from say what
the word of each is worth.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from cocoloss.fitting.early_stopping import split_held_out
from cocoloss.fitting.explain import Reference
from cocoloss.fitting.fit import (
    FEWEST_EPOCHS,
    Fitted,
    Honest,
    LeaveOneOut,
    Rows,
    check_arguments,
    finish_job,
    given_dimension,
    job_of,
    make_design,
    new_seed,
    read_rows,
    solver_of,
)
from cocoloss.fitting.jobs import Design, train_jobs
from cocoloss.fitting.model import (
    Ensemble,
    FittedModel,
    History,
    Together,
)
from cocoloss.fitting.targets import beyond_balance
from cocoloss.geometry import target_points
from cocoloss.heads.readout import pool_weights
from cocoloss.kernels import KernelMachine
from cocoloss.kernels.classes import ClosedForm, Lesson, fit_closed_form
from cocoloss.kernels.closed_form import MOST_EXACT, THREADED
from cocoloss.pace import Pace
from cocoloss.threads import WORTH_A_THREAD, threads_for

# Networks beside kernels.
N_NETWORKS = 3
ROWS_A_SECOND = 150_000  # that one network is trained on; to foresee how long it takes
HELD_OUT, MOST_HELD_OUT = 0.15, 20_000  # rows that decide what networks weigh
BESIDE = 1 / 3  # of the say, where labels are too few to decide it
LEAST_SAY = 0.05  # weight below which networks stay out


class Solved(NamedTuple):
    """Rows, and the kernels that were found for them."""

    rows: Rows
    found: ClosedForm
    design: Design | None  # of the networks that are to be trained, too
    seed: int
    pace: Pace
    means: bool  # whether the rows of kernels are means of rows
    lesson: Lesson  # what they were fitted to


def fit_kernels(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, pace: Pace | None = None
) -> Fitted:
    """Fit a classifier in closed form, by kernels, with networks beside them if rows are many."""
    return finish_kernels(solve_kernels(estimator, X, y, sample_weight, pace))


def solve_kernels(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, pace: Pace | None = None
) -> Solved:
    """Read all that ``fit`` was given, and solve for kernels; the clock starts now, or has."""
    check_arguments(estimator)
    pace = pace or Pace(estimator.time_limit, verbose=estimator.verbose)
    rows = read_rows(estimator, X, y, sample_weight, keep_preprocessor=False, ranks=True)
    return solve_rows(estimator, rows, pace)


def solve_rows(estimator: Any, rows: Rows, pace: Pace, q: int | None = None) -> Solved:
    """Solve for kernels of rows that have been read; q is the dimension, if networks come later."""
    n, d = rows.inputs.shape
    pace.say(f"{n} rows of {len(rows.classes)} classes, {d} columns of numbers")
    seed, solver = new_seed(estimator), solver_of(estimator)
    n_different = int(rows.groups.max()) + 1
    blends = solver == "both" or (solver == "auto" and n_different > MOST_EXACT)
    design = None
    if blends:
        shape = int((1 - HELD_OUT) * n), d, len(rows.classes)
        design = make_design(estimator, shape, seed, holds_out=True)
    # Embeddings of kernels and networks have one dimension.
    if design is not None:
        q = design.layer_sizes[-1]
    elif q is None:
        q = given_dimension(estimator)
    points = target_points(estimator.similarity, len(rows.classes), q)
    scale = beyond_balance(estimator.class_weight, rows.class_weights)
    lesson = Lesson(
        rows.inputs, rows.labels, rows.weights, scale, points, rows.prior, rows.positions
    )
    # What two threads take where cores are busy nobody can foresee, so that no limit would be kept.
    threaded = n >= THREADED and pace.limit is None
    means = estimator.landmarks == "kmeans"
    with threads_for(WORTH_A_THREAD if threaded else 0):
        found = fit_closed_form(lesson, seed, means=means, pace=pace)
    return Solved(rows, found, design, seed, pace, means, lesson)


def finish_kernels(solved: Solved, networks: Fitted | None = None) -> Fitted:
    """Return the fitted model of kernels, after training networks if that was planned.

    Networks that were trained already count half as much as kernels, or less with more labels.
    """
    rows, found, design, seed, pace = solved[:5]
    losses = [setting.loss for setting in found.recipe.members]
    history = History([losses], np.zeros(1, np.int64), seed, rows.masses)
    encoder = getattr(rows.preprocessor, "encoder_", rows.preprocessor)  # a user's own has none
    reference = None
    if not solved.means:
        held = found.machine.rows
        reference = Reference.of_held(held, rows.inputs, rows.positions, rows.labels)
    heads = (found.readout,)
    model = FittedModel(
        rows.classes, rows.prior, encoder, found.machine, heads, reference=reference
    )
    said = found.honest_proba
    right = said.argmax(axis=1) == rows.labels
    accuracy = float(np.average(right, weights=rows.weights))
    pace.say(f"of the rows, each left out, kernels are right about {accuracy:.1%}")
    left_out = Honest("left out", said, rows.labels, rows.weights)
    fitted = Fitted(model, history, rows.preprocessor, [found.readout], honest=left_out)
    if networks is not None:
        beside = min(BESIDE, 2 * len(rows.classes) / len(rows.labels))
        fitted = _pool(fitted, networks, 1 - beside, beside)
    elif design is not None:
        fitted = _with_networks(fitted, rows, design, found, pace)
    pace.end()
    return fitted._replace(loo=LeaveOneOut(_of_given_rows(rows, said, fitted.model), accuracy))


def _with_networks(
    fitted: Fitted, rows: Rows, design: Design, found: ClosedForm, pace: Pace
) -> Fitted:
    """Train networks, and add what they say to what kernels say as held-out rows find best.

    All networks hold out the same rows, which kernels have left out, too.
    """
    seed, n = fitted.history.seed, len(rows.inputs)
    fraction = min(HELD_OUT, MOST_HELD_OUT / n)
    generator = np.random.default_rng([seed, 1])
    train, held_out = split_held_out(rows.labels, rows.groups, fraction, generator)
    an_epoch = len(train) * N_NETWORKS / ROWS_A_SECOND  # seconds
    if not len(held_out) or not pace.has(FEWEST_EPOCHS * an_epoch, "networks beside the kernels"):
        return fitted
    schedule = design.schedule
    if pace.limit is not None:
        schedule = replace(schedule, seconds=pace.left)
    design = replace(design, schedule=schedule)
    seconds = min(schedule.n_epochs * an_epoch, pace.left)
    pace.say(f"{N_NETWORKS} networks, {schedule.n_epochs} epochs, at most about {seconds:.0f} s")
    seeds = [seed + k for k in range(N_NETWORKS)]
    job = job_of(rows, design, [train] * N_NETWORKS, [held_out] * N_NETWORKS, seed, seeds)
    (trained,) = train_jobs([job], verbose=pace.verbose)
    pace.note_epochs(max(map(len, trained.loss_curves)), schedule.n_epochs)
    networks = finish_job(job, trained)
    heads = networks.model.heads
    embeddings = trained.networks.embeddings(rows.inputs[held_out])
    by_each = [head.predict_proba(h) for head, h in zip(heads, embeddings, strict=True)]
    by_kernels = found.readout.predict_proba(found.honest[held_out])
    scores = np.log(np.maximum([by_kernels, *by_each], np.finfo(np.float64).tiny))
    scores -= np.log(rows.prior)
    kernels, of_networks = pool_weights(
        np.stack([scores[0], scores[1:].mean(axis=0)]),
        rows.labels[held_out],
        rows.weights[held_out],
    )
    pace.say(f"log probabilities of kernels weigh {kernels:.2f}, of networks {of_networks:.2f}")
    if of_networks < LEAST_SAY:
        return fitted
    both = replace(
        networks.honest, kernels=found.honest_proba[held_out]
    )  # all hold out the same rows
    return _pool(fitted, networks, kernels, of_networks)._replace(honest=both)


def _pool(fitted: Fitted, networks: Fitted, of_kernels: float, of_networks: float) -> Fitted:
    """Return one model of kernels and networks, whose log probabilities are added up so weighed."""
    machine, ensemble = fitted.model.networks, networks.model.networks
    assert isinstance(machine, KernelMachine)
    assert isinstance(ensemble, Ensemble)  # no module of the user's own: see check_arguments
    K = len(networks.heads)
    model = replace(
        fitted.model,
        networks=Together(machine, ensemble),
        heads=(*fitted.model.heads, *networks.model.heads),
        pool=np.r_[of_kernels, np.full(K, of_networks / K)],
    )
    history = replace(
        fitted.history,
        loss_curves=[*fitted.history.loss_curves, *networks.history.loss_curves],
        best_epochs=np.r_[fitted.history.best_epochs, networks.history.best_epochs],
    )
    return fitted._replace(model=model, history=history, heads=[*fitted.heads, *networks.heads])


def _of_given_rows(rows: Rows, proba: NDArray[np.float64], model: FittedModel) -> NDArray[Any]:
    """Return probabilities of each row of the table, from those of its copies.

    The fit has not seen rows that weigh nothing: what the model predicts is honest.
    """
    n = _num_samples(rows.table)
    result = np.empty((n, proba.shape[1]))
    unseen = np.setdiff1d(np.arange(n), rows.positions)
    if len(unseen):
        result[unseen] = model.predict_proba(_safe_indexing(rows.table, unseen))
    result[rows.positions] = proba
    return result
