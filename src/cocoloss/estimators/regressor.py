"""The regressor, as scikit-learn wants it: numbers as target points, by the same solvers.

The work is done elsewhere: the closed form in :mod:`cocoloss.kernels.numbers`, a prediction by the
fitted model.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin

from cocoloss._checks import RandomState
from cocoloss.columns.frames import is_in_blocks
from cocoloss.estimators.base import TableEstimator, part_of
from cocoloss.fitting.model import History
from cocoloss.fitting.regression import FittedRegression
from cocoloss.pace import Pace

if TYPE_CHECKING:
    from cocoloss.fitting.fit_numbers import LeftOutNumbers


@dataclass(eq=False, repr=False)
class CoCoRegressor(RegressorMixin, TableEstimator):
    r"""A regressor that takes any table: numbers as target points, in closed form.

    What :class:`CoCoClassifier` does for classes, for numbers: the conditional mean of the
    standardised target is found by kernels whose metric is learnt from the data, chosen by
    leave-one-out; large tables go by landmarks, and by trees of leaves for what is local. Skewed
    numbers are raised to a power if that predicts them better, which is undone without bias.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default=(128, 128)
        Of networks: units of each hidden layer.
    solver : {"auto", "kernel", "network", "both"}, default="auto"
        "kernel" is the closed form. "network" trains ``n_members`` networks onto the target points;
        each holds out a part of the rows, and stops by it. "both" adds what both say, weighted as
        rows find best that neither has seen. "auto" is "network" if an argument of networks, such
        as ``max_iter``, is given, else "kernel", and "both" from 1,800 rows on.
    landmarks : {"rows", "kmeans"}, default="rows"
        What kernels keep of the table: "rows" are training rows, all of a small table; "kmeans" are
        means of clusters of at least three rows.
    preprocess : "auto", None or transformer, default="auto"
        "auto" takes tables of any kind; None takes finite numbers as they are. A transformer of
        your own gets the rows as often as they weigh, and the numbers.
    max_iter, batch_size, learning_rate_init, weight_decay, n_members, device
        Of networks, as for :class:`CoCoClassifier`.
    time_limit : float, optional
        Seconds that a fit may take; a warning says what was left out to keep to it.
    verbose : bool, default=False
        Whether to say what is tried and how good it is.
    random_state : int, numpy generator or None
        Seed of everything that is drawn.

    Attributes
    ----------
    loo_prediction_ : array of shape (n,) or (n, t)
        Numbers of the rows of ``fit``, each by fits without it: ``loo_score_`` is their R^2.
    quality_ : Quality
        R2 and RMSE of rows that were left out, with standard errors, beside guessing the mean.
    feature_importances_ : array of shape (d,)
        How much the function goes with each column; they sum to one.
    n_features_in_, feature_names_in_
        What ``fit`` has seen.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from cocoloss import CoCoRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> regressor = CoCoRegressor(random_state=0).fit(X, y)
    >>> regressor.loo_score_ > 0.4
    True
    >>> low, high = regressor.predict_interval(X, coverage=0.9).T
    >>> bool(np.mean((low <= y) & (y <= high)) > 0.85)
    True
    """

    hidden_layer_sizes: Sequence[int] = (128, 128)
    _: KW_ONLY
    solver: str = "auto"
    landmarks: str = "rows"
    preprocess: Any = "auto"
    max_iter: int | str = "auto"
    batch_size: int | str = "auto"
    learning_rate_init: float | str = "auto"
    weight_decay: float = 1e-2
    n_members: int = 6
    device: str = "cpu"
    time_limit: float | None = None
    verbose: bool = False
    random_state: RandomState = None

    # What the classifiers have as arguments, too.
    early_stopping = True
    module = None
    learning_rate = activation = n_iter_no_change = "auto"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the preprocessing, the kernels and the intervals.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d), or a table in blocks
            Numbers, categories, dates, booleans, with gaps; kernels also take blocks, as those of
            :class:`CoCoClassifier` do.
        y : array of shape (n,) or (n, t), or the name of a column
            Numbers, without gaps. Of a table in blocks the name of their column, or a Dask Series;
            None where blocks are pairs.
        sample_weight : array of shape (n,), optional
            How often each row counts, as for :class:`CoCoClassifier`: 2 is exactly the row twice.
        """
        pace = Pace(self.time_limit, verbose=self.verbose)  # imports take their part of it
        if is_in_blocks(X, y):
            from cocoloss.fitting.fit_blocks import fit_number_blocks  # noqa: PLC0415

            fit_number_blocks(self, X, y, sample_weight)
            return self
        from cocoloss.fitting.fit_numbers import fit_numbers  # noqa: PLC0415 - scipy's solvers

        fit_numbers(self, X, y, sample_weight, pace)
        return self

    def keep(
        self,
        model: FittedRegression,
        history: History,
        preprocessor: Any,
        loo: "LeftOutNumbers | None" = None,
        honest: Any = None,
    ) -> None:
        """Become fitted."""
        self.model_ = model
        self.history_ = history
        self.preprocessor_ = preprocessor
        self.loo_ = loo
        self.honest_ = honest

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the expected number of each row, of the shape that y had.

        With ``return_std`` also the standard deviation of the truth around it.
        """
        model = self._fitted_model()
        return model.predict_with_deviation(X) if return_std else model.predict(X)

    def predict_quantiles(
        self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> NDArray[np.float64]:
        """Return numbers that the truth is below with these probabilities, (n, quantiles[, t])."""
        return self._fitted_model().predict_quantiles(X, quantiles)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> NDArray[np.float64]:
        """Return the ends of intervals that hold the truth so often, (n, 2[, t]).

        They come from residuals of rows that were left out, and are wide where these were large, or
        where no row of the fit is near.
        """
        return self._fitted_model().predict_interval(X, coverage)

    def outlier_score(self, X: Any) -> NDArray[np.float64]:
        """Return how strange each row is; larger is stranger."""
        return self._fitted_model().outlier_score(X)

    def _measures(self, honest: Any) -> dict[str, Any]:
        from cocoloss.metrics.quality import number_measures  # noqa: PLC0415 - if asked for

        return number_measures(honest.true, honest.predicted, honest.weights)

    def _fitted_model(self) -> FittedRegression:
        model: FittedRegression = super()._fitted_model()
        return model

    loo_prediction_ = part_of("loo_", "prediction")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
