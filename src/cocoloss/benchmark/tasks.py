"""What passes between an experiment and the runner: units, tasks with their keys, and results.

An experiment knows what to compute and nothing of workers or databases; the runner knows those and
nothing of what a task computes. Everything here is plain data that pickles small.
"""

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import cocoloss
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
    def of(cls, spec: "Spec", info: TableInfo, model: str, *, tasks: int, seconds: float) -> "Unit":
        """Return the unit of a model and a table under a spec."""
        context = digest_of([spec.hash, info.fingerprint, spec.models.own.get(model, "")])
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
