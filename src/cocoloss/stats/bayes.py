"""How probable it is that one model is better, or that both are the same for all purposes."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.special import stdtr

from cocoloss._checks import RandomState, as_generator, check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.stats.pairwise import spread, variance_factor
from cocoloss.stats.score_table import DIGITS, Floats, check_finite, check_pair, score_differences

BLOCK = 2**17  # numbers drawn at a time: what fits into a cache


@dataclass(frozen=True)
class Practical:
    """Probabilities of three states of the world, which sum to one."""

    first: float  # the first model is better by more than the rope
    equal: float  # they differ by no more than the rope, the region of practical equivalence
    second: float  # the second model is better by more than the rope


def bayesian_signed_rank(
    first: Any,
    second: Any,
    *,
    rope: float = 0.01,
    higher_is_better: bool = True,
    prior_strength: float = 0.5,
    n_samples: int = 50_000,
    random_state: RandomState = 0,
) -> Practical:
    r"""Compare two models over datasets by the Bayesian signed-rank test.

    Differences :math:`z_1, \dots, z_N` and a pseudo-observation 0 get random weights
    :math:`w \sim \mathrm{Dirichlet}(s, 1, \dots, 1)`, a draw from the posterior of a Dirichlet
    process. For each draw, pairs vote with weight :math:`w_i w_j`: for the first model if
    :math:`z_i + z_j > 2 r`, for the second if it is below :math:`-2 r`, for equality in between.
    The result is how often each of the three has most votes (Benavoli et al., 2017).

    Parameters
    ----------
    first, second : array-like of shape (n_datasets,)
        Mean scores of two models on the same datasets.
    rope : float
        Differences up to this do not matter in practice. 0.01 suits accuracies; there is no
        value that suits every score.
    higher_is_better : bool
        Whether a large score is a good one.
    prior_strength : float
        s: how many datasets the prior belief in equality counts for.
    n_samples : int
        How many draws; the error of a probability is at most half of 1 / sqrt(n_samples).
    random_state : int, Generator, RandomState or None
        Of the draws; fixed by default, so that a table can be made again.

    Returns
    -------
    Practical

    Examples
    --------
    >>> from cocoloss.stats import bayesian_signed_rank
    >>> first = [0.90, 0.85, 0.80, 0.95, 0.70, 0.88]
    >>> bayesian_signed_rank(first, [0.80, 0.75, 0.72, 0.90, 0.60, 0.80]).first > 0.99
    True
    >>> bayesian_signed_rank(first, [0.901, 0.849, 0.801, 0.95, 0.70, 0.88]).equal > 0.99
    True
    """
    differences = _differences(first, second, higher_is_better)[None]
    shares = signed_rank_shares(
        differences,
        rope=rope,
        prior_strength=prior_strength,
        n_samples=n_samples,
        random_state=random_state,
    )
    return Practical(*map(float, shares[0]))


def bayesian_correlated_t(
    first: Any,
    second: Any,
    *,
    rope: float = 0.01,
    higher_is_better: bool = True,
    test_fraction: float | None = None,
) -> Practical:
    r"""Compare two models over the folds of one dataset by the Bayesian correlated t-test.

    The mean difference has a Student posterior of n - 1 degrees of freedom, centred at the mean
    of the differences, with the squared scale
    :math:`(1/n + \rho / (1 - \rho)) \hat\sigma^2`; the correlation of folds :math:`\rho` is
    taken to be the share of the rows that are tested (Corani and Benavoli, 2015). It is the
    Bayesian face of :func:`corrected_t`.

    Parameters
    ----------
    first, second : array-like of shape (n_folds,)
        Scores of two models on the same folds.
    rope, higher_is_better
        As for :func:`bayesian_signed_rank`.
    test_fraction : float, optional
        Share of the rows in each test fold, by default 1 / n_folds.

    Examples
    --------
    >>> from cocoloss.stats import bayesian_correlated_t
    >>> result = bayesian_correlated_t([0.91, 0.93, 0.92, 0.94], [0.85, 0.88, 0.84, 0.86])
    >>> result.first > 0.95
    True
    """
    rope = _check_rope(rope)
    differences = _differences(first, second, higher_is_better)
    n, mean = len(differences), float(differences.mean())
    scale = float(np.sqrt(variance_factor(n, test_fraction)) * spread(differences))
    if scale == 0:  # all folds agree: the posterior is one point
        return Practical(float(mean > rope), float(abs(mean) <= rope), float(mean < -rope))
    above = float(stdtr(n - 1, (mean - rope) / scale))
    below = float(stdtr(n - 1, (-rope - mean) / scale))
    return Practical(above, max(1 - above - below, 0.0), below)


def signed_rank_shares(
    differences: Floats,
    *,
    rope: float,
    prior_strength: float = 0.5,
    n_samples: int = 50_000,
    random_state: RandomState = 0,
) -> Floats:
    """Return how often each region wins, (pairs, 3), of differences (pairs, N) on shared draws."""
    rope = _check_rope(rope)
    n_samples = check_integer(n_samples, "n_samples", minimum=1)
    if not isinstance(prior_strength, Real) or not 0 < float(prior_strength) < np.inf:
        raise CoCoError(f"prior_strength must be a positive number, not {prior_strength!r}")
    generator = as_generator(random_state)
    n_pairs, n = differences.shape
    with_prior = np.concatenate([np.zeros((n_pairs, 1)), differences], axis=1)
    order = np.argsort(with_prior, axis=1)  # once: a draw then costs N, not N^2
    sorted_z = np.take_along_axis(with_prior, order, axis=1)
    slack = 10.0**-DIGITS * (np.abs(sorted_z).max(axis=1) + rope)  # the rope is closed
    wins = np.zeros((n_pairs, 3))
    block = max(1, BLOCK // (n + 1))
    for start in range(0, n_samples, block):
        n_draws = min(block, n_samples - start)
        draws = generator.standard_exponential(size=(n + 1, n_draws))  # Gamma of shape 1
        draws[0] = generator.standard_gamma(float(prior_strength), size=n_draws)
        draws /= draws.sum(axis=0)  # now Dirichlet
        for pair in range(n_pairs):
            votes = _votes(sorted_z[pair], draws[order[pair]], 2 * rope + slack[pair])
            most = votes == votes.max(axis=0)
            wins[pair] += (most / most.sum(axis=0)).sum(axis=1)
    return wins / n_samples


def _votes(z: Floats, weights: Floats, limit: float) -> Floats:
    """Return the votes above the limit, within, and below minus it: (3, draws), z sorted."""
    cumulative = np.zeros((len(weights) + 1, weights.shape[1]))  # (N + 2, draws)
    np.cumsum(weights, axis=0, out=cumulative[1:])
    # For each i: how many j have z_i + z_j <= limit, and how many z_i + z_j < -limit.
    up_to = np.searchsorted(z, limit - z, side="right")
    below = np.searchsorted(z, -limit - z, side="left")
    second = np.einsum("nd,nd->d", weights, cumulative[below])
    first = 1 - np.einsum("nd,nd->d", weights, cumulative[up_to])
    return np.stack([first, 1 - first - second, second])


def _differences(first: Any, second: Any, higher_is_better: bool) -> Floats:
    pair = check_finite(
        np.stack(check_pair(first, second)), "a test with a region of practical equivalence"
    )
    better, worse = pair if higher_is_better else pair[::-1]
    return score_differences(better, worse)


def _check_rope(rope: object) -> float:
    if isinstance(rope, bool) or not isinstance(rope, Real) or not 0 <= float(rope) < np.inf:
        raise CoCoError(f"rope must be a finite number of at least 0, not {rope!r}")
    return float(rope)
