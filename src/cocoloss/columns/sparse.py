"""Wide sparse matrices: a few numbers for each row, by a truncated singular value decomposition.

Tens of thousands of columns would not fit into memory if they were dense, and few of them say much
by themselves. Narrow sparse matrices are read as tables, see :mod:`cocoloss.columns.frames`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from cocoloss._checks import is_sparse, require, state_array, state_part
from cocoloss.columns.column_kinds import NUMBER
from cocoloss.columns.frames import MOST_DENSE, Header, as_dense, check_is_table, read_table
from cocoloss.exceptions import CoCoError

MOST_NUMBERS = 200  # that stand for a row
LEAST_SHARE = 1e-6  # of the largest singular value, below which there is nothing but rounding


def is_wide(X: Any) -> bool:
    """Return whether this is a sparse matrix that is not to be made dense."""
    return is_sparse(X) and X.ndim == 2 and X.shape[1] > MOST_DENSE


def rows_of(X: Any) -> Any:
    """Return a sparse matrix as one whose rows can be chosen: dense, unless it is wide."""
    return X.tocsr() if is_wide(X) else as_dense(X)


def learn_components(
    matrix: Any, most: int, counts: NDArray[Any], variance: float | None = None
) -> NDArray[np.float32] | None:
    """Return what makes up to ``most`` numbers of each row of a sparse matrix, (q, d).

    A row stands for as many as it counts. The variances of the numbers add up to ``variance``, or
    to as much as there are numbers. None where rows do not differ.
    """
    from scipy.sparse import diags_array  # noqa: PLC0415 - what only transforms does without
    from sklearn.decomposition import TruncatedSVD  # noqa: PLC0415 - the same

    most = min(most, *matrix.shape)
    with np.errstate(invalid="ignore"):  # shares of a variance that may be zero, not used here
        found = TruncatedSVD(most, random_state=0).fit(diags_array(np.sqrt(counts)) @ matrix)
    values = found.singular_values_
    components = found.components_[values > LEAST_SHARE * values[0]]
    if not len(components):
        return None
    numbers = matrix @ components.T
    center = np.average(numbers, axis=0, weights=counts)
    total = np.average(np.square(numbers - center), axis=0, weights=counts).sum()
    if not total > LEAST_SHARE**2:
        return None
    wanted = len(components) if variance is None else variance
    return np.ascontiguousarray(components * np.sqrt(wanted / total), dtype=np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseEncoder:
    """What was learnt of a wide sparse matrix: its rows to a finite float32 matrix."""

    header: Header
    scale: NDArray[np.float32]  # (d,), by which columns are multiplied before rows have norm one
    components: NDArray[np.float32]  # (q, d)
    reader: str = "TablePreprocessor"  # who speaks in messages

    @classmethod
    def fit(cls, X: Any, *, estimator: str = "") -> Self:
        """Learn from a sparse matrix.

        Columns are divided by the square root of their root mean square, between leaving them as
        they are, where frequent ones drown the others, and making all alike, where rare ones do.
        """
        reader = estimator or cls.reader
        header = Header(tuple(f"x{j}" for j in range(X.shape[1])))
        matrix = _checked(X, reader)
        mean_squares = np.asarray(matrix.multiply(matrix).sum(axis=0)).ravel() / matrix.shape[0]
        present = mean_squares > 0
        scale = np.where(present, np.where(present, mean_squares, 1.0) ** -0.25, 0.0)
        scale = scale.astype(np.float32)
        components = learn_components(
            _of_norm_one(matrix, scale), MOST_NUMBERS, np.ones(matrix.shape[0])
        )
        if components is None:
            raise CoCoError("no column is left to learn from: the rows of X do not differ")
        return cls(header=header, scale=scale, components=components, reader=reader)

    @property
    def column_names(self) -> list[str]:
        """The names of the columns, ``x0, x1, ...``."""
        return list(self.header.names)

    @cached_property
    def kinds(self) -> dict[str, str]:
        """The kind of each column: all are numbers."""
        return dict.fromkeys(self.header.names, NUMBER)

    @property
    def width(self) -> int:
        """Number of columns of the result."""
        return len(self.components)

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return a matrix of as many columns, sparse or not, as few numbers, (n_rows, width)."""
        from scipy.sparse import csr_array  # noqa: PLC0415 - of this kind of model alone

        if is_sparse(X):
            check_is_table(X, self.reader)
            self.header.locate(
                Header(tuple(f"x{j}" for j in range(X.shape[1]))), self.header.names, self.reader
            )
        else:
            table = read_table(X, self.reader)
            where = self.header.locate(table.header, self.header.names, self.reader)
            block = table.numbers(list(where.values()))
            if block is None:
                raise CoCoError(f"{self.reader} was fitted to numbers alone, and X holds others")
            X = csr_array(block)
        made = _of_norm_one(_checked(X, self.reader), self.scale) @ self.components.T
        return np.ascontiguousarray(made, dtype=np.float32)

    def feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the result's columns, (width,)."""
        self.header.renamed(input_features)
        return np.array([f"svd{k}" for k in range(self.width)], dtype=object)

    def blank_row(self) -> Any:
        """Return a table of one row of zeros, to try a model on."""
        return self.header.row_of(0.0)

    def to_state(self) -> dict[str, Any]:
        """Return the value as nested dicts and arrays."""
        return {
            "n_columns": len(self.header.names),
            "scale": self.scale,
            "components": self.components,
            "reader": self.reader,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Return the value that :meth:`to_state` described, or refuse it with a CoCoError."""
        scale = state_array(state, "scale", np.float32, (None,))
        components = state_array(state, "components", np.float32, (None, len(scale)))
        n_columns = state_part(state, "n_columns", int)
        sound = n_columns == len(scale) > 0 and 0 < len(components) <= MOST_NUMBERS
        require(sound and (scale >= 0).all(), "the numbers of its sparse rows do not fit together")
        header = Header(tuple(f"x{j}" for j in range(n_columns)))
        reader = state_part(state, "reader", str)
        return cls(header=header, scale=scale, components=components, reader=reader)


def _checked(X: Any, reader: str) -> Any:
    """Return a matrix as float32 in rows, or say that it holds what is no finite number."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - where X came from

    if np.iscomplexobj(X):
        raise CoCoError("Complex data not supported: X; pass real and imaginary parts as columns")
    matrix = csr_array(X, dtype=np.float32)
    if not np.isfinite(matrix.data).all():
        raise CoCoError(
            f"X has NaN or infinite values, which {reader} cannot read in a sparse matrix of more "
            f"than {MOST_DENSE} columns; fill or drop them first"
        )
    return matrix


def _of_norm_one(matrix: Any, scale: NDArray[np.float32]) -> Any:
    """Return scaled rows of norm one, those of zeros as they are; the matrix stays as it is."""
    scaled = matrix.copy()
    scaled.data = scaled.data * scale[scaled.indices]
    squares = np.asarray(scaled.multiply(scaled).sum(axis=1)).ravel()
    norms = np.sqrt(np.where(squares > 0, squares, 1.0))
    scaled.data /= np.repeat(norms, np.diff(scaled.indptr)).astype(np.float32)
    return scaled
