"""What is said about many columns at once: lists cut short, and the warnings of a fit."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

from cocoloss.columns.kinds import (
    CATEGORY,
    MIXTURE,
    NUMBER,
    STRAYS,
    TEXT,
    THOUSANDS,
    UNCLEAR_DATES,
    Finding,
)

SHOWN = 8
AS_CATEGORY = "categorical_features={names}"
BY_ORDER = "day_first=True or day_first=False"
# What became of columns (kind), and what the remark is about -> how to say it, what to do, and by
# which argument.
WARNINGS = {
    (TEXT, TEXT): (
        "dropped",
        "Turn such a column into numbers or dates, or keep it as a category by",
        AS_CATEGORY,
    ),
    (TEXT, UNCLEAR_DATES): (
        "dropped",
        "Convert such a column by pandas.to_datetime, or say whether day or month is first by",
        BY_ORDER,
    ),
    (NUMBER, STRAYS): (
        "read as numbers, with other text as gaps:",
        "Mend that text, or make such a column a category by",
        AS_CATEGORY,
    ),
    (NUMBER, THOUSANDS): (
        "read with points between thousands, as decimal marks are commas:",
        "If they are decimal points, say so by",
        "decimal='.'",
    ),
    (CATEGORY, MIXTURE): (
        "taken as categories:",
        "Convert such a column by pandas.to_numeric, or confirm it by",
        AS_CATEGORY,
    ),
    (CATEGORY, UNCLEAR_DATES): (
        "taken as categories:",
        "Convert such a column by pandas.to_datetime, or say whether day or month is first by",
        BY_ORDER,
    ),
}


class ColumnsWarning(UserWarning):
    """A warning about columns, in two halves: what was made of them, and what to do.

    Attributes
    ----------
    what : str
        The first half, for those who have another remedy at hand, such as an option.
    about : str
        Which sort of warning it is.
    """

    def __init__(self, what: str, remedy: str, about: str) -> None:
        super().__init__(f"{what}. {remedy}")
        self.what = what
        self.about = about


def some_of(items: Iterable[str], separator: str = ", ") -> str:
    """Return the first few of a list, and how many more there are.

    Examples
    --------
    >>> some_of(["'a'", "'b'"])
    "'a', 'b'"
    >>> some_of(f"x{j}" for j in range(100))
    'x0, x1, x2, x3, x4, x5, x6, x7 and 92 more'
    """
    items = list(items)
    more = f" and {len(items) - SHOWN} more" if len(items) > SHOWN else ""
    return separator.join(items[:SHOWN]) + more


def some_reasons(reasons: Mapping[str, str]) -> str:
    """Return the first few columns with what is to be said about each.

    Examples
    --------
    >>> some_reasons({"a": "constant", "b": "no value"})
    "'a' (constant); 'b' (no value)"
    """
    return some_of((f"{name!r} ({reason})" for name, reason in reasons.items()), "; ")


def warn_of_findings(
    findings: Mapping[str, Finding], *, in_estimator: bool, stacklevel: int
) -> None:
    """Warn once for each sort of remark.

    Parameters
    ----------
    findings : mapping of str to Finding
        What each column turned out to be.
    in_estimator : bool
        Whether the user has an estimator in hand, which has no arguments for columns itself.
    stacklevel : int
        Of the caller, as in :func:`warnings.warn`.
    """
    for (kind, about), (fate, remedy, argument) in WARNINGS.items():
        remarks = {n: f.remark for n, f in findings.items() if (f.kind, f.about) == (kind, about)}
        if remarks:
            call = how_to_call(argument.format(names=_some_names(list(remarks))), in_estimator)
            warning = ColumnsWarning(f"{fate} {some_reasons(remarks)}", f"{remedy} {call}", about)
            warnings.warn(warning, stacklevel=stacklevel + 1)


def how_to_call(argument: str, in_estimator: bool) -> str:
    """Say where an argument of the preprocessor goes.

    Examples
    --------
    >>> how_to_call("max_categories=99", in_estimator=True)
    'preprocess=TablePreprocessor(max_categories=99) (from cocoloss.columns)'
    """
    call = f"TablePreprocessor({argument})"
    return f"preprocess={call} (from cocoloss.columns)" if in_estimator else call


def _some_names(names: Sequence[str]) -> str:
    return f"[{', '.join(map(repr, names[:SHOWN]))}{', ...' if len(names) > SHOWN else ''}]"
