"""What is said about many columns at once: lists cut short, and the warnings of a fit."""

import warnings
from collections.abc import Iterable, Mapping, Sequence

from cocoloss.preprocessing.kinds import CATEGORY, NUMBER, TEXT, Finding

SHOWN = 8
WARNINGS = {  # kind of the columns -> what became of them, and what to do
    TEXT: ("dropped", "Turn such a column into numbers or dates, or keep it as a category by"),
    NUMBER: (
        "read as numbers, with other text as gaps:",
        "Mend that text, or make such a column a category by",
    ),
    CATEGORY: (
        "taken as categories:",
        "Convert such a column by pandas.to_numeric or pandas.to_datetime, or confirm it by",
    ),
}


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
    """Warn once for each kind of column about which there is a remark.

    Parameters
    ----------
    findings : mapping of str to Finding
        What each column turned out to be.
    in_estimator : bool
        Whether the user has an estimator in hand, which has no arguments for columns itself.
    stacklevel : int
        Of the caller, as in :func:`warnings.warn`.
    """
    for kind, (fate, remedy) in WARNINGS.items():
        remarks = {name: f.remark for name, f in findings.items() if f.kind == kind and f.remark}
        if remarks:
            argument = f"categorical_features={_some_names(list(remarks))}"
            message = (
                f"{fate} {some_reasons(remarks)}. {remedy} {how_to_call(argument, in_estimator)}"
            )
            warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


def how_to_call(argument: str, in_estimator: bool) -> str:
    """Say where an argument of the preprocessor goes.

    Examples
    --------
    >>> how_to_call("max_categories=99", in_estimator=True)
    'preprocess=TablePreprocessor(max_categories=99) (from cocoloss.preprocessing)'
    """
    call = f"TablePreprocessor({argument})"
    return f"preprocess={call} (from cocoloss.preprocessing)" if in_estimator else call


def _some_names(names: Sequence[str]) -> str:
    return f"[{', '.join(map(repr, names[:SHOWN]))}{', ...' if len(names) > SHOWN else ''}]"
