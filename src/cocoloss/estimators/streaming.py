"""Learning from rows that come in parts."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples, column_or_1d

from cocoloss._random import as_generator
from cocoloss._validation import check_weights
from cocoloss.estimators.all_or_nothing import unchanged_on_failure
from cocoloss.estimators.arguments import check_arguments
from cocoloss.estimators.distinct import as_table
from cocoloss.estimators.jobs import Job
from cocoloss.estimators.targets import class_weights, decision_prior
from cocoloss.exceptions import CoCoError
from cocoloss.preprocessing import make_preprocessor

KEPT = 5000  # recent rows that the heads are fitted on, shared out evenly among the classes


class LearnsInParts:
    """``partial_fit``: one epoch on each part, and heads on the rows seen lately."""

    classes_: NDArray[Any]
    parameters_: NDArray[np.float32]
    loss_curves_: list[list[float]]

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from some more rows: one epoch, at a constant learning rate.

        After a ``fit`` it goes on from there.

        The first part decides the preprocessing and must hold rows of every class. The heads are
        fitted on the last rows of each class, 5000 in all, which the estimator keeps. Nothing is
        held out, so probabilities are not calibrated.

        Class shares, for priors and for the balanced loss, are those of the rows seen so far.

        Parameters
        ----------
        X, y
            Some rows and their classes.
        classes : array, optional
            All classes, in the first call; those of ``y`` if None.
        sample_weight : array of shape (n,), optional
            Weights of the rows in training.
        """
        with unchanged_on_failure(self):
            self._learn_part(X, y, classes, sample_weight)
        return self

    def _learn_part(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        from cocoloss.estimators.stacking import train_jobs  # noqa: PLC0415 - torch, to train

        X = as_table(X, type(self).__name__)
        y = column_or_1d(y, warn=True)
        if _num_samples(X) != len(y):
            raise CoCoError(f"X has {_num_samples(X)} rows, but y has {len(y)}")
        weights = check_weights(sample_weight, len(y))
        first = not hasattr(self, "heads_")
        if first:
            self._begin(X, y, classes)
        if not hasattr(self, "_parts"):  # the first part ever, or the first one after a fit
            self._start_counting(y)
        labels = self._known_labels(y)
        weights = weights * self._see(labels, weights)[labels]
        inputs = np.ascontiguousarray(self.preprocessor_.transform(X), dtype=np.float32)
        job = self._part(inputs, labels, weights, None if first else self.parameters_)
        curves = self.loss_curves_ if self._parts else []
        (trained,) = train_jobs([job])
        self._finish(self._keep(job), trained)  # type: ignore[attr-defined]
        if curves:
            self.loss_curves_ = [a + b for a, b in zip(curves, self.loss_curves_, strict=True)]
            self.loss_curve_ = self.loss_curves_[0]
        self._parts += 1
        self.n_iter_ = self._parts

    def _begin(self, X: Any, y: NDArray[Any], classes: Any) -> None:
        check_arguments(self)
        self.classes_ = np.unique(y if classes is None else classes)
        if len(self.classes_) < 2:
            raise CoCoError(
                f"{type(self).__name__} needs at least two classes to tell apart, but there is "
                f"one class: {self.classes_.tolist()}; give all classes in the first call"
            )
        self._seed = int(as_generator(self.random_state).integers(2**31))  # type: ignore[attr-defined]
        self.preprocessor_ = make_preprocessor(self.preprocess).fit(X)  # type: ignore[attr-defined]
        self._copy_input_names()  # type: ignore[attr-defined]

    def _start_counting(self, y: NDArray[Any]) -> None:
        absent = np.setdiff1d(self.classes_, y)
        if len(absent):
            raise CoCoError(
                f"the first part must hold rows of every class, but has none of "
                f"{absent[:5].tolist()}; put some of them into it"
            )
        self._seen = np.zeros(len(self.classes_))
        self._parts = 0
        self._kept: tuple[Any, Any] | None = None

    def _forget_parts(self) -> None:
        """Let a fit start from all its rows, whatever came in parts before."""
        for name in ("_seen", "_parts", "_kept"):
            self.__dict__.pop(name, None)

    def _see(self, labels: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Count the classes seen so far; return what a row of each class weighs in training."""
        given = self.class_weight  # type: ignore[attr-defined]
        if isinstance(given, str):
            raise CoCoError(
                f"class_weight={given!r} needs all rows at once; give partial_fit a dict of weights"
            )
        C = len(self.classes_)
        seen = self._seen + np.bincount(labels, weights=weights, minlength=C)
        if not weights.any() or not seen.all():
            raise CoCoError("rows of every class must have a positive sample_weight")
        self._seen = seen
        each = np.arange(C)
        self.class_prior_ = decision_prior(
            self.priors,  # type: ignore[attr-defined]
            given,
            self.classes_,
            each,
            self._seen,
        )
        counted = self._seen * class_weights(given, self.classes_, each)
        balanced = self._loss_weights(each, counted)  # type: ignore[attr-defined]
        return np.asarray(balanced / self._seen)

    def _known_labels(self, y: NDArray[Any]) -> NDArray[np.int64]:
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise CoCoError(
                f"y has classes that the first part did not name: {unknown[:5].tolist()}; give "
                f"all of them as classes in the first call of partial_fit"
            )
        return np.searchsorted(self.classes_, y).astype(np.int64)

    def _part(
        self,
        inputs: NDArray[np.float32],
        labels: NDArray[np.int64],
        weights: NDArray[np.float64],
        start: NDArray[np.float32] | None,
    ) -> Job:
        """Return one epoch on these rows, for every member."""
        design = self._make_design(inputs.shape[1], len(self.classes_))  # type: ignore[attr-defined]
        schedule = replace(design.schedule, n_epochs=1, decay="constant", patience=None)
        everything = np.arange(len(labels))
        n = self.n_members  # type: ignore[attr-defined]
        uneven = not np.all(weights == weights[0])
        return Job(
            replace(design, schedule=schedule),
            inputs,
            labels,
            (weights / weights.mean()).astype(np.float32) if uneven else None,
            len(self.classes_),
            [everything] * n,
            [everything[:0]] * n,
            [self._seed + k + n * self._parts for k in range(n)],  # another order in every part
            np.ones(len(labels)),
            start,
        )

    def _keep(self, job: Job) -> Job:
        """Return the job on the rows that are kept: the last ones of each class."""
        inputs, labels = job.inputs, job.labels
        if self._kept is not None:
            inputs = np.concatenate([self._kept[0], inputs])
            labels = np.concatenate([self._kept[1], labels])
        C = len(self.classes_)
        last = [np.flatnonzero(labels == c)[-max(1, KEPT // C) :] for c in range(C)]
        rows = np.sort(np.concatenate(last))
        self._kept = inputs[rows], labels[rows]
        everything = np.arange(len(rows))
        return replace(
            job,
            inputs=inputs[rows],
            labels=labels[rows],
            train=[everything] * len(job.train),
            held_out=[everything[:0]] * len(job.train),
            row_weights=np.ones(len(rows)),
        )
