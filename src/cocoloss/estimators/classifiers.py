"""The classifiers: CoCo, dot regression, cross-entropy, and any objective of one's own."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from cocoloss.estimators.base import BaseNetworkClassifier
from cocoloss.estimators.objective import CoCo, CrossEntropy, DotRegression, Objective


@dataclass(eq=False, repr=False)
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

    loss: str = "auto"
    similarity: str | ArrayLike = "simplex"

    def make_objective(self) -> Objective:
        """Return the CoCo loss that the arguments ask for."""
        return CoCo(balance=self.loss, similarity=self.similarity)


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

    def make_objective(self) -> Objective:
        """Return dot regression."""
        return DotRegression()


class CrossEntropyClassifier(BaseNetworkClassifier):
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

    def make_objective(self) -> Objective:
        """Return cross-entropy."""
        return CrossEntropy()


@dataclass(eq=False, repr=False)
class ObjectiveClassifier(BaseNetworkClassifier):
    r"""A classifier whose networks are trained for an objective that is given as a value.

    Parameters are those of :class:`CoCoClassifier`, with ``objective`` in place of ``loss`` and
    ``similarity``: a value of :mod:`cocoloss.estimators.objective`, or one of your own.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss.estimators.objective import CoCo
    >>> X, y = load_wine(return_X_y=True)
    >>> tempered = ObjectiveClassifier(objective=CoCo(balance=0.25), max_iter=20, random_state=0)
    >>> tempered.fit(X, y).score(X, y) > 0.95
    True
    """

    objective: Objective = CoCo()  # noqa: RUF009 - a frozen value

    def make_objective(self) -> Objective:
        """Return the objective that was given."""
        return self.objective
