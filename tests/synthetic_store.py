"""Stores of made-up results, written through the store itself, for tests of reports."""

import math
from pathlib import Path

import numpy as np

from cocoloss.benchmark.spec import Spec
from cocoloss.benchmark.tasks import Environment, Finished, Result, TableInfo, Unit, load_experiment
from cocoloss.report import bench_report

PAPER = Path(__file__).parents[1] / "paper"
PLACE = Environment(
    {"host": "here", "system": "Linux x86_64", "cores": 4, "memory": 16_000_000_000},
    {"python": "3.12.0", "cocoloss": "0.1.0"},
)
# How good a model is, how much it varies between datasets, whether it has an embedding.
SKILLS = {
    "coco": (0.030, 0.4),
    "dr": (0.012, 0.9),
    "ce": (-0.035, 0.7),
    "ksvm": (0.012, None),
    "rf": (-0.010, None),
}


def make_spec(kind="accuracy", *, models=tuple(SKILLS), name=None, folds=10, **changes):
    content = {
        "name": name or f"{kind}-made-up",
        "kind": kind,
        "data": {"source": "sklearn"},
        "models": {"names": list(models)},
        "folds": {"outer": folds},
        "deviations": ["made up, not measured"],
    }
    return Spec.from_dict(content | changes)


def analyse(findings, missing="drop_datasets"):
    """Analyse a benchmark by its experiment, which may be one of the paper's."""
    (chapter,) = bench_report.read_chapters([findings], missing, [PAPER])
    return chapter.analysis


def build_document(findings, analyses, prefixes):
    modules = [load_experiment(each.kind, [PAPER]) for each in findings]
    chapters = map(bench_report.Chapter, findings, modules, analyses, prefixes)
    return bench_report.build_document(list(chapters))


def make_info(k, name=None):
    ratio = 1.0 + (k * 7 % 23) / 2
    share = [0.0, 0.25, 0.8][k % 3]
    rows = [500, 1500, 20_000][k % 3]
    return TableInfo(name or f"table-{k:02}", rows, 5 + 3 * k, 2 + k % 12, f"f{k}", ratio, share)


def infos_of(n, names=()):
    return [make_info(k, names[k] if k < len(names) else None) for k in range(n)]


def make_unit(spec, info, model):
    return Unit.of(spec, info, model, tasks=4, seconds=1.0)


def begin(store, spec, infos):
    """Note a run and its units; return the units by (dataset, model)."""
    store.begin_run(f"run-{spec.name}-{spec.hash}", spec, PLACE)
    units = [make_unit(spec, info, model) for info in infos for model in spec.models.names]
    store.open_units(units, spec.hash)
    return {(unit.dataset, unit.model): unit for unit in units}


def put(store, spec, unit, stage, part, result, *, seconds=1.5, memory=50_000_000):
    task = unit.task(stage, part, {"point": {}})
    store.record(unit, task, spec.hash, Finished(result, seconds, memory, PLACE))
    return task.key


def fold_rows(rng, model, n_folds, skill):
    gain, width = SKILLS.get(model, (0.0, None))
    scores = np.clip(skill + gain + 0.012 * rng.normal() + 0.01 * rng.normal(size=n_folds), 0, 1)
    rows = []
    for k, score in enumerate(scores.tolist()):
        row = {"fold": k, "balanced_accuracy": score, "accuracy": min(1.0, score + 0.02)}
        if width is not None:
            row |= {"log_loss": 1.2 - score, "dispersity": width * math.exp(0.2 * rng.normal())}
        rows.append(row | {"fit_seconds": 0.2})
    return rows


def fill_accuracy(
    store, spec, infos, *, failed=(), timed_out=(), left_open=(), one_point=(), seed=0
):
    """Fill a store with results of an accuracy experiment; some (dataset, model) without.

    Those of ``one_point`` have a fold in which all rows have the same embedding.
    """
    rng = np.random.default_rng(seed)
    units = begin(store, spec, infos)
    for info in infos:
        skill = rng.uniform(0.6, 0.92)
        for model in spec.models.names:
            unit, key = units[info.name, model], (info.name, model)
            rows = fold_rows(rng, model, spec.folds.outer, skill)
            if spec.kind == "imbalance":
                gain = 0.002 * info.class_ratio if model == "coco-balanced" else 0.0
                for row in rows:
                    row |= {"class_ratio": info.class_ratio, "inner_score": skill + gain}
                    row["balanced_accuracy"] += gain
            if key in one_point:
                rows[3]["dispersity"] = math.inf
            if key in left_open:
                continue
            if key in failed or key in timed_out:
                status = "failed" if key in failed else "timeout"
                error = f"LinAlgError: <singular> & {status}"
                keys = [put(store, spec, unit, "folds", "all", Result(status=status, error=error))]
                store.end_unit(unit, spec.hash, error, keys)
                continue
            trial = Result({"score": 0.5}, [], {"x": 1})
            keys = [put(store, spec, unit, "trial", f"0/{n}", trial) for n in range(2)]
            params = {"learning_rate_init": 0.00123456, "hidden_layer_sizes": [64, 64]}
            keys.append(put(store, spec, unit, "folds", "all", Result({}, rows, params)))
            store.end_unit(unit, spec.hash, "", keys)
    return units


def fill_convergence(store, spec, infos, *, n_terms=(64, 128, 256, 512, 1024), seed=0):
    rng = np.random.default_rng(seed)
    units = begin(store, spec, infos)
    speed = {"coco": 3.0, "dr": 1.6, "ce": 1.2}
    for info in infos:
        for model in spec.models.names:
            rows = []
            for k in range(spec.folds.outer):
                for n in n_terms:
                    for head, lead in (("paper", 1.0), ("gaussian", 0.3), ("centroid", 0.2)):
                        pace = 1.2 + lead * (speed[model] - 1.2)
                        score = 0.85 - 0.4 * math.exp(-pace * n / 900) + 0.01 * rng.normal()
                        row = {"fold": k, "n_terms": n, "head": head}
                        rows.append(row | {"balanced_accuracy": score})
            unit = units[info.name, model]
            key = put(store, spec, unit, "curve", "all", Result({}, rows, {}, {"n_terms": [1]}))
            store.end_unit(unit, spec.hash, "", [key])


def fill_evolution(store, spec, infos, *, epochs=(50, 150, 250, 500), n=300, seed=0):
    rng = np.random.default_rng(seed)
    units = begin(store, spec, infos)
    labels = np.arange(n) % 2
    for info in infos:
        for model in spec.models.names:
            rows, embeddings, centres = [], [], []
            for epoch in epochs:
                far = 1 - math.exp(-epoch / 150)
                ends = np.array([[far, 0.2], [-far, 0.2 * (1 - far)]])
                h = ends[labels] + 0.3 * rng.normal(size=(n, 2))
                cosine = float(ends[0] @ ends[1] / np.linalg.norm(ends, axis=1).prod())
                rows.append({"fold": 0, "epoch": epoch, "cosine": cosine, "dispersity": 1 - far})
                embeddings.append(np.round(h, 4).tolist())
                centres.append(ends.tolist())
            extra = {"epochs": list(epochs), "classes": ["bad", "good"], "labels": labels.tolist()}
            extra |= {"embeddings": embeddings, "centres": centres}
            unit = units[info.name, model]
            key = put(store, spec, unit, "run", "all", Result(rows[-1], rows, {}, extra))
            store.end_unit(unit, spec.hash, "", [key])
