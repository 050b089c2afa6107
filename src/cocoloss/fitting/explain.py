"""Why a fitted model says what it says of a row: what each column of the table adds to it.

A contribution is a Shapley value: what a column adds to the prediction when it takes the value of
the row instead of that of a reference, on average over the orders in which columns may do so. The
contributions of a row sum to its prediction less that of the references.

numpy and pandas alone, and any model: it is asked about whole blocks of made-up rows at once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import comb
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cocoloss._checks import check_integer, counted, listed, require, state_array, state_part

# Made-up rows that columns take their values from: some more than columns, since what goes with
# many columns together takes more; fewer where columns are many, and each is dear.
FEWEST_REFERENCES, MOST_REFERENCES = 6, 24
MORE_THAN_COLUMNS = 4
MOST_ASKED = 800  # references times columns
EXACT = 5  # columns up to which all their subsets are tried
KNOWN_ROWS = 1000  # that references are made of
LOOKED_AT = 10_000  # rows of training at once
BLOCK_NUMBERS = 2**21  # of made-up rows at once: 8 MB
SHOWN_ROWS, SHOWN_COLUMNS = 5, 3  # by str
ALL_ROWS = "training rows"
NO_ROWS = "networks hold no training rows; give them as among= to see the nearest"
NO_PLACES = (
    "where they were in the table of fit is not known, since they are means, or it was in blocks, "
    "had rows without a label, or the file is of an earlier version"
)


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why a model predicts what it predicts of some rows.

    Attributes
    ----------
    contributions : DataFrame of shape (n, d)
        What each column of the table adds to ``value``, in its unit; rows are indexed as those of
        the table. Columns that the model does not use add 0.
    base : array of shape (n,)
        What the model says of the references: ``base`` and the contributions of a row sum to
        ``value``.
    value : array of shape (n,)
        What is explained: the probability of a class, or a number.
    of : array of shape (n,)
        The class of each row that is explained, by default the predicted one; of numbers the
        numbers.
    scale : str
        What ``value`` is: "probability", "score" (of heads without probabilities) or "number".
    out_of_range : DataFrame of shape (n, d)
        How far a cell is outside what the column held in training: 0 inside, 1 about a standard
        deviation, infinite for a category that training had not.
    neighbours : DataFrame
        The rows that the learnt kernel finds nearest, the nearest first: for each row of the table
        some lines of ``row`` (its place in the table of ``fit``, or its index in ``among``),
        ``similarity`` and, if known, ``target``.
    note : str
        What the neighbours are, or why there are none; empty if none were asked for.
    """

    contributions: pd.DataFrame
    base: NDArray[np.float64]
    value: NDArray[np.float64]
    of: NDArray[Any]
    scale: str
    out_of_range: pd.DataFrame
    neighbours: pd.DataFrame
    note: str

    def __len__(self) -> int:
        return len(self.contributions)

    @property
    def importances(self) -> pd.Series:
        """Mean size of the contributions of each column, the largest first."""
        sizes = self.contributions.abs().mean()
        return sizes.sort_values(ascending=False, kind="stable")

    def top(self, k: int = 3) -> pd.DataFrame:
        """Return the k columns that count most in each row, (n, 2 k), the strongest first.

        The columns are ``column_1``, ``contribution_1``, ``column_2`` and so on.
        """
        k = min(check_integer(k, "k", minimum=1), self.contributions.shape[1])
        matrix = self.contributions.to_numpy()
        names = self.contributions.columns.to_numpy(dtype=object)
        order = np.argsort(-np.abs(matrix), axis=1, kind="stable")[:, :k]
        strongest = np.take_along_axis(matrix, order, axis=1)
        parts: dict[str, Any] = {}
        for j in range(k):
            parts[f"column_{j + 1}"] = names[order[:, j]]
            parts[f"contribution_{j + 1}"] = strongest[:, j]
        return pd.DataFrame(parts, index=self.contributions.index)

    def __str__(self) -> str:
        what = "number" if self.scale == "number" else f"{self.scale} of the class"
        lines = [f"{counted(len(self), 'row')}: what columns add to the {what}"]
        for i in range(min(len(self), SHOWN_ROWS)):
            lines.append(self._line(i))
            lines += [f"    {each}" for each in self._remarks(i)]
        if len(self) > SHOWN_ROWS:
            lines.append(f"... and {counted(len(self) - SHOWN_ROWS, 'more row', 'more rows')}")
        if self.note not in ("", ALL_ROWS):
            lines.append(f"nearest rows: {self.note}")
        return "\n".join(lines)

    __repr__ = __str__

    def _line(self, i: int) -> str:
        """Return the prediction of a row as a sum."""
        row = self.contributions.iloc[i]
        order = row.abs().sort_values(ascending=False, kind="stable").index[:SHOWN_COLUMNS]
        parts = [f"{name} {row[name]:+.3g}" for name in order]
        rest = row.sum() - row[order].sum()
        parts += [f"others {rest:+.3g}"] if len(row) > len(order) else []
        of = "" if self.scale == "number" else f"{self.of[i]} with "
        said = f"{of}{self.value[i]:.3g}; references {self.base[i]:.3g}"
        return f"row {row.name}: {said}, {', '.join(parts)}"

    def _remarks(self, i: int) -> Iterator[str]:
        cells = self.out_of_range.iloc[i]
        odd = cells[cells > 0].sort_values(ascending=False, kind="stable")
        if len(odd):
            yield f"not as in training: {listed(odd.index)}"
        if len(self.neighbours):
            nearest = i * (len(self.neighbours) // len(self))
            first = {name: part.iloc[nearest] for name, part in self.neighbours.items()}
            target = f" ({first['target']})" if "target" in first else ""
            yield f"nearest: row {first['row']}{target}, similarity {first['similarity']:.3g}"


@dataclass(frozen=True, eq=False)
class Reference:
    """What explanations need of the training rows, beside the function: no row is in it.

    Kernels hold rows; where these are in the table, and what their targets are, is here. Of
    networks there are values of each column instead, which are drawn apart.
    """

    made_up: NDArray[np.float32] | None = None  # (R, d), of networks
    places: NDArray[np.int64] | None = None  # (m,), of the rows that kernels hold
    targets: NDArray[Any] | None = None  # (m,) of classes by position, or numbers (m, t)
    are_all: bool = True  # whether kernels hold all rows of training

    @classmethod
    def of_held(
        cls,
        held: NDArray[np.float32],
        inputs: NDArray[np.float32],
        places: NDArray[np.int64],
        targets: NDArray[Any],
    ) -> Self | None:
        """Find the rows that kernels hold among those of the fit; None if they are not of them."""
        wanted = {row.tobytes(): i for i, row in enumerate(held + 0.0)}  # -0.0 is 0.0
        found = np.full(len(held), -1)
        n_others = 0
        for start in range(0, len(inputs), LOOKED_AT):
            for j, row in enumerate(inputs[start : start + LOOKED_AT] + 0.0, start):
                i = wanted.get(row.tobytes())
                if i is None:
                    n_others += 1
                elif found[i] < 0:
                    found[i] = j
        if (found < 0).any():
            return None
        return cls(None, places[found], targets[found], are_all=not n_others)

    def to_state(self) -> dict[str, Any]:
        """Return the value as a dict of arrays."""
        return {name: part for name, part in vars(self).items() if part is not None}

    @classmethod
    def from_state(cls, state: Any, n_inputs: int, n_held: int) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        require(isinstance(state, Mapping), "its reference must be of type dict")
        made_up = places = targets = None
        if "made_up" in state:
            made_up = state_array(state, "made_up", np.float32, (None, n_inputs))
            require(len(made_up), "it has no references")
        if "places" in state:
            places = state_array(state, "places", np.signedinteger, (n_held,))
            targets = state_part(state, "targets", np.ndarray)
            require(len(targets) == n_held, "it has not one target for each row that it holds")
        return cls(made_up, places, targets, state_part(state, "are_all", bool))


def n_references(p: int) -> int:
    """Return how many references p columns are compared with."""
    n = min(p + MORE_THAN_COLUMNS, MOST_ASKED // p)
    return max(FEWEST_REFERENCES, min(MOST_REFERENCES, n))


def make_references(rows: NDArray[np.float32], origins: Sequence[str]) -> NDArray[np.float32]:
    """Make up rows of the values that rows (n, d) have, column by column, (R, d).

    Each column of the table has evenly spaced quantiles of its values, in an order of its own: a
    Latin hypercube. No row of the table is among them but by chance. ``origins`` are the columns of
    the table that the d inputs come from.
    """
    groups = _groups(origins)
    n = n_references(len(groups))
    generator = np.random.default_rng(0)
    some = rows[np.linspace(0, len(rows) - 1, min(len(rows), KNOWN_ROWS)).astype(int)]
    spaced = ((np.arange(n) + 0.5) / n * len(some)).astype(int)
    made = np.empty((n, rows.shape[1]), dtype=np.float32)
    for columns in groups.values():
        values = some[:, columns]
        order = np.lexsort(values.T[::-1])
        made[:, columns] = values[generator.permutation(order[spaced])]
    return made


def _groups(origins: Sequence[str]) -> dict[str, list[int]]:
    """Return which inputs come from each column of the table."""
    groups: dict[str, list[int]] = {}
    for j, name in enumerate(origins):
        groups.setdefault(name, []).append(j)
    return groups


class Subsets(NamedTuple):
    """Which columns take the value of the row, and what the predictions then weigh."""

    taken: NDArray[np.bool_]  # (R, s, p): by reference, subset and column
    weights: NDArray[np.float64]  # (R, p, s): contributions are their sum with predictions


def make_subsets(n_references: int, p: int) -> Subsets:
    """Return subsets of p columns: all of them if they are few, else those along two orders each.

    The second order is the first one backwards, so that whatever goes with one column, or with two
    of them together, is exact.
    """
    if p <= EXACT:
        taken, weights = _all_subsets(p)
        return Subsets(
            np.broadcast_to(taken, (n_references, *taken.shape)),
            np.broadcast_to(weights, (n_references, *weights.shape)),
        )
    generator = np.random.default_rng(0)
    pairs = [_along_an_order(generator.permutation(p)) for _ in range(n_references)]
    return Subsets(*(np.stack(each) for each in zip(*pairs, strict=True)))


def _all_subsets(p: int) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return all subsets, (2^p, p), and Shapley's weights of them, (p, 2^p)."""
    taken = np.array(list(product([False, True], repeat=p)))
    size = taken.sum(axis=1)
    gain = np.array([1 / (p * comb(p - 1, s - 1)) if s else 0.0 for s in size])  # of one inside
    loss = np.array([1 / (p * comb(p - 1, s)) if s < p else 0.0 for s in size])
    return taken, np.where(taken, gain[:, None], -loss[:, None]).T


def _along_an_order(order: NDArray[np.intp]) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the subsets along an order and back, (2p, p), and the mean gain of each column."""
    p = len(order)
    place = np.argsort(order)
    ahead = place < np.arange(p + 1)[:, None]  # (p + 1, p), from none to all
    behind = ~ahead[1:-1]  # those that come last, from p - 1 of them to one
    weights = np.zeros((p, 2 * p))
    columns = np.arange(p)
    weights[columns, place + 1] += 0.5
    weights[columns, place] -= 0.5
    # behind[i] are the columns from place i + 1 on; none of them is subset 0, all are subset p.
    with_it = np.where(place == 0, p, p + place)
    without = np.where(place == p - 1, 0, p + 1 + place)
    weights[columns, with_it] += 0.5
    weights[columns, without] -= 0.5
    return np.concatenate([ahead, behind]), weights


def explain(
    model: Any, X: Any, of: Any = None, neighbours: int = 3, among: Any = None
) -> Explanation:
    """Explain what a fitted model says of the rows of a table.

    Parameters
    ----------
    model : FittedModel or FittedRegression
    X : table of n rows
    of : class, array of n classes, or int, optional
        Of classes: the one whose probability is explained, of all rows or of each; that with the
        largest if None. Of several numbers: which of them, by position.
    neighbours : int
        How many rows of training are to be found for each row.
    among : table, optional
        Rows among which to look for them, instead of those that the model holds.
    """
    check_integer(neighbours, "neighbours", minimum=0)
    inputs = model.inputs(X)
    index = X.index if isinstance(X, pd.DataFrame) else pd.RangeIndex(len(inputs))
    values = model.scores(inputs)
    chosen, shown = model.explained(values, of)
    groups, names = _groups(model.origins), model.column_names
    added, base = _contributions(model, inputs, chosen, groups)
    matrix = np.zeros((len(inputs), len(names)))
    matrix[:, [names.index(name) for name in groups]] = added
    known = _out_of_range(model.encoder, X, names, len(inputs))
    near, note = _neighbours(model, X, inputs, index, neighbours, among)
    return Explanation(
        contributions=pd.DataFrame(matrix, index=index, columns=names),
        base=base,
        value=np.take_along_axis(values, chosen[:, None], axis=1)[:, 0],
        of=shown,
        scale=model.scale,
        out_of_range=pd.DataFrame(known, index=index, columns=names),
        neighbours=near,
        note=note,
    )


def _references(model: Any) -> NDArray[np.float32]:
    """Return made-up rows: of the rows that kernels hold, those of a fit, or one without values."""
    held = model.held
    if held is not None:
        return make_references(held.rows, model.origins)
    if model.reference is not None and model.reference.made_up is not None:
        return np.asarray(model.reference.made_up)
    return np.asarray(model.inputs(model.encoder.blank_row()))  # a file of an earlier version


def _contributions(
    model: Any,
    inputs: NDArray[np.float32],
    chosen: NDArray[np.intp],
    groups: Mapping[str, list[int]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what columns add to the chosen values of rows, (n, p), and those of references, (n,).

    All rows are compared with the same references along the same orders.
    """
    references, p = _references(model), len(groups)
    taken, weights = make_subsets(len(references), p)
    column = np.empty(inputs.shape[1], dtype=np.intp)  # of the table, of each input
    for k, members in enumerate(groups.values()):
        column[members] = k
    added = np.empty((len(inputs), p))
    n_asked = taken.shape[0] * taken.shape[1]
    step = max(1, BLOCK_NUMBERS // (n_asked * inputs.shape[1]))
    for start in range(0, len(inputs), step):
        rows = inputs[start : start + step]
        made = np.where(taken[..., column], rows[:, None, None], references[:, None])
        said = model.scores(made.reshape(-1, inputs.shape[1]))
        said = said.reshape(len(rows), *taken.shape[:2], -1)
        of = chosen[start : start + step]
        said = said[np.arange(len(rows)), :, :, of]  # (n, R, s)
        added[start : start + step] = np.einsum("rps,nrs->np", weights, said) / len(references)
    base = model.scores(references).mean(axis=0)
    return added, np.asarray(base[chosen])


def _out_of_range(encoder: Any, X: Any, names: Sequence[str], n: int) -> NDArray[np.float64]:
    """Return how far cells are outside what training had, (n, d), if the encoder can tell."""
    found = encoder.cells_out_of_range(X) if hasattr(encoder, "cells_out_of_range") else {}
    far = np.zeros((n, len(names)))
    for j, name in enumerate(names):
        if name in found:
            far[:, j] = found[name]
    return far


def _neighbours(
    model: Any,
    X: Any,
    inputs: NDArray[np.float32],
    index: pd.Index,
    k: int,
    among: Any,
) -> tuple[pd.DataFrame, str]:
    """Return the nearest rows that are known, and what they are."""
    held, reference = model.held, model.reference
    targets = None
    if k == 0:
        return pd.DataFrame(columns=["row", "similarity"]), ""
    if among is not None:
        near = model.kernel(X, among)
        places = among.index if isinstance(among, pd.DataFrame) else np.arange(near.shape[1])
        note = "rows of the table that was given as among="
    elif held is None:
        return pd.DataFrame(columns=["row", "similarity"]), NO_ROWS
    else:
        with model.threads():
            near = held.kernel(inputs, held.rows)
        places, note = np.arange(len(held.rows)), f"rows that the model holds; {NO_PLACES}"
        if reference is not None and reference.places is not None:
            places, targets = reference.places, model.as_targets(reference.targets)
            note = ALL_ROWS
            if not reference.are_all:
                note = f"landmarks: {len(places):,} of the training rows, which the model holds"
    k = min(k, near.shape[1])
    order = np.argsort(-near, axis=1, kind="stable")[:, :k]
    parts: dict[str, Any] = {
        "row": np.asarray(places)[order].ravel(),
        "similarity": np.take_along_axis(near, order, axis=1).ravel(),
    }
    if targets is not None:
        parts["target"] = list(targets[order.ravel()])
    return pd.DataFrame(parts, index=index.repeat(k)), note
