"""An experiment whose tasks do nothing: what is left is the runner's own work."""

from collections.abc import Generator
from typing import Any

from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.tasks import Result, TableInfo, Task, Unit

TRIALS, FOLDS = 90, 10


def plan(spec: Spec, infos: list[TableInfo]) -> list[Unit]:
    """List every model on every table."""
    tasks = TRIALS + FOLDS
    pairs = [(info, model) for info in infos for model in spec.models.names]
    return [Unit.of(spec, info, model, tasks=tasks, seconds=1.0) for info, model in pairs]


def drive(
    unit: Unit,
    spec: Spec,  # noqa: ARG001 - the runner's signature
    parallel: int = 1,  # noqa: ARG001
) -> Generator[list[Task], list[Result], None]:
    """Yield trials one by one, as tuning does, then folds."""
    for number in range(TRIALS):
        yield [unit.task("trial", number, {"x": number}, params_in_key=False)]
    yield [unit.task("fold", fold) for fold in range(FOLDS)]


def run(task: Task, table: Any, spec: Spec) -> Result:  # noqa: ARG001
    """Do nothing."""
    rows = [{"fold": int(task.part), "balanced_accuracy": 0.5}] if task.stage == "fold" else []
    return Result({"score": 0.5}, rows, dict(task.params))
