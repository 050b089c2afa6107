"""What a fit is worth on the way: networks at some epochs, kernels along the ridge path.

The ridge path of a fit in closed form leads from everything alike to collapse, a frame for a ridge.
One eigendecomposition gives the first kernel's function for every ridge, at the rows of the fit as
they were fitted and by fits without them.
"""

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from cocoloss.exceptions import CoCoError, GeometryError, GeometryWarning
from cocoloss.fitting.fit import Fitted, head_weights
from cocoloss.fitting.jobs import Job
from cocoloss.fitting.model import EmbeddingModel, FittedModel
from cocoloss.geometry import similarity
from cocoloss.kernels import Recipe, RidgePath, fit_recipe
from cocoloss.kernels.classes import ClosedForm
from cocoloss.kernels.search import USUAL
from cocoloss.metrics import (
    ClassMoments,
    balanced_accuracy,
    dispersity,
    dispersity_of,
    neural_collapse,
)
from cocoloss.recording.record import MEASURES, Reliability, RidgePathRecord

BINS = 10  # of a reliability curve
NAN = float("nan")
# Of a ridge path.
ALIKE = 10.0  # times the largest eigenvalue: a ridge that leaves a tenth of the target at most
COLLAPSED = 1e-5  # a ridge just above what is left of a kernel's rounding to float32
ROUNDING = 1e-6


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


class Film(NamedTuple):
    """What a kernel makes of rows at each of S ridges: training rows as fitted, then test rows."""

    ridges: NDArray[np.float64]  # (S,)
    kept: int  # position of the ridge that the search has chosen
    embeddings: NDArray[np.float32]  # (S, n, q)
    class_means: NDArray[np.float64]  # (S, C, q), of the training rows
    measures: dict[str, NDArray[np.float64]]  # (S,) each


def film_ridges(chosen: float, largest: float, n: int) -> tuple[NDArray[np.float64], int]:
    """Return n ridges from large to small, evenly spaced on a log scale but for the chosen one.

    That one is among them, at the position that comes second.
    """
    high, low = max(ALIKE * largest, 10 * chosen), min(COLLAPSED, chosen / 10)
    kept = round((n - 1) * np.log(high / chosen) / np.log(high / low))
    kept = int(np.clip(kept, 1, n - 2)) if n > 2 else 1
    above = np.geomspace(high, chosen, kept + 1)
    return np.r_[above[:-1], chosen, np.geomspace(chosen, low, n - kept)[1:]], kept


def make_film(
    found: ClosedForm,
    drawn: NDArray[np.intp],
    test_inputs: NDArray[np.float32],
    test_labels: NDArray[np.int64],
    n_ridges: int,
) -> Film:
    """Fit the first kernel for every ridge, to the rows that found it, and measure what comes out.

    Parameters
    ----------
    found : ClosedForm
        The fit.
    drawn : array of int
        Pairs of a row and a class that are shown, of those that found the settings; one that stands
        for several rows may come several times.
    test_inputs, test_labels
        Rows that were kept apart.
    n_ridges : int
        At least two.

    Notes
    -----
    A row is said to be of the class whose corner is at the smallest angle. Anything that is fitted
    to rows that are left out could learn their classes: leaving a row out moves it away from its
    own corner, and under a large ridge by more than rows differ.
    """
    rows, kernel = found.criterion.rows, found.machine.kernels[0]
    chosen, targets, weights = rows.problem()
    X = rows.X[chosen]
    path = RidgePath.of(kernel(X).astype(np.float64), targets, weights)
    to_test = kernel(test_inputs, X).astype(np.float64)
    ridges, kept = film_ridges(found.recipe.members[0].ridge, path.values[-1], n_ridges)
    weigh = rows.scale[rows.label] * rows.mass
    corners, labels = rows.points[rows.label], rows.label[drawn]
    embeddings, means, measured = [], [], []

    def score(h: NDArray[Any], y: NDArray[Any]) -> float:
        return balanced_accuracy(y, (h @ rows.points.T).argmax(axis=1))

    for ridge in ridges:
        solution = path.solution(ridge)
        left_out, fitted = found.criterion.left_out(solution), solution.fitted[rows.row]
        test = to_test @ solution.alpha
        moments = ClassMoments().update(fitted[drawn], labels)
        measures = shape_measures(moments, fitted[drawn], labels, test, test_labels)
        measures |= {
            "left_out_dispersity": dispersity(left_out[drawn], labels),
            "left_out_log_loss": found.criterion(solution),
            "error": _mean_square(fitted - corners, weigh),
            "left_out_error": _mean_square(left_out - corners, weigh),
            "train_balanced_accuracy": score(fitted[drawn], labels),
            "left_out_balanced_accuracy": score(left_out[drawn], labels),
            "test_balanced_accuracy": score(test, test_labels),
        }
        embeddings.append(np.concatenate([fitted[drawn], test]).astype(np.float32))
        means.append(moments.means)
        measured.append(measures)
    return Film(
        ridges,
        kept,
        np.stack(embeddings),
        np.stack(means),
        {name: np.array([each[name] for each in measured]) for name in MEASURES},
    )


def _mean_square(differences: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    return float(np.average(np.square(differences).sum(axis=1), weights=weights))


def path_record(found: ClosedForm, model: FittedModel, ridges: NDArray[Any]) -> RidgePathRecord:
    """Return what there is to say of a fit in closed form, beside its film."""
    rows, recipe = found.criterion.rows, found.recipe
    return RidgePathRecord(
        ridges=ridges,
        searched=(USUAL.ridges[0], USUAL.ridges[-1]),
        corners=rows.points,
        n_rows=len(rows.X),
        is_sample=rows.mass.sum() < (1 - ROUNDING) * len(found.honest),
        chosen=recipe.members[: len(found.machine.kernels)],
        tried=recipe.tried,
        metrics=metrics_by_round(found.criterion.rows, found.recipe, model),
    )


def metrics_by_round(
    rows: Any, recipe: Recipe, model: EmbeddingModel
) -> dict[str, tuple[float, ...]]:
    """Return what share of squared distances each column of the table has, round by round."""
    # The metric of a round is that of a member in it: one of each round is fitted.
    first = recipe.members[0]
    every = tuple(replace(first, round=r) for r in range(len(recipe.path) + 1))
    chosen, targets, weights = rows.problem()
    members = fit_recipe(Recipe(recipe.path, every), rows.X[chosen], targets, weights)
    variance = rows.X[chosen].var(axis=0, dtype=np.float64)
    shares = []
    for member in members:
        share = member.kernel.metric * variance
        shares.append(model.by_column(share / max(share.sum(), np.finfo(np.float64).tiny)))
    return {name: tuple(share[name] for share in shares) for name in shares[0]}
