"""Predictions of the rows that models were tested on: measured by name, kept, measured again.

A measure sees predictions and never a model. So a measure that is chosen later can be computed from
kept predictions, and is the number that the run itself would have recorded.
"""

import inspect
import json
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from cocoloss.benchmark.evaluation import auc, log_loss
from cocoloss.benchmark.numbers_and_levels import weighted_kappa
from cocoloss.benchmark.spec import what_there_is
from cocoloss.benchmark.store import Store, chosen_variants
from cocoloss.benchmark.tasks import OK, digest_of, load_place
from cocoloss.exceptions import CoCoError
from cocoloss.files import write_whole

if TYPE_CHECKING:
    import pyarrow as pa

FORM = 1  # of the files
PROBABILITY, DECISION = "p", "d"  # what scores are; begins the names of their columns
LONGEST = 60  # letters of a name within that of a file


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model predicts for the test rows of a fold."""

    fold: int
    rows: NDArray[np.intp]  # (n,), positions in the table
    y: NDArray[Any]  # (n,), numbers; of classes and levels their numbers from 0
    predicted: NDArray[Any]  # (n,), likewise
    classes: tuple[str, ...] = ()  # the names of the classes, or of the levels
    scores: NDArray[np.float64] | None = None  # (n, C), larger for a class that is more probable
    scores_are: str = ""  # PROBABILITY or DECISION, if there are any
    task: str = "classes"  # or "levels", "numbers"


def predictions_of(
    model: Any,
    X: Any,
    y: NDArray[Any],
    *,
    fold: int,
    rows: NDArray[np.intp],
    task: str,
    classes: NDArray[Any],
) -> Predictions:
    """Ask a fitted model about rows; ``classes`` are all of the table, sorted; none of numbers."""
    predicted = np.asarray(model.predict(X))
    if task == "numbers":
        return Predictions(fold, rows, y, predicted, task=task)
    known = tuple(str(each) for each in classes.tolist())
    if task == "classes":  # levels have their ranks already, a rounded number may be beyond them
        y, predicted = (np.searchsorted(classes, each).astype(np.int64) for each in (y, predicted))
    return Predictions(fold, rows, y, predicted, known, *class_scores(model, X, classes), task)


def class_scores(
    model: Any, X: Any, classes: NDArray[Any]
) -> tuple[NDArray[np.float64] | None, str]:
    """Return a column for each class, and what they are; none if a model only names classes.

    A class that the model has not seen is impossible, or below all others.
    """
    for name, what in (("predict_proba", PROBABILITY), ("decision_function", DECISION)):
        if hasattr(model, name):
            found = np.asarray(getattr(model, name)(X), dtype=np.float64)
            found = np.stack([-found, found], axis=1) if found.ndim == 1 else found
            unseen = 0.0 if what == PROBABILITY else found.min(initial=0.0) - 1
            scores = np.full((len(found), len(classes)), unseen)
            scores[:, np.searchsorted(classes, model.classes_)] = found
            return scores, what
    return None, ""


@dataclass(frozen=True)
class Measure:
    """A number that says how good predictions are."""

    name: str
    of: Callable[[Predictions], float]
    higher_is_better: bool = True

    def take(self, predictions: Predictions) -> float | None:
        """Return the number; None if it needs probabilities, and the model gives none.

        NaN where it does not exist, such as the area under a curve where all rows have one class.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of classes that a fold has no row of
                value = self.of(predictions)
            return float(value)
        except CoCoError:
            raise
        except Exception as error:
            if isinstance(error, AttributeError) and predictions.scores_are != PROBABILITY:
                return None  # in scikit-learn's own words: it has no predict_proba
            if predictions.classes and len(np.unique(predictions.y)) < len(predictions.classes):
                return float("nan")
            raise CoCoError(
                f"the measure {self.name!r} failed: {type(error).__name__}: {error}"
            ) from error


def _area(predictions: Predictions) -> float:
    """Return the area under the ROC curve; of several classes the mean of each against the rest."""
    if predictions.scores is None:
        raise AttributeError("no probabilities")
    if not predictions.classes:
        raise CoCoError("the area under a ROC curve is one of classes; numbers have none")
    return auc(predictions.y, predictions.scores, np.arange(len(predictions.classes)))


def _f1(predictions: Predictions) -> float:
    """Return the F1 of the second of two classes; of several classes the mean of all."""
    average = "binary" if len(predictions.classes) == 2 else "macro"
    return float(
        metrics.f1_score(predictions.y, predictions.predicted, average=average, zero_division=0)
    )


def _log_loss(predictions: Predictions) -> float:
    if predictions.scores is None or predictions.scores_are != PROBABILITY:
        raise AttributeError("no probabilities")
    return log_loss(predictions.y, predictions.scores, np.arange(len(predictions.classes)))


BUILT_IN = {
    measure.name: measure
    for measure in (
        Measure("auc", _area),
        Measure("roc_auc", _area),  # scikit-learn's does not work for several classes
        Measure("f1", _f1),  # likewise
        Measure("log_loss", _log_loss, higher_is_better=False),
        Measure("rmse", lambda s: metrics.root_mean_squared_error(s.y, s.predicted), False),
        Measure("mae", lambda s: metrics.mean_absolute_error(s.y, s.predicted), False),
        Measure("kappa", lambda s: weighted_kappa(s.y, s.predicted)),
    )
}


class _Replay(BaseEstimator):
    """A model that repeats kept predictions; rows are their positions in them."""

    def __init__(self, predictions: Predictions) -> None:
        self.predictions = predictions

    def predict(self, X: NDArray[np.intp]) -> Any:
        return self.predictions.predicted[X[:, 0]]


class _ReplayNumbers(RegressorMixin, _Replay):
    pass


class _ReplayClasses(ClassifierMixin, _Replay):
    def __init__(self, predictions: Predictions) -> None:
        super().__init__(predictions)
        self.classes_ = np.arange(len(predictions.classes))
        scores: Any = predictions.scores

        # Scikit-learn looks at what there is, and at what that is called.
        def predict_proba(X: NDArray[np.intp]) -> Any:
            return scores[X[:, 0]]

        def decision_function(X: NDArray[np.intp]) -> Any:
            return (scores[:, 1] if scores.shape[1] == 2 else scores)[X[:, 0]]

        if predictions.scores_are == PROBABILITY:
            self.predict_proba = predict_proba
        elif predictions.scores_are == DECISION:
            self.decision_function = decision_function


def _scored(scorer: Callable[..., Any], predictions: Predictions) -> float:
    """Call what is called with a model, rows and the truth."""
    model = (_ReplayClasses if predictions.classes else _ReplayNumbers)(predictions)
    return float(scorer(model, np.arange(len(predictions.y))[:, None], predictions.y))


@cache  # asked for in every task
def find_measure(name: str) -> Measure:
    """Return a measure: one of ours, a scorer of scikit-learn, or "package.module:function".

    A function of one's own is called as a scorer is, with model, rows and truth, if it needs three
    arguments, and as a metric is, with truth and predictions, if it needs two. Larger is better
    unless it has the attribute ``greater_is_better = False``.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    if ":" in name:
        return _own_measure(name)
    known = metrics.get_scorer_names()
    if name not in known:
        every = dict.fromkeys([*BUILT_IN, *known])  # some are both
        raise CoCoError(
            f"there is no measure {name!r}{what_there_is(name, every)} (one of your own is given "
            f"as package.module:function)"
        )
    return Measure(name, partial(_scored, metrics.get_scorer(name)))


def _own_measure(place: str) -> Measure:
    function = load_place(f"measure {place!r}", place)
    if not callable(function):
        raise CoCoError(f"measure {place!r} must be a function, not {type(function).__name__}")
    higher = bool(getattr(function, "greater_is_better", True))
    if hasattr(function, "_score_func"):  # what make_scorer makes
        return Measure(place, partial(_scored, function))
    needed = [
        each
        for each in inspect.signature(function).parameters.values()
        if each.default is each.empty and each.kind in (0, 1)  # by position
    ]
    if len(needed) == 3:
        return Measure(place, partial(_scored, function), higher)
    if len(needed) == 2:
        return Measure(
            place, lambda predictions: function(predictions.y, predictions.predicted), higher
        )
    raise CoCoError(
        f"measure {place!r} needs {len(needed)} arguments; a metric takes two, truth and "
        f"predictions, and a scorer three: model, rows and truth"
    )


def check_measures(names: Sequence[str], task: str) -> None:
    """Refuse what is no measure, or none of such targets, before anything is run."""
    y = np.array([0, 1, 0, 1])
    scores = np.array([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.4, 0.6]])
    predictions = Predictions(0, np.arange(4), y, y, ("a", "b"), scores, PROBABILITY, task)
    if task == "numbers":
        y = np.array([1.0, 2.0, 4.0, 5.0])
        predictions = Predictions(0, np.arange(4), y, y[::-1] + 0.5, task=task)
    for name in names:
        if find_measure(name).take(predictions) is None:
            raise CoCoError(f"the measure {name!r} needs probabilities, which {task} have not")
    if task == "classes":
        _refuse_order(names)


def _refuse_order(names: Sequence[str]) -> None:
    """Refuse measures of numbers or levels for classes; one's own may be of this numbering."""
    for name in names:
        if ":" not in name and _depends_on_order(find_measure(name)):
            raise CoCoError(
                f"the measure {name!r} is one of numbers or levels: for classes it would depend on "
                f"how they are numbered; use balanced_accuracy, log_loss, f1 or auc"
            )


@cache  # asked for in every task
def _depends_on_order(measure: Measure) -> bool:
    """Return whether a measure changes when three classes change places."""
    y, predicted = np.array([0, 0, 1, 2]), np.array([2, 2, 1, 2])
    scores = np.array([[0.1, 0.2, 0.7], [0.2, 0.1, 0.7], [0.3, 0.6, 0.1], [0.3, 0.2, 0.5]])
    found: list[float] = []
    for order in ([0, 1, 2], [1, 0, 2]):
        to = np.array(order)  # its own inverse
        same = Predictions(
            0, np.arange(len(y)), to[y], to[predicted], tuple("abc"), scores[:, order], PROBABILITY
        )
        try:
            value = measure.take(same)
        except CoCoError:  # one of two classes
            return False
        found.append(np.nan if value is None else value)
    return not np.allclose(found[0], found[1], equal_nan=True)


def measured(predictions: Predictions, names: Sequence[str]) -> dict[str, float]:
    """Return measures by name, without those that need more than was predicted."""
    found = {name: find_measure(name).take(predictions) for name in names}
    return {name: value for name, value in found.items() if value is not None}


# Files: one per task, in a folder beside the store.


def predictions_folder(store: Store, given: str | os.PathLike[str] | None = None) -> Path:
    """Return where predictions of a store are kept: NAME.predictions beside NAME.sqlite."""
    if given is not None:
        return Path(given)
    if not store.database.is_file:
        raise CoCoError(
            f"{store.name} is no file that predictions could lie beside; say where by "
            f"--predictions FOLDER"
        )
    return Path(store.name).with_suffix(".predictions")


def open_folder(folder: Path) -> Path:
    """Make a folder for predictions if it is not there; say what lacks to write to it."""
    _load_pyarrow()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CoCoError(
            f"cannot keep predictions in {folder}: {error.strerror or error}; choose another "
            f"place by --predictions FOLDER"
        ) from error
    return folder


def file_of(folder: Path, key: str) -> Path:
    """Return the file of a task's predictions."""
    _, dataset, model, *_ = key.split("/")
    names = [re.sub(r"[^\w.-]+", "-", name)[:LONGEST] for name in (dataset, model)]
    return folder / f"{'-'.join(names)}-{digest_of(key)[:16]}.parquet"


def keep(folder: Path, key: str, predictions: Sequence[Predictions]) -> None:
    """Write the predictions of a task, one row each, as a whole file or not at all."""
    pa, pq = _load_pyarrow()
    first = predictions[0]
    columns: dict[str, Any] = {
        "fold": np.repeat(
            [each.fold for each in predictions], [len(each.rows) for each in predictions]
        ),
        "row": np.concatenate([each.rows for each in predictions]),
    }
    for name in ("y", "predicted"):
        values = np.concatenate([getattr(each, name) for each in predictions])
        if first.task == "classes":  # by their names, which fill little once they are numbered
            names = np.array(first.classes, dtype=object)
            values = pa.DictionaryArray.from_arrays(pa.array(values), pa.array(names))
        columns[name] = values
    if first.scores is not None:
        scores = np.concatenate([each.scores for each in predictions if each.scores is not None])
        for place, name in enumerate(first.classes):
            columns[f"{first.scores_are}({name})"] = scores[:, place]
    about = {"form": FORM, "key": key, "task": first.task, "classes": first.classes}
    about["scores_are"] = first.scores_are
    table = pa.table(columns).replace_schema_metadata({"cocoloss": json.dumps(about)})
    with write_whole(file_of(folder, key)) as aside:
        pq.write_table(table, aside, compression="zstd")


def kept(folder: Path, key: str) -> list[Predictions] | None:
    """Read the predictions of a task, a fold each; None if they were not kept."""
    _, pq = _load_pyarrow()
    path = file_of(folder, key)
    if not path.exists():
        return None
    try:
        table = pq.read_table(path)
        about = json.loads(table.schema.metadata[b"cocoloss"])
        if about["form"] != FORM:
            raise CoCoError(f"{path} has the form {about['form']}, expected {FORM}; run it again")
        return _folds_of(table, about)
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())
        raise CoCoError(f"{path} is damaged: {reason}; remove it, and do without") from error


def _folds_of(table: "pa.Table", about: Mapping[str, Any]) -> list[Predictions]:
    classes = tuple(about["classes"])
    values = {name: table[name].to_pandas().to_numpy() for name in ("fold", "row")}
    code_of = {name: code for code, name in enumerate(classes)}
    for name in ("y", "predicted"):
        column = table[name].to_pylist() if about["task"] == "classes" else table[name].to_numpy()
        is_named = about["task"] == "classes"
        values[name] = np.array([code_of[each] for each in column]) if is_named else column
    scores = None
    if about["scores_are"]:
        names = [f"{about['scores_are']}({name})" for name in classes]
        scores = np.stack([table[name].to_numpy() for name in names], axis=1)
    found = []
    for fold in np.unique(values["fold"]):
        inside = values["fold"] == fold
        rows, y, predicted = (values[name][inside] for name in ("row", "y", "predicted"))
        of_fold = None if scores is None else scores[inside]
        answer = (int(fold), rows, y, predicted, classes, of_fold)
        found.append(Predictions(*answer, about["scores_are"], about["task"]))
    return found


def _load_pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError as error:
        raise CoCoError(
            "predictions are kept as Parquet, which needs pyarrow; pip install 'cocoloss[parquet]'"
        ) from error
    return pa, parquet


class Added(NamedTuple):
    """What measuring kept predictions came to."""

    tasks: int  # that have the measures now
    folds: int
    without: int  # finished tasks whose predictions were not kept
    lacking: tuple[str, ...]  # models whose predictions some measure needs more of
    means: Mapping[str, Mapping[str, float]]  # measure -> model -> mean over folds


def add_measures(
    store: Store, folder: Path, measures: Sequence[str], names: Sequence[str] = ()
) -> Added:
    """Take measures of all predictions that were kept, and write them into the store's rows.

    Parameters
    ----------
    store : Store
        Open for writing.
    folder : path
        Where the predictions are; see :func:`predictions_folder`.
    measures : sequence of str
        As in a spec.
    names : sequence of str
        Only benchmarks of these names, NAME or NAME@HASH; all if empty.
    """
    for name in measures:
        find_measure(name)
    changed: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {}
    by_model: dict[str, dict[str, list[float]]] = {name: {} for name in measures}
    folds = without = 0
    lacking = set()
    columns = ("key", "model", "status", "measures", "rows")
    for spec_hash in chosen_variants(store.runs(), names, store.name):
        for task in store.rows(spec_hash=spec_hash, tuning=False, columns=columns):
            if task["status"] != OK:
                continue
            predictions = kept(folder, task["key"])
            if predictions is None:
                without += 1
                continue
            if predictions[0].task == "classes":
                _refuse_order(measures)
            found = {each.fold: measured(each, measures) for each in predictions}
            rows = [{**row, **found.get(row["fold"], {})} for row in task["rows"]]
            for name in measures:
                values = [of_fold[name] for of_fold in found.values() if name in of_fold]
                if values:
                    task["measures"][name] = float(np.mean(values))
                    by_model[name].setdefault(task["model"], []).extend(values)
                else:
                    lacking.add(task["model"])
            folds += len(found)
            changed[task["key"]] = (dict(task["measures"]), rows)
    if not changed:
        raise CoCoError(
            f"{folder} holds no predictions of what is in {store.name}; a spec with "
            f"keep_predictions = true keeps those of tasks that run from then on"
        )
    store.amend(changed)
    means = {
        name: {model: float(np.nanmean(values)) for model, values in models.items()}
        for name, models in by_model.items()
    }
    return Added(len(changed), folds, without, tuple(sorted(lacking)), means)
