"""Networks of the user's own, in a fit."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_wine
from torch import nn

from cocoloss import CoCoClassifier, CrossEntropyClassifier

X, Y = load_wine(return_X_y=True)


def quick(module, make=CoCoClassifier, **arguments):
    options = {"max_iter": 8, "n_members": 2, "random_state": 0} | arguments
    return make(module=module, **options)


def dropping(n_features, q):
    return nn.Sequential(nn.Linear(n_features, 32), nn.Dropout(0.3), nn.ReLU(), nn.Linear(32, q))


def normalising(n_features, q):
    return nn.Sequential(nn.Linear(n_features, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, q))


def test_embeddings_of_a_module_are_on_the_sphere_too():
    classifier = quick(normalising, n_members=1).fit(X, Y)
    assert classifier.model_.networks.normalize
    np.testing.assert_allclose(np.linalg.norm(classifier.transform(X), axis=1), 1, rtol=1e-5)
    plain = quick(normalising, n_members=1, normalize=False).fit(X, Y)
    assert np.linalg.norm(plain.transform(X), axis=1).std() > 1e-3
    assert quick(normalising, CrossEntropyClassifier, max_iter=20).fit(X, Y).score(X, Y) > 0.9


def test_an_instance_is_drawn_anew_for_each_member_and_stays_as_it_was():
    module = normalising(13, 8)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    classifier = quick(module, max_iter=20).fit(X, Y)
    assert classifier.score(X, Y) > 0.9
    first, second = classifier.modules_
    assert not torch.equal(first[0].weight, second[0].weight)
    assert module.training
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])


def test_what_a_module_draws_comes_from_its_own_seed():
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = quick(dropping).fit(X, Y)
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    second = quick(dropping).fit(X, Y)
    assert np.array_equal(first.parameters_, second.parameters_)
    still = quick(
        lambda d, q: nn.Sequential(*(m for m in dropping(d, q) if type(m) is not nn.Dropout))
    )
    assert not np.array_equal(first.parameters_, still.fit(X, Y).parameters_)
    alone = quick(dropping, n_members=1).fit(X, Y)
    np.testing.assert_allclose(first.parameters_[0], alone.parameters_[0], rtol=1e-4, atol=1e-5)


def test_buffers_are_those_of_the_epoch_that_is_kept():
    seen = {}

    def remember(epoch):
        for place, k in enumerate(epoch.models):
            state = epoch.network.modules[place].state_dict()
            seen[epoch.number, int(k)] = {name: v.clone() for name, v in state.items()}

    classifier = quick(normalising, max_iter=40, n_iter_no_change=6, callbacks=[remember])
    classifier.fit(X, Y)
    assert (classifier.best_epochs_ < classifier.n_iter_).all()
    for k, module in enumerate(classifier.modules_):
        kept = seen[int(classifier.best_epochs_[k]), k]
        for name, value in module.state_dict().items():
            if value.is_floating_point():
                assert torch.equal(value, kept[name]), name


def half_frozen(n_features, q):
    module = normalising(n_features, q)
    module[0].requires_grad_(False)
    return module


@pytest.mark.parametrize("way", ["partial_fit", "fit"])
def test_frozen_layers_are_neither_trained_nor_decayed(way):
    options = {"weight_decay": 0.5, "warm_start": True, "learning_rate_init": 0.05}
    classifier = getattr(quick(half_frozen, **options), way)(X, Y)
    frozen = [module[0].weight.clone() for module in classifier.modules_]
    with torch.random.fork_rng([]):
        torch.manual_seed(classifier.history_.seed)
        torch.testing.assert_close(frozen[0], half_frozen(13, 8)[0].weight, rtol=0, atol=0)
    trained = classifier.parameters_
    getattr(classifier, way)(X, Y)  # goes on
    for module, before in zip(classifier.modules_, frozen, strict=True):
        assert torch.equal(module[0].weight, before)
    assert not np.isclose(classifier.parameters_, trained).all()
    assert not torch.equal(*frozen)  # each member has its own


def test_scikit_learns_monitor_scores_modules_too():
    callback = pytest.importorskip("sklearn.callback")
    monitor = callback.ScoringMonitor(scoring="accuracy")
    classifier = quick(normalising, max_iter=3).set_callbacks(monitor).fit(X, Y)
    log = monitor.get_logs().data_as_pandas.set_index("task_name")["accuracy"]
    assert len(log["epoch"]) == 3
    assert log["fit"] == classifier.score(X, Y)
    assert log["epoch"].iloc[-1] == log["fit"]


def test_modules_predict_in_blocks_of_rows():
    sizes = []

    class Watching(nn.Linear):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    classifier = quick(Watching, max_iter=1).fit(X, Y)
    many = np.tile(X, (60, 1))  # 10,680 rows
    whole = classifier.predict_proba(X)
    sizes.clear()
    found = classifier.predict_proba(many)
    assert max(sizes) == 4096
    assert sum(sizes) == len(many) * 2  # members
    np.testing.assert_allclose(found[: len(X)], whole, atol=1e-5)
    assert classifier.predict(many[:1]).shape == (1,)


@pytest.mark.parametrize("way", ["partial_fit", "fit"])
def test_going_on_goes_on_with_the_buffers(way):
    options = {"learning_rate_init": 1e-30, "weight_decay": 0.0, "early_stopping": False}
    classifier = quick(normalising, warm_start=True, max_iter=1, **options)
    for _ in range(12):
        getattr(classifier, way)(X, Y)
    first, batch_norm, *_ = classifier.modules_[0]
    inputs = torch.from_numpy(classifier.preprocessor_.transform(X))
    wanted = first(inputs).mean(dim=0)
    torch.testing.assert_close(batch_norm.running_mean, wanted, rtol=0.1, atol=0.1)
