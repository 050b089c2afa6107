"""What cocoloss raises and warns with.

Every refusal of an input is a :class:`CoCoError`, which is also a ``ValueError``, so that code
written for scikit-learn or PyTorch catches it without knowing us.
"""


class CoCoError(ValueError):
    """An input that cannot be used; the message says what came and what to do about it."""


class GeometryError(CoCoError):
    """A class geometry that does not exist in the embedding space."""


class GeometryWarning(UserWarning):
    """A class geometry that is well defined but that no embedding can reach."""


class OrderHint(UserWarning):
    """Classes that come with an order, given to a classifier that does not look at it."""


class MissingMethodError(CoCoError, AttributeError):
    """A method that an estimator does not have with these arguments; ``hasattr`` says so."""
