"""Time things side by side: interleaved repeats, medians, ratios, and the machine they ran on."""

import json
import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results"


def interleaved(
    functions: Mapping[str, Callable[[], object]], *, seconds: float, least: int = 5
) -> dict[str, float]:
    """Return the median seconds of each function.

    The functions take turns in changing order, so that a noisy moment of the machine hits all of
    them, and what one leaves in the caches does not always meet the same other. The number of
    rounds is what fits into ``seconds``, and at least ``least``.
    """
    shuffle = random.Random(0).shuffle  # noqa: S311 - nothing to protect
    turns = list(functions.items())
    times: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():  # warm caches and lazy initialisation
        function()
        function()
    started = time.perf_counter()
    rounds = 0
    while rounds < least or (time.perf_counter() - started < seconds and rounds < 2000):
        shuffle(turns)
        for name, function in turns:
            before = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - before)
        rounds += 1
    return {name: statistics.median(values) for name, values in times.items()}


def machine() -> dict[str, object]:
    """Describe the machine and the versions that a measurement holds for."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = names[0].split(":", 1)[1].strip() if names else model
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "threads used": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "numpy": np.__version__,
    }


def save(name: str, record: Mapping[str, object]) -> Path:
    """Write a record of a measurement as JSON, whole or not at all."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps({"machine": machine(), **record}, indent=2) + "\n")
    aside.replace(path)
    return path


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table that is as wide as it needs to be."""
    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column, justify="right")
    for row in rows:
        table.add_row(*row)
    Console(width=max(120, 16 * len(columns))).print(table)


def readable(seconds: float) -> str:
    """Write a duration with three digits and a fitting unit."""
    for unit, factor in (("s", 1), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
