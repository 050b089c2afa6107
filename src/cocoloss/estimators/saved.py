"""Model files read: what is in them is checked, tried once, and ready to answer.

Which classes its parts become is the reader's choice: the estimators of scikit-learn, or only that
half of each which answers, without scikit-learn and in a third of the time.
"""

import os
import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss._late import LateNames
from cocoloss.columns.categories import OneHot
from cocoloss.columns.encoder import TableEncoder
from cocoloss.columns.floats import FloatEncoder
from cocoloss.columns.quantities import QUANTITIES
from cocoloss.columns.scaling import NumberScaler
from cocoloss.estimators.answers import HiddenLayerAnswers, MemberAnswers
from cocoloss.estimators.archive import brief, read_archive
from cocoloss.estimators.plain import Classes, unpack
from cocoloss.exceptions import CoCoError
from cocoloss.heads.fitted import FittedCentroid, FittedGaussian, FittedReadout


class HeadAnswers:
    """What a head of ours learnt, without scikit-learn."""

    fitted_: Any

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of each class, (n, C)."""
        return np.asarray(self.fitted_.predict_proba(X))

    def decision_function(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the log posterior, or the log odds of two classes."""
        return np.asarray(self.fitted_.decision_function(X))

    def outlier_score(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return how strange each row is."""
        return np.asarray(self.fitted_.outlier_score(X))


VERSION = 1  # of what the attributes mean; raise it when an older reader would misread a file
ANSWERING: Classes = LateNames(
    {
        "sklearn.linear_model": ["RidgeClassifier"],
        "sklearn.svm": ["LinearSVC"],
        "sklearn.preprocessing": ["LabelBinarizer"],
    },
    at_hand={
        "CoCoClassifier": MemberAnswers,
        "DotRegressionClassifier": MemberAnswers,
        "CrossEntropyClassifier": HiddenLayerAnswers,
        "TablePreprocessor": TableEncoder,
        "FloatConverter": FloatEncoder,
        "NumberScaler": NumberScaler,
        "OneHot": OneHot,
        "GaussianHead": HeadAnswers,
        "CentroidHead": HeadAnswers,
        "ReadoutHead": HeadAnswers,
        "FittedGaussian": FittedGaussian,
        "FittedCentroid": FittedCentroid,
        "FittedReadout": FittedReadout,
    },
)
MAX_WIDTH = 2**24


def load_answers(path: str | os.PathLike[str]) -> MemberAnswers:
    """Read a model file for its answers alone.

    They are those of the classifier that :func:`cocoloss.load` gives, to the last bit. Neither
    torch nor scikit-learn is imported, unless the head is one of scikit-learn's.

    Parameters
    ----------
    path : path
        The file.

    Raises
    ------
    CoCoError
        As :func:`cocoloss.load` does.
    """
    model: MemberAnswers = read_saved(path, ANSWERING)
    return model


def read_saved(path: str | os.PathLike[str], classes: Classes) -> Any:
    """Read a model file, and check and try what it holds.

    Parameters
    ----------
    path : path
        The file.
    classes : mapping of str to type
        What the parts of a model become, by the names that the file has for them.

    Raises
    ------
    CoCoError
        If there is no such file, or it is of another kind, altered, cut short or from a later
        version.
    """
    archive = read_archive(path, version=VERSION)
    try:
        model = unpack(archive.document, archive.arrays, classes)
        _check_sizes(model)
        _try_once(model)
    except (Exception, RecursionError) as error:  # the parts of a crafted file may say anything
        raise CoCoError(f"{path} is not a usable model file: {brief(error)}") from error
    return model


def _check_sizes(model: Any) -> None:
    """Refuse parts whose sizes do not agree, before anything is made of those sizes."""
    if not isinstance(model, MemberAnswers):
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
    if not all(_is_head(head) for head in model.heads_):
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
        inputs = np.asarray(model.preprocessor_.transform(row))  # scikit-learn may make frames
        if not np.isfinite(inputs).all():
            raise CoCoError("what the preprocessing makes is not finite")
        features = model._head_inputs(inputs)  # noqa: SLF001
        for head in model.heads_:
            _check_head(head, features, len(model.classes_))
        answer = model.decision_function(row)
        embedding = np.asarray(model.transform(row))
    n_classes = len(model.classes_)
    if not (np.isfinite(answer).all() and np.isfinite(embedding).all()):
        raise CoCoError("its answers are not finite")
    if np.shape(answer) != ((1,) if n_classes == 2 else (1, n_classes)):
        raise CoCoError("the heads know other classes than the model")
    if np.shape(embedding) != (1, model._n_features_out):  # noqa: SLF001
        raise CoCoError("the embedding does not have its width")


def _check_head(head: Any, features: NDArray[Any], C: int) -> None:
    """Refuse a head that cannot take what the networks give it, (K, 1, q).

    Shapes that numpy would broadcast are among them: two short arrays can make a huge one.
    """
    if not np.isfinite(features).all():
        raise CoCoError("what the networks make is not finite")
    q = features.shape[-1]
    if getattr(head, "n_features_in_", q) != q:
        raise CoCoError("a head does not fit the embedding")
    linear = {(C, q): (C,)} if C > 2 else {(1, q): (1,), (q,): ()}  # scikit-learn has both
    if hasattr(head, "fitted_"):
        fitted = type(head.fitted_).from_state(head.fitted_.to_state())
        if (fitted.n_classes, fitted.n_features) != (C, q):
            raise CoCoError("a head does not fit the embedding")
    shapes: list[tuple[tuple[str, ...], set[tuple[int, ...]]]] = [
        (("classes_",), {(C,)}),
        (("coef_",), {*linear}),
        (("intercept_",), {*linear.values(), ()}),
    ]
    for names, possible in shapes:
        for name in names:
            if hasattr(head, name) and np.shape(getattr(head, name)) not in possible:
                raise CoCoError(f"{name} of a head has no possible shape")


def _row_of_gaps(preprocessor: Any, width: int) -> Any:
    """Return one row for the preprocessing, after its sizes are known to be those of the model."""
    if isinstance(preprocessor, FloatEncoder):
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
    scaler = preprocessor.scaler_
    n_quantities = sum(kind in QUANTITIES for kind in preprocessor.kinds_.values())
    if any(np.shape(part) != (n_quantities,) for part in (scaler.center, scaler.scale)):
        raise CoCoError("the scales are not those of the columns")
    if preprocessor.matched_by_name_:
        return pd.DataFrame([[None] * n], columns=names)
    return np.full((1, n), np.nan)


def _is_head(part: Any) -> bool:
    """Return whether a part has learnt classes and tells them apart; a model within one is none."""
    tells = hasattr(type(part), "decision_function") and not isinstance(part, MemberAnswers)
    return tells and hasattr(part, "classes_")


def _is_count(value: Any) -> bool:
    return type(value) is int and 1 <= value <= MAX_WIDTH
