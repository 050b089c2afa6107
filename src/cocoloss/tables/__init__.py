"""Tables: read from files of many formats, written, fetched from sources, split into folds.

What a column means to a model (its kind, its scale) is for :mod:`cocoloss.columns` to say.
"""

from cocoloss.tables.sources import (
    BundledSource,
    FileSource,
    FolderSource,
    OpenMLSource,
    Source,
    SuiteEntry,
    TableCheck,
    check_tables,
    load_source,
    suite_entries,
)
from cocoloss.tables.splits import (
    Fold,
    cap_rows,
    forward_folds,
    given_folds,
    grouped_folds,
    named_seed,
    stratified_folds,
    times_of,
)
from cocoloss.tables.table import TASKS, Table, guess_task, make_table, split_target
from cocoloss.tables.table_file import (
    TableFile,
    iter_columns,
    iter_tables,
    open_table,
    read_table,
    write_table,
)

__all__ = [
    "TASKS",
    "BundledSource",
    "FileSource",
    "Fold",
    "FolderSource",
    "OpenMLSource",
    "Source",
    "SuiteEntry",
    "Table",
    "TableCheck",
    "TableFile",
    "cap_rows",
    "check_tables",
    "forward_folds",
    "given_folds",
    "grouped_folds",
    "guess_task",
    "iter_columns",
    "iter_tables",
    "load_source",
    "make_table",
    "named_seed",
    "open_table",
    "read_table",
    "split_target",
    "stratified_folds",
    "suite_entries",
    "times_of",
    "write_table",
]
