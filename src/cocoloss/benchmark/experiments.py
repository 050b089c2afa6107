"""Which kinds of experiment there are: a name, and the module that knows how.

Such a module has ``plan(spec, infos)``, which lists units of work; ``drive(unit, spec, parallel)``,
a generator that yields lists of tasks and is sent back their results; and ``run(task, table,
spec)``, which computes one task. ``check_options(options)`` looks at what only it knows, and
``USES_FOLDS`` names the folds that rows must be enough for, if not both.
"""

import importlib
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.benchmark.keys import Result, TableInfo, Task, Unit
    from cocoloss.benchmark.spec import Spec

EXPERIMENTS = {
    "accuracy": "cocoloss.benchmark.accuracy",
    "convergence": "cocoloss.benchmark.convergence",
    "imbalance": "cocoloss.benchmark.imbalance",
    "evolution": "cocoloss.benchmark.evolution",
}


class Experiment(Protocol):
    """What the runner asks of an experiment's module."""

    def plan(self, spec: "Spec", infos: "Sequence[TableInfo]") -> "list[Unit]":
        """List the units of work, without having seen the tables."""

    def drive(
        self, unit: "Unit", spec: "Spec", parallel: int
    ) -> "Generator[list[Task], list[Result], None]":
        """Yield tasks that may run side by side; be sent their results once all are there."""

    def run(self, task: "Task", table: Any, spec: "Spec") -> "Result":
        """Compute one task: no disk, no globals, no randomness but the task's seed."""


def load_experiment(kind: str) -> Experiment:
    """Return the module of a kind of experiment.

    Examples
    --------
    >>> load_experiment("accuracy").__name__
    'cocoloss.benchmark.accuracy'
    """
    module: Any = importlib.import_module(EXPERIMENTS[kind])
    return module  # type: ignore[no-any-return]


def check_options(kind: str, options: Mapping[str, Any]) -> None:
    """Refuse options that the experiment does not know.

    Raises
    ------
    CoCoError
        If there is one; the message names it.
    """
    check = getattr(load_experiment(kind), "check_options", None)
    if check is not None:
        check(dict(options))
    elif options:
        got = ", ".join(sorted(options))
        raise CoCoError(f"options: an experiment of kind {kind!r} has none, but got {got}")
