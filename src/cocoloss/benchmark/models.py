"""The models that are compared: a table of names, and the user's own by their place.

A kind makes an estimator from a size, arguments and a seed. Networks read tables themselves; models
that are ``raw`` get what :class:`cocoloss.columns.RawFrame` makes of them, gaps and categories too,
and all others the matrix of :class:`cocoloss.columns.TablePreprocessor`; both are fitted on the
training rows of each fold.
"""

import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import SVC

from cocoloss.benchmark.evaluation import ModelKind, Space
from cocoloss.benchmark.spec import what_there_is
from cocoloss.benchmark.study import (
    load_optuna,
    suggest_boosting,
    suggest_catboost,
    suggest_forest,
    suggest_lightgbm,
    suggest_network,
    suggest_svm,
)
from cocoloss.benchmark.tasks import load_place
from cocoloss.estimators import CoCoClassifier
from cocoloss.estimators.classifiers import BaseNetworkClassifier, ObjectiveClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting.objective import CoCo, CrossEntropy, DotRegression, Objective

if TYPE_CHECKING:
    from cocoloss.benchmark.numbers_and_levels import Model

AnyModel = TypeVar("AnyModel", ModelKind, "Model")
SAMPLES = 20  # random points by which hyperparameters are counted
SIZE = (500, 10, 3)  # rows, columns and classes that the space is shown to count them


def own_model(name: str, place: str) -> ModelKind:
    """Return the kind of a model that is made at a place, ``package.module:factory``.

    The factory is called with the arguments that the search space gives, and returns a classifier
    with ``fit`` and ``predict``; a class will do. The search space is a function
    ``search_space(trial, n_samples, n_features, n_classes)`` that returns a dict: an attribute of
    the factory, or of its module. Without one the model is not tuned. If either has the attribute
    ``reads_tables = True``, the model gets a frame with categories and gaps.
    """
    where = f"model {name!r} ({place})"
    factory = load_place(where, place)
    example = _call(factory, {}, where)
    if not (hasattr(example, "fit") and hasattr(example, "predict")):
        raise CoCoError(
            f"{where} must give a classifier with fit and predict, but gave "
            f"{type(example).__name__}"
        )
    module = sys.modules[place.partition(":")[0]]
    space = getattr(factory, "search_space", None) or getattr(module, "search_space", None)
    try:
        n_hyperparameters = 0 if space is None else len(_drawn_names(space))
    except CoCoError:
        raise
    except Exception as error:
        raise CoCoError(
            f"{where}: its search_space failed: {type(error).__name__}: {error}"
        ) from error
    neural = isinstance(example, BaseNetworkClassifier)
    make = partial(_make, factory, where)
    raw = bool(getattr(factory, "reads_tables", getattr(module, "reads_tables", False)))
    return ModelKind(make, space, n_hyperparameters, neural=neural, whose=where, raw=raw)


def _make(
    factory: Callable[..., Any], where: str, _n_features: int, params: Mapping[str, Any], seed: int
) -> Any:
    model = _call(factory, params, where)
    if hasattr(model, "get_params"):
        given = model.get_params()
        draws = [name for name in given if name.split("__")[-1] == "random_state"]
        free = {name: seed for name in draws if given[name] is None}
        if free:
            model.set_params(**free)
    return model


def _call(factory: Callable[..., Any], params: Mapping[str, Any], where: str) -> Any:
    try:
        return factory(**params)
    except Exception as error:
        raise CoCoError(f"{where} could not be made: {type(error).__name__}: {error}") from error


@lru_cache  # asked for in every task
def _drawn_names(space: Space) -> set[str]:
    """Return what a space draws, and what it draws only sometimes."""
    optuna = load_optuna()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    drawn: set[str] = set()
    for _ in range(SAMPLES):
        trial = study.ask()
        params = space(trial, *SIZE)
        if not isinstance(params, Mapping):
            raise TypeError(f"it must return a dict of arguments, not {params!r}")
        drawn |= set(trial.params)
    return drawn


TREES = 500
# The untuned networks of the first releases, which were coco-default.
FIRST_DEFAULT: dict[str, Any] = {
    "hidden_layer_sizes": (128, 128),
    "activation": "relu",
    "max_iter": 100,
    "batch_size": 64,
    "learning_rate_init": 3e-3,
    "learning_rate": "cosine",
    "weight_decay": 1e-2,
    "n_members": 6,
    "early_stopping": True,
    "validation_fraction": 0.15,
    "n_iter_no_change": 30,
    "head": "gaussian",
    "solver": "network",
}


# NOTE[PAPER]: how batches are drawn is not said. Pairs of one class, as the classifier has them by
# default where batches are small for the number of classes, would be a favour to CoCo: here batches
# are drawn as those of the other losses, shuffled.
_shuffled = partial(CoCo, pair_rows=False)
# NOTE[PAPER]: the plain loss divides pairs and norms by their numbers; the balanced one is printed
# as sums, in which the term of a norm weighs as much as one pair, rather than as much as (N+1)/2
# pairs. Every other balanced model here has the plain loss's normalisation.
_printed_balanced = _shuffled(balance="balanced", reduction="sum")


def _network(
    objective: Objective,
    fixed: Mapping[str, Any],
    _n_features: int,
    params: Mapping[str, Any],
    seed: int,
) -> Any:
    # NOTE[PAPER]: AdamW at a constant rate, an identity output, and the embedding as it comes out
    # of the network rather than divided by its norm. The paper names neither optimiser nor output;
    # of the weights' start it says nothing either, and here embeddings start at norm one.
    paper: dict[str, Any] = {
        "normalize": False,
        "learning_rate": "constant",
        "n_members": 1,
        "early_stopping": False,
        "random_state": seed,
    }
    return ObjectiveClassifier(objective=objective, **paper | dict(fixed) | dict(params))


def _kernel_svm(
    class_weight: str | None, n_features: int, params: Mapping[str, Any], _seed: int
) -> Any:
    # NOTE[PAPER]: d in the bounds of the kernel width is the number of columns that the SVM sees,
    # which is that of the table unless categories make more columns of it.
    gamma = params["gamma_times_d"] / n_features if "gamma_times_d" in params else "scale"
    svm = SVC(C=params.get("C", 1.0), gamma=gamma, class_weight=class_weight, cache_size=500)
    return OneVsRestClassifier(svm)


def _forest(class_weight: str | None, n_features: int, params: Mapping[str, Any], seed: int) -> Any:
    # NOTE[PAPER]: trees vote with their class shares, as scikit-learn's do; the paper counts the
    # trees that prefer a class. Trees are grown until their leaves are pure, where both agree.
    at_a_split: int | str = "sqrt"
    if "feature_share" in params:
        at_a_split = max(1, round(params["feature_share"] * n_features))
    return RandomForestClassifier(
        TREES, max_features=at_a_split, class_weight=class_weight, random_state=seed
    )


def _boosting(
    class_weight: str | None, _n_features: int, params: Mapping[str, Any], seed: int
) -> Any:
    return HistGradientBoostingClassifier(
        class_weight=class_weight, early_stopping=False, random_state=seed, **params
    )


class OnFrame:
    """A model that gets frames with categories and gaps in the form that it reads."""

    def __init__(self, model: Any, read: Callable[[Any], Any], categories_as: str = "") -> None:
        self.model, self.read = model, read
        self.categories_as = categories_as  # the argument of fit that names categories, if any
        if hasattr(model, "predict_proba"):
            self.predict_proba = lambda X: model.predict_proba(read(X))

    def fit(self, X: Any, y: Any) -> "OnFrame":
        """Fit the model to a frame."""
        named = list(X.select_dtypes("category").columns) if self.categories_as else []
        self.model.fit(self.read(X), y, **({self.categories_as: named} if named else {}))
        return self

    def predict(self, X: Any) -> Any:
        """Return what the model predicts, one each."""
        return self.model.predict(self.read(X)).reshape(-1)

    @property
    def classes_(self) -> Any:
        """The classes that the model knows."""
        return self.model.classes_


def _numbered_columns(X: Any) -> Any:
    """Return a frame whose columns have numbers for names: LightGBM refuses some marks in them."""
    return X.set_axis([f"x{j}" for j in range(X.shape[1])], axis=1)


def _named_gaps(X: Any) -> Any:
    """Return a frame whose categories are text, a gap too, as CatBoost wants it."""
    named = X.select_dtypes("category").columns
    return X.assign(**{c: X[c].astype(object).where(X[c].notna(), GAP).astype(str) for c in named})


def _few_categories(X: Any) -> Any:
    """Return a frame in which no column has more categories than scikit-learn's trees take."""
    many = [c for c in X.select_dtypes("category") if len(X[c].cat.categories) > MOST_CATEGORIES]
    codes = {c: X[c].cat.codes.astype(float).where(X[c].notna()) for c in many}
    return X.assign(**codes) if many else X


GAP = "(gap)"
MOST_CATEGORIES = 255


def lightgbm_model(which: str, params: Mapping[str, Any], seed: int, **fixed: Any) -> OnFrame:
    """Return LightGBM's "Classifier" or "Regressor" on frames."""
    make = getattr(import_module("lightgbm"), f"LGBM{which}")
    model = make(random_state=seed, n_jobs=1, verbose=-1, **fixed, **params)
    return OnFrame(model, _numbered_columns)


def catboost_model(which: str, params: Mapping[str, Any], seed: int, **fixed: Any) -> OnFrame:
    """Return CatBoost's "Classifier" or "Regressor" on frames; it writes no files."""
    make = getattr(import_module("catboost"), f"CatBoost{which}")
    quiet = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
    return OnFrame(make(random_seed=seed, **quiet, **fixed, **params), _named_gaps, "cat_features")


def boosting_on_frames(make: Callable[..., Any], params: Mapping[str, Any], seed: int) -> OnFrame:
    """Return scikit-learn's boosted trees with splits by category."""
    model = make(random_state=seed, categorical_features="from_dtype", **params)
    return OnFrame(model, _few_categories)


def _lightgbm(class_weight: str | None, _: int, params: Mapping[str, Any], seed: int) -> Any:
    return lightgbm_model("Classifier", params, seed, class_weight=class_weight)


def _catboost(class_weight: str | None, _: int, params: Mapping[str, Any], seed: int) -> Any:
    weights = {"auto_class_weights": "Balanced"} if class_weight else {}
    return catboost_model("Classifier", params, seed, **weights)


def _raw_boosting(class_weight: str | None, _: int, params: Mapping[str, Any], seed: int) -> Any:
    make = partial(HistGradientBoostingClassifier, class_weight=class_weight, early_stopping=False)
    return boosting_on_frames(make, params, seed)


def _tuned_network(objective: Objective, **fixed: Any) -> ModelKind:
    embedding = not objective.logits  # for cross-entropy it would add a layer
    # NOTE[PAPER]: t counts the printed items, so dropout is one of them, whatever it takes to say
    # whether, where and how much; q makes one more.
    return ModelKind(
        partial(_network, objective, fixed),
        partial(suggest_network, embedding=embedding),
        7 if embedding else 6,
        neural=True,
        takes_epochs=True,
    )


def _peer(
    make: Callable[..., Any], space: Space, t: int, class_weight: str | None, **more: Any
) -> ModelKind:
    return ModelKind(partial(make, class_weight), space, t, **more)


def _raw_peers(name: str, make: Callable[..., Any], space: Space, t: int, needs: str) -> Any:
    """Return a model that reads frames, and its class-weighted form."""
    forms = {name: None, f"{name}-w": "balanced"}
    return {n: _peer(make, space, t, weight, raw=True, needs=needs) for n, weight in forms.items()}


# NOTE[PAPER]: the rules of prediction as printed: class shares as priors of the Gaussians (with our
# floor and shrinkage of the covariances), the largest logit, the largest inner product. The forms
# with -w are not in the paper: they count classes alike, as balanced accuracy does.
MODELS: dict[str, ModelKind] = {
    "coco": _tuned_network(_shuffled(), priors="empirical"),
    "coco-w": _tuned_network(_shuffled(), priors="uniform"),
    "coco-plain": _tuned_network(_shuffled(balance="coco"), priors="empirical"),
    "coco-balanced": _tuned_network(_shuffled(balance="balanced"), priors="empirical"),
    "coco-balanced-printed": _tuned_network(_printed_balanced, priors="empirical"),
    # NOTE[PAPER]: dot regression as printed leaves the norm free, and with it which other vertices
    # an embedding is near to: with three classes or more a loss of zero does not mean that the
    # largest inner product is the right one. "dr-sphere" divides the embedding by its norm: there
    # a loss of zero is the vertex itself.
    "dr": _tuned_network(DotRegression(), priors="empirical"),
    "dr-sphere": _tuned_network(DotRegression(), priors="empirical", normalize=True),
    "dr-w": _tuned_network(DotRegression(), priors="uniform", class_weight="balanced"),
    "ce": _tuned_network(CrossEntropy(), priors="empirical"),
    "ce-w": _tuned_network(CrossEntropy(), priors="uniform", class_weight="balanced"),
    "ksvm": _peer(_kernel_svm, suggest_svm, 2, None),
    "ksvm-w": _peer(_kernel_svm, suggest_svm, 2, "balanced"),
    "rf": _peer(_forest, suggest_forest, 1, None),
    "rf-w": _peer(_forest, suggest_forest, 1, "balanced"),
    "hgb": _peer(_boosting, suggest_boosting, 4, None),
    "hgb-w": _peer(_boosting, suggest_boosting, 4, "balanced"),
    **_raw_peers("hgb-raw", _raw_boosting, suggest_boosting, 4, ""),
    **_raw_peers("lightgbm", _lightgbm, suggest_lightgbm, 4, "lightgbm"),
    **_raw_peers("catboost", _catboost, suggest_catboost, 3, "catboost"),
    "coco-default": ModelKind(
        lambda _, _params, seed: CoCoClassifier(random_state=seed), neural=True
    ),
    "coco-networks": ModelKind(
        lambda _, _params, seed: CoCoClassifier(random_state=seed, **FIRST_DEFAULT), neural=True
    ),
    "coco-kernel": ModelKind(
        lambda _, _params, seed: CoCoClassifier(solver="kernel", random_state=seed), neural=True
    ),
}
TEMPERED = re.compile(r"coco-s(\d+(?:\.\d+)?)")  # coco-s0.25 weighs rows by pi^-0.25


def import_what_models_need(own: Mapping[str, str]) -> None:
    """Import torch, Optuna and the user's own models, but for those that cannot be made."""
    from cocoloss.fitting import fit_kernels, jobs  # noqa: F401, PLC0415 - torch, scipy

    with suppress(CoCoError):  # not installed
        load_optuna().trial.FixedTrial({})  # Optuna loads its parts when they are named
    for name, place in own.items():
        with suppress(Exception, SystemExit):
            own_model(name, place)


def check_installed(model: str, package: str) -> None:
    """Refuse a model whose package is not there."""
    if package and find_spec(package) is None:
        raise CoCoError(
            f"the model {model!r} needs {package}, which is not installed; "
            f"pip install 'cocoloss[bench]'"
        )


def find_model(name: str, own: Mapping[str, str] | None = None) -> ModelKind:
    """Return a model by its name: one of ``MODELS``, of the user's own, or "coco-s0.25".

    The last is the loss with weights of that exponent.
    """
    known = MODELS
    if match := TEMPERED.fullmatch(name):
        tempered = _shuffled(balance=float(match[1]))
        known = known | {name: _tuned_network(tempered, priors="empirical")}
    return find_among(known, name, own, own_model)


def find_among(
    known: Mapping[str, AnyModel],
    name: str,
    own: Mapping[str, str] | None,
    make_own: Callable[[str, str], AnyModel],
) -> AnyModel:
    """Return a model by its name, of those that are known or, by its place, of the user's own."""
    if own and name in own:
        if name in known:
            raise CoCoError(
                f"model {name!r} ({own[name]}) has the name of a model that cocoloss has; give "
                f"yours another, such as 'my-{name}'"
            )
        return make_own(name, own[name])
    if name not in known:
        raise CoCoError(
            f"there is no model {name!r}{what_there_is(name, known)} (one of your own is given as "
            f"name=package.module:factory)"
        )
    check_installed(name, known[name].needs)
    return known[name]
