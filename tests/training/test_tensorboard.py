"""Curves for TensorBoard, read back by TensorBoard."""

import copy
import pickle
import sys

import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from cocoloss import CoCoClassifier
from cocoloss.exceptions import CoCoError
from cocoloss.training.tensorboard import TensorBoardCallback

SMALL = {"hidden_layer_sizes": (8,), "n_members": 2, "max_iter": 6, "random_state": 0}


@pytest.fixture(scope="module")
def wine():
    return load_wine(return_X_y=True)


def read(folder):
    """Return {curve: [(step, value), ...]}."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return {
        tag: [(event.step, event.value) for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def runs(folder):
    return sorted(path.name for path in folder.iterdir())


def test_every_epoch_of_every_member_is_written(wine, tmp_path):
    estimator = CoCoClassifier(callbacks=[TensorBoardCallback(tmp_path)], **SMALL).fit(*wine)
    curves = read(tmp_path / "run-1")
    assert set(curves) == {f"{n}/member-{k}" for n in ("loss", "score") for k in (0, 1)}
    for k, expected in enumerate(estimator.loss_curves_):
        steps, values = zip(*curves[f"loss/member-{k}"], strict=True)
        assert steps == tuple(range(1, 7))
        assert values == pytest.approx(expected)
    assert min(v for _, v in curves["score/member-0"]) > 0


def test_without_held_out_rows_there_is_no_score_and_the_last_epoch_is_never_left_out(
    wine, tmp_path
):
    curves = TensorBoardCallback(tmp_path, every=4)
    CoCoClassifier(callbacks=[curves], early_stopping=False, **SMALL).fit(*wine)
    written = read(tmp_path / "run-1")
    assert set(written) == {"loss/member-0", "loss/member-1"}
    assert [step for step, _ in written["loss/member-0"]] == [4, 6]


def test_an_epoch_is_on_the_disk_before_the_next_one(wine, tmp_path):
    seen = []

    def look(epoch):
        seen.append(len(read(tmp_path / "run-1")["loss/member-0"]))

    CoCoClassifier(callbacks=[TensorBoardCallback(tmp_path), look], **SMALL).fit(*wine)
    assert seen == [1, 2, 3, 4, 5, 6]


def test_every_training_has_a_folder_of_its_own(wine, tmp_path):
    estimator = CoCoClassifier(callbacks=[TensorBoardCallback(tmp_path)], **SMALL)
    estimator.fit(*wine)
    estimator.fit(*wine)
    clone(estimator).fit(*wine)
    early = CoCoClassifier(
        callbacks=[*estimator.callbacks, lambda epoch: epoch.number == 2], **SMALL
    )
    early.fit(*wine)
    early.fit(*wine)
    estimator.callbacks[0].close()
    assert runs(tmp_path) == [f"run-{k}" for k in range(1, 6)]
    lengths = [len(read(tmp_path / f"run-{k}")["loss/member-0"]) for k in range(1, 6)]
    assert lengths == [6, 6, 6, 2, 2]  # those that stopped early are whole, too


def test_a_copy_is_fresh_and_the_file_stays_with_the_first(wine, tmp_path):
    curves = TensorBoardCallback(tmp_path / "new" / "folder", every=2)
    CoCoClassifier(callbacks=[curves, lambda epoch: epoch.number == 3], **SMALL).fit(*wine)
    for twin in (copy.deepcopy(curves), pickle.loads(pickle.dumps(curves))):  # noqa: S301
        assert twin.every == 2
        twin.close()
    curves.close()
    curves.close()
    assert runs(tmp_path / "new" / "folder") == ["run-1"]


def test_a_missing_tensorboard_is_said_before_training(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(CoCoError, match=r"cocoloss\[tensorboard\]"):
        TensorBoardCallback(tmp_path)


def test_what_cannot_be_written_is_refused(wine, tmp_path):
    for every in (0, 1.5, True):
        with pytest.raises(CoCoError, match="every must be"):
            TensorBoardCallback(tmp_path, every=every)
    (tmp_path / "file").write_text("")
    with pytest.raises(CoCoError, match="cannot write curves"):
        CoCoClassifier(callbacks=[TensorBoardCallback(tmp_path / "file")], **SMALL).fit(*wine)
