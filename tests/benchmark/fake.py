"""An experiment that computes nothing, quickly; what it does beside is said by the model's name."""

import ctypes
import hashlib
import importlib
import os
import signal
import time
from pathlib import Path

from cocoloss.benchmark.tasks import Result, Unit
from cocoloss.exceptions import CoCoError

OPTIONS = {"trials", "sleep", "folder"}


def check_options(options):
    unknown = set(options) - OPTIONS
    if unknown:
        raise CoCoError(f"options.{min(unknown)} is unknown")


def plan(spec, infos):
    tasks = spec.options.get("trials", 3) + spec.folds.outer
    seconds = tasks * max(spec.options.get("sleep", 0), 0.001)
    return [
        Unit.of(spec, info, model, tasks=tasks, seconds=seconds)
        for info in infos
        for model in spec.models.names
    ]


def drive(unit, spec, parallel=1):
    best, best_score = 0.5, -1.0
    trials = spec.options.get("trials", 3)
    for start in range(0, trials, parallel):
        numbers = range(start, min(trials, start + parallel))
        # Each trial depends on those before, as in a real study.
        points = [{"x": best * 0.9 + 0.01 * number} for number in numbers]
        found = yield [
            unit.task("trial", number, point, params_in_key=False)
            for number, point in zip(numbers, points, strict=True)
        ]
        for result in found:
            if result.ok and result.measures["score"] > best_score:
                best, best_score = result.params["x"], result.measures["score"]
    yield [unit.task("fold", fold, {"x": best}) for fold in range(spec.folds.outer)]


def run(task, table, spec):
    folder = Path(spec.options.get("folder", ""))
    ALWAYS.get(task.model, lambda _: None)(folder)
    if (task.stage, task.part) == ("fold", "1"):
        if task.model == "nothing":
            return None
        IN_FOLD_1.get(task.model, lambda _: None)(folder)
    if task.model in spec.models.own:
        module, _, factory = spec.models.own[task.model].partition(":")
        getattr(importlib.import_module(module), factory)()
    time.sleep(spec.options.get("sleep", 0))
    x = task.params["x"]
    score = number_from(task.seed, x, table.fingerprint)
    if task.stage == "trial":
        return Result({"score": score}, [], {"x": x})
    row = {"fold": int(task.part), "balanced_accuracy": score, "log_loss": -score}
    note = {"odd-texts": "\x00 and \udce9", "nonsense": object if task.part == "1" else "fake"}
    extra = {"note": note.get(task.model, "fake")}
    return Result({"balanced_accuracy": score}, [row], {"x": x}, extra)


def number_from(*names):
    digest = hashlib.sha256(repr(names).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def raises(error):
    def behave(folder):
        raise error

    return behave


def breaks(folder):
    if not (folder / "mended").exists():
        raise RuntimeError("fold 1 does not\nconverge")


def kills_its_worker(folder):
    os.kill(os.getpid(), signal.SIGKILL)


def kills_its_worker_once(folder):
    marker = folder / "killed-once"
    if not marker.exists():
        marker.touch()
        time.sleep(0.05)  # the driver shall hear that it began
        kills_its_worker(folder)


def loops(folder):
    while True:
        pass


def hangs(folder):
    time.sleep(3600)  # one call that Python cannot interrupt


def lets_no_thread_have_a_turn(folder):
    ctypes.PyDLL(None).sleep(3600)  # an hour in compiled code that keeps the lock


def eats_memory(folder):
    blocks = []
    for _ in range(300):
        blocks.append(b"x" * 10**6)
        time.sleep(0.002)


def leaves_a_mark(folder):
    (folder / f"worked-{os.getpid()}").touch()


def is_alone(folder):
    mark = folder / f"busy-{os.getpid()}"
    mark.touch(exist_ok=False)
    time.sleep(0.1)
    mark.unlink()


class MutterError(Exception):
    def __str__(self):
        raise RuntimeError("no words")


ALWAYS = {
    "alone": is_alone,
    "alone-too": is_alone,
    "broken": raises(ValueError("nothing works")),
    "marks": leaves_a_mark,
}
IN_FOLD_1 = {
    "half-a-letter": raises(ValueError("caf\udce9 in it")),
    "nul": raises(ValueError("nul \x00 in it")),
    "mutters": raises(MutterError()),
    "leaves": raises(GeneratorExit()),
    "exits": raises(SystemExit(3)),
    "breaks": breaks,
    "kills-once": kills_its_worker_once,
    "kills-always": kills_its_worker,
    "loops": loops,
    "hangs": hangs,
    "seizes": lets_no_thread_have_a_turn,
    "hog": eats_memory,
}
