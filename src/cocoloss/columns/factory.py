"""From the ``preprocess`` argument of an estimator to a transformer."""

from typing import Any

from sklearn.base import clone

from cocoloss.columns.columns import RemembersColumns
from cocoloss.columns.converter import FloatConverter
from cocoloss.columns.preprocessor import TablePreprocessor
from cocoloss.exceptions import CoCoError

AUTO = "auto"


def make_preprocessor(preprocess: Any, reader: str = "") -> Any:
    """Return a new, unfitted transformer.

    Parameters
    ----------
    preprocess : "auto", None or transformer
        ``"auto"`` builds a :class:`TablePreprocessor`, ``None`` a :class:`FloatConverter`, and a
        scikit-learn transformer its clone.
    reader : str, optional
        The estimator that speaks in the messages of the first two.

    Raises
    ------
    CoCoError
        If it is anything else.

    Examples
    --------
    >>> from cocoloss.columns import make_preprocessor
    >>> make_preprocessor("auto")
    TablePreprocessor()
    """
    if preprocess is None:
        preprocess = FloatConverter()
    elif isinstance(preprocess, str) and preprocess == AUTO:
        preprocess = TablePreprocessor()
    if isinstance(preprocess, type):
        raise CoCoError(f"preprocess is the class {preprocess.__name__}; pass an instance of it")
    if not all(hasattr(preprocess, name) for name in ("fit", "transform", "get_params")):
        raise CoCoError(
            f"preprocess must be 'auto', None or a scikit-learn transformer, not {preprocess!r}"
        )
    transformer = clone(preprocess)
    if isinstance(transformer, RemembersColumns):
        transformer._reader = reader  # noqa: SLF001 - no parameter: it changes words only
    return transformer
