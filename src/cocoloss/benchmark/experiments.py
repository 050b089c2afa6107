"""What a benchmark computes: an experiment, a module that is named by the ``kind`` of a spec.

"accuracy", "regression" and "ordinal" are built in. Any other kind is a Python file ``<kind>.py``
beside the spec, in a folder that is given, or in the current one; or a module that is installed,
such as "package.module". What such a module has is said by :class:`Experiment`.
"""

import importlib
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from cocoloss._checks import did_you_mean
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.benchmark.spec import Spec
    from cocoloss.benchmark.tasks import Result, TableInfo, Task, Unit


@dataclass(frozen=True)
class BuiltIn:
    """A kind of experiment that comes with the package: where it is, and what reports say."""

    module: str
    about: str
    task: str = "classes"  # what the targets are
    measure: str = "balanced_accuracy"  # that ranks models
    higher_is_better: bool = True
    uses_folds: tuple[str, ...] = ("outer", "inner")
    about_untuned: str = ""  # where nothing is tuned, if that can be


_UNTUNED = "cocoloss.benchmark.numbers_and_levels"
EXPERIMENTS = {
    "accuracy": BuiltIn(
        "cocoloss.benchmark.accuracy",
        "Models tuned on inner folds and judged on outer ones.",
        about_untuned="Models with their usual settings, judged on outer folds.",
    ),
    "regression": BuiltIn(
        _UNTUNED,
        "Models of numbers with their usual settings, judged on outer folds.",
        "numbers",
        "relative_rmse",
        higher_is_better=False,
        uses_folds=("outer",),
    ),
    "ordinal": BuiltIn(
        _UNTUNED,
        "Models of ordered levels with their usual settings, judged on outer folds.",
        "levels",
        "mae",
        higher_is_better=False,
        uses_folds=("outer",),
    ),
}
NEEDED = ("plan", "drive", "run")


class Experiment(Protocol):
    """What the runner asks of an experiment's module.

    It may have more: ``check_options(options)`` refuses options of the spec; ``USES_FOLDS`` names
    the folds that a table must have rows for, if not both "outer" and "inner"; and for reports
    ``ABOUT``, a sentence, ``analyse(findings, missing)`` and ``blocks(findings, analysis,
    prefix)``.
    """

    def plan(self, spec: "Spec", infos: "Sequence[TableInfo]") -> "list[Unit]":
        """List the units of work, without having seen the tables."""

    def drive(
        self, unit: "Unit", spec: "Spec", parallel: int
    ) -> "Generator[list[Task], list[Result], None]":
        """Yield tasks that may run side by side; be sent their results once all are there."""

    def run(self, task: "Task", table: Any, spec: "Spec") -> "Result":
        """Compute one task: no disk, no globals, no randomness but the task's seed."""


def experiment_of(spec: "Spec") -> Experiment:
    """Return the experiment of a spec; see :func:`load_experiment`."""
    with spec.at("kind"):
        return load_experiment(spec.kind, spec.experiments)


def task_of(kind: str) -> str:
    """Return what the targets of a kind of experiment are."""
    return EXPERIMENTS[kind].task if kind in EXPERIMENTS else "classes"


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
    except (Exception, SystemExit) as error:  # it may be anybody's
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
