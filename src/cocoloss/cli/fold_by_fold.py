"""Cross-validation that says how long it will take, and keeps what is finished when stopped."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich import progress
from rich.console import Console
from rich.text import Text

from cocoloss.benchmark.evaluation import FoldScores
from cocoloss.benchmark.spec import readable_time

WORTH_A_FORECAST = 3.0  # seconds that are left


class Step(NamedTuple):
    """A fold of a model that is finished, and how long that was waited for."""

    scores: FoldScores
    waited: float


class TimeLeft(progress.ProgressColumn):
    """What is left until the moment ``ends`` of a task, which goes down between its updates."""

    def render(self, task: progress.Task) -> Text:
        """Return the text; nothing as long as nobody knows."""
        ends = task.fields["ends"]
        if ends is None:
            return Text("")
        return Text(f"about {_about(max(0.0, ends - time.perf_counter()))} left")


def watch(
    folds: Iterator[FoldScores], names: Mapping[str, str], *, quiet: bool = False
) -> tuple[list[FoldScores], bool]:
    """Return the scores of folds, and whether Ctrl-C ended them early; show a bar meanwhile.

    ``names`` are the models in words. After the first fold of each it says how long all folds of
    all of them take, unless they are soon done or it is to be ``quiet``.
    """
    console = Console(stderr=True)
    columns = (
        progress.SpinnerColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        TimeLeft(),
        progress.TimeElapsedColumn(),
    )
    off = quiet or not console.is_terminal
    steps: list[Step] = []
    with progress.Progress(*columns, console=console, transient=True, disable=off) as bar:
        line = bar.add_task("the first fold of each model", total=None, ends=None)
        started = before = time.perf_counter()
        try:
            for scores in folds:
                now = time.perf_counter()
                steps.append(Step(scores, now - before))
                before = now
                left = seconds_left(steps, len(names))
                if left is None:
                    bar.update(line, description=f"the first folds; done is {names[scores.model]}")
                    continue
                total = now - started + left
                if len(steps) == len(names) and left > WORTH_A_FORECAST and not quiet:
                    console.print(forecast(total, len(names), scores.n_folds), highlight=False)
                done = f"{len(steps)} of {len(names) * scores.n_folds} fits"
                ends: dict[str, Any] = {
                    "total": total,
                    "completed": total - left,
                    "ends": now + left,
                }
                bar.update(line, description=done, **ends)
        except KeyboardInterrupt:
            if not steps:
                raise
            return [step.scores for step in steps], True
    return [step.scores for step in steps], False


def seconds_left(steps: Sequence[Step], n_models: int) -> float | None:
    """Return how long the folds that are left will take, by those that are finished.

    None until there is one of every model.
    """
    waited: dict[str, list[float]] = defaultdict(list)
    for scores, seconds in steps:
        waited[scores.model].append(seconds)
    if len(waited) < n_models:
        return None
    n_folds = steps[0].scores.n_folds
    return sum(sum(times) / len(times) * (n_folds - len(times)) for times in waited.values())


def forecast(seconds: float, n_models: int, n_folds: int) -> str:
    """Return the line that says how long all of it takes."""
    models = "1 model" if n_models == 1 else f"{n_models} models"
    return f"about {_about(seconds)} for {models} x {n_folds} folds, by the first fold of each"


def _about(seconds: float) -> str:
    return readable_time(max(1, round(seconds)))
