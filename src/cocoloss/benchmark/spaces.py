"""Search spaces: the paper's, as printed, and one around the default classifier.

A space is a function of a trial and of the size of the table. It asks the trial for numbers (any
trial of Optuna's serves, also a ``FixedTrial``) and returns arguments of a model.
"""

import math
from collections.abc import Callable
from typing import Any

Space = Callable[[Any, int, int, int], dict[str, Any]]
"""Called with a trial, the number of training rows, of columns and of classes."""

# What the default space says in the words of the classifiers.
TUNED_BY_DEFAULT = (
    "hidden_layer_sizes",
    "batch_size",
    "learning_rate_init",
    "weight_decay",
    "dropout",
    "embedding_dim",
)


def largest_batch(n_samples: int, most: int) -> int:
    """Return the exponent of the largest batch, min(floor(log2(n / 2)), most).

    Examples
    --------
    >>> largest_batch(450, 9), largest_batch(90_000, 9)
    (7, 9)
    """
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

    Parameters
    ----------
    trial : optuna trial
        Asked for numbers.
    n_samples, n_features, n_classes : int
        Size of the training table.
    embedding : bool, default=True
        Whether to choose q, ``embedding_dim``; cross-entropy has none.
    max_units : int, default=0
        Most units of a hidden layer; 0 is what is printed, 1024.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> point = {
    ...     "hidden_layers": 2,
    ...     "log2_units": 5,
    ...     "log2_batch_size": 4,
    ...     "learning_rate": 1e-3,
    ...     "weight_decay": 1e-4,
    ...     "use_dropout": True,
    ...     "dropout_layer": 2,
    ...     "dropout_rate": 0.2,
    ...     "embedding_dim": 5,
    ... }
    >>> suggest_network(FixedTrial(point), 900, 20, 3)["hidden_layer_sizes"]
    (32, 32)
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

    Examples
    --------
    >>> unit_exponents(4), unit_exponents(1000)
    ((2, 10), (2, 10))
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


def suggest_boosting(
    trial: Any,
    n_samples: int,  # noqa: ARG001
    n_features: int,  # noqa: ARG001
    n_classes: int,  # noqa: ARG001
) -> dict[str, Any]:
    """Return arguments of boosted trees."""
    # NOTE[PAPER]: boosted trees are mentioned without a name or a search space; this one is ours.
    return {
        "learning_rate": trial.suggest_float("learning_rate", 0.01, 0.5, log=True),
        "max_leaf_nodes": trial.suggest_int("max_leaf_nodes", 4, 128, log=True),
        "min_samples_leaf": trial.suggest_int("min_samples_leaf", 2, 100, log=True),
        "l2_regularization": trial.suggest_float("l2_regularization", 1e-6, 10.0, log=True),
    }


def suggest_default(
    trial: Any,
    n_samples: int,
    n_features: int,  # noqa: ARG001 - every space is called alike
    n_classes: int,
    *,
    embedding: bool = True,
) -> dict[str, Any]:
    """Return arguments near the defaults of the classifiers, for a table of one's own.

    Parameters
    ----------
    trial : optuna trial
        Asked for numbers.
    n_samples, n_features, n_classes : int
        Size of the training table.
    embedding : bool, default=True
        Whether to choose ``embedding_dim``, which for cross-entropy would add a layer.

    Examples
    --------
    >>> from optuna.trial import FixedTrial
    >>> point = default_point({}, n_samples=500, n_classes=3)
    >>> suggest_default(FixedTrial(point), 500, 10, 3)["hidden_layer_sizes"]
    (128, 128)
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
    """Return the point of :func:`suggest_default` that is nearest to a classifier.

    Parameters
    ----------
    params : dict
        Arguments of the classifier; those left out have their defaults.
    n_samples, n_classes, embedding
        As for :func:`suggest_default`.
    """
    hidden = params.get("hidden_layer_sizes", (128, 128))
    hidden = [hidden] if isinstance(hidden, int) else list(hidden)
    units = max(1.0, sum(hidden) / max(1, len(hidden)))
    most = largest_batch(n_samples, 8)
    batch_size = params.get("batch_size", 64)
    point = {
        "hidden_layers": _between(len(hidden), 1, 3),
        "log2_units": _between(round(math.log2(units)), 5, 9),
        "log2_batch_size": _between(round(math.log2(batch_size)), min(4, most), most),
        "learning_rate": _between(params.get("learning_rate_init", 3e-3), 3e-4, 2e-2),
        "weight_decay": _between(params.get("weight_decay", 1e-2), 1e-4, 1e-1),
        "dropout": _between(round(params.get("dropout", 0.0) / 0.05) * 0.05, 0.0, 0.5),
    }
    if embedding:
        q = params.get("embedding_dim", "auto")
        q = max(8, n_classes) if isinstance(q, str) else q
        point["embedding_dim"] = _between(q, max(2, n_classes), max(64, 2 * n_classes))
    return point


def _between(value: Any, low: Any, high: Any) -> Any:
    return min(max(value, low), high)
