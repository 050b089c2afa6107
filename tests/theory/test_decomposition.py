"""The pair sum in three terms, and what it means for a linear embedding (docs/theory.md)."""

import pytest
import torch

from cocoloss.geometry import similarity, simplex_frame
from cocoloss.losses import CoCoLoss
from oracles import minimise, printed_coco

N, D_IN, C, Q = 60, 5, 3, 2


def random_batch(seed, n=12, n_classes=3, q=4):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(n, q, generator=generator, dtype=torch.float64)
    w = torch.rand(n, generator=generator, dtype=torch.float64) + 0.1
    return h, torch.arange(n) % n_classes, w


def target_gram(y, n_classes):
    return torch.tensor(similarity("simplex", n_classes))[y][:, y]


def pair_sum(h, y, n_classes, w=None):
    w = torch.ones(len(y), dtype=h.dtype) if w is None else w
    return w @ (h @ h.T - target_gram(y, n_classes).to(h)).square() @ w


@pytest.mark.parametrize("seed", range(5))
def test_three_terms_that_are_not_negative_add_up_to_the_pair_sum(seed):
    h, y, w = random_batch(seed)
    n = len(y)
    terms = CoCoLoss(3, normalize=False).components(h, y, w)
    assert min(terms) > 0
    torch.testing.assert_close(sum(terms) * n * (n + 1), pair_sum(h, y, 3, w))


def test_the_printed_loss_is_a_share_of_all_pairs_and_a_share_of_the_norms():
    h, y, _ = random_batch(0)
    n = len(y)
    norms = (h.square().sum(1) - 1).square().sum()
    split = pair_sum(h, y, 3) / (n * (n + 1)) + norms / (n + 1)
    torch.testing.assert_close(split, printed_coco(h, y, similarity("simplex", 3)))
    torch.testing.assert_close(split, CoCoLoss(3, normalize=False)(h, y))


def test_the_expanded_form_cancels_in_float32_and_the_three_terms_do_not():
    n, n_classes, q, noise = 2000, 10, 32, 3e-5
    corners = torch.tensor(simplex_frame(n_classes, q, random_state=0), dtype=torch.float32)
    y = torch.arange(n) % n_classes
    expanded_errors, signs = [], []
    for seed in range(8):
        generator = torch.Generator().manual_seed(seed)
        s = corners[y]
        h = s + noise * torch.randn(n, q, generator=generator)

        def expanded(h, s):
            squares = [(a.T @ b).square().sum() for a, b in ((h, h), (h, s), (s, s))]
            return squares[0] - 2 * squares[1] + squares[2]

        exact = pair_sum(h.double(), y, n_classes)
        ours = sum(CoCoLoss(n_classes, normalize=False).components(h, y)).double() * n * (n + 1)
        assert abs(ours / exact - 1) < 1e-2
        value = expanded(h, s).double()
        expanded_errors.append(abs(value / exact - 1))
        signs.append(value < 0)
    assert max(expanded_errors) > 1
    assert any(signs)


@pytest.fixture
def linear_problem():
    """Overlapping classes that no linear map separates: the fit is far from perfect."""
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(N) % C
    x = torch.randn(N, D_IN, generator=generator, dtype=torch.float64)
    x[:, :C] += torch.nn.functional.one_hot(y, C)
    w = torch.rand(N, generator=generator, dtype=torch.float64) + 0.1
    vertices = torch.tensor(simplex_frame(C, Q, random_state=1))[y]  # (N, q)
    return x, y, w, vertices


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("weighted", [False, True])
def test_a_linear_map_that_minimises_the_pair_sum_is_least_squares_up_to_rotation(
    linear_problem, weighted, seed
):
    x, y, w, vertices = linear_problem
    w = w if weighted else torch.ones_like(w)
    root = w.sqrt().unsqueeze(1)
    fit = torch.linalg.lstsq(root * x, root * vertices).solution  # (d, q)
    generator = torch.Generator().manual_seed(seed)
    start = torch.randn(D_IN, Q, generator=generator, dtype=torch.float64) / Q
    found = minimise(lambda m: pair_sum(x @ m, y, C, w) / N**2, start)
    lowest = pair_sum(x @ fit, y, C, w)
    assert lowest > 0.1 * N**2  # nothing is separated here
    torch.testing.assert_close(pair_sum(x @ found, y, C, w), lowest)
    torch.testing.assert_close(found @ found.T, fit @ fit.T, atol=1e-6, rtol=0)
    assert (found - fit).norm() > 0.1  # the same Gram matrix, turned


def test_the_norm_term_moves_the_minimiser_of_the_whole_loss_away_from_least_squares(
    linear_problem,
):
    x, y, _, vertices = linear_problem
    fit = torch.linalg.lstsq(x, vertices).solution.contiguous()
    loss = CoCoLoss(C, normalize=False)
    _, gradient = loss.value_and_grad(x @ fit, y)
    found = minimise(lambda m: loss(x @ m, y), fit)
    assert (x.T @ gradient).norm() > 0.1
    assert loss(x @ found, y) < 0.95 * loss(x @ fit, y)


def test_both_agree_again_where_the_vertices_can_be_fitted_exactly():
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(8) % C
    x = torch.randn(8, 8, generator=generator, dtype=torch.float64)
    vertices = torch.tensor(simplex_frame(C, Q, random_state=1))[y]
    fit = torch.linalg.lstsq(x, vertices).solution.contiguous()
    value, gradient = CoCoLoss(C, normalize=False).value_and_grad(x @ fit, y)
    assert value < 1e-20
    assert (x.T @ gradient).norm() < 1e-10
