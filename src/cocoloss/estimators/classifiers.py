"""The three classifiers: CoCo, dot regression and cross-entropy."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cocoloss._checks import RandomState, check_option
from cocoloss.estimators.answers import HiddenLayerAnswers
from cocoloss.estimators.base import BaseNetworkClassifier
from cocoloss.estimators.jobs import Job
from cocoloss.heads import ReadoutHead

if TYPE_CHECKING:
    from cocoloss.training import Callback

LOSSES = ("auto", "coco", "balanced")
BALANCED_FROM = 3  # NOTE[PAPER]: the rule as printed: balanced if majority / minority >= 3


class CoCoClassifier(BaseNetworkClassifier):
    r"""A classifier that collapses each class to a point and contrasts the classes to a simplex.

    Small networks embed the rows of a table on the unit sphere so that inner products are 1
    within a class and -1/(C-1) between classes; one Gaussian per class classifies there. By
    default six networks are trained at once, each stops on rows it did not train on, and their
    probabilities, calibrated on the same rows, are averaged.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(128, 128)
        Units of each hidden layer.
    embedding_dim : int or "auto", default="auto"
        Dimensions q of the embedding; "auto" is the number of classes, and at least 8.
    loss : {"auto", "coco", "balanced"}, default="auto"
        "auto" is the paper's rule: plain if the largest class has less than three times the rows
        of the smallest, else balanced.
    similarity : str or array of shape (C, C), default="simplex"
        Target similarity of the classes, as for :class:`cocoloss.CoCoLoss`.
    module : torch.nn.Module or callable, optional
        A network of your own instead of the multilayer perceptron: a module, which is copied and
        initialised anew for each member, or a function of (n_features, embedding_dim). Its output
        is divided by its norm as ``normalize`` says.
    output : {"identity", "tanh"}, default="identity"
        What follows the last layer.
    normalize : bool or "auto", default="auto"
        Whether embeddings are divided by their norm; "auto" is True. False is the paper's form,
        which starts at unit norm and learns to stay there.
    dropout : float, default=0.0
        Share of units dropped before layer ``dropout_layer``.
    dropout_layer : int, default=-1
        0 drops inputs, -1 drops before the output layer.
    max_iter : int, default=100
        Epochs.
    batch_size : int, default=64
        Rows per step; with CoCo, small batches of many classes are drawn in pairs of one class.
    learning_rate_init : float, default=3e-3
        Learning rate at the start.
    learning_rate : {"cosine", "constant"}, default="cosine"
        Whether it falls to zero along a cosine.
    weight_decay : float, default=1e-2
        Of AdamW.
    clip_norm : float, optional
        Longest gradient of a network.
    n_members : int, default=6
        Networks in the ensemble, trained in lockstep.
    early_stopping : bool, default=True
        Whether each member holds out rows, keeps its best epoch by them, and calibrates on them.
        Where they would be fewer than 20, nothing is held out.
    validation_fraction : float, default=0.15
        Share of the rows that a member holds out; every class keeps at least two thirds.
    n_iter_no_change : int, default=30
        Epochs without improvement after which a member stops; there is a look at the held-out
        rows at least three times in so many epochs.
    head : str or classifier, default="auto"
        What classifies the embedding: "gaussian" (which is "auto"), "centroid", "angular",
        "ridge", "svm", or a scikit-learn classifier. One of :mod:`cocoloss.heads` that has priors
        of its own, other than "uniform", keeps them.
    priors : {"uniform", "empirical"} or array of shape (C,), default="uniform"
        Under which prior ``predict`` and ``predict_proba`` are meant: "uniform" for balanced
        accuracy, "empirical" for accuracy and log loss.
    class_weight : dict, "balanced" or None
        Weights of the classes in training; those of a dict also multiply the prior, whatever
        ``priors`` is.
    preprocess : "auto", None or transformer, default="auto"
        "auto" takes tables of any kind; None takes finite numbers as they are. A transformer of
        your own gets the rows as often as they weigh, and the classes.
    warm_start : bool, default=False
        Whether another ``fit`` goes on from the networks of the last one.
    callbacks : sequence of callables, optional
        Called after every epoch with a :class:`cocoloss.training.Epoch`; True stops training.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal.
    device : str, default="cpu"
        Where networks are trained: "cpu", "cuda" or "mps". Predicting is done by numpy.
    random_state : int, numpy generator or None
        Seed of everything that is drawn.

    Attributes
    ----------
    classes_ : array of shape (C,)
    n_features_in_, feature_names_in_
        What ``fit`` has seen.
    loss_curve_ : list of float
        Training loss of the first member in each epoch; ``loss_curves_`` has all of them.
    n_iter_ : int
        Epochs of the member that trained longest.
    heads_ : list of classifiers
        One per member.
    parameters_ : array of shape (n_members, P)
        Weights of the networks: predicting needs no torch.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> classifier = CoCoClassifier(random_state=0, max_iter=20).fit(X, y)
    >>> classifier.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (128, 128),
        *,
        embedding_dim: int | str = "auto",
        loss: str = "auto",
        similarity: str | ArrayLike = "simplex",
        module: Any = None,
        output: str = "identity",
        normalize: bool | str = "auto",
        dropout: float = 0.0,
        dropout_layer: int = -1,
        max_iter: int = 100,
        batch_size: int = 64,
        learning_rate_init: float = 3e-3,
        learning_rate: str = "cosine",
        weight_decay: float = 1e-2,
        clip_norm: float | None = None,
        n_members: int = 6,
        early_stopping: bool = True,
        validation_fraction: float = 0.15,
        n_iter_no_change: int = 30,
        head: Any = "auto",
        priors: str | ArrayLike = "uniform",
        class_weight: Any = None,
        preprocess: Any = "auto",
        warm_start: bool = False,
        callbacks: "Sequence[Callback] | None" = None,
        verbose: bool = False,
        device: str = "cpu",
        random_state: RandomState = None,
    ) -> None:
        super().__init__(
            hidden_layer_sizes=hidden_layer_sizes,
            embedding_dim=embedding_dim,
            module=module,
            output=output,
            normalize=normalize,
            dropout=dropout,
            dropout_layer=dropout_layer,
            max_iter=max_iter,
            batch_size=batch_size,
            learning_rate_init=learning_rate_init,
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            clip_norm=clip_norm,
            n_members=n_members,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            head=head,
            priors=priors,
            class_weight=class_weight,
            preprocess=preprocess,
            warm_start=warm_start,
            callbacks=callbacks,
            verbose=verbose,
            device=device,
            random_state=random_state,
        )
        self.loss = loss
        self.similarity = similarity

    _pairs_rows = True  # the loss learns collapse from pairs
    _normalizes = True
    _automatic_head = "gaussian"

    def _make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:  # noqa: ARG002
        from cocoloss.losses import CoCoLoss  # noqa: PLC0415 - torch, to train

        return CoCoLoss(n_classes, similarity=self.similarity)

    def _loss_weights(
        self, labels: NDArray[np.int64], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Balance by weights of rows, so that folds with other class shares train in one stack."""
        mass = np.bincount(labels, weights=weights)
        kind = check_option(self.loss, "loss", LOSSES)
        if kind == "coco" or (kind == "auto" and mass.max() / mass.min() < BALANCED_FROM):
            return weights
        priors = mass / mass.sum()
        return np.asarray(weights * ((len(mass) * priors) ** -0.5)[labels])


class DotRegressionClassifier(BaseNetworkClassifier):
    r"""A classifier that pulls rows onto fixed simplex vertices, one per class.

    Parameters are those of :class:`CoCoClassifier`, without ``loss`` and ``similarity``. "auto"
    means that embeddings are normalised, and that ``head`` is "readout": with the class shares of
    the training rows as ``priors`` ("empirical"), the class whose vertex has the smallest angle to
    the embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import DotRegressionClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> DotRegressionClassifier(random_state=0, max_iter=20).fit(X, y).score(X, y) > 0.95
    True
    """

    # NOTE[PAPER]: the loss as printed leaves the norm free, so that with three classes or more it
    # can vanish where another vertex is nearer. normalize=False is as printed.
    _normalizes = True

    def _make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:
        from cocoloss.losses import DotRegressionLoss  # noqa: PLC0415 - torch, to train

        return DotRegressionLoss(n_classes, embedding_dim, random_state=seed)

    def _readout(self, job: Job) -> ReadoutHead:
        # Where it does not know, the network is nearest to the vertex of the most frequent class:
        # as logits do, angles contain the class shares that it was trained with.
        weights = job.row_weights if job.weights is None else job.weights
        masses = np.bincount(job.labels, weights=weights)
        return ReadoutHead(
            job.design.loss.prototypes.numpy(),
            priors=self.class_prior_,
            learnt_share=masses / masses.sum(),
        )


# NOTE[PAPER]: the features of cross-entropy are those of the last hidden layer.
class CrossEntropyClassifier(HiddenLayerAnswers, BaseNetworkClassifier):
    r"""The usual classifier: a softmax on a linear layer of the last hidden layer.

    Parameters are those of :class:`CoCoClassifier`, without ``loss`` and ``similarity``. The
    embedding is the last hidden layer; an ``embedding_dim`` adds a linear one of that many. "auto"
    means that ``head`` is "readout", the softmax; other heads look at the embedding.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CrossEntropyClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> CrossEntropyClassifier(random_state=0, max_iter=20).fit(X, y).score(X, y) > 0.95
    True
    """

    _logits = True

    def _make_loss(self, n_classes: int, embedding_dim: int, seed: int) -> Any:  # noqa: ARG002
        from cocoloss.losses import CrossEntropyLoss  # noqa: PLC0415 - torch, to train

        return CrossEntropyLoss(n_classes, None)

    def _layer_sizes(self, n_features: int, q: int, n_classes: int) -> tuple[int, ...]:
        sizes = super()._layer_sizes(n_features, q, n_classes)
        return (*(sizes[:-1] if self.embedding_dim == "auto" else sizes), n_classes)

    def _readout(self, job: Job) -> ReadoutHead:  # noqa: ARG002
        return ReadoutHead(metric="dot", priors=self.class_prior_)

    def _embedding_width(self) -> int:
        return self.layer_sizes_[-1 if self.modules_ is not None else -2]
