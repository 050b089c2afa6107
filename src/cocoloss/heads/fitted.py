"""What the heads have learnt, as frozen values that predict: numpy alone, classes by position.

Learning is the business of the heads of the same names; a model file holds these values as states.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import check_option, require, state_array, state_part
from cocoloss.exceptions import CoCoError

BlockFunction = Callable[[NDArray[np.float64]], NDArray[Any]]

BLOCK_NUMBERS = 2**19  # float64 numbers of one block: 4 MB, whatever the number of rows
MIN_BLOCK_ROWS = 64
HUGE = 1e300  # what a number becomes that overflows: rows that far away are equally far from all


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedHead(ABC):
    r"""Bayes' rule on the log-likelihoods of the classes.

    With the log-likelihood :math:`\ell_c(h)`, which a subclass knows up to a term that the classes
    share, the prior :math:`\pi_c` and the temperature T,

    .. math:: \log p(c \mid h) = \log \pi_c + \ell_c(h) / T + \text{const}.
    """

    kind: ClassVar[str]
    VECTORS: ClassVar = "means"  # the part that has a vector of each class
    OPTIONS: ClassVar[dict[str, tuple[str, ...]]] = {}  # parts that are one of a few words
    POSITIVE: ClassVar[tuple[str, ...]] = ("prior", "share", "temperature")

    prior: NDArray[np.float64]  # (C,)
    share: NDArray[np.float64]  # (C,), of the classes among the rows that were learnt from
    temperature: float = 1.0  # T

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return int(self.prior.size)

    @property
    def n_features(self) -> int:
        """Dimension of the embedding, q."""
        return int(np.atleast_1d(getattr(self, self.VECTORS)).shape[-1])

    def predict(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of the most probable class of each row, the first one of equals."""
        return self._map_blocks(X, lambda h: softmax(self._joint(h)).argmax(axis=1))

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the posterior probability of each class, of shape (n, C)."""
        return self._map_blocks(X, lambda h: softmax(self._joint(h)))

    def predict_log_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log of the posterior probability of each class, of shape (n, C); finite."""
        return self._map_blocks(X, lambda h: log_softmax(self._joint(h)))

    def decision_function(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log posterior of shape (n, C); for two classes the log odds of the second."""

        def scores(block: NDArray[np.float64]) -> NDArray[np.float64]:
            joint = self._joint(block)
            return np.diff(joint, axis=1)[:, 0] if joint.shape[1] == 2 else log_softmax(joint)

        return self._map_blocks(X, scores)

    def log_likelihood(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log-likelihood of each class, before priors and temperature, (n, C)."""
        return self._map_blocks(X, self._bounded_log_likelihood)

    def outlier_score(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return how strange each row is, of shape (n,): larger is stranger."""
        return self._map_blocks(X, lambda h: _bounded(self._outlier_score, h, overflow=HUGE))

    def offset(self, prior: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return what is added to the log-likelihoods under a prior, by default its own, (C,)."""
        return np.log(self.prior if prior is None else prior)

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of its kind, numbers, text and arrays."""
        return _to_state(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described.

        A stranger may have written the state: :class:`CoCoError` if a part is missing, of another
        type or shape, or impossible.
        """
        values = _values(cls, state)
        for name, options in cls.OPTIONS.items():
            check_option(values[name], f"{name} of a head", options)
        head = cls(**values)
        for name, shape in head._shapes().items():
            state_array(state, name, np.float64, shape)
        for name in cls.POSITIVE:
            part = np.asarray(getattr(head, name))
            possible = ((part > 0) & np.isfinite(part)).all()
            require(possible, f"{name} of a head must be positive and finite")
        return head

    @abstractmethod
    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class log-likelihoods of a block, (b, C), up to a term that the classes share."""

    @abstractmethod
    def _outlier_score(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the outlier scores of a block, (b,)."""

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes that the arrays must have to fit together."""
        C = max(self.n_classes, 2)
        return {"prior": (C,), "share": (C,), self.VECTORS: (C, self.n_features)}

    def _joint(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log posterior up to a term that the classes share, (b, C)."""
        evidence = self._bounded_log_likelihood(block)
        evidence -= evidence.max(axis=1, keepdims=True)  # or large ones would swallow the prior
        return np.asarray(self.offset() + evidence / self.temperature)

    def _bounded_log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return _bounded(self._log_likelihood, block, overflow=-HUGE)

    def _map_blocks(self, X: NDArray[Any], function: BlockFunction) -> NDArray[Any]:
        """Apply a function of a block of rows to the rows of X, (n, q)."""
        if not np.isfinite(X).all():
            raise CoCoError(
                "the embedding of a row is not finite: the weights of the network are too large"
            )
        rows = blocks(len(X), self.n_classes * X.shape[1])
        return np.concatenate([function(X[r].astype(np.float64, copy=False)) for r in rows])


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedGaussian(FittedHead):
    """One Gaussian per class; the parts are the attributes of :class:`GaussianHead`."""

    kind = "gaussian"
    OPTIONS: ClassVar = {"covariance": ("full", "tied", "diag")}
    POSITIVE = (*FittedHead.POSITIVE, "precisions")

    means: NDArray[np.float64]  # (C, q)
    covariance: str
    precisions_cholesky: NDArray[np.float64]  # P: (C, q, q), (q, q) for "tied", (C, q) for "diag"

    @property
    def log_determinant(self) -> NDArray[np.float64]:
        """Log of the determinant of P, (C,); one number for "tied"."""
        return np.asarray(np.log(self.precisions).sum(axis=-1))

    @property
    def precisions(self) -> NDArray[np.float64]:
        """Diagonal of P, (C, q); (q,) for "tied"."""
        P = self.precisions_cholesky
        return P if self.covariance == "diag" else np.diagonal(P, axis1=-2, axis2=-1)

    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        q = block.shape[1]
        distances = self._squared_distances(block)  # (b, C)
        return np.asarray(self.log_determinant - 0.5 * (q * np.log(2 * np.pi) + distances))

    def _outlier_score(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._squared_distances(block).min(axis=1))

    def _squared_distances(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared Mahalanobis distance to each class, (b, C)."""
        P = self.precisions_cholesky
        if self.covariance == "tied":
            return pairwise_squares(block @ P, self.means @ P)
        deviations = block - self.means[:, None]  # (C, b, q)
        whitened = deviations * P[:, None] if self.covariance == "diag" else deviations @ P
        return np.asarray(np.einsum("cbq,cbq->cb", whitened, whitened).T)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        C, q = self.n_classes, self.n_features
        spread = {"full": (C, q, q), "tied": (q, q), "diag": (C, q)}[self.covariance]
        return super()._shapes() | {"precisions_cholesky": spread}


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedCentroid(FittedHead):
    """The nearest class mean; the parts are the attributes of :class:`CentroidHead`."""

    kind = "centroid"
    OPTIONS: ClassVar = {"metric": ("euclidean", "angular")}
    POSITIVE = (*FittedHead.POSITIVE, "concentration")

    metric: str
    means: NDArray[np.float64]  # (C, q)
    concentration: float

    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return -0.5 * self._squared_distances(block)

    def _outlier_score(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(self._squared_distances(block).min(axis=1))

    def _squared_distances(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the squared distance to each mean in units of the spread, (b, C)."""
        if self.metric == "angular":
            return 2 * self.concentration * (1 - cosines(block, self.means))
        deviations = block - self.means[:, None]  # (C, b, q)
        squared: NDArray[np.float64] = np.einsum("cbq,cbq->cb", deviations, deviations).T
        return self.concentration * squared


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedReadout(FittedHead):
    """Fixed class vectors; the parts are the attributes of :class:`ReadoutHead`."""

    kind = "readout"
    VECTORS = "prototypes"
    OPTIONS: ClassVar = {"metric": ("angular", "dot")}
    POSITIVE = (*FittedHead.POSITIVE, "concentration", "learnt_share")

    metric: str
    prototypes: NDArray[np.float64]  # (C, q)
    bias: NDArray[np.float64]  # (C,)
    concentration: float
    learnt_share: NDArray[np.float64]  # (C,), which the angles contain, and which is divided out

    def offset(self, prior: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Return what is added to the log-likelihoods under a prior, by default its own, (C,)."""
        return super().offset(prior) - np.log(self.learnt_share)

    def _log_likelihood(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.metric == "angular":
            return self.concentration * cosines(block, self.prototypes)
        return self._logits(block) - np.log(self.share)

    def _outlier_score(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.metric == "angular":
            nearest: NDArray[np.float64] = cosines(block, self.prototypes).max(axis=1)
            return 2 * self.concentration * (1 - nearest)
        return -logsumexp(self._logits(block))

    def _logits(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(block @ self.prototypes.T + self.bias)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return super()._shapes() | {"bias": (self.n_classes,), "learnt_share": (self.n_classes,)}


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedMatrix(FittedReadout):
    """Class vectors made of the class means by a matrix; see :class:`MatrixHead`."""

    kind = "matrix"

    means: NDArray[np.float64]  # (C, q)

    def _outlier_score(self, block: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(pairwise_squares(block, self.means).min(axis=1))

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return super()._shapes() | {"means": (self.n_classes, self.n_features)}


@dataclass(frozen=True, eq=False, kw_only=True)
class FittedLinear:
    """A linear classifier of scikit-learn: scores without probabilities."""

    kind: ClassVar[str] = "linear"

    coef: NDArray[Any]  # (C, q); (1, q) or (q,) for two classes
    intercept: NDArray[Any]  # (C,); (1,) or () for two classes

    def __post_init__(self) -> None:
        # scikit-learn's order in memory: a product with one row differs in its last bit by it.
        object.__setattr__(self, "coef", np.asfortranarray(self.coef))

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return what a fitted ``RidgeClassifier``, ``LinearSVC`` or one of their kin computes."""
        coef, intercept = np.asarray(model.coef_), np.asarray(model.intercept_)
        if not intercept.ndim:  # 0.0 of Python, which does not change the type of the scores
            intercept = intercept.astype(coef.dtype)
        return cls(coef=coef, intercept=intercept)

    @property
    def n_classes(self) -> int:
        """Number of classes, C."""
        return max(len(np.atleast_2d(self.coef)), 2)

    @property
    def n_features(self) -> int:
        """Dimension of the embedding, q."""
        return int(self.coef.shape[-1])

    def decision_function(self, X: NDArray[Any]) -> NDArray[Any]:
        """Return a score per class, (n, C); for two classes one score, positive for the second."""
        scores: NDArray[Any] = X @ self.coef.T + self.intercept
        return scores[:, 0] if scores.ndim == 2 and scores.shape[1] == 1 else scores

    def predict(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the position of the class with the highest score."""
        scores = self.decision_function(X)
        return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of its kind and arrays."""
        return _to_state(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or raise :class:`CoCoError`."""
        values = _values(cls, state)
        for name, array in values.items():
            state_array(state, name, np.floating, array.shape)
        coef, intercept = values["coef"], values["intercept"]
        n_scores = len(np.atleast_2d(coef))
        possible = coef.ndim in (1, 2) and coef.size and n_scores != 2
        possible = possible and intercept.shape in {(n_scores,), ()}
        require(possible, "coef and intercept of a head have no possible shapes")
        return cls(**values)


KINDS: dict[str, type[FittedHead] | type[FittedLinear]] = {
    cls.kind: cls
    for cls in (FittedGaussian, FittedCentroid, FittedReadout, FittedMatrix, FittedLinear)
}


def head_from_state(state: Mapping[str, Any]) -> FittedHead | FittedLinear:
    """Return the fitted head, of whatever kind, that a state describes.

    Examples
    --------
    >>> head = FittedLinear(coef=np.array([1.0, 2.0]), intercept=np.array([0.5]))
    >>> head_from_state(head.to_state()).decision_function(np.array([[1.0, 1.0]]))
    array([3.5])
    """
    kind = state.get("kind") if isinstance(state, Mapping) else None
    return KINDS[check_option(kind, "kind of a head", KINDS)].from_state(state)


def _to_state(head: Any) -> dict[str, Any]:
    return {"kind": head.kind} | {field.name: getattr(head, field.name) for field in fields(head)}


def _values(cls: Any, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a kind of head by name, each of its type, or refuse the state."""
    types = {f.name: f.type if f.type in (str, float) else np.ndarray for f in fields(cls)}
    complete = set(state) == {"kind", *types} and state["kind"] == cls.kind
    require(complete, f"the state of a {cls.kind} head must hold kind, {', '.join(types)}")
    return {name: state_part(state, name, kind) for name, kind in types.items()}


def blocks(n_rows: int, numbers_per_row: int) -> Iterator[slice]:
    """Cut the rows into blocks of bounded memory; no rows are one empty block."""
    step = max(MIN_BLOCK_ROWS, BLOCK_NUMBERS // numbers_per_row)
    for start in range(0, max(n_rows, 1), step):
        yield slice(start, start + step)


def _bounded(
    function: BlockFunction, block: NDArray[np.float64], *, overflow: float
) -> NDArray[np.float64]:
    """Return finite values of a function; inf - inf counts as ``overflow``."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        values = function(block)
    return np.asarray(np.clip(np.nan_to_num(values, nan=overflow), -HUGE, HUGE))


# Softmax and its logarithms over rows of scores: each a line of numpy, where importing scipy's
# takes 0.2 s. They add up in the order of ``scipy.special``, so that no result depends on this.


def softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities that scores (n, C) stand for."""
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def log_softmax(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of :func:`softmax`, exact where that is nearly 0."""
    shifted = scores - scores.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))


def logsumexp(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the summed exponentials of each row, (n,)."""
    largest = scores.max(axis=1, keepdims=True)
    at_top = scores == largest
    n_top = at_top.sum(axis=1, keepdims=True, dtype=np.float64)
    rest = np.exp(np.where(at_top, -np.inf, scores) - largest).sum(axis=1, keepdims=True)
    return np.asarray((np.log1p(rest / n_top) + np.log(n_top) + largest)[:, 0])


def unit_rows(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each row divided by its norm; a row of zeros, which points nowhere, stays."""
    largest = np.abs(X).max(axis=1, keepdims=True)  # first, so that no square over- or underflows
    X = X / np.where(largest > 0, largest, 1.0)
    norm = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(norm > 0, norm, 1.0))


def cosines(X: NDArray[np.float64], directions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the cosine between each row and each direction, of shape (n, C)."""
    return unit_rows(X) @ unit_rows(directions).T


def pairwise_squares(X: NDArray[np.float64], Z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared distance between each row of X and each of Z, (n, m).

    One dimension after the other: from the differences, since the expanded square has no digits
    left where two points are near, and in the memory of the result.
    """
    squares = np.zeros((len(X), len(Z)))
    for x, z in zip(X.T, Z.T, strict=True):
        squares += np.square(x[:, None] - z)
    return squares
