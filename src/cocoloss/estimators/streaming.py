"""Learning from rows that come in parts."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import _safe_indexing

from cocoloss._checks import as_generator
from cocoloss.estimators.all_or_nothing import unchanged_on_failure
from cocoloss.estimators.arguments import check_arguments
from cocoloss.estimators.copies import make_copies
from cocoloss.estimators.fitting import Fitting, train_together
from cocoloss.estimators.jobs import Job, Trained
from cocoloss.estimators.targets import class_weights, decision_prior, read_target, relative
from cocoloss.exceptions import CoCoError

KEPT = 5000  # recent rows that the heads are fitted on, shared out evenly among the classes


class LearnsInParts:
    """``partial_fit``: one epoch on each part, and heads on the rows seen lately."""

    classes_: NDArray[Any]
    heads_: list[Any]
    parameters_: NDArray[np.float32]
    modules_: list[Any] | None
    loss_curves_: list[list[float]]
    n_iter_: int
    n_members: int
    class_weight: Any
    priors: Any
    random_state: Any
    if TYPE_CHECKING:  # what the estimator brings
        _as_table: Any
        _read_inputs: Any
        _loss_weights: Any
        _make_design: Any
        _finish: Any

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from some more rows: one epoch, at a constant learning rate.

        After a ``fit`` it goes on from there: the rows of the fit count as a part.

        The first part decides the preprocessing and must hold rows of every class. The heads are
        fitted on the last rows of each class, 5000 in all, which the estimator keeps (but no file
        that ``save`` writes: after loading, too, the first part must hold rows of every class).
        Nothing is held out, so probabilities are not calibrated.

        Class shares, for priors and for the balanced loss, are those of the rows seen so far.

        Parameters
        ----------
        X, y
            Some rows and their classes.
        classes : array, optional
            All classes, in the first call; those of ``y`` if None.
        sample_weight : array of shape (n,), optional
            How often each row counts, as for ``fit``.
        """
        with unchanged_on_failure(self):
            self._learn_part(X, y, classes, sample_weight)
        return self

    def _learn_part(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        check_arguments(self)
        me = type(self).__name__
        X = self._as_table(X)
        y, weights = read_target(X, y, sample_weight, me)
        first = not hasattr(self, "heads_")
        if first:
            self._begin(y[weights > 0], classes)
        elif len(self.heads_) != self.n_members:
            raise CoCoError(
                f"partial_fit goes on with {len(self.heads_)} members, but n_members is "
                f"{self.n_members}; make a new estimator to start anew"
            )
        labels = self._known_labels(y, weights > 0)
        copies = make_copies(X, labels, weights, me)
        labels, weights = labels[copies.rows], copies.weights
        inputs = self._read_inputs(_safe_indexing(X, copies.rows), labels, learn=first)
        if not hasattr(self, "_parts"):  # the first part ever, or the first one after loading
            self._check_every_class(labels)
            self._start_counting()
        masses = np.bincount(labels, weights=weights, minlength=len(self.classes_))
        per_class = self._see(masses.astype(np.float64))
        job = self._part(inputs, labels, weights * per_class[labels], weights, first=first)
        epochs, curves = (0, [[]] * self.n_members) if first else (self.n_iter_, self.loss_curves_)

        def finish(trained: Trained) -> None:
            self._finish(self._keep(job, per_class), trained)
            self.loss_curves_ = [a + b for a, b in zip(curves, self.loss_curves_, strict=True)]
            self.loss_curve_ = self.loss_curves_[0]
            self.n_iter_ = epochs + 1
            self._parts += 1

        train_together([Fitting(self, job, finish)])

    def _begin(self, y: NDArray[Any], classes: Any) -> None:
        self.classes_ = np.unique(y if classes is None else classes)
        if len(self.classes_) < 2:
            raise CoCoError(
                f"{type(self).__name__} needs at least two classes to tell apart, but there is "
                f"one class: {self.classes_.tolist()}; give all classes in the first call"
            )
        self._seed = int(as_generator(self.random_state).integers(2**31))

    def _check_every_class(self, labels: NDArray[np.int64]) -> None:
        absent = np.setdiff1d(np.arange(len(self.classes_)), labels)
        if len(absent):
            raise CoCoError(
                f"the first part must hold rows of every class, but has none of "
                f"{self.classes_[absent[:5]].tolist()} that weigh anything; put some into it"
            )

    def _start_counting(self) -> None:
        self._seen = np.zeros(len(self.classes_))
        self._parts = 0
        self._kept: tuple[NDArray[Any], ...] | None = None  # inputs, labels, weights

    def _count_as_a_part(self, job: Job) -> None:
        """Let parts go on from a fit, whatever came in parts before."""
        self._start_counting()
        self._seen = np.bincount(job.labels, weights=job.row_weights).astype(np.float64)
        self._parts = 1
        self._keep_rows(job)

    def _see(self, masses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count the classes seen so far; return what a row of each class weighs in training."""
        if isinstance(self.class_weight, str):
            raise CoCoError(
                f"class_weight={self.class_weight!r} needs all rows at once; give partial_fit a "
                f"dict of weights"
            )
        self._seen = self._seen + masses
        self.class_prior_ = decision_prior(
            self.priors, self.class_weight, self.classes_, self._seen
        )
        counted = self._seen * class_weights(self.class_weight, self.classes_, self._seen)
        balanced = self._loss_weights(np.arange(len(self.classes_)), counted)
        return np.asarray(balanced / self._seen)

    def _known_labels(self, y: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[np.int64]:
        unknown = np.setdiff1d(y[present], self.classes_)
        if len(unknown):
            raise CoCoError(
                f"y has classes that the first part did not name: {unknown[:5].tolist()}; give "
                f"all of them as classes in the first call of partial_fit"
            )
        labels = np.zeros(len(y), dtype=np.int64)
        labels[present] = np.searchsorted(self.classes_, y[present])
        return labels

    def _part(
        self,
        inputs: NDArray[np.float32],
        labels: NDArray[np.int64],
        loss_weights: NDArray[np.float64],
        weights: NDArray[np.float64],
        *,
        first: bool,
    ) -> Job:
        """Return one epoch on these rows, for every member."""
        design = self._make_design(inputs.shape[1], len(self.classes_))
        schedule = replace(design.schedule, n_epochs=1, decay="constant", patience=None)
        everything = np.arange(len(labels))
        n = self.n_members
        return Job(
            replace(design, schedule=schedule),
            inputs,
            labels,
            relative(loss_weights),
            len(self.classes_),
            [everything] * n,
            [everything[:0]] * n,
            [self._seed + k + n * self._parts for k in range(n)],  # another order in every part
            weights,
            None if first else self.parameters_,
            None if first else self.modules_,
        )

    def _keep(self, job: Job, per_class: NDArray[np.float64]) -> Job:
        """Return the job on the rows that are kept."""
        inputs, labels, weights = self._keep_rows(job)
        # Logits have learnt the class shares of all rows seen, not those of the kept ones.
        learnt = self._seen * per_class / np.bincount(labels, weights=weights)
        everything = np.arange(len(labels))
        return replace(
            job,
            inputs=inputs,
            labels=labels,
            weights=relative(weights * learnt[labels]),
            train=[everything] * len(job.train),
            held_out=[everything[:0]] * len(job.train),
            row_weights=weights,
        )

    def _keep_rows(self, job: Job) -> tuple[NDArray[Any], ...]:
        """Keep the last rows of each class, and return inputs, labels and weights of them."""
        parts: tuple[NDArray[Any], ...] = (job.inputs, job.labels, job.row_weights)
        if self._kept is not None:
            parts = tuple(np.concatenate(pair) for pair in zip(self._kept, parts, strict=True))
        C = len(self.classes_)
        last = [np.flatnonzero(parts[1] == c)[-max(1, KEPT // C) :] for c in range(C)]
        rows = np.sort(np.concatenate(last))
        self._kept = tuple(part[rows] for part in parts)
        return self._kept
