"""The forecast of ``cocoloss evaluate`` beside what it took.

    python bench/forecast.py FILE [FILE ...] [--target target] [--task classes]

Cross-validates every model of the task on each table, as the command does, on one thread, and
prints what was forecast after the first fold of each, and what it took: seconds of the processor,
which others on the machine do not change.
"""

import argparse
import time
from pathlib import Path

from cocoloss.benchmark.evaluation import score_folds
from cocoloss.benchmark.numbers_and_levels import score_task_folds
from cocoloss.cli.fold_by_fold import Step, seconds_left
from cocoloss.tables import read_table, split_target
from cocoloss.threads import at_most_threads


def forecast(path: Path, target: str, task: str) -> str:
    """Return a line of the table."""
    X, y = split_target(read_table(path), target, missing="drop", task=task)
    folds = score_folds(X, y) if task == "classes" else score_task_folds(X, y, task)
    steps: list[Step] = []
    said = None
    started = before = time.process_time()
    for scores in folds:
        now = time.process_time()
        steps.append(Step(scores, now - before))
        before = now
        n_models = len({step.scores.model for step in steps})
        if said is None and len(steps) > n_models:  # this is the first fold of the second round
            left = seconds_left(steps[:-1], n_models)
            said = sum(step.waited for step in steps[:-1]) + (left or 0)
    took = before - started
    said = said or took
    return (
        f"{path.name:32} {len(X):7,} rows   forecast {said:6.1f} s   took {took:6.1f} s   "
        f"took / forecast {took / said:.2f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--target", default="target")
    parser.add_argument("--task", default="classes", choices=["classes", "levels", "numbers"])
    asked = parser.parse_args()
    with at_most_threads(1):
        for file in asked.files:
            print(forecast(file, asked.target, asked.task), flush=True)
