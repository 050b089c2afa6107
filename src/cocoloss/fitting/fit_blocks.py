"""Fits to tables in blocks, by kernels: of classes or levels, and of numbers.

blocks ->  look, by a first pass  ->  the sample decides  ->  sums, by a second pass  ->  a model

A table of few different rows is fitted as if it had come whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing

from cocoloss._checks import check_option
from cocoloss.columns.column_kinds import warn_of_columns
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.blocks import (
    ClusterBlocks,
    LocalBlocks,
    Look,
    LookAt,
    Numbers,
    OfClasses,
    OfNumbers,
    SumsOf,
    add_up,
    not_the_same,
    open_blocks,
)
from cocoloss.fitting.fit import (
    LANDMARKS,
    Fitted,
    Honest,
    check_arguments,
    given_dimension,
    new_seed,
    read_inputs,
    solver_of,
    unchanged_on_failure,
)
from cocoloss.fitting.fit_kernels import fit_kernels
from cocoloss.fitting.fit_numbers import fit_numbers, number_codes, of_kernels, regression_of
from cocoloss.fitting.model import FittedModel, History, as_inputs
from cocoloss.fitting.targets import beyond_balance, class_weights, decision_prior, make_copies
from cocoloss.geometry import target_points
from cocoloss.kernels import Sums
from cocoloss.kernels.classes import Lesson, fit_sampled
from cocoloss.kernels.closed_form import Plan
from cocoloss.kernels.numbers import pose, solve_sampled
from cocoloss.pace import Pace
from cocoloss.threads import WORTH_A_THREAD, threads_for


class OfSample(NamedTuple):
    """What fits without them say of the rows of the sample, which stand for all."""

    score: float  # accuracy, or R^2
    numbers: Numbers | None = None  # what those of all rows are like


@dataclass(frozen=True)
class _Blocks:
    """A table in blocks that is being fitted to: whose fit it is, and how rows are read."""

    estimator: Any
    blocks: LocalBlocks | ClusterBlocks
    look: Look
    seed: int
    pace: Pace

    @property
    def reader(self) -> str:
        """Who speaks in messages."""
        return type(self.estimator).__name__

    def read_sample(
        self, y: NDArray[Any], codes: NDArray[np.int64]
    ) -> tuple[Any, NDArray[np.float32]]:
        """Return the preprocessing that rows of the sample teach, and what it makes of them."""
        look = self.look
        copies = look.copies.astype(np.float64)
        rows = make_copies(look.rows, codes, copies, self.reader, in_lowest_terms=True).rows
        repeated = _safe_indexing(look.rows, rows)
        preprocessor, _ = read_inputs(self.estimator, repeated, y[rows], learn=True, ranks=True)
        return preprocessor, as_inputs(preprocessor.transform(look.rows), preprocessor, look.rows)

    def second_pass(
        self, plan: Plan, preprocessor: Any, target: OfClasses | OfNumbers
    ) -> Sequence[Sums]:
        """Return the sums of all blocks; columns with stray text are lenient from then on."""
        function = SumsOf(plan.kernels, plan.landmarks, preprocessor, target)
        found = add_up(self.blocks, function, "second pass", self.pace)
        n_rows = 0 if found is None else found.n_rows
        if n_rows != self.look.n_rows:
            raise not_the_same(f"{n_rows:,} rows, the first {self.look.n_rows:,}")
        if found.strays:
            encoder = preprocessor.encoder_ = preprocessor.encoder_.lenient_in(found.strays)
            odd = {
                name: replace(encoder.columns[name], remark=why)
                for name, why in found.strays.items()
            }
            warn_of_columns(odd, in_estimator=True, stacklevel=8)
        return list(found.of_members)


def _first_pass(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, numbers: bool = False
) -> _Blocks:
    """Look at all blocks, or say what they cannot have."""
    if solver_of(estimator) in ("network", "both"):
        way_out = "" if numbers else ", or call partial_fit block by block"
        raise CoCoError(
            f"X is a table in blocks, and networks need all rows at once; fit by solver='kernel' "
            f"(--solver kernel){way_out}"
        )
    if estimator.time_limit is not None:
        raise CoCoError(
            "time_limit is not for a table in blocks, of which every row is read twice; leave it "
            "out, or fit to fewer blocks"
        )
    if sample_weight is not None:
        classes = "" if numbers else ", or weigh classes by class_weight"
        raise CoCoError(
            f"sample_weight is not for a table in blocks; leave out the rows that weigh nothing, "
            f"repeat those that weigh more{classes}"
        )
    blocks, reader = open_blocks(X, y), type(estimator).__name__
    seed, pace = new_seed(estimator), Pace(verbose=estimator.verbose)
    look = add_up(blocks, LookAt(seed, reader, numbers), "first pass", pace)
    if look is None:
        raise CoCoError("X has no rows (0 sample(s)), and a minimum of 1 is required")
    return _Blocks(estimator, blocks, look, seed, pace)


# Classes and levels -----------------------------------------------------------------------------


def fit_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
    """Fit a classifier in closed form to a table in blocks."""
    check_arguments(estimator)
    table = _first_pass(estimator, X, y, sample_weight)
    names, totals = table.look.target.names, table.look.target.counts.astype(np.float64)
    if len(names) < 2:
        raise CoCoError(
            f"{table.reader} needs at least two classes to tell apart, but y has one class: "
            f"{names.tolist()}"
        )
    given = table.look.target.in_order(names)
    estimator.hint_at_order(given)
    classes = estimator.in_order(names, given)
    place = pd.Index(classes).get_indexer(pd.Index(names))  # (C,), where each name is
    totals = totals[np.argsort(place)]
    if table.look.whole:
        y = table.look.target.in_order(table.look.y)
        found = fit_kernels(estimator, table.look.rows, y, table.look.copies)
        history = replace(found.history, class_masses=totals)
        return found._replace(history=history, loo=OfSample(found.loo.score))
    return _fit_classes(table, classes, place, totals)


def _fit_classes(
    table: _Blocks, classes: NDArray[Any], place: NDArray[np.intp], totals: NDArray[np.float64]
) -> Fitted:
    """Fit to classes of which the first pass has left a look."""
    estimator, look, seed = table.estimator, table.look, table.seed
    names, copies = look.target.names, look.copies.astype(np.float64)
    labels = place[np.searchsorted(names, look.y)].astype(np.int64)
    preprocessor, inputs = table.read_sample(look.y, labels)
    points = target_points(estimator.similarity, len(classes), given_dimension(estimator))
    prior = decision_prior(estimator.priors, estimator.class_weight, classes, totals)

    def second_pass(plan: Plan, scale: NDArray[np.float64]) -> Sequence[Sums]:
        target = OfClasses(names, points[place], scale[place], table.reader)
        return table.second_pass(plan, preprocessor, target)

    with threads_for(WORTH_A_THREAD):
        weights = class_weights(estimator.class_weight, classes, totals)
        weights = beyond_balance(estimator.class_weight, weights)
        lesson = Lesson(inputs, labels, copies, weights, points, prior)
        means = estimator.landmarks == "kmeans"
        form = fit_sampled(lesson, totals, seed, second_pass, table.pace, means=means)
    proba = form.honest_proba
    sampled = np.bincount(labels, weights=copies)
    stand_for = copies * (totals / sampled)[labels]
    score = float(np.average(proba.argmax(axis=1) == labels, weights=stand_for))
    weights = stand_for * (copies.sum() / stand_for.sum())  # errors are those of the sample
    honest = Honest("left out", proba, labels, weights)
    history = History([[s.loss for s in form.recipe.members]], np.zeros(1, np.int64), seed, totals)
    encoder = getattr(preprocessor, "encoder_", preprocessor)
    model = FittedModel(classes, prior, encoder, form.machine, (form.readout,))
    table.pace.end()
    return Fitted(model, history, preprocessor, [form.readout], OfSample(score), honest)


# Numbers ----------------------------------------------------------------------------------------


def fit_number_blocks(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> None:
    """Fit a regressor in closed form to a table in blocks."""
    check_option(estimator.landmarks, "landmarks", LANDMARKS)
    with unchanged_on_failure(estimator):
        table = _first_pass(estimator, X, y, sample_weight, numbers=True)
        look = table.look
        if look.whole:
            one_column = look.target.one_column
            fit_numbers(estimator, look.rows, look.y[:, 0] if one_column else look.y, look.copies)
        else:
            _fit_numbers(table)
        estimator.loo_ = OfSample(estimator.loo_.score, look.target)


def _fit_numbers(table: _Blocks) -> None:
    """Fit to numbers of which the first pass has left a look."""
    estimator, look, seed, pace = table.estimator, table.look, table.seed, table.pace
    weights = look.copies.astype(np.float64)
    preprocessor, inputs = table.read_sample(look.y, number_codes(look.y))
    means = estimator.landmarks == "kmeans"
    with threads_for(WORTH_A_THREAD):
        problem = pose(inputs, look.y, weights, seed)
        target = OfNumbers(problem.response, table.reader)

        def second_pass(plan: Plan) -> Sequence[Sums]:
            return table.second_pass(plan, preprocessor, target)

        solved = solve_sampled(problem, look.n_rows, seed, second_pass, pace, means=means)
        model, said = regression_of(
            problem,
            of_kernels(solved),
            preprocessor,
            seed,
            means=means,
            one_column=look.target.one_column,
        )
    losses = [[setting.loss for setting in solved.recipe.members]]
    history = History(losses, np.zeros(1, np.int64), seed, np.array([float(look.n_rows)]))
    score = OfSample(float(r2_score(look.y, said, sample_weight=weights)))
    pace.say(f"of the sample, each row left out, R2 is {score.score:.3f}")
    pace.end()
    honest = Honest("left out", said, look.y, weights)
    estimator.keep(model, history, preprocessor, score, honest)
