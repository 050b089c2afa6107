"""What the report says of a benchmark, as blocks: what it was, how models did, what is missing."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cocoloss._checks import counted
from cocoloss.benchmark.analysis import AccuracyAnalysis, Findings
from cocoloss.benchmark.spec import readable_time
from cocoloss.benchmark.tasks import OPEN, properties_of
from cocoloss.report.bench_rankings import lead_blocks, mean_cell, ranking_blocks
from cocoloss.report.document import (
    Block,
    Cards,
    Cell,
    Folded,
    Grid,
    Heading,
    Items,
    Text,
    number_of,
    stand_out,
)

SHOWN_MISSING = 500
COLUMNS = {  # measure -> heading
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy",
    "log_loss": "log loss",
    "relative_rmse": "relative RMSE",
    "mae": "mean absolute error",
    "r2": "R²",
    "coverage": "within intervals of 0.9",
    "kappa": "weighted kappa",
    "dispersity": "dispersity, test",
    "train_dispersity": "dispersity, training",
    "fit_seconds": "seconds a fit",
    "processor_seconds": "processor seconds",
}
ABOUT = {  # measure -> what it is, where its name does not say it
    "relative_rmse": "RMSE of the test rows over that of the mean of the training rows, since "
    "tables have many units: 0 is perfect, 1 is guessing; lower is better.",
    "mae": "How many levels predictions are off on average; lower is better.",
}
COSTS = frozenset({"fit_seconds", "processor_seconds"})  # of a machine: nothing stands out
NEITHER = frozenset({"coverage"})  # should be what is asked, no less and no more
HIGHER = frozenset({"balanced_accuracy", "accuracy", "r2", "kappa"})
FOLD_COLUMNS = tuple(name for name in COLUMNS if name != "train_dispersity")
PARTIAL = "*"
SHOWN_ROWS = 2000  # of the table of datasets on a page; more are in the files


def about_blocks(findings: Findings, module: Any) -> list[Block]:
    """Return what comes first: the kind, how far it is, and the deviations from the paper."""
    units, missing = findings.units, findings.missing
    n_ok = int((units["status"] == "ok").sum())
    n_models, n_datasets = units["model"].nunique(), units["dataset"].nunique()
    folds = findings.spec["folds"]
    cards = (
        ("Datasets", f"{n_datasets:,}", ""),
        ("Models", f"{n_models:,}", ""),
        ("Complete", f"{n_ok:,} of {len(units):,}", "pairs of dataset and model"),
        ("Core time", readable_time(findings.core_seconds), f"{findings.n_tasks:,} tasks"),
    )
    usual = properties_of(findings.kind)
    tuned = _is_tuned(findings)
    about = f"{usual.about} {TUNED if tuned else USUAL}."
    blocks: list[Block] = [Text(getattr(module, "ABOUT", about), "lead"), Cards(cards)]
    if used := getattr(module, "USES_FOLDS", ("outer", "inner")):
        may_tune = "inner" in used and (tuned or usual.tunes)
        blocks.append(Text(_protocol(findings, folds, tuned=may_tune)))
    deviations = tuple(findings.spec["deviations"])
    if deviations:
        blocks += [Text("Differs from the paper:"), Items(deviations)]
    if len(missing):
        blocks.append(Text(_what_is_missing(missing, len(units)), "warning"))
    if findings.left_out:
        n = len(findings.left_out)
        tables = "1 unusable table was" if n == 1 else f"{n:,} unusable tables were"
        blocks.append(Text(f"{tables} left out; see “What is missing” below.", "warning"))
    return blocks


USUAL = "with their usual settings, judged on outer folds"
TUNED = "tuned on inner folds and judged on outer ones"


def _is_tuned(findings: Findings) -> bool:
    """Say whether anything is tuned: trials are asked for, and a model has some, or may have.

    Models of kinds that are usually left as they are have trials where the spec names them; stores
    of before that was possible say nothing of what is optimised.
    """
    spec, units = findings.spec, findings.units
    asked = spec["tuning"]
    may = units["n_trials"].sum() > 0 or (units["status"] == OPEN).any()
    if not properties_of(findings.kind).tunes:
        may = may and "optimise" in spec
    return bool(may and (asked["trials_per_hyperparameter"] or asked.get("trials")))


def _what_is_missing(missing: Any, n_units: int) -> str:
    """Say how many pairs went wrong and how many are still to come, which is no fault."""
    n_open = int((missing["status"] == OPEN).sum())
    n_wrong = len(missing) - n_open
    pairs = f"of {n_units:,} pairs of dataset and model"
    wrong = f"Something went wrong for {n_wrong:,} {pairs}" if n_wrong else ""
    subject = f", and {n_open:,}" if n_wrong else f"{n_open:,} {pairs}"
    to_come = f"{subject} {'is' if n_open == 1 else 'are'} not finished yet" if n_open else ""
    return f"{wrong}{to_come}; see “What is missing” below."


def _protocol(findings: Findings, folds: Mapping[str, Any], *, tuned: bool) -> str:
    spec = findings.spec
    text = _how_split(folds)
    if tuned:
        trials = spec["tuning"]["trials_per_hyperparameter"]
        which = "the first outer fold" if spec["tuning"]["mode"] == "first" else "every outer fold"
        how = (
            f"{trials} trials per hyperparameter on {folds['inner']} inner folds of {which}"
            if trials and _is_tuned(findings)
            else "no tuning"
        )
        by = f" by {spec['optimise']}" if spec.get("optimise") and trials else ""
        text += f"; {how}{by}"
        if any("max_iter" in one for found in findings.units["params"] for one in found or ()):
            text += f"; {spec['training']['epochs']:,} epochs"  # of networks
    cap = spec["data"]["max_rows"]
    rows = f"; at most {cap:,} rows of a table" if cap else ""
    return f"Tables from {spec['data']['source']}; {text}{rows}; seed {folds['seed']}."


def _how_split(folds: Mapping[str, Any]) -> str:
    """Say how rows were split; stores of before there was a choice have none of the keys."""
    repeats = folds.get("repeats", 1)
    text = f"{folds['outer']} outer folds" + (f", {repeats} times" if repeats > 1 else "")
    if folds.get("given"):
        return f"outer folds as given by {folds['given']}"
    if folds.get("group"):
        return f"{text}, no {folds['group']} in two of them"
    return (
        f"{text}, each after what it was learnt from by {folds['time']}"
        if folds.get("time")
        else text
    )


def missing_blocks(findings: Findings) -> list[Block]:
    """Return the list of what is missing, with the reasons."""
    missing = findings.missing
    left_out = _left_out(findings.left_out)
    if not len(missing):
        others = " that is not left out" if left_out else ""
        nothing = Text(f"Nothing: every model has a result on every dataset{others}.")
        return [*left_out, nothing]
    states = {"failed": "failed", "timeout": "took too long"}
    units = findings.units
    keys = zip(units["dataset"], units["model"], strict=True)
    n_trials = dict(zip(keys, units["n_trials"], strict=True))
    rows = tuple(
        (
            Cell(line.dataset),
            Cell(line.model),
            Cell(states.get(line.status) or _progress(line, n_trials[line.dataset, line.model])),
            Cell(line.reason),
            Cell(str(line.n_folds), float(line.n_folds)),
            Cell(str(line.attempts) if line.attempts else "", float(line.attempts)),
        )
        for line in missing.head(SHOWN_MISSING).itertuples()
    )
    more = len(missing) - SHOWN_MISSING
    return [
        *left_out,
        Grid(
            "Missing results",
            ("dataset", "model", "state", "reason", "folds there are", "attempts"),
            rows,
            caption=f"And {more:,} more." if more > 0 else "",
            n_names=4,
            sortable=True,
        ),
    ]


def _left_out(tables: Mapping[str, str]) -> list[Block]:
    """Return the list of tables that could not be used."""
    rows = tuple((Cell(name), Cell(why)) for name, why in tables.items())
    caption = "Tables of the folder that could not be used."
    columns = ("table", "reason")
    return [Grid("Tables left out", columns, rows, caption=caption, n_names=2)] if rows else []


def _progress(line: Any, n_trials: int) -> str:
    """Say how far a pair is that is not finished."""
    if line.n_folds:
        return "begun"
    if n_trials:
        return f"begun: {counted(n_trials, 'trial')}"
    return "not run"


def making_blocks(findings: Findings) -> list[Block]:
    """Return when and where it ran, with which versions, and the spec."""
    started = findings.started_at.isoformat(sep=" ", timespec="minutes")
    seen = findings.seen_at.isoformat(sep=" ", timespec="minutes")
    state = {"running": "running, or broken off", "broken": "broken off"}.get(
        findings.state, findings.state
    )
    lines = [f"Started {started}, last seen {seen} (UTC); {state}."]
    if findings.n_tasks < findings.n_planned and not len(findings.missing):
        lines.append(
            f"{findings.n_tasks:,} tasks of {findings.n_planned:,} planned ones were computed: "
            f"points of the tuning that come up again are not computed twice."
        )
    for place in findings.places:
        machine, versions = place["machine"], place["versions"]
        packages = ", ".join(f"{name} {version}" for name, version in versions.items())
        gigabytes = machine.get("memory", 0) / 1e9
        lines.append(
            f"{machine.get('system', 'unknown system')}, {machine.get('cores', '?')} cores, "
            f"{gigabytes:.0f} GB: {packages}."
        )
    rows = tuple((Cell(key), Cell(value)) for key, value in _spec_lines(findings.spec))
    spec = Grid("", ("key", "value"), rows, n_names=2)
    lines.append(f"Hash of the spec: {findings.spec_hash[:16]}.")
    return [Items(tuple(lines)), Folded("The spec", (spec,))]


def _spec_lines(spec: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in spec.items():
        if isinstance(value, Mapping) and not prefix:
            yield from _spec_lines(value, f"{key}.")
        elif key != "deviations":  # which are shown above
            values = value if isinstance(value, list | tuple) else [value]
            yield f"{prefix}{key}", ", ".join(map(str, values)) or "all"


def accuracy_blocks(_findings: Findings, analysis: AccuracyAnalysis, prefix: str) -> list[Block]:
    """Return the sections of the report."""
    about = [Text(ABOUT[analysis.measure])] if analysis.measure in ABOUT else []
    blocks: list[Block] = [Heading(_title(analysis)), *about]
    for ranking in analysis.rankings:
        blocks += ranking_blocks(ranking, prefix)
    if analysis.dispersity:
        blocks += [
            Heading("Dispersity"),
            Text(
                "How wide the classes are in the embedding of the test rows, in units of how far "
                "apart they are; lower is better, 0 is collapse."
            ),
        ]
        for ranking in analysis.dispersity:
            blocks += ranking_blocks(ranking, prefix)
    if len(analysis.measures):
        blocks += [Heading("All measures"), measures_grid(analysis)]
    blocks += [Heading("Dataset by dataset"), *dataset_blocks(analysis, prefix)]
    if analysis.leads is not None:
        blocks += lead_blocks(analysis.leads)
    return blocks


def _title(analysis: AccuracyAnalysis) -> str:
    if analysis.measure not in COLUMNS:  # by the name that its scorer has
        return analysis.measure
    heading = COLUMNS[analysis.measure]
    return heading[0].upper() + heading[1:]


def measures_grid(analysis: AccuracyAnalysis) -> Grid:
    """Return the mean of each measure by model; the best stands out where they are comparable."""
    frame = analysis.measures
    whole = analysis.scores.notna() & ~analysis.partial
    names = dict.fromkeys([*COLUMNS, *analysis.asked])
    shown = [m for m in names if m in frame.columns and frame[m].notna().any()]
    if analysis.measure == "relative_rmse":  # each table has its own unit: there is no mean of them
        shown = [m for m in shown if m != "mae"]
    columns = [[number_of(int(n)) for n in frame["n_datasets"]]]
    for measure in shown:
        cells = [mean_cell(value, measure) for value in frame[measure]]
        on = whole.loc[:, frame[measure].notna()]
        # Means over different datasets cannot be compared, nor can times on different machines.
        if measure not in COSTS | NEITHER and on.eq(on.iloc[:, 0], axis=0).all(axis=None):
            higher = measure in HIGHER or measure not in COLUMNS  # scorers are so
            cells = stand_out(cells, higher_is_better=higher)
        columns.append(cells)
    rows = [(Cell(m), *cells) for m, *cells in zip(frame.index, *columns, strict=True)]
    caption = (
        "Each model over the datasets on which it has all folds. The best is bold, where all have "
        "the same datasets."
    )
    if "fit_seconds" in shown and "dispersity" in shown:
        caption += (
            " Networks train all folds at once, which takes less than one after the other; their "
            "seconds are a fold's share."
        )
    return Grid(
        "Means over folds, then datasets",
        ("model", "datasets", *(COLUMNS.get(m, m) for m in shown)),
        tuple(rows),
        caption=caption,
        sortable=True,
    )


def dataset_blocks(analysis: AccuracyAnalysis, prefix: str) -> list[Block]:
    """Return the table of datasets; on a page its rows open."""
    scores = analysis.scores
    if not len(scores):
        return [Text("There is no result yet.", "warning")]
    models = list(scores.columns)
    rows = tuple(
        (Cell(dataset), *_of_dataset(analysis, dataset)) for dataset in scores.index[:SHOWN_ROWS]
    )
    more = len(scores) - SHOWN_ROWS
    mean = f"Mean {COLUMNS.get(analysis.measure, analysis.measure)} over the outer folds"
    caption = f"{mean}; the best of a dataset is bold."
    if analysis.partial.any(axis=None):
        caption += f" {PARTIAL} marks the mean of some folds: others are missing."
    if more > 0:
        caption += f" {more:,} more datasets are in the files of scores."
    return [
        Grid(
            f"{_title(analysis)} by dataset",
            ("dataset", *models),
            rows,
            caption=caption,
            sortable=True,
            drill=prefix,
        )
    ]


def _of_dataset(analysis: AccuracyAnalysis, dataset: Any) -> list[Cell]:
    """Return the means on a dataset; what lacks folds is marked, and never the best."""
    scores, partial = analysis.scores.loc[dataset], analysis.partial.loc[dataset]
    cells = stand_out(
        [mean_cell(value, analysis.measure) for value in scores.mask(partial)],
        higher_is_better=analysis.higher_is_better,
    )
    return [
        Cell(f"{value:.4f}{PARTIAL}", float(value)) if lacks else cell
        for cell, value, lacks in zip(cells, scores, partial, strict=True)
    ]


def fold_data(findings: Findings, analysis: AccuracyAnalysis) -> dict[str, Any]:
    """Return what a page needs to open a dataset: folds, arguments, time and memory."""
    shown = analysis.scores.index[:SHOWN_ROWS]
    rows, units = (table[table["dataset"].isin(shown)] for table in (findings.rows, findings.units))
    rows = rows.sort_values("fold", kind="stable")
    measures = [m for m in FOLD_COLUMNS if m in rows.columns]
    numbers = rows[measures].round(4).astype(object).where(rows[measures].notna(), None)
    numbers = numbers.mask(np.isinf(rows[measures].astype(float)), "Infinity")  # JSON has none
    folds: dict[str, dict[str, list[Any]]] = {}
    columns = zip(*(numbers[m] for m in measures), strict=True)
    for dataset, model, values in zip(rows["dataset"], rows["model"], columns, strict=True):
        folds.setdefault(dataset, {}).setdefault(model, []).append(values)
    of_units: dict[str, dict[str, Any]] = {}
    for unit in units.itertuples():
        of_units.setdefault(unit.dataset, {})[unit.model] = {
            "params": [_brief(params) for params in unit.params],
            "seconds": round(unit.seconds, 3),
            "tuning": round(unit.tuning_seconds, 3),
            "trials": unit.n_trials,
            "memory": unit.peak_memory,
            "error": unit.error,
        }
    characters = {
        dataset: {n: v for n, v in line.items() if np.isfinite(v)}
        for dataset, line in findings.characters.reindex(shown).to_dict("index").items()
    }
    return {
        "measures": [COLUMNS[m] for m in measures],
        "models": list(analysis.scores.columns),
        "folds": folds,
        "units": of_units,
        "characters": {dataset: line for dataset, line in characters.items() if line},
    }


def _brief(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with numbers that can be read."""
    return {
        name: float(f"{value:.4g}") if isinstance(value, float) and np.isfinite(value) else value
        for name, value in params.items()
    }
