"""The CoCo losses against the printed formula, in every form that computes them."""

import itertools
import warnings
from functools import reduce

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cocoloss.exceptions import CoCoError, GeometryWarning
from cocoloss.geometry import SIMILARITIES, similarity, simplex_frame
from cocoloss.losses import BalancedCoCoLoss, CoCoLoss, coco
from cocoloss.losses.moments import Rows, batch_moments, merge
from oracles import on_the_sphere, printed_balanced_coco, printed_coco, value_and_grad

TOLERANCE = {"rtol": 1e-10, "atol": 1e-13}


def batch(n, q, C, seed=0, classes=None):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(n, q, dtype=torch.float64, generator=generator)
    y = torch.randint(0, C, (n,), generator=generator)
    if classes is not None:
        y = torch.tensor(classes)[y % len(classes)]
    return h, y


def in_a_line(C):
    """Make an ordinal similarity."""
    return np.exp(-0.5 * np.abs(np.subtract.outer(np.arange(C), np.arange(C))))


def own_matrix(C):
    """Make one with a diagonal that is not one."""
    return 0.8 * in_a_line(C)


def target(kind, C, q):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GeometryWarning)
        return own_matrix(C) if kind == "matrix" else similarity(kind, C, q)


CASES = {
    "many classes": {"n": 17, "q": 6, "C": 5},
    "two classes on a line": {"n": 9, "q": 1, "C": 2},
    "missing classes": {"n": 11, "q": 7, "C": 6, "classes": [1, 4]},
    "one class": {"n": 8, "q": 5, "C": 4, "classes": [2]},
    "one sample": {"n": 1, "q": 4, "C": 3},
    "two samples": {"n": 2, "q": 4, "C": 3},
    "fewest dimensions of the simplex": {"n": 13, "q": 3, "C": 4},
    "fewer dimensions than the simplex": {"n": 15, "q": 3, "C": 6},
}


def combinations():
    for name, kind in itertools.product(CASES, [*SIMILARITIES, "matrix"]):
        q, C = CASES[name]["q"], CASES[name]["C"]
        exists = q < C - 1 if kind == "welch" else q >= C - 1 or kind in ("packing", "orthoplex")
        if exists and not (kind in ("matrix", "ordinal", "ordinal-simplex") and q < C):
            yield pytest.param(name, kind, id=f"{name}-{kind}")


@pytest.mark.filterwarnings("ignore::cocoloss.exceptions.GeometryWarning")
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("name", "kind"), list(combinations()))
def test_equals_the_printed_formula(name, kind, weighted, form):
    case = CASES[name]
    h, y = batch(**case)
    w = torch.linspace(0, 2, len(y), dtype=torch.float64) if weighted else None
    g = target(kind, case["C"], case["q"])
    loss = CoCoLoss(case["C"], similarity=g if kind == "matrix" else kind, normalize=False)
    expected = value_and_grad(printed_coco, h, y, g, w)
    torch.testing.assert_close(loss.value_and_grad(h, y, w), expected, **TOLERANCE)
    torch.testing.assert_close(value_and_grad(loss, h, y, w), expected, **TOLERANCE)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("name", ["many classes", "one sample", "two samples", "missing classes"])
@pytest.mark.parametrize(
    ("normalize", "norm_weight"), [(True, 1.0), (False, 0.0), (False, 0.1), (True, 3.0)]
)
def test_norms_are_divided_out_or_weigh_what_they_should(
    normalize, norm_weight, name, weighted, form
):
    h, y = batch(**CASES[name])
    C, q = CASES[name]["C"], CASES[name]["q"]
    w = torch.linspace(0.5, 2, len(y), dtype=torch.float64) if weighted else None
    loss = CoCoLoss(C, normalize=normalize, norm_weight=norm_weight)

    def printed(h):
        u = on_the_sphere(h) if normalize else h
        return printed_coco(u, y, similarity("simplex", C, q), w, norm_weight)

    expected = value_and_grad(printed, h)
    torch.testing.assert_close(loss.value_and_grad(h, y, w), expected, **TOLERANCE)
    torch.testing.assert_close(value_and_grad(loss, h, y, w), expected, **TOLERANCE)


def test_norms_are_divided_out_unless_the_papers_form_is_asked_for():
    h, y = batch(n=12, q=5, C=4)
    printed = printed_coco(on_the_sphere(h), y, similarity("simplex", 4))
    torch.testing.assert_close(CoCoLoss(4)(h, y), printed, **TOLERANCE)
    torch.testing.assert_close(BalancedCoCoLoss([0.25] * 4)(h, y), printed, **TOLERANCE)
    assert CoCoLoss(4, normalize=False)(h, y) > 2 * printed


def test_on_the_sphere_the_scale_of_a_row_does_not_matter(form):
    h, y = batch(n=12, q=5, C=4)
    loss = CoCoLoss(4)
    scales = torch.logspace(-3, 3, 12, dtype=torch.float64).unsqueeze(-1)
    value, gradient = loss.value_and_grad(h, y)
    other, scaled = loss.value_and_grad(scales * h, y)
    torch.testing.assert_close(other, value)
    torch.testing.assert_close(scales * scaled, gradient)
    torch.testing.assert_close((gradient * h).sum(-1), torch.zeros(12, dtype=torch.float64))


def test_a_row_without_direction_has_no_gradient(form):
    h, y = batch(n=6, q=4, C=3)
    h[2] = 0
    value, gradient = CoCoLoss(3).value_and_grad(h, y)
    assert value.isfinite()
    assert gradient.isfinite().all()
    assert not gradient[2].any()


def test_second_derivatives_go_through_the_norm():
    h, y = batch(n=5, q=3, C=3)
    loss = CoCoLoss(3, normalize=True, norm_weight=0.5)
    assert torch.autograd.gradgradcheck(lambda x: loss(x, y), h.requires_grad_())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm_weight": -1}, "norm_weight must be a number at least 0, not -1"),
        ({"normalize": "yes"}, "normalize must be True or False, not 'yes'"),
        ({"validate": None}, "validate must be True or False, not None"),
        ({"similarity": own_matrix(3)}, "the diagonal of the similarity.*normalize=False"),
    ],
)
def test_norms_that_cannot_be_are_refused(options, message):
    with pytest.raises(CoCoError, match=message):
        CoCoLoss(3, **options)


PRIORS = [0.5, 0.3, 0.15, 0.05]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_balanced_sum_is_as_printed_and_the_mean_has_the_plain_normalisation(reduction, form):
    h, y = batch(n=14, q=5, C=4)
    g = similarity("simplex", 4)
    if reduction == "sum":
        expected = value_and_grad(printed_balanced_coco, h, y, g, PRIORS)
    else:
        w = torch.tensor([(4 * PRIORS[c]) ** -0.5 for c in y], dtype=torch.float64)
        expected = value_and_grad(printed_coco, h, y, g, w)
    found = BalancedCoCoLoss(PRIORS, reduction=reduction, normalize=False).value_and_grad(h, y)
    torch.testing.assert_close(found, expected, **TOLERANCE)


@pytest.mark.parametrize("balance", [0, 0.25, 0.5, 1.0])
def test_balance_is_the_exponent_of_the_weights_of_pairs(balance, form):
    h, y = batch(n=14, q=5, C=4)
    w = torch.tensor([(4 * PRIORS[c]) ** -balance for c in y], dtype=torch.float64)
    expected = value_and_grad(printed_coco, h, y, similarity("simplex", 4), w)
    loss = BalancedCoCoLoss(PRIORS, balance=balance, normalize=False)
    torch.testing.assert_close(loss.value_and_grad(h, y), expected, **TOLERANCE)
    assert f"balance={balance:g}" in repr(loss)


@pytest.mark.parametrize("balance", [-0.5, float("nan"), "balanced", True])
def test_a_balance_that_is_no_exponent_is_refused(balance):
    with pytest.raises(CoCoError, match="balance must be a number at least 0"):
        BalancedCoCoLoss(PRIORS, balance=balance)


@pytest.mark.parametrize("normalize", [False, True])
def test_uniform_priors_give_the_plain_loss(normalize):
    h, y = batch(n=20, q=5, C=4)
    options = {"normalize": normalize}
    uniform, plain = BalancedCoCoLoss([0.25] * 4, **options), CoCoLoss(4, **options)
    torch.testing.assert_close(uniform(h, y), plain(h, y), **TOLERANCE)
    balanced, the_same = BalancedCoCoLoss(PRIORS, **options), CoCoLoss(4, priors=PRIORS, **options)
    torch.testing.assert_close(balanced(h, y), the_same(h, y), **TOLERANCE)


@given(
    st.integers(0, 10_000), st.integers(1, 40), st.integers(2, 7), st.integers(0, 4), st.booleans()
)
@settings(max_examples=60, deadline=None)
def test_both_forms_give_the_same_numbers(seed, n, C, spare, normalize):
    h, y = batch(n, C - 1 + spare + (C == 2), C, seed)
    w = torch.rand(n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    loss = CoCoLoss(C, normalize=normalize)
    by_pairs = loss.value_and_grad(h, y, w)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco, "gram_is_cheaper", lambda *_: False)
        by_moments = loss.value_and_grad(h, y, w)
    for a, b in zip(by_pairs, by_moments, strict=True):
        torch.testing.assert_close(a, b, **TOLERANCE)


@given(st.integers(0, 10_000), st.booleans())
@settings(max_examples=20, deadline=None)
def test_is_unchanged_by_rotation_and_by_order(seed, normalize):
    h, y = batch(300, 6, 5, seed)
    rotation = torch.linalg.qr(batch(6, 6, 5, seed + 1)[0])[0]
    order = torch.randperm(300, generator=torch.Generator().manual_seed(seed))
    loss = CoCoLoss(5, normalize=normalize)
    torch.testing.assert_close(loss((h @ rotation)[order], y[order]), loss(h, y), **TOLERANCE)


@pytest.mark.parametrize("normalize", [False, True])
def test_vanishes_on_the_simplex_with_zero_gradient(normalize, form):
    C, q = 5, 9
    y = torch.arange(30) % C
    h = torch.tensor(simplex_frame(C, q, random_state=0))[y]
    value, gradient = CoCoLoss(C, normalize=normalize).value_and_grad(h, y)
    assert 0 <= value < 1e-28
    assert gradient.abs().max() < 1e-14


def test_components_are_the_three_terms_of_the_pair_sum(form):
    h, y = batch(n=16, q=6, C=5)
    g = similarity("simplex", 5)
    n = len(y)
    means = {c: h[y == c].mean(0) for c in set(y.tolist())}
    d = h - torch.stack([means[int(c)] for c in y])
    nc2 = sum((means[int(a)] @ means[int(b)] - g[a, b]) ** 2 for a in y for b in y)
    W = d.T @ d
    B = sum(torch.outer(means[int(a)], means[int(a)]) for a in y)
    parts = CoCoLoss(5, normalize=False).components(h, y)
    scale = n * (n + 1)
    torch.testing.assert_close(parts.nc2, nc2 / scale, **TOLERANCE)
    torch.testing.assert_close(parts.nc1_between, 2 * torch.trace(B @ W) / scale, **TOLERANCE)
    torch.testing.assert_close(parts.nc1_within, torch.trace(W @ W) / scale, **TOLERANCE)
    norms = sum((v @ v - 1) ** 2 for v in h) / (n + 1)
    torch.testing.assert_close(sum(parts) + norms, CoCoLoss(5, normalize=False)(h, y), **TOLERANCE)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(0, 1000))
@settings(max_examples=50, deadline=None)
def test_moments_of_chunks_in_any_order_are_those_of_one_pass(sizes, seed):
    C, n = 4, sum(sizes)
    G = torch.tensor(similarity("simplex", C))
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(2, n, 3, dtype=torch.float64, generator=generator) + 100
    y = torch.randint(0, C, (2, n), generator=generator)
    w = torch.rand(2, n, dtype=torch.float64, generator=generator)
    parts = [
        batch_moments(Rows(*(x.contiguous() for x in part), G))
        for part in zip(h.split(sizes, 1), y.split(sizes, 1), w.split(sizes, 1), strict=True)
    ]
    whole = batch_moments(Rows(h, y, w, G))
    for order in (parts, parts[::-1]):
        merged = reduce(merge, order)
        assert merged.count == whole.count
        for name in ("mass", "means", "scatter", "diagonal"):
            a, b = getattr(merged, name), getattr(whole, name)
            torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_components_tell_collapse_from_contrast():
    C = 4
    y = torch.arange(40) % C
    corners = torch.tensor(simplex_frame(C, 3, random_state=0))
    collapsed = CoCoLoss(C, normalize=False).components(torch.eye(4, dtype=torch.float64)[y], y)
    assert collapsed.nc2 > 0.05
    assert max(collapsed.nc1_between, collapsed.nc1_within) < 1e-25
    noise = torch.randn(40, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    noise -= torch.stack([noise[y == c].mean(0) for c in range(C)])[y]
    spread = CoCoLoss(C, normalize=False).components(corners[y] + noise, y)
    assert spread.nc2 < 1e-25
    assert min(spread.nc1_between, spread.nc1_within) > 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CoCoLoss(1), "n_classes must be at least 2"),
        (lambda: CoCoLoss(2.5), "n_classes must be a whole number"),
        (lambda: CoCoLoss(3, similarity="simples"), "similarity must be one of 'simplex'"),
        (lambda: CoCoLoss(3, similarity=np.eye(4)), "4"),
        (lambda: CoCoLoss(3, reduction="none"), "reduction must be one of 'mean', 'sum'"),
        (lambda: CoCoLoss(3, priors=[0.5, 0.5]), "2 values for 3 classes"),
        (lambda: CoCoLoss(2, process_group="all"), "process_group must be a group"),
        (lambda: CoCoLoss(2, process_group=7), "'world' or None, not 7"),
        (lambda: CoCoLoss(2, similarity=np.eye(2) * 1j), "real numbers"),
        (lambda: BalancedCoCoLoss([0.5, 0.6]), "sum to 1.1"),
        (lambda: BalancedCoCoLoss([30, 70]), "divide class counts"),
        (lambda: BalancedCoCoLoss([1.0, 0.0]), "class 1 has 0.0"),
        (lambda: BalancedCoCoLoss([float("nan"), 1.0]), "class 0 has nan"),
        (lambda: BalancedCoCoLoss([1.0]), "at least two classes"),
        (lambda: CoCoLoss(5)(*batch(n=4, q=3, C=5)), "packing"),
        (
            lambda: CoCoLoss(4, similarity=in_a_line(4))(*batch(n=4, q=2, C=4)),
            "nearest",
        ),
        (lambda: CoCoLoss(3, process_group="world")(*batch(4, 3, 3)), "init_process_group"),
        (lambda: CoCoLoss(2)(*batch(n=4, q=1, C=2)), "one dimension.*normalize=False"),
    ],
)
def test_refuses_what_cannot_be_built_or_reached(make, message):
    with pytest.raises(CoCoError, match=message):
        make()
