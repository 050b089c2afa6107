"""The tables of a benchmark: looked at for the plan, and at hand when their turn comes."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cocoloss.benchmark.keys import TableInfo, seed_of
from cocoloss.benchmark.spec import Spec
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.data import Table

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
        from cocoloss.data import load_source  # noqa: PLC0415 - heavy

        self.spec = spec
        self._source = load_source(resolved(spec.data.source, spec.folder))
        self._infos: dict[str, TableInfo] = {}
        self._kept: dict[str, Table] = {}
        self._kept_bytes = 0

    def infos(self, on_table: Callable[[str], object] | None = None) -> list[TableInfo]:
        """Read every table and describe it.

        Parameters
        ----------
        on_table : callable, optional
            Called with each name before the table is read.

        Raises
        ------
        CoCoError
            If one is missing or cannot be read; the message names it.
        """
        there = self._source.names()
        names = list(self.spec.data.datasets) or there
        # A name that is not there is refused before hours of reading those that are.
        for name in sorted(names, key=lambda name: name in there):
            if on_table is not None:
                on_table(name)
            self._read(name)
        return [self._infos[name] for name in names]

    def load(self, dataset: str) -> "Table":
        """Return a table by name."""
        return self._kept[dataset] if dataset in self._kept else self._read(dataset)

    def _read(self, name: str) -> "Table":
        from cocoloss.data import cap_rows  # noqa: PLC0415 - heavy

        table = self._source.load(name)
        if self.spec.data.max_rows:
            seed = seed_of(name, "rows", self.spec.folds.seed)
            table = cap_rows(table, self.spec.data.max_rows, seed)
        info = describe(table)
        known = self._infos.setdefault(name, info)
        if known.fingerprint != info.fingerprint:
            raise CoCoError(f"table {name!r} has changed since the benchmark began; start again")
        size = int(table.X.memory_usage(deep=True).sum())
        if name not in self._kept and self._kept_bytes + size <= KEPT_BYTES:
            self._kept[name] = table
            self._kept_bytes += size
        return table


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
