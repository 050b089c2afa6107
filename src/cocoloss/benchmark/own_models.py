"""Models of the user's own, found by their place: ``package.module:factory``."""

import importlib
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from cocoloss.benchmark.model_kind import ModelKind
from cocoloss.benchmark.spaces import Space
from cocoloss.benchmark.study import load_optuna
from cocoloss.estimators.base import BaseNetworkClassifier
from cocoloss.exceptions import CoCoError

SAMPLES = 20  # random points by which hyperparameters are counted
SIZE = (500, 10, 3)  # rows, columns and classes that the space is shown to count them


def model_from_text(text: str) -> tuple[str, ModelKind]:
    """Return name and kind of a model that was given as ``name=package.module:factory``.

    The factory is called with the arguments that the search space gives, and returns a classifier
    with ``fit`` and ``predict``; a class will do. The search space is a function
    ``search_space(trial, n_samples, n_features, n_classes)`` that returns a dict: an attribute of
    the factory, or of its module. Without one the model is not tuned. The number of
    hyperparameters is counted, unless ``search_space.n_hyperparameters`` says it.

    Raises
    ------
    CoCoError
        If there is no such place, or what it gives is no classifier.

    Examples
    --------
    >>> name, kind = model_from_text("trees=sklearn.ensemble:ExtraTreesClassifier")
    >>> name, kind.n_hyperparameters
    ('trees', 0)
    >>> kind.make(10, 2, {"max_depth": 3}, 7)
    ExtraTreesClassifier(max_depth=3, random_state=7)
    """
    name, equals, place = text.partition("=")
    if not (name.strip() and equals and place.strip()):
        raise CoCoError(
            f"a model of your own is given as name=package.module:factory, not {text!r}"
        )
    return name.strip(), own_model(name.strip(), place.strip())


def own_model(name: str, place: str) -> ModelKind:
    """Return the kind of a model that is made at a place, ``package.module:factory``."""
    where = f"model {name!r} ({place})"
    module_name, _, path = place.partition(":")
    if not (module_name and path):
        raise CoCoError(f"{where} must have the form package.module:factory")
    module = _import(module_name, where)
    factory = module
    for part in path.split("."):
        if not hasattr(factory, part):
            raise CoCoError(f"{where}: {module_name} has no {path!r}; check the spelling")
        factory = getattr(factory, part)
    example = _call(factory, {}, where)
    if not (hasattr(example, "fit") and hasattr(example, "predict")):
        raise CoCoError(
            f"{where} must give a classifier with fit and predict, but gave "
            f"{type(example).__name__}"
        )
    space = getattr(factory, "search_space", None) or getattr(module, "search_space", None)
    return ModelKind(
        partial(_make, factory, where),
        space,
        0 if space is None else _count_hyperparameters(space, where),
        neural=isinstance(example, BaseNetworkClassifier),
        whose=where,
    )


def _import(name: str, where: str) -> Any:
    here = str(Path.cwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if here in sys.path or not _is_part_of(error.name, name):
            raise _no_module(where, error) from error
    sys.path.append(here)  # a command, unlike ``python script.py``, has no such place
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise _no_module(where, error) from error


def _is_part_of(missing: str | None, name: str) -> bool:
    return missing is not None and (name == missing or name.startswith(f"{missing}."))


def _no_module(where: str, error: ModuleNotFoundError) -> CoCoError:
    return CoCoError(
        f"{where}: there is no module {error.name!r}; install it, or start where it lies"
    )


def _make(
    factory: Callable[..., Any],
    where: str,
    n_features: int,  # noqa: ARG001 - every factory of a kind is called alike
    n_classes: int,  # noqa: ARG001
    params: Mapping[str, Any],
    seed: int,
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


def _count_hyperparameters(space: Space, where: str) -> int:
    """Return how many numbers a space draws, counting those that it draws only sometimes."""
    stated = getattr(space, "n_hyperparameters", None)
    if stated is not None:
        return int(stated)
    try:
        return len(_drawn_names(space))
    except CoCoError:
        raise
    except Exception as error:
        raise CoCoError(
            f"{where}: its search_space failed: {type(error).__name__}: {error}"
        ) from error


@lru_cache  # asked for in every task
def _drawn_names(space: Space) -> set[str]:
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
