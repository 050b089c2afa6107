"""The tables of a benchmark: looked at for the plan, and at hand when their turn comes."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cocoloss.benchmark.keys import TableInfo, seed_of
from cocoloss.benchmark.spec import Spec
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.tables import Table

KEPT_BYTES = 500_000_000  # tables that stay in memory together; larger ones are read again


class Tables:
    """The tables that a spec names, cut down to its row cap.

    Parameters
    ----------
    spec : Spec

    Raises
    ------
    CoCoError
        If there is no such source.

    Examples
    --------
    >>> spec = Spec.from_dict({
    ...     "name": "small",
    ...     "kind": "accuracy",
    ...     "data": {"source": "sklearn", "datasets": ["iris", "wine"], "max_rows": 160},
    ...     "models": {"names": ["rf"]},
    ... })
    >>> [(info.name, info.n_rows) for info in Tables(spec).infos()]
    [('iris', 150), ('wine', 160)]
    """

    def __init__(self, spec: Spec) -> None:
        from cocoloss.tables import load_source  # noqa: PLC0415 - heavy

        self.spec = spec
        with spec.at("data.source"):
            self._source = load_source(resolved(spec.data.source, spec.folder))
        self._fewest = rows_needed(spec)
        self.left_out: dict[str, str] = {}  # tables of a folder that cannot be used, and why
        self._infos: dict[str, TableInfo] = {}
        self._kept: dict[str, Table] = {}
        self._kept_bytes = 0

    def infos(self, on_table: Callable[[str], object] | None = None) -> list[TableInfo]:
        """Read every table and describe it.

        A folder may hold files that are no tables to learn from. Unless the spec names them, they
        are passed over; ``left_out`` then says which, and why.

        Parameters
        ----------
        on_table : callable, optional
            Called with each name before the table is read.

        Raises
        ------
        CoCoError
            If one that was asked for is missing or cannot be read, or none can; the message names
            it.
        """
        there = self._source.names()
        names = list(self.spec.data.datasets) or there
        # What a suite holds was chosen by somebody, as if each were named; a folder just has it.
        may_leave_out = names is there and self.spec.data.source.startswith("folder:")
        # A name that is not there is refused before hours of reading those that are.
        for name in sorted(names, key=lambda name: name in there):
            if on_table is not None:
                on_table(name)
            try:
                self._read(name)
            except CoCoError as error:
                if not may_leave_out:
                    with self.spec.at("data.datasets" if self.spec.data.datasets else ""):
                        raise
                self.left_out[name] = self._said_of(name, error)
        if not self._infos:
            first, why = next(iter(self.left_out.items()))
            raise CoCoError(
                f"none of the {len(names)} tables of {self.spec.data.source} can be used; "
                f"{first}: {why}"
            )
        return [self._infos[name] for name in names if name in self._infos]

    def load(self, dataset: str) -> "Table":
        """Return a table by name."""
        return self._kept[dataset] if dataset in self._kept else self._read(dataset)

    def _said_of(self, name: str, error: CoCoError) -> str:
        """Return one line that reports may show: without what it is said of, and where that is."""
        _, _, folder = resolved(self.spec.data.source, self.spec.folder).partition(":")
        line = " ".join(str(error).split()).replace(f"{folder}{os.sep}", "")
        return line.removeprefix(f"{name}: ")

    def _read(self, name: str) -> "Table":
        from cocoloss.tables import cap_rows  # noqa: PLC0415 - heavy

        table = self._source.load(name)
        if self.spec.data.max_rows:
            seed = seed_of(name, "rows", self.spec.folds.seed)
            table = cap_rows(table, self.spec.data.max_rows, seed)
        if table.n_rows < self._fewest:
            folds = self.spec.folds
            within = "" if table.n_rows < folds.outer else f" with folds.inner = {folds.inner} each"
            raise CoCoError(
                f"{name}: {table.n_rows} rows cannot be split into folds.outer = {folds.outer}"
                f"{within}; ask for fewer folds, or leave the table out"
            )
        info = describe(table)
        known = self._infos.setdefault(name, info)
        if known.fingerprint != info.fingerprint:
            raise CoCoError(f"table {name!r} has changed since the benchmark began; start again")
        size = int(table.X.memory_usage(deep=True).sum())
        if name not in self._kept and self._kept_bytes + size <= KEPT_BYTES:
            self._kept[name] = table
            self._kept_bytes += size
        return table


def rows_needed(spec: Spec) -> int:
    """Return how many rows a table must have to be split as a spec says.

    Every outer fold tests a row at least, and its training rows are split into the inner folds if
    anything is tuned.

    Examples
    --------
    >>> content = {"name": "x", "kind": "accuracy", "data": {"source": "sklearn"}}
    >>> content |= {"models": {"names": ["rf"]}, "folds": {"outer": 2, "inner": 5}}
    >>> rows_needed(Spec.from_dict(content))
    10
    """
    from cocoloss.benchmark.experiments import experiment_of  # noqa: PLC0415 - heavy

    used = getattr(experiment_of(spec), "USES_FOLDS", ("outer", "inner"))
    outer, inner = spec.folds.outer, spec.folds.inner
    tuned = spec.tuning.trials_per_hyperparameter > 0 or any(spec.tuning.trials.values())
    if tuned and "inner" in used:  # of n rows the largest test part has ceil(n / outer)
        return max(outer, -(-inner * outer // (outer - 1)))
    return outer if used else 0


def describe(table: "Table") -> TableInfo:
    """Return what a plan and a report need to know of a table."""
    return TableInfo(
        table.name,
        table.n_rows,
        table.n_features,
        table.n_classes,
        table.fingerprint,
        table.class_ratio,
        len(table.categorical) / max(table.n_features, 1),
    )


def resolved(source: str, folder: Path) -> str:
    """Return a source whose path begins where the spec lies.

    Examples
    --------
    >>> resolved("folder:tables", Path("/home/me/bench"))
    'folder:/home/me/bench/tables'
    >>> resolved("sklearn", Path("/home/me"))
    'sklearn'
    """
    kind, colon, path = source.partition(":")
    if not colon or kind not in {"folder", "file"}:
        return source
    return f"{kind}:{folder / Path(path).expanduser()}"
