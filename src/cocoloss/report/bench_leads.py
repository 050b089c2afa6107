"""On which tables a model leads and trails, as blocks."""

import numpy as np

from cocoloss.benchmark.characters import BINS
from cocoloss.benchmark.leads import Leads
from cocoloss.benchmark.rankings import ALPHA
from cocoloss.report.document import Block, Cell, Grid, Heading, counted, fixed


def lead_blocks(leads: Leads) -> list[Block]:
    """Return the section; nothing if nothing is known of the tables."""
    grids = [grid for grid in (wins_grid(leads), tendencies_grid(leads)) if grid.rows]
    return [Heading("On which tables"), *grids] if grids else []


def wins_grid(leads: Leads) -> Grid:
    """Return wins, ties and losses of the reference by the tables' character."""
    wins, others = leads.wins(), leads.others
    rows = []
    for (character, label), group in wins.groupby(["character", "bin"], sort=False):
        by_other = group.set_index("other")
        cells = [Cell(f"{character}: {label}"), counted(int(group["n_tables"].max()))]
        for other in others:
            won, tied, lost = by_other.loc[other, ["wins", "ties", "losses"]]
            cells.append(Cell(f"{won} / {tied} / {lost}", float(won - lost), won > lost))
        rows.append(tuple(cells))
    return Grid(
        f"Wins / ties / losses of {leads.reference}",
        ("tables", "datasets", *(f"against {other}" for other in others)),
        tuple(rows),
        caption="By mean balanced accuracy, on those of the datasets on which both have all folds; "
        "bold where it wins more often than it loses.",
    )


def tendencies_grid(leads: Leads) -> Grid:
    """Return how the lead of the reference goes with the tables' character."""
    found, others = leads.tendencies(), leads.others
    rows = []
    for character, group in found.groupby("character", sort=False):
        cells = []
        for other in others:
            line = group[group["other"] == other]
            if not len(line):
                cells.append(fixed(float("nan"), 2))
                continue
            rho, p_value = line[["spearman", "p_holm"]].iloc[0]
            cells.append(Cell(f"{rho:+.2f}", float(rho), bool(p_value < ALPHA)))
        rows.append((Cell(character), *cells))
    return Grid(
        f"What the lead of {leads.reference} goes with",
        ("character", *(f"over {other}" for other in others)),
        tuple(rows),
        caption="Spearman's correlation of the lead in mean balanced accuracy with the character "
        f"of the table, over datasets; bold where it is significant at {ALPHA:g} after Holm's "
        "correction for the whole of this table.",
    )


def extremes_grid(leads: Leads, other: str, n: int = 5) -> Grid:
    """Return the tables on which the reference leads and trails another model the most."""
    found = leads.extremes(other, n)
    known = leads.characters.reindex(index=found.index, columns=list(BINS)).astype(float)
    rows = tuple(
        (
            Cell(dataset),
            Cell(f"{line.lead:+.3f}", float(line.lead)),
            *(fixed(value, 3) for value in (line.ours, line.theirs)),
            *(_character(name, known.loc[dataset, name]) for name in BINS),
        )
        for dataset, line in zip(found.index, found.itertuples(), strict=True)
    )
    return Grid(
        f"{leads.reference} against {other}: the largest leads and deficits",
        ("dataset", "lead", leads.reference, other, *(title for title, *_ in BINS.values())),
        rows,
        caption="By mean balanced accuracy over the outer folds.",
    )


def _character(name: str, value: float) -> Cell:
    return Cell(BINS[name][2](value), value) if np.isfinite(value) else fixed(value, 0)
