"""The record of a run: what was fitted, what it learnt on the way, how it does on test rows.

The way is the epochs of a network, or the ridges of a kernel.
Arrays and strings only, computed before: who draws or prints a run looks nowhere else. What a
fitted estimator says of itself (arguments, columns, versions) is put into words here.
"""

import inspect
import math
import platform
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

import cocoloss
from cocoloss.columns.column_kinds import ColumnKind
from cocoloss.columns.encoder import FloatEncoder, TableEncoder
from cocoloss.json_text import json_value
from cocoloss.kernels.search import Setting
from cocoloss.recording.decisions import DecisionRecord, WorstRows
from cocoloss.recording.why import Why

DIGITS = 6  # significant ones in to_dict
LARGE = ("embeddings", "class_means", "labels", "predicted", "is_test")  # not in to_dict
NOT_RECORDED = ("callbacks", "verbose")  # arguments that say nothing about what was learnt
LONGEST_ARGUMENT = 80
ORDERS = {"%d/%m": "day first", "%m/%d": "month first"}  # how the form of a date begins

MEASURES: Mapping[str, str] = {
    "loss": "CoCo loss of the training rows, all at once",
    "nc2_part": "its part for class means off the target",
    "nc1_part": "its part for rows away from their class mean",
    "norm_part": "its part for the norms of single rows",
    "dispersity": "dispersity of the training rows",
    "test_dispersity": "dispersity of the test rows",
    "nc1": "NC1: spread within classes, against that between them",
    "nc2": "NC2: distance of the class means from a simplex",
    "nc2_norms": "NC2: variation of the norms of the class means",
    "nc2_angles": "NC2: mean deviation of the cosines between class means",
    "nc3": "NC3: distance of the linear classifier from the class means",
    "nc4": "NC4: share of training rows that the nearest class mean decides unlike the linear "
    "classifier or, without one, unlike their label",
    "train_balanced_accuracy": "balanced accuracy on training rows",
    "test_balanced_accuracy": "balanced accuracy on test rows",
    # Of kernels: what fits without them say of the training rows.
    "left_out_balanced_accuracy": "balanced accuracy on training rows that are left out",
    "left_out_dispersity": "dispersity of the training rows when they are left out",
    "left_out_log_loss": "class-balanced leave-one-out log loss, by which ridges are chosen",
    "error": "mean squared distance of the training rows from the corners of their classes",
    "left_out_error": "the same of training rows that are left out",
}
"""What is measured of the first network, or kernel, at every snapshot."""


@dataclass(frozen=True)
class Reliability:
    """Rows sorted into bins by the probability of their predicted class; NaN in an empty bin."""

    edges: NDArray[np.float64]  # (B + 1,); a bin holds its upper bound
    counts: NDArray[np.int64]  # (B,)
    confidence: NDArray[np.float64]  # (B,), mean probability of the predicted class
    accuracy: NDArray[np.float64]  # (B,), share of rows whose predicted class is right
    error: float  # expected calibration error: the gap between the two, averaged over the rows


@dataclass(frozen=True)
class Outcome:
    """How a model does on some rows: what a record says of its test rows, of other ones."""

    confusion: NDArray[np.int64]  # (C, C), true classes in rows, predicted ones in columns
    balanced_accuracy: float
    accuracy: float
    log_loss: float  # NaN without probabilities
    reliability: Reliability | None  # None without probabilities
    reliability_at_shares: Reliability | None
    levels_off: float = math.nan  # of levels, as the next: mean distance of predicted and true rank
    kappa: float = math.nan  # Cohen's, with quadratic weights


@dataclass(frozen=True)
class RidgePathRecord:
    """How a fit in closed form came about: kernels, metrics, and the path of its first kernel."""

    ridges: NDArray[np.float64]  # (S,), one for each snapshot, the largest first
    searched: tuple[float, float]  # least and largest ridge among which one was chosen
    corners: NDArray[np.float64]  # (C, q), target points of the classes
    n_rows: int  # that found kernels and metrics, and that the path was fitted to
    is_sample: bool  # whether the model was fitted to more rows than these
    chosen: tuple[Setting, ...]  # what the model is the mean of; the first is the path's
    tried: tuple[Setting, ...]  # every kernel in every metric, at its best ridge
    metrics: dict[str, tuple[float, ...]]  # column -> its share of squared distances, by round


@dataclass(frozen=True)
class RunRecord:
    """What :func:`record_fit` has seen.

    S is the number of snapshots, C of classes, n of rows that were embedded at every snapshot, q
    the dimension of the embedding. Snapshots are of the first network of the ensemble, one for an
    epoch, or of the first kernel, one for a ridge; the test results are those of the fitted
    estimator.

    Attributes
    ----------
    model, data_name : str
        Name of the estimator's class, and what the caller calls the data.
    class_names : tuple of str
        In the order of ``classes_``.
    arguments, changed : dict and tuple of str
        Arguments of the estimator as text, and which of them are not the default.
    versions : dict
        Of what did the work.
    column_kinds, column_notes : dict of str to str
        Kind of each column in use, such as "number", and how it is written or encoded where there
        is something to say; empty if a transformer of the user's own reads the table.
    dropped_columns : dict of str to str
        Why other columns were left out.
    layer_sizes : tuple of int
        Inputs, hidden units, outputs; only inputs and outputs of a network of one's own and of
        kernels.
    n_members, n_train, n_test, n_features : int
        Networks in the ensemble, or kernels, rows learnt from, rows kept apart, columns of the
        table.
    seconds : float
        The fit took so long; recording is not counted.
    normalized, centred : bool
        Whether embeddings are on the unit sphere, and whether angles are taken between class means
        centred at their mean: for cross-entropy, whose embedding has no origin to speak of.
    target : array of shape (C, C) or None
        Target similarities; None if no embedding of so few dimensions has them.
    train_counts, test_counts : arrays of shape (C,)
        Rows of each class.
    loss_curve : array of shape (n_epochs_done,)
        Mean training loss of the first network in each epoch, from 1.
    epochs, n_epochs, kept : array of shape (S,), int, int
        Epoch of each snapshot, 0 before training; epochs planned; position of the snapshot whose
        network, or ridge, was kept. Kernels have no epochs.
    measures : dict of arrays of shape (S,)
        See ``MEASURES``; NaN where a measure does not exist.
    class_means, embeddings : arrays of shape (S, C, q) and (S, n, q)
        Mean embedding of the training rows of each class, and the embedding of single rows.
    labels, predicted, is_test : arrays of shape (n,)
        Class of each embedded row, what the fitted estimator says of a test row (else -1), and
        whether the row was kept apart.
    confusion : integer array of shape (C, C)
        All test rows: true classes in rows, predicted ones in columns.
    balanced_accuracy, accuracy, log_loss : float
        On all test rows; the last is NaN without probabilities.
    train_balanced_accuracy : float
        On the embedded training rows.
    prior : array of shape (C,)
        Class prior under which classes and probabilities are predicted.
    reliability, reliability_at_shares : Reliability or None
        Of test rows: of probabilities as they are answered, and brought from the prior to the
        class shares of the training rows; None without probabilities.
    levels_off, kappa : float
        Of levels, on all test rows: how many levels predictions are off on average, and Cohen's
        kappa with quadratic weights; NaN for classes without an order.
    column_gaps : dict of str to int
        Rows, learnt from or tested on, that lack a value of a column in use, where there are any.
    n_left_out : int
        Rows that the data had besides, without a class.
    member, n_networks : str and int
        What the model is made of, "network" or "kernel", and how many networks are beside kernels.
    importances : dict of str to float
        What share of the function goes with each column in use, if kernels have learnt that.
    left_out : Outcome or None
        On all training rows, by fits of the kernels without them; None if there were none.
    ridge_path : RidgePathRecord or None
        Of kernels.
    why : Why or None
        What columns add to predictions of test rows; None if heads only vote.
    decisions : DecisionRecord or None
        Thresholds and costs; None without probabilities.
    worst : WorstRows or None
        Test rows whose class had the least probability; None without probabilities.
    """

    model: str
    data_name: str
    class_names: tuple[str, ...]
    arguments: dict[str, str]
    changed: tuple[str, ...]
    versions: dict[str, str]
    column_kinds: dict[str, str]
    column_notes: dict[str, str]
    dropped_columns: dict[str, str]
    layer_sizes: tuple[int, ...]
    n_members: int
    n_train: int
    n_test: int
    n_features: int
    seconds: float
    normalized: bool
    centred: bool
    target: NDArray[np.float64] | None
    train_counts: NDArray[np.int64]
    test_counts: NDArray[np.int64]
    loss_curve: NDArray[np.float64]
    epochs: NDArray[np.int64]
    n_epochs: int
    kept: int
    measures: dict[str, NDArray[np.float64]]
    class_means: NDArray[np.float64]
    embeddings: NDArray[np.float32]
    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    is_test: NDArray[np.bool_]
    confusion: NDArray[np.int64]
    balanced_accuracy: float
    accuracy: float
    train_balanced_accuracy: float
    log_loss: float
    prior: NDArray[np.float64]
    reliability: Reliability | None
    reliability_at_shares: Reliability | None
    levels_off: float = math.nan
    kappa: float = math.nan
    column_gaps: dict[str, int] = field(default_factory=dict)
    n_left_out: int = 0
    member: str = "network"
    n_networks: int = 0
    importances: dict[str, float] = field(default_factory=dict)
    left_out: Outcome | None = None
    ridge_path: RidgePathRecord | None = None
    why: Why | None = None
    decisions: DecisionRecord | None = None
    worst: WorstRows | None = None

    @property
    def n_snapshots(self) -> int:
        """Number of snapshots S; 0 if the fit was not watched."""
        return len(self.embeddings)

    @property
    def n_classes(self) -> int:
        """Number of classes C."""
        return len(self.class_names)

    @property
    def embedding_dim(self) -> int:
        """Dimension q of the embedding."""
        return int(self.embeddings.shape[2])

    @property
    def n_epochs_done(self) -> int:
        """Epochs that the first network trained."""
        return len(self.loss_curve)

    def angles(self, snapshot: int) -> NDArray[np.float64]:
        """Return the angles between the class means in degrees, (C, C); NaN on the diagonal."""
        means = self.class_means[snapshot]
        if self.centred:
            means = means - means.mean(axis=0)
        return _degrees(means @ means.T)

    def target_angles(self) -> NDArray[np.float64] | None:
        """Return the angles that the target similarities ask for, (C, C)."""
        return None if self.target is None else _degrees(self.target)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the embeddings, in what JSON knows: NaN becomes None.

        Numbers keep six significant digits.
        """
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in LARGE}
        angles = self.angles(self.kept) if self.n_snapshots else None
        known |= {"angles": angles, "target_angles": self.target_angles()}
        return dict(json_value(known, number=rounded))


@dataclass(frozen=True)
class Covered:
    """Test rows whose intervals have a like width, and how many of them hold the truth."""

    narrowest: float
    widest: float
    count: int
    share: float


@dataclass(frozen=True)
class NumberOutcome:
    """How predictions of some rows compare with the truth."""

    true: NDArray[np.float64]  # (n,)
    predicted: NDArray[np.float64]  # (n,)
    rmse: float
    mae: float
    r2: float


@dataclass(frozen=True)
class NumbersRecord:
    """What :func:`record_fit` has seen of a regressor.

    Attributes
    ----------
    model, data_name, arguments, changed, versions, column_kinds, column_notes, dropped_columns
        As in :class:`RunRecord`; so are the numbers of rows, columns and kernels, gaps,
        importances, and why.
    test : NumberOutcome
        Of rows that were kept apart.
    left_out : NumberOutcome
        Of the training rows, each by fits without it.
    lower, upper : arrays of shape (n_test,)
        Ends of the intervals of 90 % of the test rows.
    coverage : dict of float to (float, float)
        Share of the truth that intervals are asked to hold: what they hold, and their mean width.
    by_width : tuple of Covered
        The same of the intervals of 90 %, from the narrowest to the widest.
    guessing_rmse, guessing_mae : float
        Of the test rows, if the mean of the training rows were predicted.
    is_better : bool
        Whether test rows can tell the predictions from that, by two standard errors.
    power : float
        To which numbers were raised before they were learnt (Yeo and Johnson's); 1 is as they are.
    is_sample : bool
        Whether kernels were found by some of the rows, ``n_rows``.
    chosen, tried, metrics
        Kernels, as in :class:`RidgePathRecord`.
    worst : WorstRows or None
        Test rows that predictions are farthest from.
    """

    model: str
    data_name: str
    arguments: dict[str, str]
    changed: tuple[str, ...]
    versions: dict[str, str]
    column_kinds: dict[str, str]
    column_notes: dict[str, str]
    dropped_columns: dict[str, str]
    n_train: int
    n_test: int
    n_features: int
    layer_sizes: tuple[int, int]
    n_members: int
    seconds: float
    test: NumberOutcome
    left_out: NumberOutcome
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    coverage: dict[float, tuple[float, float]]
    by_width: tuple[Covered, ...]
    guessing_rmse: float
    guessing_mae: float
    is_better: bool
    power: float
    n_rows: int
    is_sample: bool
    chosen: tuple[Setting, ...]
    tried: tuple[Setting, ...]
    metrics: dict[str, tuple[float, ...]]
    column_gaps: dict[str, int] = field(default_factory=dict)
    n_left_out: int = 0
    importances: dict[str, float] = field(default_factory=dict)
    why: Why | None = None
    worst: WorstRows | None = None

    member, n_networks = "kernel", 0

    def to_dict(self) -> dict[str, Any]:
        """Return everything in what JSON knows: NaN becomes None, numbers keep six digits."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}
        known["coverage"] = {f"{asked:g}": found for asked, found in self.coverage.items()}
        return dict(json_value(known, number=rounded))


def rounded(value: float) -> float | None:
    """Return a number with six significant digits, which is what pages and JSON get."""
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _degrees(gram: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the angles of a Gram matrix in degrees; NaN where a vector has no direction."""
    norms = np.sqrt(np.diagonal(gram))
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = gram / np.outer(norms, norms)
    angles = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    np.fill_diagonal(angles, np.nan)
    return np.asarray(angles)


def about(estimator: Any, X: Any) -> dict[str, Any]:
    """Return what a fitted estimator says of itself and of the columns of a table."""
    arguments, changed = arguments_of(estimator)
    columns = columns_of(estimator.preprocessor_)
    encoder, importances = estimator.model_.encoder, {}
    if hasattr(estimator, "feature_importances_"):
        importances = estimator.model_.column_importances()
    return {
        "arguments": arguments,
        "changed": changed,
        "versions": versions(),
        **columns,
        "column_gaps": encoder.n_gaps(X) if isinstance(encoder, TableEncoder) else {},
        "importances": {
            name: share
            for name, share in importances.items()
            if name not in columns["dropped_columns"]
        },
    }


def arguments_of(estimator: Any) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the arguments as text, and the names of those that are not the default."""
    parameters = inspect.signature(type(estimator)).parameters
    given = {n: v for n, v in estimator.get_params(deep=False).items() if n not in NOT_RECORDED}
    text = {name: _text(value) for name, value in given.items()}
    return text, tuple(name for name in text if text[name] != _text(parameters[name].default))


def _text(value: Any) -> str:
    if inspect.isroutine(value) or inspect.isclass(value):
        return str(value.__name__)  # its repr has a memory address
    return textwrap.shorten(repr(value), LONGEST_ARGUMENT, placeholder=" …")


def columns_of(preprocessor: Any) -> dict[str, dict[str, str]]:
    """Say how a fitted preprocessor reads each column, and why it leaves others out.

    Of a transformer of the user's own nothing is known. Notes are how a column is written or
    encoded, where there is something to say.
    """
    encoder = getattr(preprocessor, "encoder_", None)
    kinds = dict(encoder.kinds) if isinstance(encoder, TableEncoder | FloatEncoder) else {}
    notes, dropped = {}, {}
    if isinstance(encoder, TableEncoder):
        notes = {name: note for name in kinds if (note := _note(encoder, name))}
        dropped = dict(encoder.dropped_columns)
    return {"column_kinds": kinds, "column_notes": notes, "dropped_columns": dropped}


def _note(encoder: TableEncoder, name: str) -> str:
    """Say how a column is written, or how many values it has."""
    one_hot = encoder.one_hots.get(name)
    if one_hot is not None:
        few = " and the rarer ones together" if one_hot.has_infrequent else ""
        return f"{len(one_hot.categories)} values{few}" if one_hot.categories else "only its gaps"
    if name in encoder.texts:
        return "by parts of its words"
    return how_written(encoder.columns[name])


def how_written(column: ColumnKind) -> str:
    """Say how numbers or dates are written, where there is something to say."""
    parts = [ORDERS.get(column.form[:5], f"written as {column.form}")] if column.form else []
    if column.lenient:
        parts.append("other text is a gap")
    return ", ".join(parts)


def versions() -> dict[str, str]:
    """Return the versions of what did the work."""
    packages = {name: version(name) for name in ("numpy", "scikit-learn", "torch")}
    return {"cocoloss": cocoloss.__version__, "Python": platform.python_version()} | packages
