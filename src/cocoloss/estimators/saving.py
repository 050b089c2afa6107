"""Fitted classifiers as files: small, without pickle, safe to load from a stranger."""

import copy
import os
import warnings
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.linear_model import RidgeClassifier
from sklearn.preprocessing import LabelBinarizer
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted

import cocoloss
from cocoloss.exceptions import CoCoError
from cocoloss.files.archive import brief, read_archive, write_archive
from cocoloss.files.plain import pack, unpack
from cocoloss.heads import HEADS, CentroidHead, GaussianHead, ReadoutHead
from cocoloss.preprocessing import FloatConverter, TablePreprocessor
from cocoloss.preprocessing.categories import OneHot
from cocoloss.preprocessing.scaling import NumberScaler

VERSION = 1  # of what the attributes mean; raise it when an older reader would misread a file
PARTS: dict[str, type] = {
    part.__name__: part
    for part in (
        *(TablePreprocessor, FloatConverter, NumberScaler, OneHot),
        *(GaussianHead, CentroidHead, ReadoutHead, RidgeClassifier, LinearSVC, LabelBinarizer),
    )
}
HEAD_PARTS = (GaussianHead, CentroidHead, ReadoutHead, RidgeClassifier, LinearSVC)
ROWS_OF_PARTS = ("_kept", "_seen", "_parts")  # partial_fit's: data, and a file holds weights
MAX_WIDTH = 2**24


class SavedWhole:
    """``save`` and ``load``."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted classifier to a file, whole or not at all.

        The file holds the weights and what the preprocessing has learnt, no rows and no pickle.
        Callbacks are left out, and so is a ``random_state`` that is a generator. After loading,
        ``partial_fit`` goes on from the weights, but counts its rows anew.

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
    archive = read_archive(path, version=VERSION)
    try:
        model = unpack(archive.document, archive.arrays, PARTS | _classifiers())
        _check_sizes(model)
        _try_once(model)
    except (Exception, RecursionError) as error:  # the parts of a crafted file may say anything
        raise CoCoError(f"{path} is not a usable model file: {brief(error)}") from error
    return model


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
    if not isinstance(model.heads_[0], HEAD_PARTS):
        raise CoCoError(
            f"a model file cannot hold the head {type(model.heads_[0]).__name__}; use one of "
            f"{', '.join(HEADS)}"
        )


def _without_visitors(model: Any) -> Any:
    """Return the model without what belongs to this process: listeners, generators, kept rows."""
    model = copy.copy(model)
    for name in (*ROWS_OF_PARTS, "_skl_callbacks"):
        model.__dict__.pop(name, None)
    model.callbacks = None
    if not isinstance(model.random_state, (int, np.integer)):
        model.random_state = None
    return model


def _check_sizes(model: Any) -> None:
    """Refuse parts whose sizes do not agree, before anything is made of those sizes."""
    if type(model).__name__ not in _classifiers():
        raise CoCoError("it holds no classifier")
    K, P = model.parameters_.shape
    sizes = model.layer_sizes_
    if not isinstance(sizes, tuple) or not all(_is_count(n) for n in sizes) or len(sizes) < 2:
        raise CoCoError("the layers have no possible sizes")
    if sum((n_in + 1) * n_out for n_in, n_out in pairwise(sizes)) != P:
        raise CoCoError("the weights do not fill the layers")
    if not np.isfinite(model.parameters_).all():
        raise CoCoError("weights are not finite")
    if not isinstance(model.heads_, list) or len(model.heads_) != K or K == 0:
        raise CoCoError("there is not one head for each network")
    if not all(isinstance(head, HEAD_PARTS) for head in model.heads_):
        raise CoCoError("a head is none")
    if not isinstance(model.classes_, np.ndarray) or model.classes_.ndim != 1:
        raise CoCoError("the classes are no list")
    if model.modules_ is not None:
        raise CoCoError("it claims to hold torch modules")


def _try_once(model: Any) -> None:
    """Let every part work once, on a row of gaps, and look at what comes out."""
    row = _row_of_gaps(model.preprocessor_, model.layer_sizes_[0])
    with warnings.catch_warnings(), np.errstate(divide="raise", invalid="raise"):
        warnings.simplefilter("ignore")
        answer = model.decision_function(row)
        embedding = model.transform(row)
    n_classes = len(model.classes_)
    if not (np.isfinite(answer).all() and np.isfinite(embedding).all()):
        raise CoCoError("its answers are not finite")
    if np.shape(answer) != ((1,) if n_classes == 2 else (1, n_classes)):
        raise CoCoError("the heads know other classes than the model")
    if np.shape(embedding) != (1, model._n_features_out):  # noqa: SLF001
        raise CoCoError("the embedding does not have its width")


def _row_of_gaps(preprocessor: Any, width: int) -> Any:
    """Return one row for the preprocessing, after its sizes are known to be those of the model."""
    if isinstance(preprocessor, FloatConverter):
        if preprocessor.n_features_in_ != width:
            raise CoCoError("the preprocessing does not fit the first layer")
        names = getattr(preprocessor, "feature_names_in_", None)
        row = np.zeros((1, width), dtype=np.float32)
        return row if names is None else pd.DataFrame(row, columns=names)
    names, n = preprocessor.column_names_, preprocessor.n_features_in_
    if preprocessor.n_features_out_ != width or not isinstance(names, list) or len(names) != n:
        raise CoCoError("the preprocessing does not fit the first layer")
    if len(preprocessor.get_feature_names_out()) != width:
        raise CoCoError("the columns do not fill the first layer")
    if preprocessor.matched_by_name_:
        return pd.DataFrame([[None] * n], columns=names)
    return np.full((1, n), np.nan)


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MAX_WIDTH
