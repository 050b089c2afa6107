import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine

from cocoloss import CoCoClassifier, CrossEntropyClassifier, DotRegressionClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.fitting import partial_fit as module

CLASSIFIERS = [CoCoClassifier, DotRegressionClassifier, CrossEntropyClassifier]


X, Y = load_digits(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(len(Y))
X, Y = X[ORDER], Y[ORDER]
RARE = (Y != 0) | (np.arange(len(Y)) % 10 == 0)
FEW_ZEROS = X[RARE], Y[RARE]


def quick(make=CoCoClassifier, **arguments):
    return make(**({"n_members": 2, "random_state": 0} | arguments))


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_learns_part_by_part(make):
    classifier = quick(make)
    scores = []
    for _ in range(3):
        for rows in np.array_split(np.arange(1200), 5):
            classifier.partial_fit(X[rows], Y[rows])
        scores.append(classifier.score(X[1200:], Y[1200:]))
    assert scores[-1] > 0.9
    assert scores[-1] > scores[0]
    assert classifier.n_iter_ == len(classifier.loss_curve_) == 15
    assert classifier.loss_curve_[-1] < 0.5 * classifier.loss_curve_[0]


def test_the_same_parts_give_the_same_bits_and_callbacks_hear_of_each():
    heard = []
    first, second = quick(), quick(callbacks=[lambda epoch: heard.append(epoch.number)])
    for rows in np.array_split(np.arange(600), 3):
        first.partial_fit(X[rows], Y[rows])
        second.partial_fit(X[rows], Y[rows])
    assert np.array_equal(first.predict_proba(X), second.predict_proba(X))
    assert heard == [1, 1, 1]


def test_a_later_part_may_lack_classes_but_not_bring_new_ones():
    classifier = quick().partial_fit(X[:500], Y[:500])
    few = Y < 3
    classifier.partial_fit(X[few][:50], Y[few][:50])
    assert set(classifier.predict(X)) == set(range(10))
    with pytest.raises(CoCoError, match="did not name: \\[11\\]"):
        classifier.partial_fit(X[:2], [0, 11])
    with pytest.raises(CoCoError, match="goes on with 2 members, but n_members is 3"):
        classifier.set_params(n_members=3).partial_fit(X[:2], Y[:2])


def test_the_first_part_must_hold_every_class():
    with pytest.raises(CoCoError, match="every class, but has none of \\[17\\]"):
        quick().partial_fit(X[:300], Y[:300], classes=[*range(10), 17])
    with pytest.raises(CoCoError, match="one class"):
        quick().partial_fit(X[:3], [1, 1, 1])


def test_keeps_a_bounded_number_of_rows_of_every_class(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 50)
    classifier = quick().partial_fit(X[:400], Y[:400]).partial_fit(X[400:800], Y[400:800])
    inputs, labels, weights, _ = classifier.recent_rows_
    assert np.bincount(labels).tolist() == [5] * 10
    assert len(inputs) == len(weights) == 50


def test_priors_and_balance_follow_the_rows_seen_so_far():
    X, y = FEW_ZEROS
    classifier = quick(priors="empirical").partial_fit(X[:800], y[:800])
    classifier.partial_fit(X[800:], y[800:])
    np.testing.assert_allclose(classifier.class_prior_, np.bincount(y) / len(y))
    balanced = quick(loss="balanced").partial_fit(X, y)
    plain = quick(loss="coco").partial_fit(X, y)
    auto = quick().partial_fit(X, y)
    assert np.array_equal(auto.parameters_, balanced.parameters_)
    assert not np.array_equal(auto.parameters_, plain.parameters_)
    with pytest.raises(CoCoError, match="needs all rows at once"):
        quick(class_weight="balanced").partial_fit(X, y)


def test_goes_on_after_a_fit_and_a_fit_forgets_the_parts():
    classifier = quick(max_iter=5).fit(X[:900], Y[:900])
    fitted = classifier.parameters_.copy()
    classifier.partial_fit(X[900:], Y[900:])
    assert len(classifier.loss_curve_) == classifier.n_iter_ == 6
    assert classifier.loss_curve_[5] < 0.3  # the first epoch of a new network has more
    assert not np.array_equal(classifier.parameters_, fitted)
    classifier.fit(X[:900], Y[:900])
    assert np.array_equal(classifier.parameters_, fitted)
    assert len(classifier.loss_curve_) == classifier.n_iter_ == 5
    assert classifier.recent_rows_ is None


@pytest.mark.parametrize("make", [CoCoClassifier, CrossEntropyClassifier])
def test_a_small_part_after_a_fit_does_not_make_it_forget(make):
    classifier = quick(make, max_iter=10, priors="empirical").fit(X[:900], Y[:900])
    score = classifier.score(X[910:], Y[910:])
    classifier.partial_fit(X[900:902], Y[900:902])  # two rows, of two classes at most
    assert classifier.score(X[910:], Y[910:]) > score - 0.03
    np.testing.assert_allclose(classifier.class_prior_, np.bincount(Y[:902]) / 902)


def test_ten_new_rows_of_every_class_replace_the_heads_of_a_fit():
    classifier = quick(max_iter=10).fit(X[:900], Y[:900])
    temperatures = [head.temperature_ for head in classifier.heads_]
    classifier.partial_fit(X[900:950], Y[900:950])
    assert [head.temperature_ for head in classifier.heads_] == temperatures
    classifier.partial_fit(X[950:1300], Y[950:1300])  # together more than ten of each
    assert [head.temperature_ for head in classifier.heads_] == [1, 1]
    assert classifier.score(X[1300:], Y[1300:]) > 0.9


def test_rows_that_weigh_nothing_are_refused_and_leave_no_trace():
    classifier = quick().partial_fit(X[:500], Y[:500])
    before = classifier.class_prior_.copy(), classifier.n_iter_
    with pytest.raises(CoCoError, match="every sample_weight is zero"):
        classifier.partial_fit(X[:50], Y[:50], sample_weight=np.zeros(50))
    assert np.array_equal(classifier.class_prior_, before[0])
    assert classifier.n_iter_ == before[1]
    with pytest.raises(CoCoError, match=r"none of \[0\] that weigh anything"):
        quick().partial_fit(X[:500], Y[:500], range(10), (Y[:500] > 0).astype(float))


def test_a_weight_is_a_number_of_copies_and_zero_is_no_row():
    weights = np.random.default_rng(0).integers(0, 3, 400)
    wild, y = X[:400].copy(), Y[:400]
    wild[weights == 0] = 1e6
    weighted, repeated = quick(), quick()
    for _ in range(2):
        weighted.partial_fit(wild, y, sample_weight=weights)
        repeated.partial_fit(np.repeat(X[:400], weights, axis=0), np.repeat(y, weights))
    np.testing.assert_array_equal(weighted.predict_proba(X), repeated.predict_proba(X))


def test_a_part_is_an_epoch_at_full_speed_with_its_weights(monkeypatch):
    jobs = []
    original = module.train_jobs
    monkeypatch.setattr(
        module,
        "train_jobs",
        lambda given, heard, **options: jobs.extend(given) or original(given, heard, **options),
    )
    weights, y = np.random.default_rng(0).uniform(0.1, 2, 400), Y[:400]
    quick(loss="coco").partial_fit(X[:400], y, sample_weight=weights)
    (job,) = jobs
    schedule = job.design.schedule
    assert (schedule.n_epochs, schedule.decay, schedule.patience) == (1, "constant", None)
    np.testing.assert_allclose(job.weights, job.row_weights / job.row_weights.mean(), rtol=1e-6)
    masses = np.bincount(job.labels, weights=job.row_weights)
    wanted = np.bincount(y, weights=weights) / weights.mean()
    np.testing.assert_allclose(masses, wanted)


def test_the_softmax_knows_the_shares_of_all_rows_seen(monkeypatch):
    monkeypatch.setattr(module, "KEPT", 50)
    X, y = FEW_ZEROS
    classifier = quick(CrossEntropyClassifier)
    for rows in np.array_split(np.arange(len(y)), 2):
        classifier.partial_fit(X[rows], y[rows])
    share = np.bincount(y) / len(y)
    np.testing.assert_allclose(classifier.heads_[0].class_share_, share, rtol=1e-5)


def test_networks_keep_the_units_that_they_were_trained_with():
    X, y = load_wine(return_X_y=True)
    quick = {"max_iter": 3, "n_members": 2, "random_state": 0}
    relu = CoCoClassifier(activation="relu", **quick).fit(X, y)
    again = CoCoClassifier(activation="relu", **quick).fit(X, y)
    again.set_params(activation="auto")  # as when a file of an earlier version is loaded
    for model in (relu, again):
        model.partial_fit(X, y)
    assert again.model_.networks.activation == "relu"
    np.testing.assert_array_equal(again.predict_proba(X), relu.predict_proba(X))
    assert CoCoClassifier(**quick).partial_fit(X, y).model_.networks.activation == "silu"
