"""The classifiers, as scikit-learn wants them: CoCo, dot regression, cross-entropy, any objective.

The work is done elsewhere: a fit by plain functions, a prediction by the fitted model. Torch is
imported where something is trained, so that a fitted classifier predicts without it.
"""

import os
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from cocoloss._checks import RandomState, check_balance, check_option
from cocoloss.columns.frames import is_in_blocks
from cocoloss.estimators.base import TableEstimator, part_of
from cocoloss.exceptions import CoCoError, MissingMethodError, OrderHint
from cocoloss.fitting.model import FittedModel, History
from cocoloss.fitting.objective import EXPONENTS, CoCo, CrossEntropy, DotRegression, Objective
from cocoloss.fitting.targets import by_levels, decision_prior, ordered_categories
from cocoloss.heads.decisions import Decider, Threshold
from cocoloss.pace import Pace

if TYPE_CHECKING:
    from cocoloss.fitting.fit import LeaveOneOut
    from cocoloss.fitting.partial_fit import RecentRows
    from cocoloss.training import Callback

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: nobody can have set callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method: Callable[..., Any]) -> Callable[..., Any]:
        """Return the method as it is."""
        return method


class _of_networks:  # noqa: N801 - a decorator
    """A method that is missing where kernels are the solver, and says what to do instead."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method
        self.__doc__, self.__name__ = method.__doc__, method.__name__

    def __get__(self, estimator: Any, owner: Any = None) -> Any:
        if estimator is not None:
            fitted = getattr(estimator, "model_", None)
            has_kernels = fitted is not None and fitted.machine is not None
            if estimator.solver in ("kernel", "both") or has_kernels:
                raise MissingMethodError(
                    f"kernels have no {self.method.__name__}, since they need all rows at once; "
                    f"fit to all of them, or use solver='network', which goes on learning"
                )
        return self.method.__get__(estimator, owner)


def _head_has(*methods: str) -> Callable[[Any], bool]:
    """Say whether the heads of an estimator have one of these methods; before a fit, by name."""

    def check(estimator: Any) -> bool:
        if hasattr(estimator, "model_"):
            return any(map(estimator.model_.has, methods))
        return estimator.head not in ("ridge", "svm") or "decision_function" in methods

    return check


_NOTHING: str | None = None  # without an annotation a class attribute is no argument


@dataclass(eq=False, repr=False)
class BaseNetworkClassifier(CallbackSupportMixin, ClassifierMixin, TableEstimator):
    """One base for the classifiers; see them for the parameters, which are written once, here.

    As a dataclass, because scikit-learn wants a constructor that names every argument and does
    nothing but store it.
    """

    hidden_layer_sizes: Sequence[int] = (128, 128)
    _: KW_ONLY
    embedding_dim: int | str = "auto"
    module: Any = None
    activation: str = "auto"
    output: str = "identity"
    normalize: bool | str = "auto"
    dropout: float = 0.0
    dropout_layer: int = -1
    max_iter: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate_init: float | str = "auto"
    learning_rate: str = "auto"
    weight_decay: float = 1e-2
    clip_norm: float | None = None
    n_members: int = 6
    early_stopping: bool = True
    validation_fraction: float = 0.15
    n_iter_no_change: int | str = "auto"
    head: Any = "auto"
    priors: str | ArrayLike = "uniform"
    class_weight: Any = None
    preprocess: Any = "auto"
    warm_start: bool = False
    callbacks: "Sequence[Callback] | None" = None
    time_limit: float | None = None
    verbose: bool = False
    device: str = "cpu"
    random_state: RandomState = None

    # No arguments, but of CoCoClassifier.
    solver = "network"
    landmarks = "rows"
    unlabelled = _NOTHING
    _has_levels = False

    @abstractmethod
    def make_objective(self) -> Objective:
        """Return what the networks are trained for, as the arguments say."""

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the preprocessing, the networks and the heads.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d), or a table in blocks
            Numbers, categories, dates, booleans, with gaps. Kernels also take a table in blocks,
            which need not fit into memory: a Dask DataFrame, the path of a Parquet file or folder
            (a glob, a list of paths, a ``pyarrow.dataset.Dataset``), or anything that yields data
            frames, or pairs of X and y, each time it is iterated: a list, or a function without
            arguments.
        y : array of shape (n,), or the name of a column
            Classes, of any kind; with ``unlabelled``, some rows may have none. Of a table in blocks
            the name of their column, or a Dask Series; None where blocks are pairs.
        sample_weight : array of shape (n,), optional
            How often each row counts: 2 is exactly the row twice, 0 the row left out. Weights
            that are not all whole numbers are relative: they are scaled to a mean of one.
        """
        pace = Pace(self.time_limit, verbose=self.verbose)  # imports take their part of it
        from cocoloss.fitting import fit as steps  # noqa: PLC0415 - torch, to train
        from cocoloss.fitting.jobs import train_jobs  # noqa: PLC0415

        self.hint_at_order(y)
        with steps.unchanged_on_failure(self):
            if self.unlabelled is not None:
                steps.check_arguments(self)
                if is_in_blocks(X, y):
                    raise CoCoError(
                        "unlabelled is for tables in memory; leave rows without a label out of the "
                        "blocks"
                    )
                from cocoloss.fitting.unlabelled import fit_soft, read_known  # noqa: PLC0415

                y, weights, known = read_known(X, y, sample_weight)
                if self.unlabelled == "soft":
                    self.keep(*fit_soft(self, X, y, weights, known))
                    return self
                sample_weight = np.where(known, weights, 0.0)
            if is_in_blocks(X, y):
                from cocoloss.fitting.fit_blocks import fit_blocks  # noqa: PLC0415

                self.keep(*fit_blocks(self, X, y, sample_weight))
                return self
            if steps.solver_of(self) != "network":
                from cocoloss.fitting.fit_kernels import fit_kernels  # noqa: PLC0415 - scipy

                self.keep(*fit_kernels(self, X, y, sample_weight, pace))
                return self
            job = steps.in_time(steps.prepare_job(self, X, y, sample_weight), pace)
            with steps.reported(self, job, X, y, sample_weight) as listeners:
                heard = [*(self.callbacks or []), *listeners]
                (trained,) = train_jobs([job], heard, verbose=self.verbose)
                epochs = max(map(len, trained.loss_curves))
                pace.note_epochs(epochs, job.design.schedule.n_epochs)
                self.keep(*steps.finish_job(job, trained))
            pace.end()
        return self

    def in_order(self, classes: NDArray[Any], y: Any) -> NDArray[Any]:  # noqa: ARG002
        """Return sorted classes in the order that they are to have; ``y`` is as it was given."""
        return classes

    def hint_at_order(self, y: Any) -> None:
        """Say so if y has an order that this classifier does not look at."""

    @_of_networks
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on learning from some more rows: one epoch, at a constant learning rate.

        The first part decides the preprocessing and must hold rows of every class. The heads are
        fitted on the last rows of each class, 5000 in all, which the estimator keeps (but no file
        that ``save`` writes). Nothing is held out, so probabilities are not calibrated.

        After a ``fit`` or a ``load``, which keep no rows, it goes on from the networks, the class
        shares and the heads: these stay until there are ten new rows of every class.

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
        from cocoloss.fitting.partial_fit import learn_part  # noqa: PLC0415 - torch, to train

        fitted, recent_rows = learn_part(self, X, y, classes, sample_weight)
        self.keep(*fitted, recent_rows=recent_rows)
        return self

    def keep(
        self,
        model: FittedModel,
        history: History,
        preprocessor: Any,
        heads: list[Any],
        loo: "LeaveOneOut | None" = None,
        honest: Any = None,
        recent_rows: "RecentRows | None" = None,
    ) -> None:
        """Become fitted: take over what :func:`cocoloss.fitting.fit.finish_job` returns."""
        self.model_ = model
        self.history_ = history
        self.preprocessor_ = preprocessor
        self.heads_ = heads
        self.recent_rows_ = recent_rows
        self.loo_ = loo
        self.honest_ = honest

    def predict(
        self,
        X: Any,
        *,
        costs: Any = None,
        priors: Any = None,
        threshold: "float | Threshold | None" = None,
        positive: Any = None,
    ) -> NDArray[Any]:
        """Return the class of each row: the argmax of :meth:`predict_proba` if there is one.

        Heads without any scores vote. The arguments need probabilities.

        Parameters
        ----------
        X : table of n rows
        costs : dict, DataFrame or array of shape (C, C), optional
            What mistakes cost; the class of least expected cost is predicted. A dict has for each
            class what any mistake about its rows costs, ``{"sick": 10, "well": 1}``, or for a pair
            (true, predicted) that mistake; a matrix has true classes in rows, predicted ones in
            columns. Without ``priors`` classes are taken to be as frequent as in training, or as
            the array of priors said that the classifier was made with.
        priors : {"uniform", "empirical"}, array of shape (C,) or dict of class to share, optional
            Under which the classes are predicted, instead of those of the fit; "empirical" are the
            shares of the training rows. Class weights of the fit do not count then.
        threshold : float or Threshold, optional
            Of two classes: from which probability on a row is of the class ``positive``.
        positive : class, optional
            May be left out if the classes are 0 and 1, -1 and 1, False and True, no and yes.
        """
        asked = {"costs": costs, "priors": priors, "threshold": threshold, "positive": positive}
        if all(value is None for value in asked.values()):
            return self._fitted_model().predict(X)
        decider = self._decider()
        proba = self._proba(X, costs, priors)
        return np.asarray(self.classes_[decider.decide(proba, costs, threshold, positive)])

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any, *, priors: Any = None) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C), averaged over the members.

        ``priors`` takes the place of those of the fit, as for :meth:`predict`: it is what a fit
        with these priors would say.
        """
        return self._proba(X, priors=priors)

    def choose_threshold(
        self,
        measure: str | None = None,
        *,
        positive: Any = None,
        recall: float | None = None,
        precision: float | None = None,
        costs: Any = None,
        priors: Any = None,
    ) -> Threshold:
        """Return the threshold that is best on rows that the fit has not learnt from.

        These are the rows of ``quality_``, so that no fold is trained again; scikit-learn's
        ``TunedThresholdClassifierCV`` trains some, for any scorer and any fit.

        Parameters
        ----------
        measure : {"balanced accuracy", "accuracy", "f1", "precision", "recall"}, optional
            What is to be high; "balanced accuracy" if nothing else is said.
        positive : class, optional
            As for :meth:`predict`.
        recall, precision : float, optional
            What is reached at least; the other of the two is to be high then, unless ``measure``
            says what.
        costs : dict, DataFrame or array of shape (2, 2), optional
            As for :meth:`predict`: what is to be low, in place of a measure. Where probabilities
            are good, ``predict(X, costs=...)`` needs no threshold.
        priors : optional
            Class shares where the threshold will be used, as for :meth:`predict`; those of the
            rows if None.

        Returns
        -------
        Threshold
            For ``predict(X, threshold=...)``; ``value`` is a probability as :meth:`predict_proba`
            gives it, ``measures`` says how these rows fare. The choice flatters them a little.

        Raises
        ------
        CoCoError
            If there are not two classes, no such rows, or no threshold reaches what is asked for.
        """
        from cocoloss.heads import decisions  # noqa: PLC0415 - seldom needed

        classes, honest = self.classes_, self._honest_rows()
        place = decisions.positive_position(positive, classes)
        weights = honest.weights
        if priors is not None:
            meant = decisions.read_priors(priors, classes, self._decider().shares)
            weights = weights * (meant / np.bincount(honest.true, weights, 2))[honest.true]
        curve = decisions.Curve.of(honest.predicted[:, place], honest.true == place, weights)
        matrix = None
        if costs is not None:
            turn = [1 - place, place]  # the positive class is second
            matrix = decisions.cost_matrix(costs, classes)[np.ix_(turn, turn)]
        return decisions.choose_threshold(
            curve,
            classes.tolist()[place],
            measure,
            recall=recall,
            precision=precision,
            costs=matrix,
        )

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the log of :meth:`predict_proba`."""
        proba: NDArray[np.float64] = self.predict_proba(X)
        return np.log(np.maximum(proba, np.finfo(np.float64).tiny))

    @available_if(_head_has("predict_proba", "decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return a score per class, (n, C); for two classes one score, positive for the second."""
        return self._fitted_model().decision_function(X)

    @available_if(_head_has("outlier_score"))  # type: ignore[untyped-decorator]
    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is, averaged over the members; larger is stranger."""
        return self._fitted_model().outlier_score(X)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write an ONNX file: from the preprocessed matrix to classes, probabilities, embedding.

        The preprocessing stays here: what the graph takes as ``X`` is what
        ``preprocessor_.transform`` gives, which with ``preprocess=None`` is the table itself.
        Its outputs are ``label``, ``probabilities`` (``scores`` for a linear head; of two classes
        the one score with both signs) and ``embedding``, those of :meth:`predict`,
        :meth:`predict_proba` and :meth:`transform`.

        Raises
        ------
        CoCoError
            If onnx is not installed, or a part of the classifier has no place in the graph.
        """
        from cocoloss.estimators.onnx_export import write_onnx  # noqa: PLC0415 - seldom needed

        write_onnx(self._fitted_model(), path)

    def _fitted_model(self) -> FittedModel:
        model: FittedModel = super()._fitted_model()
        return model

    def _proba(self, X: Any, costs: Any = None, priors: Any = None) -> NDArray[np.float64]:
        model = self._fitted_model()
        if not model.has("predict_proba"):
            raise CoCoError(
                f"costs, priors and a threshold need probabilities, which head={self.head!r:.80} "
                f"does not have; leave them out, or choose another head"
            )
        if costs is not None or priors is not None:
            model = self._decider().model(model, costs, priors)
        return model.predict_proba(X)

    def _decider(self) -> Decider:
        return Decider.of(self.classes_, self.history_.class_masses, self.priors)

    def _measures(self, honest: Any) -> dict[str, Any]:
        from cocoloss.metrics.quality import class_measures  # noqa: PLC0415 - if asked for

        prior = getattr(self.model_.heads[0], "prior", None)
        return class_measures(
            honest.true, honest.predicted, honest.weights, prior, ordered=self._has_levels
        )

    # What scikit-learn and the documentation call the parts of the model and its history.
    classes_ = part_of("model_", "classes")
    class_prior_ = part_of("model_", "prior")
    loo_proba_ = part_of("loo_", "proba")  # missing where nothing was left out
    parameters_ = property(lambda self: self.model_.networks.parameters)
    layer_sizes_ = property(lambda self: self.model_.networks.layer_sizes)
    modules_ = property(lambda self: getattr(self.model_.networks, "modules", None))


# Stack level of a warning that a step of ``fit`` gives: the step, fit, what wraps it, the caller.
_CALLER_OF_FIT = 4 if hasattr(BaseNetworkClassifier.fit, "__wrapped__") else 3


@dataclass(eq=False, repr=False)
class CoCoClassifier(BaseNetworkClassifier):
    r"""A classifier that collapses each class to a point and contrasts the classes to a simplex.

    Rows of a table are embedded so that inner products are 1 within a class and -1/(C-1) between
    classes, and classes are read off there. What the loss estimates, the conditional mean of the
    target points, is found in closed form by kernels with a learnt metric, or by small networks
    that are trained, or by both: ``solver`` says which.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(128, 128)
        Units of each hidden layer.
    embedding_dim : int or "auto", default="auto"
        Dimensions q of the embedding; "auto" is the number of classes, and at least 8, and for
        kernels alone those that the target points span.
    loss : {"auto", "coco", "balanced"}, default="auto"
        "auto" is the paper's rule: plain if the largest class has less than three times the rows
        of the smallest, else balanced.
    balance : float, optional
        For something between or beyond: rows of a class with share pi weigh pi^-balance in the
        loss of networks; 0 is "coco", 0.5 "balanced". None is as ``loss`` says.
    similarity : str or array of shape (C, C), default="simplex"
        Target similarity of the classes, as for :class:`cocoloss.CoCoLoss`: also "ordinal" and
        "ordinal-simplex", for classes that have the order in which they are sorted;
        :class:`CoCoOrdinalClassifier` knows other orders.
    solver : {"auto", "kernel", "network", "both"}, default="auto"
        "kernel" is the closed form: seconds for some thousand rows, no seeds that matter, honest
        scores of the training rows, importances. Its model file holds the preprocessed training
        rows. "network" trains ``n_members`` networks at once; each stops on rows it did not train
        on, and their probabilities, calibrated on the same rows, are averaged. "both" adds the log
        probabilities of kernels and of three networks, weighted as rows find best that neither has
        learnt from. "auto" is "network" if an argument of networks, such as ``max_iter``, is given;
        else "kernel", and "both" from 1,800 rows on, with fewer steps for the networks.
    landmarks : {"rows", "kmeans"}, default="rows"
        What kernels keep of the table: "rows" are training rows, all of a small table; "kmeans" are
        means of clusters of at least three rows, so that neither the model nor its file holds any
        row. They go without the leaves that large tables have otherwise.
    unlabelled : {None, "soft", "ignore"}, default=None
        Whether rows may be without a label: None or NaN, and -1 where classes are whole numbers.
        "ignore" leaves them out. "soft" learns from them: teachers are fitted to the labelled rows
        (kernels on all columns and on some drawn at random; ``n_members`` networks), and a student,
        and as many networks again, to what they say of the others; "auto" averages both solvers.
        Worth it for a handful of labels of each class. Rows without a label have the model's
        prediction in ``loo_proba_``. With None, -1 is a class like any other, and a gap is refused.
    module : torch.nn.Module or callable, optional
        A network of your own instead of the multilayer perceptron: a module, which is copied and
        initialised anew for each member, or a function of (n_features, embedding_dim). Its output
        is divided by its norm as ``normalize`` says.
    activation : {"auto", "silu", "relu"}, default="auto"
        What hidden units do; "auto" is "silu".
    output : {"identity", "tanh"}, default="identity"
        What follows the last layer.
    normalize : bool or "auto", default="auto"
        Whether embeddings are divided by their norm; "auto" is True. False is the paper's form,
        which starts at unit norm and learns to stay there.
    dropout : float, default=0.0
        Share of units dropped before layer ``dropout_layer``.
    dropout_layer : int, default=-1
        0 drops inputs, -1 drops before the output layer.
    max_iter : int or "auto", default="auto"
        Epochs. "auto" is 100, and fewer for more than 12,000 rows: a member sees 1,200,000 rows,
        but trains 6 epochs at least.
    batch_size : int or "auto", default="auto"
        Rows per step; "auto" is 64, from 4,000 rows on 128, and from 16,000 on 256. With CoCo,
        small batches of many classes are drawn in pairs of one class.
    learning_rate_init : float or "auto", default="auto"
        Learning rate at the start; "auto" is 5e-3, and 8e-3 for batches that "auto" makes 256.
    learning_rate : {"auto", "averaged", "cosine", "constant"}, default="auto"
        "averaged", which is "auto", stays constant, and the weights are averaged over the last
        epoch: as good as a falling rate, and to be had at any time. "cosine" falls to zero along
        a cosine.
    weight_decay : float, default=1e-2
        Of AdamW.
    clip_norm : float, optional
        Longest gradient of a network.
    n_members : int, default=6
        Networks in the ensemble, trained in lockstep.
    early_stopping : bool, default=True
        Whether each member holds out rows, keeps its best epoch by them, and calibrates on them.
        Where they would be fewer than 20, nothing is held out. If False, every "auto" has the
        paper's meaning: 100 epochs, batches of 64, a rate of 3e-3 along a cosine, ReLU, Gaussians.
    validation_fraction : float, default=0.15
        Share of the rows that a member holds out; every class keeps at least two thirds.
    n_iter_no_change : int or "auto", default="auto"
        Epochs without improvement after which a member stops; there is a look at the held-out
        rows at least three times in so many epochs. "auto" is 10, and 30 unless weights are
        averaged.
    head : str or classifier, default="auto"
        What classifies the embedding: "matrix" (which is "auto": learnt on the rows that members
        hold out, see :class:`cocoloss.heads.MatrixHead`), "gaussian" (the paper's), "centroid",
        "angular", "ridge", "svm", or a scikit-learn classifier. One of :mod:`cocoloss.heads` that
        has priors of its own, other than "uniform", keeps them.
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
    time_limit : float, optional
        Seconds that a fit may take. What is left out to keep to it, a warning says: kernels that
        were not tried, rows, networks.
    verbose : bool, default=False
        Whether to show a progress bar on a terminal; of kernels, what is tried and how good it is.
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
    loo_proba_ : array of shape (n, C)
        Of kernels, without the networks beside them: probabilities of the rows of ``fit``, each by
        a fit without it (in five folds, metric included, or by leave-one-out if there are more than
        1,800). ``loo_score_`` is their accuracy.
    quality_ : Quality
        Balanced accuracy, log loss and AUC of rows that were left out, or held out by networks,
        with standard errors, beside guessing; ``str`` of it is one line.
    feature_importances_ : array of shape (d,)
        Of kernels: how much the function goes with each column; they sum to one.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> classifier = CoCoClassifier(random_state=0).fit(X, y)
    >>> classifier.score(X, y) > 0.95
    True
    >>> classifier.loo_score_ > 0.95  # honest: each row by a fit without it
    True
    """

    loss: str = "auto"
    balance: float | None = None
    similarity: str | ArrayLike = "simplex"
    solver: str = "auto"
    landmarks: str = "rows"
    unlabelled: str | None = None

    def make_objective(self) -> Objective:
        """Return the CoCo loss that the arguments ask for."""
        rule = check_option(self.loss, "loss", EXPONENTS)
        if self.balance is None:
            return CoCo(balance=rule, similarity=self.similarity)
        if rule != "auto":
            raise CoCoError(
                f"loss={rule!r} and balance={self.balance!r} both say how classes are weighed; "
                f"leave one of them out"
            )
        return CoCo(balance=check_balance(self.balance), similarity=self.similarity)

    def hint_at_order(self, y: Any) -> None:
        """Say once for a line of code that the order of y could be used."""
        ordered = ordered_categories(y)
        if ordered is None or len(ordered) <= 2 or not isinstance(self.similarity, str):
            return
        if self.similarity == "simplex":
            taken = "takes its classes as equally different"
        elif "ordinal" in self.similarity and not pd.Index(ordered).is_monotonic_increasing:
            taken = f"with similarity={self.similarity!r} takes its classes as they are sorted"
        else:
            return
        warnings.warn(
            f"y is an ordered categorical, and {type(self).__name__} {taken}; "
            f"CoCoOrdinalClassifier makes use of their order",
            OrderHint,
            stacklevel=_CALLER_OF_FIT,
        )


@dataclass(eq=False, repr=False)
class CoCoOrdinalClassifier(CoCoClassifier):
    r"""A classifier for levels: classes that have an order, such as grades.

    Levels are target points that are as alike as they are near, 1 - 2|a-b|/(C-1), so that the ends
    are opposite. The points are thermometers: what is learnt is the probability of every threshold.

    Parameters are those of :class:`CoCoClassifier`, and ``levels``; two have defaults of their own.

    Parameters
    ----------
    levels : sequence, optional
        All levels, from the lowest to the highest. None takes the order of an ordered categorical
        of pandas, else that of numbers; text has none. Levels without any row are no classes: the
        others move together.
    similarity : str or array of shape (C, C), default="ordinal"
        Target similarity of the levels; "ordinal-simplex" is half way to that of
        :class:`CoCoClassifier`.
    priors : {"auto", "uniform", "empirical"} or array of shape (C,), default="auto"
        "auto" is "uniform" for :meth:`predict_proba` and the most probable level, as balanced
        accuracy wants it, and "empirical" for :meth:`predict_cumulative`, the median and the mean,
        since distances are averaged over rows as they come. Anything else is the prior of all.

    Attributes
    ----------
    classes_ : array of shape (C,)
        The levels that ``fit`` has seen, from the lowest to the highest. Other attributes are those
        of :class:`CoCoClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import pandas as pd
    >>> from cocoloss import CoCoOrdinalClassifier
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> y = pd.cut(y, [0, 100, 200, 400], labels=["mild", "some", "severe"])
    >>> classifier = CoCoOrdinalClassifier(random_state=0).fit(X, y)
    >>> classifier.classes_.tolist()
    ['mild', 'some', 'severe']
    >>> classifier.predict(X[:2], rule="median").tolist()
    ['severe', 'mild']
    >>> classifier.predict_cumulative(X[:2]).shape
    (2, 3)
    """

    similarity: str | ArrayLike = "ordinal"
    priors: str | ArrayLike = "auto"
    levels: Sequence[Any] | None = None

    _has_levels = True

    def in_order(self, classes: NDArray[Any], y: Any) -> NDArray[Any]:
        """Return the classes from the lowest to the highest level, or say that none is known."""
        levels = ordered_categories(y) if self.levels is None else self.levels
        if levels is not None:
            return by_levels(classes, levels, type(self).__name__)
        if classes.dtype.kind in "OUS":
            raise CoCoError(
                f"{type(self).__name__} must know the order of the levels, which text such as "
                f"{classes[:5].tolist()} does not tell; give levels=[...], from the lowest to the "
                f"highest, or make y an ordered categorical"
            )
        return classes

    def hint_at_order(self, y: Any) -> None:
        """Nothing to hint at."""

    def predict(
        self,
        X: Any,
        rule: str = "mode",
        *,
        costs: Any = None,
        priors: Any = None,
        threshold: "float | Threshold | None" = None,
        positive: Any = None,
    ) -> NDArray[Any]:
        """Return the level of each row.

        Parameters
        ----------
        X : table of n rows
        rule : {"mode", "median", "mean"}
            - "mode": the most probable level, the argmax of :meth:`predict_proba`.
            - "median": the first level whose :meth:`predict_cumulative` reaches 1/2, for small
              absolute errors.
            - "mean": the level nearest to the expected one, for small squared errors: by the
              numbers that levels are, else by their ranks.
        costs, priors, threshold, positive
            As for :class:`CoCoClassifier`; costs and a threshold decide without a rule.
        """
        check_option(rule, "rule", ("mode", "median", "mean"))
        asked = {"costs": costs, "priors": priors, "threshold": threshold, "positive": positive}
        if rule == "mode":
            return super().predict(X, **asked)
        for name in ("costs", "threshold", "positive"):
            if asked[name] is not None:
                raise CoCoError(f"{name} and rule={rule!r} both decide; leave one of them out")
        if rule == "median":
            best = (self._cumulative(X, priors) >= 0.5).argmax(axis=1)
            return np.asarray(self.classes_[best])
        proba = self._proba_of_rows(X, priors)
        C = len(self.classes_)
        is_number = self.classes_.dtype.kind in "iuf"
        values = self.classes_.astype(np.float64) if is_number else np.arange(C, dtype=np.float64)
        best = np.abs((proba @ values)[:, None] - values).argmin(axis=1)
        return np.asarray(self.classes_[best])

    @available_if(_head_has("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_cumulative(self, X: Any) -> NDArray[np.float64]:
        """Return the probability that a row has each level or a lower one, (n, C).

        With ``priors="auto"`` it is meant under the class shares of the training rows, else under
        ``priors``, as :meth:`predict_proba` is, whose running sum it is then.
        """
        return self._cumulative(X)

    def _cumulative(self, X: Any, priors: Any = None) -> NDArray[np.float64]:
        cumulative = np.asarray(np.minimum(self._proba_of_rows(X, priors).cumsum(axis=1), 1))
        cumulative[:, -1] = 1
        return cumulative

    def _proba_of_rows(self, X: Any, priors: Any = None) -> NDArray[np.float64]:
        """Return the probability of each level, (n, C), where distances are to be small."""
        proba: NDArray[np.float64] = self.predict_proba(X, priors=priors)
        if priors is not None:
            return proba
        is_auto = isinstance(self.priors, str) and self.priors == "auto"
        if not (is_auto and isinstance(self.head, str)):  # a head of the user's own has its priors
            return proba
        masses = self.history_.class_masses
        shares = decision_prior("empirical", self.class_weight, self.classes_, masses)
        proba = proba * (shares / self.class_prior_)
        return np.asarray(proba / proba.sum(axis=1, keepdims=True))


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
    ``similarity``: a value of :mod:`cocoloss.fitting.objective`, or one of your own.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss.fitting.objective import CoCo
    >>> X, y = load_wine(return_X_y=True)
    >>> tempered = ObjectiveClassifier(objective=CoCo(balance=0.25), max_iter=20, random_state=0)
    >>> tempered.fit(X, y).score(X, y) > 0.95
    True
    """

    objective: Objective = CoCo()  # noqa: RUF009 - a frozen value

    def make_objective(self) -> Objective:
        """Return the objective that was given."""
        return self.objective
