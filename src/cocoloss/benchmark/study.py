"""Hyperparameters: search spaces, and a study that can be stopped, replayed and gone on with.

A space is a function of an Optuna trial and the size of the table. It asks the trial for numbers
(any trial of Optuna's serves, also a ``FixedTrial``) and returns arguments of a model.

The sampler of trial n is seeded by the name of the study and by n, and knows the trials that were
scored before it and those still running, in the order of their numbers. So a study that is given
the same scores again asks for the same points, whatever happened in between.
"""

import hashlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import _num_features

from cocoloss._checks import RandomState, as_generator, check_integer
from cocoloss.benchmark.evaluation import balanced_accuracy_of
from cocoloss.exceptions import CoCoError
from cocoloss.tables import stratified_folds

if TYPE_CHECKING:
    from cocoloss.estimators.classifiers import BaseNetworkClassifier

TrialSpace = Callable[[Any], dict[str, Any]]  # a space of one table, called with a trial only
Point = dict[str, Any]  # what Optuna calls the parameters of a trial: plain numbers by name


@dataclass(frozen=True)
class Trial:
    """A point to try."""

    number: int  # from 0
    point: Point  # what the space drew: numbers, texts and truth values by name
    params: dict[str, Any]  # what the space made of it: arguments of the model


class Study:
    """Asks for points to try, ``first`` at the beginning, and learns from their scores."""

    def __init__(self, name: str, space: TrialSpace, *, first: Point | None = None) -> None:
        self._optuna = load_optuna()
        self.name, self.space, self.first = name, space, first
        self._asked: dict[int, Point] = {}  # still running
        self._told: dict[int, tuple[Point, float | None]] = {}

    def ask(self) -> Trial:
        """Return the next trial."""
        number = len(self._asked) + len(self._told)
        study = self._optuna.create_study(direction="maximize", sampler=self._sampler(number))
        for earlier in range(number):
            study.add_trial(self._frozen(earlier))
        if number == 0 and self.first is not None:
            study.enqueue_trial(self.first)
        trial = study.ask()
        params = self.space(trial)
        self._asked[number] = dict(trial.params)
        return Trial(number, dict(trial.params), params)

    def tell(self, number: int, point: Mapping[str, Any], score: float | None) -> None:
        """Take the score of a trial; None, or a number that is not finite, if it failed.

        ``point`` is another one than was asked for if the score was found in a store.
        """
        del self._asked[number]
        finite = score is not None and math.isfinite(score)
        self._told[number] = (dict(point), score if finite else None)

    def score_of(self, point: Point) -> float | None:
        """Return the score of a point that was tried already, so that none is tried twice."""
        for tried, score in self._told.values():
            if tried == point and score is not None:
                return score
        return None

    @property
    def n_told(self) -> int:
        """How many trials have ended."""
        return len(self._told)

    @property
    def n_scored(self) -> int:
        """How many of them have a score."""
        return sum(score is not None for _, score in self._told.values())

    @property
    def best(self) -> Trial:
        """The trial of the highest score; of equal ones the earliest. One must have a score."""
        scores = {n: score for n, (_, score) in self._told.items() if score is not None}
        number = min(scores, key=lambda n: (-scores[n], n))
        point = self._told[number][0]
        return Trial(number, point, self.space(self._optuna.trial.FixedTrial(point)))

    @property
    def best_score(self) -> float:
        """The highest score."""
        score = self._told[self.best.number][1]
        assert score is not None
        return score

    def _sampler(self, number: int) -> Any:
        digest = hashlib.sha256(f"{self.name}/{number}".encode()).digest()
        seed = int.from_bytes(digest[:4], "big")
        # "constant_liar" makes it keep away from points that are being tried. Optuna 5 has that by
        # default, Optuna 4 calls it an experiment.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
            return self._optuna.samplers.TPESampler(seed=seed, constant_liar=True)

    def _frozen(self, number: int) -> Any:
        """Return an earlier trial in Optuna's form."""
        states = self._optuna.trial.TrialState
        if number in self._asked:
            point, score, state = self._asked[number], None, states.RUNNING
        else:
            point, score = self._told[number]
            state = states.FAIL if score is None else states.COMPLETE
        fixed = self._optuna.trial.FixedTrial(point)
        self.space(fixed)
        return self._optuna.trial.create_trial(
            state=state, params=point, distributions=fixed.distributions, value=score
        )


def load_optuna() -> Any:
    """Import Optuna and silence it, or say how to get it."""
    try:
        import optuna  # noqa: PLC0415 - optional
    except ImportError as error:
        raise CoCoError(
            "tuning needs optuna, which is not installed; pip install 'cocoloss[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


# What the default space says in the words of the classifiers.
TUNED_BY_DEFAULT = (
    *("hidden_layer_sizes", "batch_size", "learning_rate_init", "weight_decay", "dropout"),
    "embedding_dim",
)


def largest_batch(n_samples: int, most: int) -> int:
    """Return the exponent of the largest batch, min(floor(log2(n / 2)), most)."""
    return min(max(0, n_samples.bit_length() - 2), most)  # floor(log2(n / 2)), without rounding


def suggest_network(
    trial: Any,
    n_samples: int,
    n_features: int,
    n_classes: int,
    *,
    embedding: bool = True,
    max_units: int = 0,
) -> dict[str, Any]:
    """Return arguments of a network as the paper searches them: its items (d) to (i), and q.

    ``embedding`` says whether to choose q; cross-entropy has none. ``max_units`` of a hidden layer:
    0 is what is printed, 1024.
    """
    # NOTE[PAPER]: whether all hidden layers have the same number of units is not said; they do.
    layers = trial.suggest_int("hidden_layers", 1, 4)
    low, high = unit_exponents(n_features)
    if max_units:
        high = max(low, min(high, max_units.bit_length() - 1))
    units = 2 ** trial.suggest_int("log2_units", low, high)
    most = largest_batch(n_samples, 9)  # below 2^4 where there are fewer than 32 rows
    params: dict[str, Any] = {
        "hidden_layer_sizes": (units,) * layers,
        "batch_size": 2 ** trial.suggest_int("log2_batch_size", min(4, most), most),
        "learning_rate_init": trial.suggest_float("learning_rate", 1e-5, 1e-2, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 1e-5, 1e-1, log=True),
    }
    if trial.suggest_categorical("use_dropout", [False, True]):
        # Before layer 0 the inputs are dropped, before the last one the last hidden units.
        params["dropout_layer"] = trial.suggest_int("dropout_layer", 0, layers)
        params["dropout"] = trial.suggest_float("dropout_rate", 0.01, 0.6)
    if embedding:
        # NOTE[PAPER]: q is tuned, but no range is printed.
        low, high = max(2, n_classes - 1), max(64, 2 * n_classes)
        params["embedding_dim"] = trial.suggest_int("embedding_dim", low, high, log=True)
    return params


def unit_exponents(n_features: int) -> tuple[int, int]:
    """Return the exponents of the fewest and the most hidden units, as printed.

    NOTE[PAPER]: the printed bounds take the minimum with 1 and then the maximum with 2, and the
    like above, so that every table has 2^2 to 2^10 units.
    """
    low = max(min(math.floor(math.log2(n_features / 2)) - 1, 1), 2)
    high = max(min(math.floor(math.log2(2 * n_features)) + 1, 5), 10)
    return low, high


def suggest_svm(trial: Any, n_samples: int, n_features: int, n_classes: int) -> dict[str, Any]:  # noqa: ARG001
    """Return arguments of a kernel SVM as the paper searches them: its items (a) to (c).

    ``gamma_times_d`` is the kernel width times the number of columns that the SVM sees, from 4^-4
    to 4^6.
    """
    return {
        "C": trial.suggest_float("C", 1e-3, 1e5, log=True),
        "gamma_times_d": trial.suggest_float("gamma_times_d", 4.0**-4, 4.0**6, log=True),
    }


def suggest_forest(trial: Any, n_samples: int, n_features: int, n_classes: int) -> dict[str, Any]:  # noqa: ARG001
    """Return arguments of a random forest as the paper searches them: its item (j).

    ``feature_share`` is the share of the columns that a split may look at: 1 to d of d.
    """
    # NOTE[PAPER]: d is the number of columns of the table. Categories make more columns of it, and
    # the forest looks at the same share of those.
    return {"feature_share": trial.suggest_int("max_features", 1, n_features) / n_features}


def suggest_boosting(trial: Any, n_samples: int, n_features: int, n_classes: int) -> dict[str, Any]:  # noqa: ARG001
    """Return arguments of boosted trees."""
    # NOTE[PAPER]: boosted trees are mentioned without a name or a search space; this one is ours.
    return {
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.5, log=True),
        "max_leaf_nodes": trial.suggest_int("max_leaf_nodes", 4, 128, log=True),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 2, 100, log=True),
        "l2_regularization": trial.suggest_float("l2_regularization", 1e-6, 10.0, log=True),
    }


def suggest_lightgbm(trial: Any, n_samples: int, n_features: int, n_classes: int) -> dict[str, Any]:
    """Return arguments of LightGBM: those of :func:`suggest_boosting` by its own names."""
    found = suggest_boosting(trial, n_samples, n_features, n_classes)
    return {LIGHTGBM.get(name, name): value for name, value in found.items()}


LIGHTGBM = {
    "max_leaf_nodes": "num_leaves",
    "min_samples_leaf": "min_child_samples",
    "l2_regularization": "reg_lambda",
}


def suggest_catboost(trial: Any, n_samples: int, n_features: int, n_classes: int) -> dict[str, Any]:  # noqa: ARG001
    """Return arguments of CatBoost, whose trees have a depth instead of leaves."""
    return {
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.5, log=True),
        "depth": trial.suggest_int("depth", 3, 10),
        "l2_leaf_reg": trial.suggest_float("l2_leaf_reg", 0.1, 30.0, log=True),
    }


def suggest_svr(trial: Any, n_samples: int, n_features: int, n_classes: int) -> dict[str, Any]:
    """Return arguments of support vectors for numbers; d is the number of the table's columns."""
    found = suggest_svm(trial, n_samples, n_features, n_classes)
    return {"C": found["C"], "gamma": found["gamma_times_d"] / n_features}


def suggest_default(
    trial: Any,
    n_samples: int,
    n_features: int,  # noqa: ARG001 - every space is called alike
    n_classes: int,
    *,
    embedding: bool = True,
) -> dict[str, Any]:
    """Return arguments near the defaults of the classifiers, for a table of one's own.

    ``embedding`` says whether to choose ``embedding_dim``: for cross-entropy it would add a layer.
    """
    layers = trial.suggest_int("hidden_layers", 1, 3)
    units = 2 ** trial.suggest_int("log2_units", 5, 9)
    most = largest_batch(n_samples, 8)
    params: dict[str, Any] = {
        "hidden_layer_sizes": (units,) * layers,
        "batch_size": 2 ** trial.suggest_int("log2_batch_size", min(4, most), most),
        "learning_rate_init": trial.suggest_float("learning_rate", 3e-4, 2e-2, log=True),
        "weight_decay": trial.suggest_float("weight_decay", 1e-4, 1e-1, log=True),
        "dropout": trial.suggest_float("dropout", 0.0, 0.5, step=0.05),
    }
    if embedding:
        # From C dimensions on merged classes can part; with C - 1 they may not (docs/theory.md).
        low, high = max(2, n_classes), max(64, 2 * n_classes)
        params["embedding_dim"] = trial.suggest_int("embedding_dim", low, high, log=True)
    return params


def default_point(
    params: dict[str, Any], *, n_samples: int, n_classes: int, embedding: bool = True
) -> dict[str, Any]:
    """Return the point of :func:`suggest_default` that is nearest to a classifier's arguments.

    What is left out or "auto" is what it means on a small table.
    """
    params = {name: value for name, value in params.items() if not isinstance(value, str)}
    hidden = params.get("hidden_layer_sizes", (128, 128))
    hidden = [hidden] if isinstance(hidden, int) else list(hidden)
    units = max(1.0, sum(hidden) / max(1, len(hidden)))
    most = largest_batch(n_samples, 8)
    batch_size = params.get("batch_size", 64)
    point = {
        "hidden_layers": _between(len(hidden), 1, 3),
        "log2_units": _between(round(math.log2(units)), 5, 9),
        "log2_batch_size": _between(round(math.log2(batch_size)), min(4, most), most),
        "learning_rate": _between(params.get("learning_rate_init", 5e-3), 3e-4, 2e-2),
        "weight_decay": _between(params.get("weight_decay", 1e-2), 1e-4, 1e-1),
        "dropout": _between(round(params.get("dropout", 0.0) / 0.05) * 0.05, 0.0, 0.5),
    }
    if embedding:
        q = params.get("embedding_dim", max(8, n_classes))
        point["embedding_dim"] = _between(q, max(2, n_classes), max(64, 2 * n_classes))
    return point


def _between(value: Any, low: Any, high: Any) -> Any:
    return min(max(value, low), high)


@dataclass(frozen=True)
class Tuned:
    """What tuning found."""

    best_params: dict[str, Any]  # for ``set_params``
    best_score: float  # mean balanced accuracy over the folds
    trials: list[dict[str, Any]]  # number, score (NaN if it could not be fitted) and params of each


def tune_classifier(
    estimator: "BaseNetworkClassifier",
    X: Any,
    y: Any,
    *,
    n_trials: int,
    cv: int = 3,
    random_state: RandomState = 0,
    on_trial: Callable[[int, float, float], object] | None = None,
) -> Tuned:
    """Look for better hyperparameters of a classifier by cross-validation; it is not changed.

    The first trial is the classifier as it is, so that the answer is never worse than it on the
    same folds, of which there are fewer if the classes have too few rows. All folds of a trial
    train in lockstep. ``random_state`` is of folds, suggestions, and classifiers that have none.
    ``on_trial`` is called with the number, the score and the best score so far after every trial.
    """
    from cocoloss.estimators import cross_validate_lockstep  # noqa: PLC0415 - only to train

    n_trials = check_integer(n_trials, "n_trials", minimum=1)
    cv = check_integer(cv, "cv", minimum=2)
    seed = int(as_generator(random_state).integers(2**31))
    folds = stratified_folds(y, cv, seed)
    embedding = not estimator.make_objective().logits  # for cross-entropy it would add a layer
    size: dict[str, Any] = {
        "n_samples": min(len(fold.train) for fold in folds),
        "n_classes": len(np.unique(np.asarray(y))),
        "embedding": embedding,
    }
    names = TUNED_BY_DEFAULT if embedding else TUNED_BY_DEFAULT[:-1]
    own = {name: value for name, value in estimator.get_params().items() if name in names}
    space = partial(suggest_default, n_features=_num_features(X), **size)
    study = Study(f"tune/{seed}", space, first=default_point(own, **size))
    trials: list[dict[str, Any]] = []
    for number in range(n_trials):
        trial = study.ask()
        params = own if number == 0 else trial.params
        candidate = clone(estimator).set_params(**params)
        if candidate.random_state is None:
            candidate.set_params(random_state=seed)  # so that trials differ by their points alone
        try:
            result = cross_validate_lockstep(
                candidate, X, y, cv=folds, scoring=balanced_accuracy_of, error_score="raise"
            )
            score = float(np.mean(result["test_score"]))
        except CoCoError:
            if number == 0:  # the table is at fault, or the classifier as it is
                raise
            score = float("nan")  # a point at which training diverged, say
        study.tell(number, trial.point, score)
        trials.append({"number": number, "score": score, "params": params})
        if on_trial is not None:
            on_trial(number, score, study.best_score)
    best = trials[study.best.number]
    return Tuned(best["params"], best["score"], trials)
