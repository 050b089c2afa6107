"""An experiment, and what passes between it and the runner: units, tasks with their keys, results.

An experiment knows what to compute and nothing of workers or databases; the runner knows those and
nothing of what a task computes. What passes is plain data that pickles small.

An experiment is a module that is named by the ``kind`` of a spec. "accuracy", "regression" and
"ordinal" are built in. Any other kind is a Python file ``<kind>.py`` beside the spec, in a folder
that is given, or in the current one; or a module that is installed, such as "package.module". What
such a module has is listed by :class:`Experiment`.
"""

import hashlib
import importlib
import json
import math
import os
import platform
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import cocoloss
from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import dump_json, json_value

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec

PACKAGES = ("cocoloss", "numpy", "scipy", "scikit-learn", "pandas", "torch", "optuna")
SOURCE = "cocoloss source"  # among the versions


@dataclass(frozen=True)
class Environment:
    """Where something ran: the machine, and the versions of what decides its numbers."""

    machine: dict[str, Any]
    versions: dict[str, str]

    @property
    def digest(self) -> str:
        """A name for it."""
        text = dump_json([self.machine, self.versions])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def environment() -> Environment:
    """Describe this process."""
    import psutil  # type: ignore[import-untyped]  # noqa: PLC0415 - comes with dask

    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    source = source_digest(Path(cocoloss.__file__).parent)
    versions |= {SOURCE: source} if source else {}
    machine = {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory": psutil.virtual_memory().total,
    }
    return Environment(machine, versions)


def source_digest(package: Path) -> str:
    """Return a name for the source of a package: its version says little between two releases.

    Counted are the names and contents of the Python files in its folder; it is empty if there are
    none, as in a package that is imported from an archive.
    """
    digest = hashlib.sha256()
    files = sorted(package.rglob("*.py"))
    for file in files:
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12] if files else ""


OK, FAILED, TIMEOUT = "ok", "failed", "timeout"  # how a task ended
OPEN = "open"  # a unit that has not ended; others are OK or FAILED


@dataclass(frozen=True)
class TableInfo:
    """What is known of a table before it is used."""

    name: str
    n_rows: int
    n_columns: int  # without the target
    n_classes: int  # 0 of numbers
    fingerprint: str  # of the content: the same table has the same one, wherever it lies
    class_ratio: float = math.nan  # rows of the largest class over rows of the smallest, if known
    categorical_share: float = math.nan  # of the columns, if known
    n_folds: int = 0  # outer ones that are given; 0 if the spec says how many


@dataclass(frozen=True)
class Task:
    """One computation that runs on one worker: a pure function of its key.

    Experiments make tasks by :meth:`Unit.task`.

    Examples
    --------
    >>> task = Task("accuracy", "iris", "coco", "trial", "3", {"epochs": 5})
    >>> task.key
    'accuracy/iris/coco/trial/3/71d541edbc4f9f32'
    >>> task.seed
    383056602
    """

    experiment: str
    dataset: str
    model: str
    stage: str  # such as "trial" or "fold"
    part: str = ""  # which one of its stage, such as "3" or "0/17"
    params: Mapping[str, Any] = field(default_factory=dict)  # plain values that JSON has
    # Whether other params make another key. A trial is found by its number alone, since a study
    # that goes on must find what the number was tried with.
    params_in_key: bool = True
    context: str = ""  # digest of the spec, the table's content, the user's model
    root: int = 0  # the spec's seed
    draws_as: str = ""  # stands for the model in random numbers: those with one name draw the same

    @property
    def key(self) -> str:
        """The name under which the result is kept: readable, and unlike that of any other task."""
        params = self.params if self.params_in_key else {}
        digest = digest_of([self.context, self.root, params])
        return "/".join([*self._names(self.model), digest[:16]])

    @property
    def seed(self) -> int:
        """Random numbers of the task, from its names: not from order, time or machine."""
        return seed_of(*self._names(self.draws_as or self.model), str(self.root))

    def _names(self, model: str) -> list[str]:
        names = [self.experiment, self.dataset, model, self.stage]
        # A part may have slashes of its own; it stands last.
        safe = [name.replace("%", "%25").replace("/", "%2F") for name in names]
        return [*safe, self.part] if self.part else safe


@dataclass(frozen=True)
class Unit:
    """All that is computed for one model on one table, in steps that may depend on each other."""

    experiment: str
    dataset: str
    model: str
    info: TableInfo
    tasks: int  # how many there will be
    seconds: float  # roughly, of all its tasks on one core
    context: str = ""  # this and the following as of a task
    root: int = 0
    draws_as: str = ""

    @classmethod
    def of(
        cls,
        spec: "Spec",
        info: TableInfo,
        model: str,
        *,
        tasks: int,
        seconds: float,
        version: str = "",
    ) -> "Unit":
        """Return the unit of a model and a table under a spec; a ``version`` has other keys."""
        made = spec.models.own.get(model, version)
        context = digest_of([spec.hash, info.fingerprint, made])
        seed = spec.folds.seed
        return cls(spec.kind, info.name, model, info, tasks, float(seconds), context, seed)

    @property
    def key(self) -> str:
        """The name under which the runner remembers that the unit is done."""
        return self.task("unit").key

    def task(
        self,
        stage: str,
        part: str | int = "",
        params: Mapping[str, Any] | None = None,
        *,
        params_in_key: bool = True,
    ) -> Task:
        """Return a task of this unit.

        Examples
        --------
        >>> unit = Unit("accuracy", "iris", "rf", TableInfo("iris", 150, 4, 3, "ab12"), 3, 1.5)
        >>> unit.task("fold", 2).key
        'accuracy/iris/rf/fold/2/96e91884d6899379'
        """
        return Task(
            self.experiment,
            self.dataset,
            self.model,
            stage,
            str(part),
            dict(params or {}),
            params_in_key,
            self.context,
            self.root,
            self.draws_as,
        )


@dataclass(frozen=True)
class Result:
    """What a task found, or why it found nothing; status and error are set by the runner."""

    measures: Mapping[str, float] = field(default_factory=dict)  # such as a trial's mean score
    # One per fold, with the key "fold" and its measures: what the report is made of.
    rows: list[dict[str, Any]] = field(default_factory=list)
    params: Mapping[str, Any] = field(default_factory=dict)  # what the task ran with
    extra: Mapping[str, Any] = field(default_factory=dict)  # anything small that JSON has
    status: str = OK
    error: str = ""  # kind and message in one line
    # Of each fold, cocoloss.benchmark.predictions.Predictions, if a spec keeps them: in files, not
    # in the store.
    predictions: Sequence[Any] = ()

    @property
    def ok(self) -> bool:
        """Whether there are numbers."""
        return self.status == OK


@dataclass(frozen=True)
class Finished:
    """How a task ended."""

    result: Result
    seconds: float  # from start to end on the worker, imports before it not counted
    # Bytes by which the worker's resident memory rose above where it stood when the task began,
    # looked at twenty times a second.
    peak_memory: int
    environment: Environment
    traceback: str = ""  # of a failure
    attempt: int = 1  # how often it was started


def seed_of(*names: object) -> int:
    """Return a seed of 31 bits that follows from names alone."""
    return int(digest_of([str(name) for name in names])[:8], 16) & 0x7FFFFFFF


def digest_of(value: Any) -> str:
    """Return the SHA-256 of a value that JSON has, the same on every machine."""
    try:
        text = json.dumps(json_value(value), sort_keys=True, separators=(",", ":"))
    except TypeError as error:
        raise CoCoError(
            f"what names a task must be numbers, texts, lists and dicts: {error}; "
            f"it was {str(value)[:200]}"
        ) from error
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class BuiltIn:
    """A kind of experiment that comes with the package: where it is, and what reports say."""

    module: str
    about: str  # whom a benchmark compares
    task: str = "classes"  # what the targets are
    measure: str = "balanced_accuracy"  # that ranks models
    higher_is_better: bool = True
    tunes: bool = True  # or models have their usual settings, unless the spec says otherwise


_PROTOCOL = "cocoloss.benchmark.accuracy"
EXPERIMENTS = {
    "accuracy": BuiltIn(_PROTOCOL, "Models"),
    "regression": BuiltIn(
        _PROTOCOL,
        "Models of numbers",
        "numbers",
        "relative_rmse",
        higher_is_better=False,
        tunes=False,
    ),
    "ordinal": BuiltIn(
        _PROTOCOL,
        "Models of ordered levels",
        "levels",
        "mae",
        higher_is_better=False,
        tunes=False,
    ),
}
NEEDED = ("plan", "drive", "run")


class Experiment(Protocol):
    """What the runner asks of an experiment's module.

    It may have more: ``check_options(options)`` refuses options of the spec; ``USES_FOLDS`` names
    the folds that a table must have rows for, if not both "outer" and "inner"; ``TAKES_ALL_KEYS``
    says that it honours measures, kept predictions and every kind of folds; and for reports
    ``ABOUT``, a sentence, ``analyse(findings, missing)`` and ``blocks(findings, analysis,
    prefix)``.
    """

    def plan(self, spec: "Spec", infos: Sequence[TableInfo]) -> list[Unit]:
        """List the units of work, without having seen the tables."""

    def drive(
        self, unit: Unit, spec: "Spec", parallel: int
    ) -> Generator[list[Task], list[Result], None]:
        """Yield tasks that may run side by side; be sent their results once all are there."""

    def run(self, task: Task, table: Any, spec: "Spec") -> Result:
        """Compute one task: no disk, no globals, no randomness but the task's seed."""


def experiment_of(spec: "Spec") -> Experiment:
    """Return the experiment of a spec; see :func:`load_experiment`."""
    with spec.at("kind"):
        return load_experiment(spec.kind, spec.experiments)


def properties_of(kind: str) -> BuiltIn:
    """Return what is known of a kind of experiment; one of the user's own is like "accuracy"."""
    return EXPERIMENTS.get(kind, EXPERIMENTS["accuracy"])


def load_experiment(kind: str, folders: Iterable[Path] = ()) -> Experiment:
    """Return the module of a kind of experiment; a file is looked for here as well, last."""
    file = None if kind in EXPERIMENTS else _file_of(kind, folders)
    if file is None and kind not in EXPERIMENTS and not _is_importable(kind):
        raise CoCoError(
            f"there is no experiment {kind!r}{did_you_mean(kind, EXPERIMENTS)}; if it is a file of "
            f"your own, {kind}.py, give its folder by --experiments FOLDER"
        )
    try:
        named = EXPERIMENTS[kind].module if kind in EXPERIMENTS else kind
        module = importlib.import_module(named) if file is None else _import_file(kind, file)
    except CoCoError:
        raise
    except (Exception, SystemExit) as error:  # the module may be the user's
        raise CoCoError(
            f"experiment {kind!r} fails on import: {type(error).__name__}: {error}"
        ) from error
    lacking = [name for name in NEEDED if not hasattr(module, name)]
    if lacking:
        raise CoCoError(
            f"{module.__file__ or kind} is no experiment: it has no {' and no '.join(lacking)}"
        )
    return module


def experiment_files(spec: "Spec") -> list[str]:
    """Return the file of an experiment of the user's own, and what it imports from its folder.

    Workers elsewhere have installed packages, but not these. What is imported comes first.
    """
    module: Any = experiment_of(spec)
    if spec.kind in EXPERIMENTS or _file_of(spec.kind, spec.experiments) is None:
        return []
    folder = Path(module.__file__).parent
    files = [getattr(other, "__file__", None) for other in list(sys.modules.values())]
    beside = {Path(file).resolve() for file in files if file and Path(file).parent == folder}
    own = Path(module.__file__)
    return [*sorted(map(str, beside - {own})), str(own)]


def import_from_here_too() -> None:
    """Let modules of the current folder be found: a command, unlike a script, has no such place."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


def load_place(what: str, place: str) -> Any:
    """Return what lies at a place, ``package.module:name``; messages begin with ``what`` it is."""
    module_name, _, path = place.partition(":")
    if not (module_name and path):
        raise CoCoError(f"{what} must have the form package.module:name")
    import_from_here_too()
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise CoCoError(
            f"{what}: there is no module {error.name!r}; install it, or start where it lies"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise CoCoError(f"{what}: {module_name} has no {path!r}; check the spelling")
        found = getattr(found, part)
    return found


def check_options(experiment: Experiment, kind: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the experiment does not know."""
    check = getattr(experiment, "check_options", None)
    if check is not None:
        check(dict(options))
    elif options:
        got = ", ".join(sorted(options))
        raise CoCoError(f"options: an experiment of kind {kind!r} has none, but got {got}")


def _file_of(kind: str, folders: Iterable[Path]) -> Path | None:
    places = (Path(folder) / f"{kind}.py" for folder in (*folders, Path.cwd()))
    return next((file.resolve() for file in places if file.is_file()), None)


def _is_importable(kind: str) -> bool:
    try:
        return find_spec(kind) is not None
    except (ImportError, ValueError):  # of a package that is not there
        return False


def _import_file(kind: str, file: Path) -> Any:
    """Import a file under its own name, as the folder of a script is imported from."""
    known = sys.modules.get(kind)
    if known is not None and getattr(known, "__file__", None) == str(file):
        return known
    if known is not None and not hasattr(known, "drive"):
        raise CoCoError(f"{file} has the name of another module of Python; give it one of its own")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))  # for what lies beside it
    found = spec_from_file_location(kind, file)
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    sys.modules[kind] = module
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[kind]
        raise
    return module
