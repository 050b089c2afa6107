"""Tables: read from any file, written whole, fetched from sources, dealt into folds."""

from cocoloss.data.cache import FileCache, default_cache_folder
from cocoloss.data.folders import FolderSource
from cocoloss.data.openml import OpenMLSource, SuiteEntry, suite_entries
from cocoloss.data.reading import Writing, find_writing, iter_tables, read_table
from cocoloss.data.sources import (
    BundledSource,
    FileSource,
    Source,
    TableCheck,
    check_tables,
    load_source,
)
from cocoloss.data.splits import Fold, cap_rows, named_seed, stratified_folds
from cocoloss.data.table import Table, make_table
from cocoloss.data.target import split_target
from cocoloss.data.verbatim import iter_columns
from cocoloss.data.writing import check_suffix, write_table

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
    "read_table",
    "split_target",
    "stratified_folds",
    "suite_entries",
    "write_table",
]
