"""Does the theory show? Posteriors read by the formula, and how near two solvers come."""

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cocoloss.report.document import Block, Cell, Grid, Picture, fixed, number_of, signed, stand_out
from cocoloss.report.figures import COLOURS, new_figure, tidy
from verdicts import versus, versus_grid

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST, PAPER, CLOSED = "norm weight 0", "norm weight 1 (paper)", "closed form"
FORMULA, MATRIX = "formula", "matrix head"
WAYS = ("softmax", FORMULA, "gaussian head", MATRIX)  # in the order of tables
NETWORK_0, NETWORK_1 = f"{FIRST}, {FORMULA}", f"{PAPER}, {FORMULA}"
PAIRS = (  # whose log losses are compared over tables
    (f"{FIRST}, {MATRIX}", NETWORK_0),
    (NETWORK_0, f"{FIRST}, gaussian head"),
    (NETWORK_0, NETWORK_1),
    (NETWORK_0, f"on the sphere, {FORMULA}"),
    (f"{FIRST}, {MATRIX}", f"{PAPER}, {MATRIX}"),
    (f"{CLOSED}, {FORMULA}", NETWORK_0),
    (f"{CLOSED}, {MATRIX}", f"{CLOSED}, {FORMULA}"),
    (f"{CLOSED}, {MATRIX}", f"{FIRST}, {MATRIX}"),
    (f"{CLOSED}, {MATRIX}", f"CoCoClassifier, solver network, {MATRIX}"),
    (f"{CLOSED}, {MATRIX}", "cross-entropy, softmax"),
)
FEWEST = 30  # rows of a point of a reliability curve
LITTLE = 0.02  # of an alignment
UNTRAINED_AT = 0.5  # where epoch 0 is on a log axis


def posterior_parts(file: Path) -> dict[str, Block]:
    """Return how well ``bench/posteriors.py`` reads posteriors off embeddings, and how surely.

    Parameters
    ----------
    file : Path
        One line of JSON per table, split, network and way of reading; with "sums", what networks
        read together on the rows of which one is in doubt; with "bins", a reliability curve.
    """
    lines = _lines(file)
    scores = pd.DataFrame([line for line in lines if not {"sums", "bins"} & set(line)])
    curves = pd.DataFrame([line for line in lines if "bins" in line])
    doubtful = pd.DataFrame([line | line["sums"] for line in lines if "sums" in line])
    n = scores["table"].nunique()
    parts: dict[str, Block] = {
        f"means-{spare:.0f}": _means_grid(
            some, f"Means over {n} tables, q = C" + f" + {spare:.0f}" * (spare > 0)
        )
        for spare, some in scores.groupby("spare")
    }
    beside = (scores["spare"] == 0) & scores["trained"].isin(["cross-entropy", FIRST])
    beside &= scores["read by"] != "gaussian head"
    parts["estimators"] = _means_grid(
        scores[beside | scores["spare"].isna()], f"The closed form, means over {n} tables"
    )
    curves = curves.groupby(["trained", "read by"], sort=False)["bins"].agg(_sum_of_bins)
    some = scores[scores["spare"].isna() | (scores["spare"] == 0)]
    losses = some.groupby(["table", "trained", "read by"])["log loss"].mean().unstack([1, 2])
    losses.columns = [", ".join(key) for key in losses.columns]
    pairs = {
        f"{one} / {other}": (one, other) for one, other in PAIRS if {one, other} <= set(losses)
    }
    return parts | {
        "versus": versus_grid(
            versus(losses, pairs, higher_is_better=False),
            "Log loss: the first against the second, q = C",
            digits=3,
        ),
        "tables": _tables_grid(scores),
        "doubtful": _doubtful_grid(doubtful),
        "sure": _sure_grid(curves),
        "reliability": Picture(
            "posteriors-reliability",
            "How often the predicted class is right, over the probability that it is given",
            lambda: _draw_reliability(curves),
            caption=f"All scored rows of {n} tables and two splits, in ten bins by the "
            "probability of the predicted class, those of 30 and more; the area of a point goes "
            "with its rows. On the dashed line confidence and accuracy are equal; above it, "
            "probabilities are too cautious.",
            label="Reliability curves of networks with and without the norm term and of the "
            "closed form, by the formula and by a calibrated head",
        ),
    }


def _lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _sum_of_bins(bins: pd.Series) -> np.ndarray:
    return np.sum(bins.tolist(), axis=0)  # (bins, 3): rows, summed probability, right


def _means_grid(some: pd.DataFrame, title: str) -> Grid:
    """Return mean scores of each network and way of reading it, with errors over tables."""
    kinds, measures = ["trained", "read by"], ["log loss", "calibration error", "accuracy"]
    paired = "log loss beyond that of norm weight 0 by the formula"
    by_table = some.groupby([*kinds, "table"], sort=False)[measures].mean()
    first = by_table["log loss"].xs((FIRST, FORMULA), level=kinds)
    by_table[paired] = by_table["log loss"].sub(first, level="table")
    of_kinds = by_table.groupby(level=kinds, sort=False)
    trained = list(dict.fromkeys(some["trained"]))
    order = sorted(of_kinds.groups, key=lambda key: (trained.index(key[0]), WAYS.index(key[1])))
    means, errors = of_kinds.mean().loc[order], of_kinds.sem().loc[order]
    columns = [
        stand_out(
            [
                replace(fixed(mean, 3), text=f"{mean:.3f} ± {error:.3f}")
                for mean, error in zip(means[name], errors[name], strict=True)
            ],
            higher_is_better=name == "accuracy",
        )
        for name in measures
    ]
    columns.append(
        [
            replace(signed(mean, 3), text=f"{signed(mean, 3).text} ± {error:.3f}")
            for mean, error in zip(means[paired], errors[paired], strict=True)
        ]
    )
    return Grid(
        title,
        ("network, read by", *measures, paired),
        tuple(
            (Cell(", ".join(key)), *cells)
            for key, *cells in zip(means.index, *columns, strict=True)
        ),
    )


def _tables_grid(scores: pd.DataFrame) -> Grid:
    """Return log losses table by table, of the networks without the norm term and kernels."""
    some = scores[scores["spare"].isna() | (scores["spare"] == 0)]
    by_table = some.groupby(["table", "trained", "read by"], sort=False)["log loss"].mean()
    chosen = [(kind, way) for kind in (FIRST, CLOSED) for way in (FORMULA, MATRIX)]
    table = by_table.unstack([1, 2])[chosen]
    classes = scores.groupby("table")["classes"].first().loc[table.index]
    several = classes > 2
    names = list(table.index)
    counts = [number_of(int(n)) for n in classes]
    for said, which in (("two", ~several), ("more", several)):
        table.loc[said] = table.loc[which[which].index].mean()
        names.append(f"mean of tables with {said} classes")
        counts.append(Cell(""))
    return Grid(
        "Log loss, table by table",
        ("table", "classes", *(", ".join(key) for key in chosen)),
        tuple(
            (Cell(name), n, *stand_out([fixed(x, 3) for x in row], higher_is_better=False))
            for name, n, row in zip(names, counts, table.to_numpy(), strict=True)
        ),
    )


def _doubtful_grid(lines: pd.DataFrame) -> Grid:
    """Return what networks read on rows of which the one without the norm term is in doubt."""
    pooled = lines.drop(columns=["table", "split", "sums"]).groupby("spare").sum()
    shares = pooled.drop(columns="rows").div(pooled["rows"], axis=0)
    return Grid(
        "Rows of tables with two classes that norm weight 0 reads as .75 to .85",
        ("q", "rows", *shares.columns),
        tuple(
            (
                Cell(f"{2 + spare}"),
                number_of(int(pooled["rows"][spare])),
                *(fixed(share, 3) for share in shares.loc[spare]),
            )
            for spare in shares.index
        ),
        caption="Mean probability of the class that norm weight 0 prefers, and how often it is "
        "right.",
    )


def _sure_grid(curves: pd.Series) -> Grid:
    """Return how sure readings are of the class that they predict, and how often it is right."""
    totals = {key: bins.sum(axis=0) for key, bins in curves.items()}
    return Grid(
        "Confidence and accuracy",
        ("network, read by", "rows", "mean confidence", "accuracy", "difference"),
        tuple(
            (
                Cell(", ".join(key)),
                number_of(int(n)),
                fixed(sure / n, 3),
                fixed(right / n, 3),
                signed((sure - right) / n, 3),
            )
            for key, (n, sure, right) in totals.items()
        ),
    )


def _draw_reliability(curves: pd.Series) -> "Figure":
    figure = new_figure((9.0, 3.3))
    kinds = list(dict.fromkeys(kind for kind, _ in curves.index))
    panels = figure.subplots(1, len(kinds), sharex=True, sharey=True)
    for axes, kind in zip(panels, kinds, strict=True):
        axes.plot([0, 1], [0, 1], "--", color="0.6", lw=0.8)
        for number, way in enumerate((FORMULA, MATRIX)):
            n, sure, right = (bins := curves[kind, way])[bins[:, 0] >= FEWEST].T
            colour = COLOURS[number]
            axes.plot(sure / n, right / n, color=colour, label=way, gid=f"curve-{number}")
            axes.scatter(sure / n, right / n, s=6 + 250 * n / n.sum(), color=colour, alpha=0.5)
        axes.set(title=kind, xlabel="probability of the predicted class")
        axes.title.set_size(10)
        tidy(axes, legend=axes is panels[0])
    panels[0].set_ylabel("share that is right")
    return figure


def solver_parts(file: Path) -> dict[str, Block]:
    """Return how near networks come to the closed form in ``bench/two_solvers.py``.

    Parameters
    ----------
    file : Path
        One line of JSON per table and loss and epoch, and one per table for the closed form.
    """
    lines = pd.DataFrame(_lines(file))
    closed = lines[lines["trained"] == CLOSED].set_index("table")
    networks = lines[lines["trained"] != CLOSED].astype({"epoch": int})
    means = networks.groupby(["trained", "epoch"], sort=False).mean(numeric_only=True)
    n = len(closed)
    kinds = list(dict.fromkeys(networks["trained"]))
    parts: dict[str, Block] = {
        "curves": Picture(
            "two-solvers-curves",
            "Networks trained by pairs, beside the closed form",
            lambda: _draw_curves(means, closed.mean(numeric_only=True)),
            caption=f"Means over {n} tables, test rows. Left: centred alignment of kernels with "
            f"that of the closed form; dashed the mean kernel of five networks, dotted two "
            f"networks with each other, both at norm weight 0; grey that of the closed form with "
            f"the classes of the rows. Middle: mean squared norm of an embedding. Right: log loss "
            f"of the posterior by the formula. Grey: the closed form. Epoch 0 is before training.",
            label="Alignment of kernels, squared norm and log loss over epochs",
        )
    }
    for number, kind in enumerate(kinds):
        parts[f"epochs-{number}"] = _epochs_grid(means.loc[kind], f"{kind}, means over {n} tables")
    names = ["alignment with classes", "squared norm", "log loss", "balanced accuracy"]
    return parts | {
        "closed": Grid(
            f"The closed form, means over {n} tables",
            ("tables", *names),
            ((Cell("all"), *(fixed(closed[name].mean(), 3) for name in names)),),
        ),
        "peaks": _peaks_grid(networks, closed),
        "losses": _losses_grid(networks, closed),
    }


def _epochs_grid(means: pd.DataFrame, title: str) -> Grid:
    """Return what kernels and scores are after so many epochs."""
    columns = [
        *(f"alignment {of}" for of in ("with closed form", "of the mean kernel")),
        *(f"alignment {of}" for of in ("with each other", "with classes")),
        *("correlation with closed form", "squared norm", "log loss", "balanced accuracy"),
    ]
    cells = [[fixed(value, 3) for value in means[name]] for name in columns]
    for k, name in enumerate(columns):
        if name != "squared norm":
            cells[k] = stand_out(cells[k], higher_is_better=name != "log loss")
    return Grid(
        title,
        ("epochs", *columns),
        tuple((Cell(f"{epoch:,}"), *row) for epoch, *row in zip(means.index, *cells, strict=True)),
    )


def _peaks_grid(networks: pd.DataFrame, closed: pd.DataFrame) -> Grid:
    """Return when the kernels of networks without the norm term are nearest, table by table."""
    some = networks[networks["trained"] == FIRST].set_index(["table", "epoch"])
    near = some["alignment with closed form"].unstack()
    last = near.columns[-1]
    rows = []
    for name in closed.index:
        peak = near.loc[name].idxmax()
        then = some.loc[(name, peak)]
        rows.append(
            (
                Cell(str(name)),
                fixed(near.loc[name, 0], 3),
                fixed(near.loc[name, peak], 3),
                number_of(int(peak)),
                fixed(then["alignment of the mean kernel"], 3),
                fixed(then["alignment with each other"], 3),
                fixed(closed.loc[name, "alignment with classes"], 3),
                fixed(near.loc[name, last], 3),
            )
        )
    columns = (
        *("table", "untrained", "highest", "at epoch", "of the mean kernel then"),
        *("with each other then", "of the closed form with classes", f"at {last:,}"),
    )
    falls = near.max(axis=1) - near[last]
    return Grid(
        "Alignment at norm weight 0, table by table",
        columns,
        tuple(rows),
        caption=f"From its highest to {last:,} epochs the alignment falls by more than "
        f"{LITTLE:g} on {(falls > LITTLE).sum()} of {len(falls)} tables.",
    )


def _losses_grid(networks: pd.DataFrame, closed: pd.DataFrame) -> Grid:
    """Return when the same networks predict best, and what the closed form has."""
    some = networks[networks["trained"] == FIRST].set_index(["table", "epoch"])
    loss, near = (
        some[name].unstack().loc[closed.index]
        for name in ("log loss", "alignment with closed form")
    )
    last = loss.columns[-1]
    like = pd.Series(
        {name: near.loc[name].corr(-loss.loc[name], "spearman") for name in loss.index}
    )
    apart = near.to_numpy().argmax(axis=1) - loss.to_numpy().argmin(axis=1)
    same, next_to = apart == 0, np.abs(apart) == 1
    columns = (
        *("table", "lowest", "at epoch", f"at {last:,}", "closed form"),
        "rank correlation with alignment",
    )
    return Grid(
        "Log loss at norm weight 0, table by table",
        columns,
        tuple(
            (
                Cell(str(name)),
                fixed(row.min(), 3),
                number_of(int(row.idxmin())),
                fixed(row[last], 3),
                fixed(closed.loc[name, "log loss"], 3),
                signed(like[name], 2),
            )
            for name, row in loss.iterrows()
        ),
        caption=f"By the formula. The nearest epoch is the best one on {same.sum()} of {len(same)} "
        f"tables, and its neighbour among those that were looked at on {next_to.sum()}. The rank "
        f"correlation is over epochs, of alignment with the closed form and log loss with its sign "
        f"turned: at 1 the nearer, the better.",
    )


def _draw_curves(means: pd.DataFrame, closed: pd.Series) -> "Figure":
    figure = new_figure((10.0, 3.4))
    near, norms, losses = figure.subplots(1, 3)
    kinds = list(dict.fromkeys(means.index.get_level_values("trained")))
    for number, kind in enumerate(kinds):
        of_kind, colour = means.loc[kind], COLOURS[number]
        epochs = np.maximum(of_kind.index.to_numpy(float), UNTRAINED_AT)
        drawn = {near: "alignment with closed form", norms: "squared norm", losses: "log loss"}
        for axes, name in drawn.items():
            style = {"marker": "o", "ms": 3.5, "color": colour, "gid": f"curve-{number}"}
            axes.plot(epochs, of_kind[name], label=kind, **style)
        if kind == FIRST:
            near.plot(epochs, of_kind["alignment of the mean kernel"], "--", color=colour)
            near.plot(epochs, of_kind["alignment with each other"], ":", color=colour)
    grey = {near: "alignment with classes", norms: "squared norm", losses: "log loss"}
    for axes, name in grey.items():
        axes.axhline(closed[name], color="0.6", lw=1.5)
    near.set(ylabel="alignment with the closed form", ylim=(0, 1))
    norms.set(ylabel="mean squared norm", ylim=(0, 1.6))
    losses.set(ylabel="log loss by the formula", ylim=(0, None))
    ticks = [UNTRAINED_AT, 1, 10, 100]
    for axes in (near, norms, losses):
        axes.set_xscale("log")
        axes.set_xticks(ticks, ["0", *(f"{tick:,}" for tick in ticks[1:])])
        axes.minorticks_off()
        axes.set_xlabel("epochs")
        tidy(axes, legend=axes is norms)
    return figure
