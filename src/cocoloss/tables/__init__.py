"""Tables: read from any file, written whole, fetched from sources, dealt into folds."""

from cocoloss.tables.cache import FileCache, default_cache_folder
from cocoloss.tables.folders import FolderSource
from cocoloss.tables.formats import check_suffix
from cocoloss.tables.openml import OpenMLSource, SuiteEntry, suite_entries
from cocoloss.tables.sources import (
    BundledSource,
    FileSource,
    Source,
    TableCheck,
    check_tables,
    load_source,
)
from cocoloss.tables.splits import Fold, cap_rows, named_seed, stratified_folds
from cocoloss.tables.table import Table, make_table
from cocoloss.tables.table_file import (
    TableFile,
    Writing,
    find_writing,
    iter_columns,
    iter_tables,
    open_table,
    read_table,
    write_table,
)
from cocoloss.tables.target import split_target

__all__ = [
    "BundledSource",
    "FileCache",
    "FileSource",
    "Fold",
    "FolderSource",
    "OpenMLSource",
    "Source",
    "SuiteEntry",
    "Table",
    "TableCheck",
    "TableFile",
    "Writing",
    "cap_rows",
    "check_suffix",
    "check_tables",
    "default_cache_folder",
    "find_writing",
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
    "write_table",
]
