"""Tables of any kind in, one finite float32 matrix out; nothing here ever sees the target.

Names are loaded when they are first used: what only transforms does without scikit-learn.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

if TYPE_CHECKING:
    from cocoloss.preprocessing.converter import FloatConverter
    from cocoloss.preprocessing.factory import make_preprocessor
    from cocoloss.preprocessing.preprocessor import TablePreprocessor
    from cocoloss.preprocessing.settling import settle_kinds

__all__ = ["FloatConverter", "TablePreprocessor", "make_preprocessor", "settle_kinds"]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "cocoloss.preprocessing.converter": ["FloatConverter"],
        "cocoloss.preprocessing.factory": ["make_preprocessor"],
        "cocoloss.preprocessing.preprocessor": ["TablePreprocessor"],
        "cocoloss.preprocessing.settling": ["settle_kinds"],
    },
)
