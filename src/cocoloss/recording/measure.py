"""What a snapshot of a network is worth, and how far probabilities of a model can be trusted."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from cocoloss.estimators.fit import Fitted, head_weights
from cocoloss.estimators.jobs import Job
from cocoloss.exceptions import CoCoError, GeometryError, GeometryWarning
from cocoloss.geometry import similarity
from cocoloss.metrics import (
    ClassMoments,
    balanced_accuracy,
    dispersity,
    dispersity_of,
    neural_collapse,
)
from cocoloss.recording.record import MEASURES, Reliability

BINS = 10  # of a reliability curve
NAN = float("nan")


class Snapshot(NamedTuple):
    """What a network made of the rows."""

    embedding: NDArray[np.float32]  # (n, q)
    outputs: NDArray[np.float32]  # (n, p): the embedding, or the logits of cross-entropy
    weights: NDArray[np.float64] | None  # (C, q), the linear classifier on the embedding
    bias: NDArray[np.float64] | None  # (C,)


class SnapshotMeasure:
    """Measures snapshots of the first network of a fitted estimator.

    The rows of the job that are ``drawn`` come first in every snapshot, then the test rows. The
    head of the fitted estimator is fitted anew to judge each of them.
    """

    def __init__(
        self,
        job: Job,
        fitted: Fitted,
        drawn: NDArray[np.int64],
        test_labels: NDArray[np.int64],
    ) -> None:
        self.labels, self.test_labels = job.labels[drawn], test_labels
        self.n_classes = job.n_classes
        self.row_weights = job.row_weights[drawn]
        self.loss_weights = None if job.weights is None else job.weights[drawn]
        self.loss = job.design.loss
        self.head = fitted.heads[0]
        self.head_weights = _head_weights(job, drawn)
        self.reads_outputs = fitted.model.reads_outputs

    def __call__(self, snapshot: Snapshot) -> tuple[dict[str, float], NDArray[np.float64]]:
        """Return the measures by name, and the class means (C, q)."""
        n = len(self.labels)
        rows, test_rows = np.split(snapshot.embedding.astype(np.float64), [n])
        if not (np.isfinite(rows).all() and np.isfinite(test_rows).all()):
            nothing = np.full((self.n_classes, rows.shape[1]), NAN)
            return dict.fromkeys(MEASURES, NAN), nothing
        moments = ClassMoments().update(rows, self.labels, self.row_weights)
        classifier = snapshot.weights, snapshot.bias
        measures = shape_measures(
            moments, rows, self.labels, test_rows, self.test_labels, *classifier
        )
        measures |= self._loss_parts(rows)
        features = snapshot.outputs if self.reads_outputs else snapshot.embedding
        measures |= self._accuracies(features[:n], features[n:])
        return measures, moments.means

    def _loss_parts(self, rows: NDArray[np.float64]) -> dict[str, float]:
        """Return the loss and its parts, if it is CoCo: others have no such parts."""
        if not hasattr(self.loss, "components"):
            return {}
        import torch  # noqa: PLC0415 - the loss is torch's

        h, y = torch.from_numpy(rows), torch.from_numpy(self.labels)
        w = None if self.loss_weights is None else torch.from_numpy(self.loss_weights)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GeometryWarning)  # the fit has said it once
            parts = self.loss.components(h, y, w)
            total = float(self.loss(h, y, w))
        nc2, nc1 = float(parts.nc2), float(parts.nc1_between + parts.nc1_within)
        # What is left is the norms' part, but for rounding.
        return {
            "loss": total,
            "nc2_part": nc2,
            "nc1_part": nc1,
            "norm_part": max(0.0, total - nc2 - nc1),
        }

    def _accuracies(self, train: NDArray[Any], test: NDArray[Any]) -> dict[str, float]:
        """Return the balanced accuracies of a head that is fitted to the training rows."""
        weighted = has_fit_parameter(self.head, "sample_weight") and np.ptp(self.head_weights) > 0
        options = {"sample_weight": self.head_weights} if weighted else {}
        try:
            head = clone(self.head).fit(train, self.labels, **options)
        except (CoCoError, np.linalg.LinAlgError):  # rows that a head cannot be fitted to
            return {}
        if hasattr(self.head, "temperature_"):  # which weighs the embedding against the priors
            head.temperature_ = self.head.temperature_
        if hasattr(self.head, "matrix_"):  # of held-out rows
            head.use_matrix(self.head.matrix_, self.head.bias_)
        return {
            "train_balanced_accuracy": balanced_accuracy(self.labels, head.predict(train)),
            "test_balanced_accuracy": balanced_accuracy(self.test_labels, head.predict(test)),
        }


def shape_measures(
    moments: ClassMoments,
    rows: NDArray[np.float64],
    labels: NDArray[np.int64],
    test_rows: NDArray[np.float64],
    test_labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
    bias: NDArray[np.float64] | None = None,
) -> dict[str, float]:
    """Return dispersity and collapse of embedded rows, and NaN for what is measured elsewhere.

    The moments are those of the rows; weights and bias are a linear classifier, if there is one.
    """
    measures = dict.fromkeys(MEASURES, NAN)
    measures["dispersity"] = dispersity_of(moments)
    if len(np.unique(test_labels)) > 1:
        measures["test_dispersity"] = dispersity(test_rows, test_labels)
    found = neural_collapse(rows, labels, weights, bias)._asdict()
    return measures | {name: value for name, value in found.items() if value is not None}


def _head_weights(job: Job, drawn: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what each drawn row weighs for the head: what the fit gave it.

    Where not all training rows are drawn, those of a class stand for all of it. Else a class so
    small that two of its rows are drawn come what may would have another share than in the fit.
    """
    weights = head_weights(job)
    rows = job.train[0]
    if len(drawn) < len(rows):
        C = job.n_classes
        mass = np.bincount(job.labels[rows], weights=weights[rows], minlength=C)
        seen = np.bincount(job.labels[drawn], weights=weights[drawn], minlength=C)
        weights = weights * (mass / np.where(seen > 0, seen, 1.0))[job.labels]
    return np.asarray(weights[drawn], dtype=np.float64)


def prototypes(loss: Any) -> NDArray[np.float64] | None:
    """Return the class vectors of dot regression, which are its linear classifier, (C, q)."""
    found = getattr(loss, "prototypes", None)
    return None if found is None else np.asarray(found.cpu().numpy(), dtype=np.float64)


def target_similarity(loss: Any, n_classes: int, embedding_dim: int) -> NDArray[np.float64] | None:
    """Return the Gram matrix that class means tend to under a loss, (C, C).

    For cross-entropy it is the simplex, by neural collapse; None if that does not fit.
    """
    vectors = prototypes(loss)
    if vectors is not None:
        return np.asarray(vectors @ vectors.T)
    kind = getattr(loss, "similarity", "simplex")
    if not isinstance(kind, str):
        return np.asarray(kind, dtype=np.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GeometryWarning)  # the fit has said it once
            return similarity(kind, n_classes, embedding_dim)
    except GeometryError:
        return None


def reliability_curve(
    probabilities: NDArray[np.float64],
    labels: NDArray[np.int64],
    weights: NDArray[np.float64] | None = None,
) -> Reliability:
    """Return the reliability curve of predicted probabilities (n, C), in bins of equal width."""
    weights = np.ones(len(labels)) if weights is None else weights
    sure = probabilities.max(axis=1)
    right = probabilities.argmax(axis=1) == labels
    edges = np.linspace(0, 1, BINS + 1)
    place = np.clip(np.searchsorted(edges, sure, side="left") - 1, 0, BINS - 1)
    mass = np.bincount(place, weights=weights, minlength=BINS)
    share = np.where(mass > 0, mass, np.nan)
    confidence = np.bincount(place, weights=weights * sure, minlength=BINS) / share
    accuracy = np.bincount(place, weights=weights * right, minlength=BINS) / share
    gaps = np.nansum(mass * np.abs(confidence - accuracy))
    return Reliability(
        edges,
        np.bincount(place, minlength=BINS),
        confidence,
        accuracy,
        float(gaps / mass.sum()),
    )
