"""Tables of any kind in, one finite float32 matrix out; nothing here ever sees the target.

Names are loaded when they are first used: what only transforms does without scikit-learn.
"""

from typing import TYPE_CHECKING

from cocoloss._late import late_names

if TYPE_CHECKING:
    from cocoloss.columns.column_kinds import settle_kinds
    from cocoloss.columns.preprocessor import FloatConverter, TablePreprocessor, make_preprocessor
    from cocoloss.columns.raw_frame import RawFrame

__all__ = ["FloatConverter", "RawFrame", "TablePreprocessor", "make_preprocessor", "settle_kinds"]

__getattr__, __dir__ = late_names(
    __name__,
    {
        "cocoloss.columns.column_kinds": ["settle_kinds"],
        "cocoloss.columns.preprocessor": [
            "FloatConverter",
            "TablePreprocessor",
            "make_preprocessor",
        ],
        "cocoloss.columns.raw_frame": ["RawFrame"],
    },
)
