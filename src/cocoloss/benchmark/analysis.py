"""From a store to what the report of a benchmark shows: every number, none of the layout.

A benchmark is read once, as frames. Trials are most of a store: they are only counted, and that in
the database. Models are then ranked over datasets in every way that the report shows, and one of
them is set beside the others: by how much it leads, and on what kinds of table it does.
"""

import runpy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import listed
from cocoloss.benchmark.store import TUNING, Store, chosen_variants, labels_of, tables_left_out
from cocoloss.benchmark.tasks import OK, OPEN, properties_of
from cocoloss.exceptions import CoCoError
from cocoloss.json_text import storable
from cocoloss.stats import Comparison, bayesian_signed_rank, compare, holm
from cocoloss.stats.pairwise import check_reach

if TYPE_CHECKING:
    import pandas as pd

ROPE = 0.01  # balanced accuracies this close are the same in practice
# Whose comparisons are shown: the first of these that is there.
REFERENCES = ("coco", "coco-w", "coco-plain", "coco-default")
ALPHA = 0.05


READ = ["dataset", "model", "stage", "status", "error", "rows", "params", "extra"]
READ += ["seconds", "peak_memory", "environment", "attempt"]


@dataclass(frozen=True, eq=False)
class Findings:
    """One benchmark of a store."""

    name: str
    kind: str
    spec_hash: str
    spec: Mapping[str, Any]  # as it was run last
    state: str  # of the last run
    started_at: datetime  # first start, UTC
    seen_at: datetime  # last sign of life, UTC
    # One line per dataset, model, fold (and whatever else an experiment tells apart), with measures
    # as columns; of finished tasks only.
    rows: "pd.DataFrame"
    # One line per dataset and model: status, error, params (a list, one entry unless folds have
    # their own), seconds of the final fits, tuning_seconds, n_trials, n_failed_trials,
    # peak_memory, n_folds.
    units: "pd.DataFrame"
    # One line per dataset and model where something is missing or went wrong: status ("failed",
    # "timeout" or "open"), reason, attempts, and n_folds that there are nevertheless.
    missing: "pd.DataFrame"
    left_out: Mapping[str, str]  # tables that could not be used, and why
    characters: "pd.DataFrame"  # one line per dataset, with the columns of BINS; NaN if not known
    extras: Mapping[tuple[str, str], Mapping[str, Any]]  # by dataset and model
    places: tuple[Mapping[str, Any], ...]  # machines and versions that took part
    core_seconds: float  # of all tasks, trials too
    n_tasks: int  # that are done
    n_planned: int  # at most: points of the tuning that come up again are computed once
    label: str = ""  # its name, with digits of its hash where another of the store has the same


def read_findings(store: Store, names: tuple[str, ...] = ()) -> list[Findings]:
    """Read the benchmarks of a store, or those of these names; the first started comes first."""
    runs = store.runs()
    if not runs:
        raise CoCoError(f"{store.name} is empty: no benchmark was run yet; see `bench run`")
    labels = labels_of(runs)
    return [
        _read(store, [run for run in runs if run["spec_hash"] == spec_hash], labels[spec_hash])
        for spec_hash in chosen_variants(runs, names, store.name)
    ]


def _read(store: Store, runs: list[dict[str, Any]], label: str) -> Findings:
    import pandas as pd  # noqa: PLC0415 - heavy

    last = runs[-1]
    spec_hash, kind = last["spec_hash"], last["spec"]["kind"]
    kept = [name for name in READ if name not in ("rows", "extra", "params")]
    lines: list[dict[str, Any]] = []
    tasks: list[dict[str, Any]] = []
    extras = {}
    params: dict[tuple[str, str], dict[str, Any]] = {}
    for row in store.rows(spec_hash=spec_hash, tuning=False, columns=READ):
        lines += _lines(row)
        if row["extra"]:
            extras[row["dataset"], row["model"]] = row["extra"]
        if row["status"] == OK:
            of_unit = params.setdefault((row["dataset"], row["model"]), {})
            of_unit[repr(row["params"])] = storable(row["params"])
        tasks.append({name: row[name] for name in kept})
    counts = pd.DataFrame(
        store.counts(spec_hash), columns=["dataset", "model", "stage", "status", "n", "seconds"]
    )
    planned = pd.DataFrame(
        store.planned(spec_hash), columns=["dataset", "model", "tasks", "status", "error", "info"]
    )
    task_frame = pd.DataFrame(tasks, columns=kept)
    rows = pd.DataFrame(lines, columns=list(dict.fromkeys(n for line in lines for n in line)))
    for name in ("dataset", "model", "fold"):
        if name not in rows.columns:
            rows[name] = pd.Series(dtype=object)
    units = _units(planned, task_frame, counts, rows)
    units["params"] = [list(params.get(key, {}).values()) for key in _keys(units)]
    used = set(task_frame["environment"]) | {run["environment"] for run in runs}
    places = store.environments()
    return Findings(
        name=last["name"],
        label=label,
        kind=kind,
        spec_hash=spec_hash,
        spec=last["spec"],
        state=last["state"],
        started_at=runs[0]["started_at"],
        seen_at=max(run["seen_at"] for run in runs),
        rows=rows,
        units=units,
        missing=_missing(units, task_frame),
        left_out=tables_left_out(runs),
        characters=_characters(planned, rows),
        extras=extras,
        places=tuple(vars(places[digest]) for digest in sorted(used) if digest in places),
        core_seconds=float(counts["seconds"].sum()),
        n_tasks=int(counts["n"].sum()),
        n_planned=int(planned["tasks"].sum()),
    )


def _lines(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Give the folds of a finished task; what it took is shared among them."""
    if row["status"] != OK:
        return
    of_task = {name: row[name] for name in ("dataset", "model", "stage")}
    share = row["seconds"] / max(1, len(row["rows"]))
    for measures in row["rows"]:
        yield {**of_task, **measures, "task_seconds": share}


def _keys(frame: Any) -> Iterator[tuple[str, str]]:
    return zip(frame["dataset"], frame["model"], strict=True)


def _units(planned: Any, tasks: Any, counts: Any, rows: Any) -> Any:
    """Return one line per dataset and model: how it stands, and what it took."""
    keys = ["dataset", "model"]
    done = tasks[tasks["status"] == OK]
    final = done.groupby(keys, sort=False).agg(
        seconds=("seconds", "sum"), peak_memory=("peak_memory", "max")
    )
    trials = counts[counts["stage"] == TUNING]
    tuning = trials.groupby(keys, sort=False).agg(
        n_trials=("n", "sum"), tuning_seconds=("seconds", "sum")
    )
    failed = trials[trials["status"] != OK].groupby(keys, sort=False)["n"].sum()
    folds = rows.drop_duplicates([*keys, "fold"]).groupby(keys, sort=False).size()
    units = planned[[*keys, "status", "error"]].join(final, on=keys).join(tuning, on=keys)
    units = units.join(failed.rename("n_failed_trials"), on=keys)
    units = units.join(folds.rename("n_folds"), on=keys)
    zeros = ("seconds", "tuning_seconds", "n_trials", "n_failed_trials", "n_folds", "peak_memory")
    whole = ("n_trials", "n_failed_trials", "n_folds", "peak_memory")
    units[list(zeros)] = units[list(zeros)].astype(float).fillna(0.0)
    return units.astype(dict.fromkeys(whole, int))


def _missing(units: Any, tasks: Any) -> Any:
    """Return one line per dataset and model that is not ok, with the reason."""
    import pandas as pd  # noqa: PLC0415 - heavy

    keys = ["dataset", "model"]
    bad = tasks[tasks["status"] != OK].drop_duplicates(keys)
    first_bad = dict(zip(_keys(bad), bad.itertuples(), strict=True))
    lines = []
    for unit in units[units["status"] != OK].itertuples():
        status, reason, attempts = unit.status, unit.error, 0
        task = first_bad.get((unit.dataset, unit.model))
        if task is not None:
            status, reason, attempts = task.status, task.error, task.attempt
        elif status == OPEN:
            reason = "not finished yet"
        lines.append([unit.dataset, unit.model, status, reason, attempts, unit.n_folds])
    return pd.DataFrame(lines, columns=[*keys, "status", "reason", "attempts", "n_folds"])


def _characters(planned: Any, rows: Any) -> Any:
    """Return what is known of the tables, one line each."""
    import pandas as pd  # noqa: PLC0415 - heavy

    known: dict[str, dict[str, Any]] = {}
    for unit in planned.itertuples():
        info = unit.info if isinstance(unit.info, Mapping) else {}
        known[unit.dataset] = {name: info.get(name) for name in BINS}
    frame = pd.DataFrame.from_dict(known, orient="index", columns=list(BINS), dtype=float)
    if "class_ratio" in rows.columns:  # some experiments measure it
        frame["class_ratio"] = frame["class_ratio"].fillna(
            rows.groupby("dataset")["class_ratio"].first()
        )
    return frame


@dataclass(frozen=True)
class PrintedRanks:
    """Average ranks as a publication prints them, to be set beside ours."""

    place: str  # where they stand
    ranks: Mapping[str, tuple[float, float]]  # average rank and its standard deviation, by model
    critical_distance: float
    n_datasets: int  # that the printed critical distance stands for
    p_value: float | None = None  # of the Friedman test, where one is printed


@dataclass(frozen=True, eq=False)
class Ranking:
    """Some models ranked by one measure."""

    name: str  # for files
    title: str  # for readers
    measure: str  # column of the rows
    # Ranks by what is significant over folds, ties as in competitions: the paper's way, and what
    # the diagram shows. By scores, if there are no folds to test.
    comparison: Comparison
    # "wilcoxon", the paper's; "corrected_t", Nadeau and Bengio's, where that could find nothing;
    # "" if there are no folds to test.
    fold_test: str
    averaged: Comparison  # the same with ties averaged
    by_score: Comparison  # ranks by mean scores, told apart by Nemenyi's test as well
    # Wilcoxon-Holm between models over datasets; None if no pair could be significant
    pairs: Comparison | None
    bayes: "pd.DataFrame | None"  # the reference against each: better, equal, worse
    reference: str  # CoCo, or else the best
    printed: PrintedRanks | None  # if there are any for these models
    notes: tuple[str, ...]  # what was left out or done otherwise, and why


@dataclass(frozen=True)
class NotRanked:
    """Why there is no ranking."""

    name: str
    title: str
    measure: str
    reason: str


def rank(
    rows: Any,
    models: Sequence[str],
    *,
    name: str,
    title: str,
    measure: str = "balanced_accuracy",
    higher_is_better: bool = True,
    missing: str = "drop_datasets",
    printed: PrintedRanks | None = None,
    rope: float | None = ROPE,
    by_pairs: bool = True,
    folds_of_repeats: int = 0,
) -> Ranking | NotRanked:
    """Rank some models by a measure, which is a column of ``rows`` beside dataset, model and fold.

    Models without a row are left out with a note. ``missing`` says what becomes of datasets that
    lack a model: "drop_datasets", "worst" or "raise". Differences within ``rope`` do not matter;
    without one there is no Bayesian comparison. ``folds_of_repeats`` is how many folds each of
    several repeats has: such folds share rows, and only the corrected t-test knows it.
    """

    def without(reason: str) -> NotRanked:
        return NotRanked(name, title, measure, reason)

    notes: list[str] = []
    scores = rows[rows["model"].isin(models)].dropna(subset=[measure])
    there = [model for model in models if (scores["model"] == model).any()]
    lacking = [model for model in models if model not in there]
    if lacking:
        notes.append(f"Without {', '.join(lacking)}, of which there is no result.")
    if len(there) < 2:
        return without("There are results of fewer than two models.")
    table = scores.rename(columns={measure: "score"})[["dataset", "model", "fold", "score"]]
    places = {model: place for place, model in enumerate(there)}
    table = table.sort_values(
        ["dataset", "model", "fold"], key=lambda c: c.map(places) if c.name == "model" else c
    )
    if missing == "drop_datasets" and (reason := _too_few(table)):
        return without(reason)
    options: dict[str, Any] = {"missing": missing, "alpha": ALPHA}
    options["higher_is_better"] = higher_is_better
    fold_test, note = _fold_test(table, len(there))
    if folds_of_repeats:
        fold_test, note = "corrected_t", [REPEATED]
        options["test_fraction"] = 1 / folds_of_repeats
    notes += note
    over_folds: dict[str, Any] = {"ranking": "folds", "fold_test": fold_test} if fold_test else {}
    try:
        by_score = compare(table, **options)
        comparison = compare(table, **options, **over_folds)
        averaged = compare(table, **options, **over_folds, ties="average")
    except CoCoError as error:
        return without(str(error))
    pairs = None
    if by_pairs:
        try:
            pairs = compare(table, **options, test="wilcoxon")
        except CoCoError as error:
            notes.append(f"Without Wilcoxon-Holm over datasets: {error}.")
    notes += _about_missing(comparison)
    reference = next((m for m in REFERENCES if m in there), comparison.models[0])
    bayes = None if rope is None else _bayes(comparison, reference, rope)
    return Ranking(
        name,
        title,
        measure,
        comparison,
        fold_test,
        averaged,
        by_score,
        pairs,
        bayes,
        reference,
        printed if printed and set(there) == set(printed.ranks) else None,
        tuple(notes),
    )


REPEATED = (
    "Folds of several repeats share rows; Nadeau and Bengio's corrected t-test, which allows for "
    "that, ranks the models on a dataset."
)


def _too_few(table: Any) -> str:
    """Say why dropping datasets leaves too few, in words of the report; "" if it does not."""
    n_folds = table.groupby(["dataset", "model"])["fold"].nunique().unstack()
    whole = n_folds.eq(table.groupby("dataset")["fold"].nunique(), axis=0)
    n_whole = int(whole.all(axis=1).sum())
    if len(whole) < 2 or n_whole > 1:
        return ""
    most, n_most = (~whole).sum().idxmax(), int((~whole).sum().max())
    return (
        f"{len(whole) - n_whole} of {len(whole)} datasets lack the full result of some model, "
        f"which leaves too few to compare on; {most} lacks most ({n_most} missing). With "
        f"`bench report --missing worst` a model comes last where its result is missing."
    )


def _fold_test(table: Any, n_models: int) -> tuple[str, list[str]]:
    """Return the test over folds that can be significant, and why it is not the paper's."""
    n_folds = int(table.groupby("dataset")["fold"].nunique().min())
    if n_folds < 2:
        return "", ["Ranked by scores, since there is one fold only."]
    try:
        check_reach(n_folds, n_models, ALPHA, "folds")
    except CoCoError:
        note = (
            f"Over {n_folds} folds no pair of {n_models} models could be significant by Wilcoxon's "
            f"test with Holm's correction; Nadeau and Bengio's corrected t-test is used instead."
        )
        return "corrected_t", [note]
    return "wilcoxon", []


def _about_missing(comparison: Comparison) -> list[str]:
    notes = []
    if comparison.dropped:
        notes.append(
            f"{len(comparison.dropped)} of {len(comparison.dropped) + comparison.n_datasets} "
            f"datasets are left out, because a model has no full result there: "
            f"{listed(comparison.dropped, quoted=False)}."
        )
    if comparison.filled:
        cells = [f"{model} on {dataset}" for dataset, model in comparison.filled]
        notes.append(f"A missing result counts as the worst: {listed(cells, quoted=False)}.")
    return notes


def _bayes(comparison: Comparison, reference: str, rope: float) -> Any:
    """Compare the reference with every other model, on the datasets that both have."""
    import pandas as pd  # noqa: PLC0415 - heavy

    lines = []
    ours = comparison.scores[reference].to_numpy()
    for other in comparison.models:
        theirs = comparison.scores[other].to_numpy()
        both = np.isfinite(ours) & np.isfinite(theirs)
        if other == reference or both.sum() < 2:
            continue
        higher = comparison.higher_is_better
        found = bayesian_signed_rank(ours[both], theirs[both], rope=rope, higher_is_better=higher)
        difference = float(np.mean(ours[both] - theirs[both]))
        lines.append([reference, other, found.first, found.equal, found.second, difference])
    columns = ["first", "second", "first_better", "equal", "second_better", "mean_difference"]
    return pd.DataFrame(lines, columns=columns)


DIGITS = 12  # in which two scores must agree to be a tie
FEWEST = 5  # datasets for a rank correlation
# Character of a table -> (title, edges of the bins, how its values are written)
BINS: Mapping[str, tuple[str, tuple[float, ...], Callable[[float], str]]] = {
    "n_rows": ("rows", (1000, 10_000), lambda x: f"{x:,.0f}"),
    "n_columns": ("columns", (20, 100), lambda x: f"{x:.0f}"),
    "n_classes": ("classes", (3, 10), lambda x: f"{x:.0f}"),
    "class_ratio": ("largest class / smallest", (1.5, 3), lambda x: f"{x:.3g}"),
    "categorical_share": ("share of categorical columns", (0.01, 0.5), lambda x: f"{x:.0%}"),
}


@dataclass(frozen=True, eq=False)
class Leads:
    """One model, the reference, beside others; higher scores are better."""

    reference: str
    scores: "pd.DataFrame"  # datasets x models; NaN where a model lacks folds
    characters: "pd.DataFrame"  # indexed by dataset, with some of the columns of BINS

    @property
    def others(self) -> list[str]:
        """The models that it is compared with."""
        return [model for model in self.scores.columns if model != self.reference]

    def among(self, models: Sequence[str], reference: str) -> "Leads":
        """Return the lead of a model over some of the others."""
        kept = [model for model in self.scores.columns if model in models]
        return Leads(reference, self.scores[kept], self.characters)

    def wins(self) -> "pd.DataFrame":
        """Count the datasets on which the model is better than each other, by their character.

        ``n_tables`` are in the bin, ``n_datasets`` of them have a score of both models. Bins
        without a dataset are left out, and characters that nothing is known of.
        """
        import pandas as pd  # noqa: PLC0415 - heavy

        lines = []
        for character, title, values in self._known():
            for label, inside in bins_of(character, values).items():
                chosen = self.scores[inside]
                lines += [
                    [title, label, len(chosen), other, *count(lead(chosen, self.reference, other))]
                    for other in self.others
                    if len(chosen)
                ]
        columns = ["character", "bin", "n_tables", "other", "n_datasets", "wins", "ties", "losses"]
        return pd.DataFrame(lines, columns=columns)

    def tendencies(self) -> "pd.DataFrame":
        """Correlate the lead over each other model with the character of the tables.

        ``p_holm`` is adjusted for all the lines. Pairs without five datasets are left out, and
        characters that are the same for all tables.
        """
        import pandas as pd  # noqa: PLC0415 - heavy
        from scipy.stats import spearmanr  # noqa: PLC0415

        lines = []
        for _, title, values in self._known():
            for other in self.others:
                both = pd.DataFrame({"x": values, "y": lead(self.scores, self.reference, other)})
                both = both.dropna()
                if len(both) >= FEWEST and np.ptp(both["x"]) > 0 and np.ptp(both["y"]) > 0:
                    found: Any = spearmanr(both["x"], both["y"])
                    lines.append([title, other, len(both), found.statistic, found.pvalue])
        columns = ["character", "other", "n_datasets", "spearman", "p_value"]
        frame = pd.DataFrame(lines, columns=columns)
        return frame.assign(p_holm=holm(frame["p_value"]) if lines else [])

    def extremes(self, other: str, n: int = 5) -> "pd.DataFrame":
        """Return the datasets with the ``n`` largest leads over another model, and deficits."""
        import pandas as pd  # noqa: PLC0415 - heavy

        columns = {"ours": self.scores[self.reference], "theirs": self.scores[other]}
        table = pd.DataFrame(columns).dropna()
        table["lead"] = lead(table, "ours", "theirs")
        table = table.sort_values("lead", ascending=False, kind="stable")
        best, worst = table[table["lead"] > 0].head(n), table[table["lead"] < 0].tail(n)
        return pd.concat([best, worst])

    def _known(self) -> Iterator[tuple[str, str, Any]]:
        """Yield each character that is known, its title, and its values in the order of scores."""
        if self.reference not in self.scores.columns:
            return
        for character, (title, *_) in BINS.items():
            if character in self.characters.columns:
                yield character, title, self.characters[character].reindex(self.scores.index)


def bins_of(character: str, values: Any) -> dict[str, NDArray[np.bool_]]:
    """Return which values lie in each bin of a character, by what the bin is called.

    >>> bins_of("n_classes", [2, 12, float("nan")])["10 or more"]
    array([False,  True, False])
    """
    _, edges, write = BINS[character]
    between = [f"{write(a)} to under {write(b)}" for a, b in pairwise(edges)]
    labels = [f"below {write(edges[0])}", *between, f"{write(edges[-1])} or more"]
    numbers = np.asarray(values, dtype=float)
    places = np.where(np.isnan(numbers), -1, np.digitize(numbers, edges))
    return {label: places == place for place, label in enumerate(labels)}


def lead(scores: Any, reference: str, other: str) -> Any:
    """Return by how much a model leads on each dataset; exactly 0 where two scores tie.

    Means of the same folds may differ in their last digit. Whatever is counted, sorted or
    correlated with would take that for a lead.
    """
    return (scores[reference] - scores[other]).round(DIGITS) + 0.0  # and no -0.0


def count(leads: Any) -> tuple[int, int, int, int]:
    """Return how many leads (of :func:`lead`) are known, and of them wins, ties and losses."""
    known = leads.dropna()
    n = len(known)
    wins, losses = int((known > 0).sum()), int((known < 0).sum())
    return n, wins, n - wins - losses, losses


PAPER_MODELS = ("coco", "dr", "ce", "ksvm", "rf")
PAPER_LOSSES = ("coco", "dr", "ce")
# Models that count all classes alike; comparing these with the others compares the weights. Not
# coco-kernel, which is coco-default on small tables: two seats would shift the others' ranks.
WEIGHTED = (
    *("coco-default", "coco-networks"),
    *("coco-w", "dr-w", "ce-w", "ksvm-w", "rf-w", "hgb-w"),
    *("hgb-raw-w", "lightgbm-w", "catboost-w"),
)
ON_THE_SPHERE = "dot regression on the sphere"


@dataclass(frozen=True, eq=False)
class AccuracyAnalysis:
    """Models judged over folds and datasets, by the measure of the kind of experiment."""

    # by balanced accuracy: the paper's models, the class-weighted ones, and all
    rankings: tuple[Ranking | NotRanked, ...]
    dispersity: tuple[Ranking | NotRanked, ...]  # on test rows, of models that have an embedding
    # Mean and standard deviation of the balanced accuracy over the folds that there are, and where
    # a model lacks some of them, so that it is not compared with others: datasets x models.
    scores: "pd.DataFrame"
    spreads: "pd.DataFrame"
    partial: "pd.DataFrame"
    # One line per model: means of all measures over the datasets that it has all folds of, and
    # ``n_datasets``, how many these are.
    measures: "pd.DataFrame"
    # Of the reference of the first ranking; None if there is none, or if less is better.
    leads: Leads | None
    measure: str = "balanced_accuracy"  # of rankings, scores and spreads
    higher_is_better: bool = True
    asked: tuple[str, ...] = ()  # measures beside those of the kind, that a spec or a user named


def analyse_accuracy(
    findings: Findings,
    missing: str = "drop_datasets",
    printed: Mapping[str, PrintedRanks] | None = None,
    measure: str | None = None,
) -> AccuracyAnalysis:
    """Rank models by balanced accuracy and dispersity, or by what a kind of experiment measures.

    ``missing`` says what becomes of datasets that lack a model: "drop_datasets" or "worst".
    ``printed`` ranks, by measure, are set beside rankings of the same models. ``measure`` is
    another one to rank by, of those that the rows have.
    """
    kind = properties_of(findings.kind)
    higher = kind.higher_is_better
    rope: float | None = ROPE
    if measure is not None and measure != kind.measure:
        _check_measure(findings, measure)
        higher = measure not in LESS_IS_BETTER
        rope = ROPE if higher and not measure.startswith("neg_") else None  # others have units
    measure = measure or kind.measure
    lacking = [m for m in (measure, "dispersity") if m not in findings.rows.columns]
    rows = findings.rows.assign(**dict.fromkeys(lacking, float("nan")))
    models = models_of(findings)
    cells = rows.groupby(["dataset", "model"], sort=False)[measure]
    with_results = [model for model in models if (rows["model"] == model).any()]
    scores = cells.mean().unstack().reindex(columns=with_results).sort_index()
    n_folds = cells.count().unstack().reindex(index=scores.index, columns=scores.columns)
    partial = (n_folds > 0) & n_folds.lt(n_folds.max(axis=1), axis=0)
    options: dict[str, Any] = {"missing": missing, "printed": printed or {}}
    folds = findings.spec["folds"]
    if folds.get("repeats", 1) > 1:
        options["folds_of_repeats"] = folds["outer"]
    groups = _accuracy_groups(models) if kind.task == "classes" else _all_models(models)
    rankings = _rank_groups(
        rows, models, groups, measure=measure, higher_is_better=higher, rope=rope, **options
    )
    reference = next((r.reference for r in rankings if isinstance(r, Ranking)), None)
    complete = scores.mask(partial)
    return AccuracyAnalysis(
        rankings=rankings,
        dispersity=_dispersity(rows, models, **options),
        scores=scores,
        spreads=cells.std().unstack().reindex(index=scores.index, columns=scores.columns),
        partial=partial,
        measures=_measures(rows, scores.notna() & ~partial),
        leads=Leads(reference, complete, findings.characters) if reference and higher else None,
        measure=measure,
        higher_is_better=higher,
        asked=tuple(name for name in findings.rows.columns if _was_asked_for(str(name), findings)),
    )


LESS_IS_BETTER = frozenset({"log_loss", "rmse", "relative_rmse", "mae", "dispersity"})
TAKEN_LATER = frozenset({"auc", "f1"})  # beside scikit-learn's, by `bench measure`


def _was_asked_for(name: str, findings: Findings) -> bool:
    """Say whether a column is a measure that a user asked for, now or when it was run."""
    from sklearn.metrics import get_scorer_names  # noqa: PLC0415 - heavy

    named = {*findings.spec.get("measures", ()), *TAKEN_LATER, *get_scorer_names()}
    return name in named or ":" in name


def _check_measure(findings: Findings, measure: str) -> None:
    """Refuse a measure that no row has."""
    rows = findings.rows
    there = [str(name) for name in rows.select_dtypes("number").columns if name != "fold"]
    if measure not in there:
        raise CoCoError(
            f"{findings.name} has no measure {measure!r}; it has {listed(there, quoted=False)}. "
            f"`bench measure` adds one where predictions were kept"
        )


def printed_ranks(folders: Iterable[Path]) -> Mapping[str, PrintedRanks]:
    """Return ranks that a publication prints, by measure; none if there is no such file.

    They are ``RANKS`` of the first file ``printed.py`` in these folders or the current one.
    """
    files = (Path(folder) / "printed.py" for folder in (*folders, Path.cwd()))
    file = next((file for file in files if file.is_file()), None)
    ranks: Mapping[str, PrintedRanks] = {} if file is None else runpy.run_path(str(file))["RANKS"]
    return ranks


def models_of(findings: Findings) -> list[str]:
    """Return the models of a benchmark: those of the spec in its order, then any others."""
    return list(dict.fromkeys([*findings.spec["models"]["names"], *findings.rows["model"]]))


def _accuracy_groups(models: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    return {
        "paper": ("The paper's models", [m for m in PAPER_MODELS if m in models]),
        "sphere": (f"The paper's models, {ON_THE_SPHERE}", _on_the_sphere(PAPER_MODELS, models)),
        "weighted": ("Models that count classes alike", [m for m in WEIGHTED if m in models]),
        **_all_models(models),
    }


def _all_models(models: Sequence[str]) -> dict[str, tuple[str, list[str]]]:
    return {"all": ("All models", list(models))}


def _dispersity(rows: Any, models: list[str], **options: Any) -> tuple[Ranking | NotRanked, ...]:
    embedded = set(rows.loc[rows["dispersity"].notna(), "model"])
    there = [model for model in models if model in embedded]
    if len(there) < 2:
        return ()
    sphere = _on_the_sphere(PAPER_LOSSES, there)
    groups = {
        "dispersity-paper": ("The paper's losses", [m for m in PAPER_LOSSES if m in there]),
        "dispersity-sphere": (f"The paper's losses, {ON_THE_SPHERE}", sphere),
        "dispersity-all": ("All models with an embedding", there),
    }
    options |= {"measure": "dispersity", "higher_is_better": False, "rope": None}
    return _rank_groups(rows, there, groups, **options)


def _rank_groups(
    rows: Any,
    models: Sequence[str],
    groups: Mapping[str, tuple[str, list[str]]],
    *,
    printed: Mapping[str, PrintedRanks],
    measure: str = "balanced_accuracy",
    **options: Any,
) -> tuple[Ranking | NotRanked, ...]:
    """Rank the models of each group, the last of which has all; others only if they are fewer."""
    *_, everything = groups
    theirs = printed.get(measure)
    return tuple(
        rank(rows, members, name=name, title=title, measure=measure, printed=theirs, **options)
        for name, (title, members) in groups.items()
        if name == everything or (len(members) > 1 and set(members) != set(models))
    )


def _on_the_sphere(names: Sequence[str], there: Sequence[str]) -> list[str]:
    """Return those that there are, with normalised dot regression in place of the printed one.

    As printed, dot regression is at a loss with three classes or more (benchmark/models.py).
    """
    fairer = ["dr-sphere" if name == "dr" else name for name in names]
    return [name for name in fairer if name in there] if "dr-sphere" in there else []


def _measures(rows: Any, complete: Any) -> Any:
    """Return means over folds, then over the datasets that a model has all folds of."""
    kept = rows.select_dtypes("number").columns.difference(["fold", "task_seconds", "class_ratio"])
    per_dataset = rows.groupby(["model", "dataset"], sort=False)[list(kept)].mean()
    there = [(m, d) for m in complete.columns for d in complete.index[complete[m]]]
    per_dataset = per_dataset[per_dataset.index.isin(there)]
    means = per_dataset.groupby("model", sort=False).mean().reindex(complete.columns)
    return means.assign(n_datasets=complete.sum())
