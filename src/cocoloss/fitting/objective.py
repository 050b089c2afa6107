"""What networks are trained for, as values: the loss, and all that follows from choosing it.

CoCo, dot regression and cross-entropy, with the variants that experiments compare. An objective
knows no table, no network and no optimiser.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss._checks import check_balance, check_option
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.heads import ReadoutHead

READOUT = "readout"
# The loss of CoCo by name -> the exponent s of the weights pi^-s; "auto" goes by the class shares.
EXPONENTS: dict[str, float | None] = {"auto": None, "coco": 0.0, "balanced": 0.5}
BALANCED_FROM = 3  # NOTE[PAPER]: the rule as printed: balanced if majority / minority >= 3


@dataclass(frozen=True, eq=False)
class Objective(ABC):
    """The contract of an objective; its subclasses are values with different settings.

    Attributes
    ----------
    logits : bool
        Whether the networks give logits; the embedding is their last hidden layer then.
    normalize : bool
        What ``normalize="auto"`` means: whether embeddings are divided by their norm.
    head : str
        What ``head="auto"`` means. "readout" reads the classes off the outputs, by the head that
        :meth:`readout` makes.
    pair_rows : bool
        Whether small batches of many classes are made of pairs of rows of one class.
    """

    logits: ClassVar[bool] = False
    normalize: ClassVar[bool] = True
    head: ClassVar[str] = "gaussian"

    pair_rows: bool = False

    @abstractmethod
    def make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:
        """Return the loss of so many classes, on outputs of so many dimensions."""

    def loss_weights(
        self,
        labels: NDArray[np.int64],  # noqa: ARG002
        weights: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return what each row weighs in the loss, given what it weighs before, (n,)."""
        return weights

    def layer_sizes(
        self, n_features: int, hidden: Sequence[int], embedding_dim: int | None, n_classes: int
    ) -> tuple[int, ...]:
        """Return inputs, hidden units and outputs; ``embedding_dim`` is None for "auto"."""
        # Theory says q >= C: with one spare dimension merged classes can part (docs/theory.md).
        q = max(8, n_classes) if embedding_dim is None else embedding_dim
        return (n_features, *hidden, q)

    def readout(
        self,
        loss: Any,  # noqa: ARG002
        learnt_share: NDArray[np.float64],  # noqa: ARG002
        prior: NDArray[np.float64],  # noqa: ARG002
    ) -> "ReadoutHead":
        """Return the unfitted head that reads the classes off the outputs, if there is one.

        ``loss`` is what :meth:`make_loss` has made, ``learnt_share`` the share of each class in
        it, and ``prior`` the one under which to predict, both (C,).
        """
        raise CoCoError(
            f"head is 'readout', but {type(self).__name__} has no method readout that makes one; "
            f"write it, or choose another head"
        )


@dataclass(frozen=True, eq=False)
class CoCo(Objective):
    r"""Collapse each class to a point, contrast the classes to a simplex.

    Parameters
    ----------
    balance : {"auto", "coco", "balanced"} or float, default="auto"
        Rows of class c weigh :math:`\pi_c^{-s}`: s is 0 for "coco", 1/2 for "balanced", or the
        number given. "auto" is the paper's rule: balanced if the largest class has at least three
        times the rows of the smallest.
    similarity : str or array of shape (C, C), default="simplex"
        Target similarity of the classes, as for :class:`cocoloss.CoCoLoss`.
    reduction : {"mean", "sum"}, default="mean"
        "sum" is the balanced loss as printed, without normalisation.
    pair_rows : bool, default=True
        The loss learns collapse from pairs of one class.
    """

    pair_rows: bool = True
    balance: str | float = "auto"
    similarity: str | ArrayLike = "simplex"
    reduction: str = "mean"

    def make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:  # noqa: ARG002
        """Return the loss of so many classes, on outputs of so many dimensions."""
        from cocoloss.losses import CoCoLoss  # noqa: PLC0415 - torch, to train

        # The networks divide by the norm themselves, if they are told to.
        return CoCoLoss(
            n_classes, similarity=self.similarity, reduction=self.reduction, normalize=False
        )

    def loss_weights(
        self, labels: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return what each row weighs in the loss, given what it weighs before, (n,).

        Classes are balanced by weights of rows, so that folds with other class shares train in
        one stack.
        """
        mass = np.bincount(labels, weights=weights)
        exponent: Any = self.balance
        if isinstance(exponent, str):
            rule = check_option(exponent, "loss", EXPONENTS)
            if rule == "auto":
                rule = "coco" if mass.max() / mass.min() < BALANCED_FROM else "balanced"
            exponent = EXPONENTS[rule]
        exponent = check_balance(exponent)
        if exponent == 0:
            return weights
        priors = mass / mass.sum()
        return np.asarray(weights * ((len(mass) * priors) ** -exponent)[labels])


@dataclass(frozen=True, eq=False)
class DotRegression(Objective):
    """Pull rows onto fixed simplex vertices, one per class."""

    # NOTE[PAPER]: the loss as printed leaves the norm free, so that with three classes or more it
    # can vanish where another vertex is nearer. normalize=False is as printed.
    normalize: ClassVar[bool] = True
    head: ClassVar[str] = READOUT

    def make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:
        """Return the loss of so many classes, on outputs of so many dimensions."""
        from cocoloss.losses import DotRegressionLoss  # noqa: PLC0415 - torch, to train

        return DotRegressionLoss(n_classes, embedding_dim, random_state=seed)

    def readout(
        self, loss: Any, learnt_share: NDArray[np.float64], prior: NDArray[np.float64]
    ) -> "ReadoutHead":
        """Return the unfitted head that takes the vertex at the smallest angle."""
        from cocoloss.heads import ReadoutHead  # noqa: PLC0415 - scikit-learn, to train

        # Where it does not know, the network is nearest to the vertex of the most frequent class:
        # as logits do, angles contain the class shares that it was trained with.
        return ReadoutHead(loss.prototypes.numpy(), priors=prior, learnt_share=learnt_share)


@dataclass(frozen=True, eq=False)
class CrossEntropy(Objective):
    """A softmax on a linear layer of the last hidden layer."""

    # NOTE[PAPER]: the features of cross-entropy are those of the last hidden layer.
    logits: ClassVar[bool] = True
    normalize: ClassVar[bool] = False
    head: ClassVar[str] = READOUT

    def make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:  # noqa: ARG002
        """Return the loss of so many classes, on their logits."""
        from cocoloss.losses import CrossEntropyLoss  # noqa: PLC0415 - torch, to train

        return CrossEntropyLoss(n_classes, None)

    def layer_sizes(
        self, n_features: int, hidden: Sequence[int], embedding_dim: int | None, n_classes: int
    ) -> tuple[int, ...]:
        """Return inputs, hidden units and logits; an ``embedding_dim`` adds a linear layer."""
        added = () if embedding_dim is None else (embedding_dim,)
        return (n_features, *hidden, *added, n_classes)

    def readout(
        self,
        loss: Any,  # noqa: ARG002
        learnt_share: NDArray[np.float64],  # noqa: ARG002
        prior: NDArray[np.float64],
    ) -> "ReadoutHead":
        """Return the unfitted head that is the softmax."""
        from cocoloss.heads import ReadoutHead  # noqa: PLC0415 - scikit-learn, to train

        return ReadoutHead(metric="dot", priors=prior)
