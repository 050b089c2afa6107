"""Tables of any kind in, one finite float32 matrix out; nothing here ever sees the target.

Names are loaded when they are first used: what only transforms does without scikit-learn.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

if TYPE_CHECKING:
    from cocoloss.columns.converter import FloatConverter
    from cocoloss.columns.factory import make_preprocessor
    from cocoloss.columns.preprocessor import TablePreprocessor
    from cocoloss.columns.settling import settle_kinds

__all__ = ["FloatConverter", "TablePreprocessor", "make_preprocessor", "settle_kinds"]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "cocoloss.columns.converter": ["FloatConverter"],
        "cocoloss.columns.factory": ["make_preprocessor"],
        "cocoloss.columns.preprocessor": ["TablePreprocessor"],
        "cocoloss.columns.settling": ["settle_kinds"],
    },
)
