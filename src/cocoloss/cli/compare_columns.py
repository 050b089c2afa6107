"""What the columns of anybody's table of scores are: names, scores, or numbers of rows."""

from typing import TYPE_CHECKING, Any

from cocoloss.cli import saying
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    import pandas as pd

NUMBERING = {  # what columns are called that number rows or tables, in small letters
    *("", "column_1", "unnamed: 0", "#", "no", "no.", "nr", "nr.", "number", "row"),
    *("id", "index", "idx", "did", "tid", "data_id", "dataset_id", "task_id", "openml_id"),
}
OF_TABLES = {"did", "tid", "data_id", "dataset_id", "task_id", "openml_id"}
PERCENT = r"\s*([-+]?\d+(?:[.,]\d+)?)\s*%\s*"


def is_number(column: Any) -> bool:
    """Return whether a column holds numbers."""
    from pandas.api.types import is_numeric_dtype  # noqa: PLC0415 - heavy

    return bool(is_numeric_dtype(column))


def first_text(frame: "pd.DataFrame", without: set[str | None]) -> str | None:
    """Return the first column of names: text that is not for the most part numbers."""
    import pandas as pd  # noqa: PLC0415 - heavy

    for column in frame.columns:
        values = frame[column].dropna()
        if column not in without and len(values) and not is_number(values):
            # A column of scores with a "failed" in it is text, but names nothing.
            n_numbers = pd.to_numeric(values, errors="coerce").notna().sum()
            if 2 * n_numbers < len(values):
                return str(column)
    return None


def row_numbers(frame: "pd.DataFrame", without: set[str | None]) -> list[str]:
    """Return the columns of distinct whole numbers that are called as numbers of rows are.

    So is the first column, whatever it is called, if it alone holds nothing but whole numbers.
    """
    others = [str(column) for column in frame.columns if column not in without]
    whole = {column for column in others if _is_whole(frame[column])}
    found = [c for c in others if c in whole and c.strip().lower() in NUMBERING]
    if not found and others and whole == {others[0]} and len(others) > 2:
        found = others[:1]
    return [column for column in found if frame[column].is_unique]


def numbered_tables(frame: "pd.DataFrame") -> str | None:
    """Return the column of a long table that has the numbers of its datasets, such as did."""
    for column in map(str, frame.columns):
        if column.strip().lower() in OF_TABLES and _is_whole(frame[column]):
            return column
    return None


def _is_whole(column: Any) -> bool:
    if not is_number(column) or column.isna().any() or len(column) < 2:
        return False
    return bool((column == column.round()).all())


def without_percent_signs(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table in which 63.7% is 0.637, in columns that are for the most part percents."""
    import pandas as pd  # noqa: PLC0415 - heavy

    read = []
    for column in frame.columns:
        if is_number(frame[column]):
            continue
        texts = frame[column].astype(object)
        shares = texts.dropna().astype(str).str.extract(f"^{PERCENT}$", expand=False).dropna()
        if 2 * len(shares) > texts.notna().sum():
            numbers = pd.to_numeric(shares.str.replace(",", ".")) / 100
            frame = frame.assign(**{str(column): numbers.astype(object).combine_first(texts)})
            read.append(str(column))
    if read:
        saying.note(f"percents are read as shares, 63.7% as 0.637: {saying.some_of(read)}")
    return frame


def chosen_names(text: str | None, there: list[str], what: str) -> list[str]:
    """Return what --models names, in the order of the table; all if it was not said."""
    if text is None:
        return there
    names = [text] if text in there else [name.strip() for name in text.split(",") if name.strip()]
    lacking = [name for name in names if name not in there]
    if lacking or not names:
        name = repr(lacking[0]) if lacking else "nothing"
        raise CoCoError(f"--models names {name}, but the {what} are {saying.some_of(there)}")
    return [name for name in there if name in names]


def check_one_benchmark(frame: "pd.DataFrame", keys: list[str]) -> None:
    """Refuse rows of several benchmarks that tell of the same model, dataset and fold.

    Parameters
    ----------
    frame : DataFrame
        Long, perhaps with the columns spec and spec_hash of ``bench export``.
    keys : list of str
        Columns that tell scores apart.
    """
    columns = [name for name in ("spec", "spec_hash") if name in frame.columns]
    several = [name for name in columns if frame[name].nunique() > 1]
    if not several:
        return
    kinds = frame[columns].drop_duplicates().astype(str)
    names = [f"{kind[0]}@{kind[-1][:6]}" if len(kind) > 1 else kind[0] for kind in kinds.to_numpy()]
    told = f"has rows of {len(names)} benchmarks, {saying.some_of(names)}"
    if frame.dropna(subset=keys).duplicated(keys).any():
        raise CoCoError(
            f"the table {told}, with scores of the same models on the same datasets; compare one "
            f"of them: `bench export --name {names[0]}` writes it alone"
        )
    saying.note(f"the table {told}; they are compared together")
