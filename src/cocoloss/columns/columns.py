"""The columns of a table in fit, remembered and found again: by name, or by position."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cocoloss.columns.remarks import some_of
from cocoloss.columns.tables import Table
from cocoloss.exceptions import CoCoError


class RemembersColumns:
    """What a transformer knows about the columns it was fitted on."""

    n_features_in_: int
    column_names_: list[str]
    matched_by_name_: bool
    feature_names_in_: NDArray[np.object_]  # not there after fitting on a table without names
    _reader = ""  # who speaks in messages, where an estimator lets this one read its tables

    def _speaker(self) -> str:
        return self._reader or type(self).__name__

    def _remember(self, table: Table) -> None:
        self.column_names_ = table.names
        self.matched_by_name_ = table.named
        self.n_features_in_ = table.n_columns
        self.__dict__.pop("feature_names_in_", None)
        if table.names_are_text:
            self.feature_names_in_ = np.array(table.names, dtype=object)

    def _find(self, table: Table, needed: Iterable[str]) -> dict[str, int]:
        """Return where the columns are: by name if both tables have names."""
        if self.matched_by_name_ and table.named:
            where = {name: j for j, name in enumerate(table.names)}
            lacking = [repr(name) for name in needed if name not in where]
            if lacking:
                raise CoCoError(
                    f"X lacks columns that were there in fit: {some_of(lacking)}; "
                    f"it has {some_of(map(repr, table.names))}"
                )
            return where
        if table.n_columns != self.n_features_in_:
            raise CoCoError(
                f"X has {table.n_columns} features, but {self._speaker()} is expecting "
                f"{self.n_features_in_} features as input."
            )
        if hasattr(self, "feature_names_in_"):
            self._warn_of_names("X does not have valid feature names", "with")
        elif table.named and not self.matched_by_name_:
            self._warn_of_names("X has feature names", "without")
        return {name: j for j, name in enumerate(self.column_names_)}

    def _warn_of_names(self, now: str, then: str) -> None:
        message = f"{now}, but {self._speaker()} was fitted {then} feature names"
        # Where transform was called: past the two of that name, and scikit-learn's wrapper of one.
        warnings.warn(message, UserWarning, stacklevel=6)

    def _input_names(self, input_features: Any) -> list[str]:
        """Return the names that the user gives to the columns, or else those of fit."""
        if input_features is None:
            return self.column_names_
        names = [str(name) for name in input_features]
        if hasattr(self, "feature_names_in_") and names != self.column_names_:
            raise CoCoError("input_features is not equal to feature_names_in_")
        if len(names) != self.n_features_in_:
            raise CoCoError(
                f"input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        return names
