"""Tables of any kind in, one finite float32 matrix out; nothing here ever sees the target."""

from cocoloss.preprocessing.converter import FloatConverter
from cocoloss.preprocessing.factory import make_preprocessor
from cocoloss.preprocessing.preprocessor import TablePreprocessor
from cocoloss.preprocessing.settling import settle_kinds

__all__ = ["FloatConverter", "TablePreprocessor", "make_preprocessor", "settle_kinds"]
