"""What holds for every loss, in one suite."""

import copy
import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import gradcheck, gradgradcheck
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from cocoloss.exceptions import CoCoError
from cocoloss.geometry import simplex_frame
from cocoloss.losses import (
    BalancedCoCoLoss,
    CoCoLoss,
    CrossEntropyLoss,
    DotRegressionLoss,
    backward_in_chunks,
    base,
)
from oracles import printed_cross_entropy, printed_dot_regression, value_and_grad

C, Q = 4, 5
LOSSES = {
    "coco": lambda **k: CoCoLoss(C, normalize=False, **k),
    "coco on the sphere": lambda **k: CoCoLoss(C, norm_weight=0.5, **k),
    "balanced coco": lambda **k: BalancedCoCoLoss([0.4, 0.3, 0.2, 0.1], normalize=False, **k),
    "dot regression": lambda **k: DotRegressionLoss(C, Q, random_state=0, **k),
    "weighted dot regression": lambda **k: DotRegressionLoss(
        C, Q, random_state=0, class_weight=[1.0, 2.0, 0.5, 3.0], **k
    ),
    "cross-entropy": lambda **k: seeded(lambda: CrossEntropyLoss(C, Q, **k)),
    "weighted cross-entropy": lambda **k: seeded(
        lambda: CrossEntropyLoss(C, Q, class_weight=[1.0, 2.0, 0.5, 3.0], **k)
    ),
}
COCO = ["coco", "coco on the sphere", "balanced coco"]
REDUCTIONS = ["mean", "sum"]
TOLERANCE = {"rtol": 1e-10, "atol": 1e-13}


def seeded(make):
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return make()


@pytest.fixture(params=LOSSES)
def make(request):
    return LOSSES[request.param]


@pytest.fixture(
    params=[*itertools.product(LOSSES, ["gram"]), *itertools.product(COCO, ["moments", "blocks"])],
    ids="-".join,
)
def make_in_form(request, compute_by):
    """Return a loss in each form that it can be computed in: those of samples have one only."""
    name, form = request.param
    compute_by(form)
    return LOSSES[name]


def batch(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(*shape, Q, dtype=torch.float64, generator=generator)
    y = torch.randint(0, C, shape, generator=generator)
    w = torch.rand(*shape, dtype=torch.float64, generator=generator)
    return h, y, w


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_derivatives_are_right_and_the_closed_form_is_what_autograd_says(
    make_in_form, reduction, weighted
):
    h, y, w = batch(7)
    loss = make_in_form(reduction=reduction)
    w = w if weighted else None
    expected = value_and_grad(loss, h, y, w)
    torch.testing.assert_close(loss.value_and_grad(h, y, w), expected, **TOLERANCE)
    h.requires_grad_()
    assert not loss.value_and_grad(h, y, w)[1].requires_grad
    assert gradcheck(lambda h: loss(h, y, w), h)
    assert gradgradcheck(lambda h: loss(h, y, w), h)


@pytest.mark.parametrize("shared", [False, True], ids=["own labels", "shared labels"])
def test_models_in_lockstep_are_the_models_one_by_one(make_in_form, shared):
    K = 3
    h, y, w = batch(K, 13)
    if shared:
        y, w = y[0], w[0]
    loss = make_in_form()
    value, gradient = loss.value_and_grad(h, y, w)
    assert value.shape == (K,)
    assert gradient.shape == h.shape
    for k in range(K):
        args = (y, w) if shared else (y[k], w[k])
        alone = loss.value_and_grad(h[k], *args)
        torch.testing.assert_close((value[k], gradient[k]), alone, **TOLERANCE)

    factors = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
    h.requires_grad_()
    (loss(h, y, w) * factors).sum().backward()
    torch.testing.assert_close(h.grad, gradient * factors[:, None, None], **TOLERANCE)
    assert gradgradcheck(lambda h: loss(h, y[..., :4], w[..., :4]), h[:, :4])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("printed", [printed_dot_regression, printed_cross_entropy])
def test_samplewise_losses_are_as_printed(printed, weighted):
    h, y, w = batch(9)
    w = w if weighted else None
    if printed is printed_dot_regression:
        loss = LOSSES["dot regression"]().double()
        constants = (loss.prototypes,)
    else:
        loss = LOSSES["cross-entropy"]().double()
        constants = (loss.output.weight.detach(), loss.output.bias.detach())
    expected = value_and_grad(printed, h, y, *constants, w)
    torch.testing.assert_close(loss.value_and_grad(h, y, w), expected, **TOLERANCE)


def test_cross_entropy_weighs_classes_and_trains_its_own_layer_as_torch_does():
    h, y, _ = batch(9)
    weight = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64)
    loss = CrossEntropyLoss(C, Q, class_weight=weight).double()
    value = loss(h, y)
    value.backward()
    expected = functional.cross_entropy(loss.output(h), y, weight=weight)
    gradients = torch.autograd.grad(expected, [loss.output.weight, loss.output.bias])
    torch.testing.assert_close(value, expected, **TOLERANCE)
    torch.testing.assert_close([p.grad for p in loss.parameters()], list(gradients), **TOLERANCE)

    loss = CrossEntropyLoss(Q, None)  # of logits, as they are
    assert not list(loss.parameters())
    torch.testing.assert_close(loss(h, y), functional.cross_entropy(h, y), **TOLERANCE)


def test_dot_regression_keeps_its_prototypes_in_the_state():
    first, second = DotRegressionLoss(C, Q), DotRegressionLoss(C, Q)
    assert not torch.equal(first.prototypes, second.prototypes)
    second.load_state_dict(first.state_dict())
    assert torch.equal(first.prototypes, second.prototypes)


def test_dot_regression_in_float32_rounds_its_vertices_once():
    h, y, _ = batch(9)
    h = h.float()
    vertices = torch.tensor(simplex_frame(C, Q, random_state=3)).float()[y]
    residual = (h * vertices).sum(-1) - 1
    value, gradient = DotRegressionLoss(C, Q, random_state=3).value_and_grad(h, y)
    assert torch.equal(value, (residual.square() / 2).sum() / 9)
    assert torch.equal(gradient, residual.unsqueeze(-1) * vertices / 9)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("n", [50, 3000])
def test_half_precision_is_accumulated_in_float32(make, dtype, n):
    h, y, w = batch(n)
    h = (h / Q**0.5).to(dtype)
    loss = make()
    value, gradient = loss.value_and_grad(h, y, w)
    assert gradient.dtype == dtype
    expected, expected_gradient = loss.value_and_grad(h.double(), y, w)
    torch.testing.assert_close(value.double(), expected, rtol=2e-6, atol=0)
    torch.testing.assert_close(
        gradient, expected_gradient.to(dtype), rtol=torch.finfo(dtype).eps, atol=1e-7
    )
    h.requires_grad_()
    loss(h, y, w).backward()
    torch.testing.assert_close(h.grad, gradient, rtol=torch.finfo(dtype).eps, atol=1e-7)


@pytest.mark.parametrize("n", [50, 3000])
@pytest.mark.parametrize("name", ["coco", "balanced coco", "dot regression"])
def test_autocast_does_not_reach_into_the_loss(name, n):
    h, y, _ = batch(n)
    h = h.float()
    loss = LOSSES[name]()
    expected = loss(h, y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(loss(h, y), expected, rtol=1e-7, atol=0)


FORMS_OF_NUMBERS = {
    "an array": lambda a: a,
    "a list": lambda a: a.tolist(),
    "narrow": lambda a: a.astype(np.int16 if a.dtype.kind == "i" else a.dtype),
    "a series of any index": lambda a: pd.Series(a, index=np.arange(len(a))[::-1] + 7),
    "nullable": lambda a: pd.Series(a).convert_dtypes(),
    "backwards in memory": lambda a: a[::-1].copy()[::-1],
    "every second one": lambda a: np.repeat(a, 2)[::2],
    "big-endian": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "boxed": lambda a: a.astype(object),
    "read-only": lambda a: np.frombuffer(a.tobytes(), dtype=a.dtype),
    "tensors in a list": lambda a: list(torch.tensor(a)),
}


@pytest.mark.parametrize("form", FORMS_OF_NUMBERS)
def test_labels_and_weights_come_as_anything_numpy_can_read(make, form):
    h, y, w = batch(6)
    expected = make()(h, y, w)
    labels, weights = (FORMS_OF_NUMBERS[form](values.numpy()) for values in (y, w))
    assert torch.equal(make()(h, labels, weights), expected)
    identity = torch.nn.Identity()
    value = backward_in_chunks(identity, make(), h.requires_grad_(), labels, 4, weights)
    torch.testing.assert_close(value, expected.detach())


def test_a_weight_that_float32_cannot_hold_is_named_as_it_came(make):
    h, y, w = batch(6)
    w[2] = 1e300
    make()(h.double(), y, w)
    with pytest.raises(CoCoError, match=r"row 2 has 1e\+300, which is too large for torch.float32"):
        make()(h.float(), y, w)


def test_labels_that_change_after_the_call_do_not_change_the_gradient(form):
    h, y, w = batch(6)
    h.requires_grad_()
    loss = CoCoLoss(C)
    (expected,) = torch.autograd.grad(loss(h, y, w), h, create_graph=True)
    value = loss(h, y, w)
    y[0] = (y[0] + 1) % C
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        torch.autograd.grad(value, h, create_graph=True)
    assert expected.requires_grad


def test_is_copied_and_pickled(make):
    h, y, _ = batch(6)
    loss = make()
    expected = loss(h, y)
    with torch.no_grad():
        torch.testing.assert_close(loss(h, y), expected)
    torch.testing.assert_close(copy.deepcopy(loss)(h, y), expected)
    torch.testing.assert_close(pickle.loads(pickle.dumps(loss))(h, y), expected)  # noqa: S301


def test_leaves_the_global_seed_alone():
    before = torch.get_rng_state()
    np_before = np.random.get_state()[1].copy()  # noqa: NPY002
    DotRegressionLoss(C, Q, random_state=3)
    CoCoLoss(C)
    assert torch.equal(before, torch.get_rng_state())
    assert np.array_equal(np_before, np.random.get_state()[1])  # noqa: NPY002


H, Y, W = batch(6)
BAD_CALLS = {
    "labels too large": ((H, torch.full((6,), C)), "go from 4 to 4"),
    "labels negative": ((H, torch.full((6,), -1)), "from 0 to 3 for 4 classes"),
    "labels float": ((H, Y.double()), r"must be integers.*labels.long\(\)"),
    "labels boolean": ((H, Y > 1), "not torch.bool"),
    "labels of names": ((H, ["a"] * 6), "labels must be numbers"),
    "labels on meta": ((H, Y.to("meta")), "labels are on the device 'meta'"),
    "labels missing": ((H, np.array([0, 1, 2, 3, 0, None])), "labels must be numbers"),
    "labels too short": ((H, Y[:-1]), r"shape \(6,\), but has shape \(5,\)"),
    "labels one-hot": ((H, functional.one_hot(Y, C)), r"has shape \(6, 4\)"),
    "embeddings of one sample": ((H[0], Y), r"have shape \(5,\)"),
    "embeddings integer": ((H.long(), Y), "floating-point"),
    "embeddings of 8 bits": ((H.to(torch.float8_e4m3fn), Y), r"float8_e4m3fn; use .float\(\)"),
    "embeddings complex": ((H.to(torch.complex64), Y), "floating-point"),
    "embeddings on meta": ((H.to("meta"), Y), "embeddings are on the device 'meta'.*to_empty"),
    "embeddings array": ((H.numpy(), Y), "torch tensor, not ndarray"),
    "no columns": ((H[:, :0], Y), "have 0 columns"),
    "weights too short": ((H, Y, W[:-1]), "sample_weight must have one value per sample"),
    "weights negative": ((H, Y, -W), "finite and not negative"),
    "weights infinite": ((H, Y, W / 0), "finite and not negative"),
    "weights complex": ((H, Y, W * 1j), "sample_weight must be real"),
    "embeddings sparse": ((H.to_sparse(), Y), "must be dense"),
    "weights with gradient": ((H, Y, W.clone().requires_grad_()), "detach it"),
    "empty batch": ((H[:0], Y[:0]), "the batch is empty"),
    "no models": ((H[None][:0], Y), "there must be a model"),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_bad_input_is_a_clear_error(make, case):
    args, message = BAD_CALLS[case]
    for call in (make(), make().value_and_grad):
        with pytest.raises(CoCoError, match=message) as raised:
            call(*args)
        assert isinstance(raised.value, ValueError)
    if case == "empty batch":
        with pytest.raises(CoCoError, match=message):
            make(reduction="sum")(*args)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: DotRegressionLoss(5, 3), "embedding_dim"),
        (lambda: DotRegressionLoss(1, 3), "n_classes must be at least 2"),
        (lambda: DotRegressionLoss(3, 0), "embedding_dim must be at least 1"),
        (lambda: DotRegressionLoss(3, 4, random_state="a"), "random_state"),
        (lambda: CrossEntropyLoss(3, 4, class_weight=[1.0, 2.0]), "each of the 3 classes"),
        (lambda: CrossEntropyLoss(2, 4, class_weight=[1.0, -2.0]), "positive and finite"),
        (lambda: CrossEntropyLoss(2, 4, class_weight="balanced"), "class_weight must hold numbers"),
        (lambda: DotRegressionLoss(3, 4, process_group="world"), "same random_state on all ranks"),
        (lambda: CrossEntropyLoss(3, 4).logits(torch.zeros(2, 4).long()), "floating-point"),
        (lambda: DotRegressionLoss(3, 4)(torch.zeros(2, 5), [0, 1]), "must be 4.*have 5 columns"),
    ],
)
def test_samplewise_losses_refuse_what_cannot_be_built(build, message):
    with pytest.raises(CoCoError, match=message):
        build()


# torch's own compiler looks at the .grad of embeddings, which are no leaf.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
@pytest.mark.parametrize("alone", [False, True], ids=["a step", "the loss alone"])
@pytest.mark.parametrize("name", ["coco", "dot regression", "cross-entropy"])
def test_torch_compile_leaves_the_loss_as_it_is(name, alone):
    torch.compiler.reset()
    make = LOSSES[name]
    graphs = []

    def note(graph, _):
        graphs.append(graph)
        return graph.forward

    network, loss = seeded(lambda: torch.nn.Linear(3, Q)), make()  # cold: it was never called
    x, y, w = torch.randn(30, 3), torch.arange(30) % C, torch.rand(30)
    if alone:
        compiled = torch.compile(loss, backend=note)
        value = compiled(network(x), y, w)
    else:
        compiled = torch.compile(lambda x, y, w: loss(network(x), y, w), backend=note)
        value = compiled(x, y, w)
    value.backward()
    gradient = network.weight.grad.clone()
    network.zero_grad()
    expected = make()(network(x), y, w)
    expected.backward()
    assert torch.equal(value, expected)
    assert torch.equal(gradient, network.weight.grad)
    calls = {str(node.target) for graph in graphs for node in graph.graph.nodes}
    assert not any("sum" in call or "bmm" in call or "cross_entropy" in call for call in calls)
    torch.compiler.reset()


PER_CLASS = {
    "priors": BalancedCoCoLoss,
    "class_weight": lambda shares: CrossEntropyLoss(len(shares), Q, class_weight=shares),
}


@pytest.mark.parametrize("name", PER_CLASS)
@pytest.mark.parametrize("kind", [int, float, "int8", "Int64"])
def test_shares_in_order_of_frequency_are_refused(name, kind):
    shares = pd.Series([0, 2, 2, 1, 2, 1], dtype=kind).value_counts(normalize=True)
    with pytest.raises(CoCoError, match=rf"{name} .*order \[2\S* 1\S* 0\S*\].*{name}.sort_index"):
        PER_CLASS[name](shares)
    PER_CLASS[name](shares.sort_index())
    PER_CLASS[name](pd.Series([0.5, 0.3, 0.2], index=["b", "a", "c"]))


def one_step(loss, h, y, w):
    """Do what a training step does: the loss, its gradient, and the closed form."""
    h = h.detach().clone().requires_grad_()
    loss(h, y, w).sum().backward()
    return loss.value_and_grad(h, y, w)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_unvalidated_losses_never_wait_for_the_device(make_in_form, reduction, weighted):
    # A fake tensor has no numbers: whoever asks for one gets an error.
    loss = make_in_form(reduction=reduction, validate=False)
    with pytest.raises(CoCoError, match="one value per sample"):  # shapes are known all the same
        loss(H, Y[:3])
    with FakeTensorMode(allow_non_fake_inputs=True):
        h, y, w = torch.empty(2, 9, Q), torch.empty(2, 9, dtype=torch.int64), torch.empty(2, 9)
        value, gradient = one_step(loss, h, y, w if weighted else None)
        assert (value.shape, gradient.shape) == ((2,), (2, 9, Q))
        with pytest.raises(Exception, match=r"DataDependent|_local_scalar_dense|data-dependent"):
            one_step(make_in_form(reduction=reduction), h, y, None)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_batch_is_looked_at_once(make, weighted, monkeypatch):
    looks = []
    monkeypatch.setattr(base, "_numbers", lambda *few: torch.stack(few).tolist())
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "numpy", "cpu"):
        original = getattr(torch.Tensor, name)

        def counted(tensor, *args, name=name, original=original, **options):
            looks.append(name)
            return original(tensor, *args, **options)

        monkeypatch.setattr(torch.Tensor, name, counted)
    h, y, w = batch(9)
    for validate, n_looks in ((True, 1), (False, 0)):
        loss = make(validate=validate)
        loss.value_and_grad(h, y, None)  # constants of the loss are made once
        looks.clear()
        loss(h.clone().requires_grad_(), y, w if weighted else None).backward()
        assert len(looks) == n_looks, looks
        looks.clear()
        backward_in_chunks(torch.nn.Linear(Q, Q).double(), loss, h, y, 4, w if weighted else None)
        assert len(looks) == n_looks, looks


def test_every_step_has_a_kernel_on_apple_chips(make_in_form):
    class Kernels(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            used.add(str(function.overloadpacket))
            return function(*args, **(kwargs or {}))

    used = set()
    h, y, w = batch(9)
    loss = make_in_form()
    with Kernels():
        one_step(loss, h, y, w)
    assert used
    assert not used & {"aten.take", "aten.put", "aten.histc", "aten.linalg_eigh"}


@pytest.mark.parametrize("name", LOSSES)
def test_terms_are_pairs_or_samples_of_whole_batches(name):
    loss = LOSSES[name]()
    assert loss.n_terms(64) == (64**2 if name in COCO else 64)
    for size in (2.5, -3, True, "8"):
        with pytest.raises(CoCoError, match="batch_size must be"):
            loss.n_terms(size)
