"""Fitted classifiers as files: small, without pickle, safe to load from a stranger."""

import copy
import os
from typing import Any, Self

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

import cocoloss
from cocoloss.columns import FloatConverter, TablePreprocessor
from cocoloss.columns.categories import OneHot
from cocoloss.columns.scaling import NumberScaler
from cocoloss.estimators.archive import write_archive
from cocoloss.estimators.plain import pack
from cocoloss.estimators.saved import VERSION, read_saved
from cocoloss.exceptions import CoCoError
from cocoloss.heads import HEADS, CentroidHead, GaussianHead, ReadoutHead
from cocoloss.heads.fitted import FittedCentroid, FittedGaussian, FittedReadout

PARTS: dict[str, type] = {
    part.__name__: part
    for part in (
        *(TablePreprocessor, FloatConverter, NumberScaler, OneHot),
        *(GaussianHead, CentroidHead, ReadoutHead, RidgeClassifier, LinearSVC, LabelBinarizer),
        *(FittedGaussian, FittedCentroid, FittedReadout),
    )
}
ROWS_OF_PARTS = ("_kept", "_seen", "_parts")  # partial_fit's: data, and a file holds weights


class SavedWhole:
    """``save`` and ``load``."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, whole or not at all.

        The file holds the weights and what the preprocessing has learnt, no rows and no pickle.
        Callbacks are left out, and so are a ``random_state`` that is a generator and requests of
        scikit-learn's metadata routing; arguments that are series or frames become arrays. After
        loading, ``partial_fit`` goes on from the weights, but counts its rows anew.

        Parameters
        ----------
        path : path
            Such as ``model.coco``; a file that is there is replaced.

        Raises
        ------
        CoCoError
            If the place cannot be written to, or if the classifier has a network, a preprocessing
            or a head of the user's own, which only pickle could hold.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from sklearn.datasets import load_iris
        >>> from cocoloss import CoCoClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> classifier = CoCoClassifier(max_iter=5, random_state=0).fit(X, y)
        >>> with TemporaryDirectory() as folder:
        ...     classifier.save(Path(folder) / "iris.coco")
        ...     loaded = CoCoClassifier.load(Path(folder) / "iris.coco")
        >>> bool((loaded.predict_proba(X) == classifier.predict_proba(X)).all())
        True
        """
        check_is_fitted(self)
        classes = _classifiers()
        if type(self).__name__ not in classes or classes[type(self).__name__] is not type(self):
            raise CoCoError(
                f"{type(self).__name__} is a class of your own; a model file holds "
                f"{', '.join(classes)} only"
            )
        _check_own_parts(self)
        tree, arrays = pack(_without_visitors(self), PARTS | classes)
        writer = f"cocoloss {cocoloss.__version__}"
        write_archive(path, tree, arrays, version=VERSION, writer=writer)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a classifier that :meth:`save` wrote; nothing in the file is run.

        Parameters
        ----------
        path : path
            The file.

        Returns
        -------
        The fitted classifier; predicting needs no torch.

        Raises
        ------
        CoCoError
            If there is no such file, or it is of another kind, altered, cut short, from a later
            version, or holds a classifier of another class.
        """
        model = load(path)
        if not isinstance(model, cls):
            found = type(model).__name__
            raise CoCoError(f"{path} holds a {found}, not a {cls.__name__}; use {found}.load")
        return model


def load(path: str | os.PathLike[str]) -> Any:
    """Read a classifier of any class that its ``save`` wrote; nothing in the file is run.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    The fitted classifier; predicting needs no torch.

    Raises
    ------
    CoCoError
        If there is no such file, or it is of another kind, altered, cut short or from a later
        version.
    """
    return read_saved(path, PARTS | _classifiers())


def _classifiers() -> dict[str, type]:
    from cocoloss.estimators import classifiers  # noqa: PLC0415 - they are built on this file

    names = ("CoCoClassifier", "DotRegressionClassifier", "CrossEntropyClassifier")
    return {name: getattr(classifiers, name) for name in names}


def _check_own_parts(model: Any) -> None:
    """Refuse what only pickle could hold, and say what to do instead."""
    if model.modules_ is not None:
        raise CoCoError(
            "a model file cannot hold a torch module; save its weights with torch.save, or "
            "describe the network by hidden_layer_sizes"
        )
    if type(model.preprocessor_).__name__ not in PARTS:
        raise CoCoError(
            f"a model file cannot hold the preprocessing {type(model.preprocessor_).__name__}; use "
            f"preprocess='auto' or None and transform the table before"
        )
    if type(model.heads_[0]) not in PARTS.values():
        raise CoCoError(
            f"a model file cannot hold the head {type(model.heads_[0]).__name__}; use one of "
            f"{', '.join(HEADS)}"
        )


def _without_visitors(model: Any) -> Any:
    """Return the model without what belongs to this process: listeners, generators, kept rows."""
    model = _plain_part(model)
    for name in (*ROWS_OF_PARTS, "_skl_callbacks"):
        model.__dict__.pop(name, None)
    model.heads_ = [_plain_part(head) for head in model.heads_]
    model.callbacks = None
    if not isinstance(model.random_state, (int, np.integer)):
        model.random_state = None
    return model


def _plain_part(part: Any) -> Any:
    """Return a copy whose arguments are plain: arrays for series and frames, a device's name.

    What a part asks of scikit-learn's metadata routing concerns the program that it runs in.
    """
    part = copy.copy(part)
    part.__dict__.pop("_metadata_request", None)
    for name, value in vars(part).items():
        if hasattr(value, "to_numpy"):
            part.__dict__[name] = value.to_numpy()
        elif type(value).__module__ == "torch" and type(value).__name__ == "device":
            part.__dict__[name] = str(value)
        elif type(value) in PARTS.values():
            part.__dict__[name] = _plain_part(value)
    return part
