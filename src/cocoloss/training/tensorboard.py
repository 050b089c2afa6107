"""Curves of a training run for TensorBoard: loss and score of every member, epoch by epoch."""

import os
from pathlib import Path
from typing import Any, Self

from cocoloss._checks import check_integer
from cocoloss.exceptions import CoCoError
from cocoloss.training.trainer import Epoch


class TensorBoardCallback:
    """Writes the loss and the validation score of each model to TensorBoard.

    For ``callbacks=[...]`` of the classifiers and of :func:`cocoloss.training.train`. Every
    training gets a folder of its own, ``run-1``, ``run-2``, ...: folds, refits and copies of an
    estimator do not mix. What an epoch wrote is on the disk when the next one begins.

    Parameters
    ----------
    log_dir : path
        What ``tensorboard --logdir`` gets; made if it is missing.
    every : int, default=1
        Epochs between two points of a curve; the last epoch planned is written, too.

    Notes
    -----
    The curves are called ``loss/member-0``, ``score/member-0``, ... The file is closed after the
    last epoch planned, at the beginning of another training, by ``close`` and at the end of a
    ``with`` block. Who stops early may leave it open: it is complete all the same.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn.datasets import load_wine
    >>> from cocoloss import CoCoClassifier
    >>> from cocoloss.training.tensorboard import TensorBoardCallback
    >>> X, y = load_wine(return_X_y=True)
    >>> with TemporaryDirectory() as folder:
    ...     with TensorBoardCallback(folder) as curves:
    ...         _ = CoCoClassifier(max_iter=3, callbacks=[curves], random_state=0).fit(X, y)
    ...     print([path.name for path in Path(folder).iterdir()])
    ['run-1']
    """

    def __init__(self, log_dir: str | os.PathLike[str], *, every: int = 1) -> None:
        self.log_dir = log_dir
        self.every = check_integer(every, "every", minimum=1)
        _summary_writer()  # or training would begin and then fail
        self._writer: Any = None
        self._last = 0

    def __call__(self, epoch: Epoch) -> None:
        """Write an epoch."""
        if epoch.number <= self._last:
            self.close()  # another training has begun
        self._last = epoch.number
        ends = epoch.number == epoch.n_epochs
        if epoch.number % self.every == 0 or ends:
            self._write(epoch)
        if ends:
            self.close()

    def _write(self, epoch: Epoch) -> None:
        if self._writer is None:
            self._writer = _summary_writer()(str(_new_folder(Path(self.log_dir))))
        for name, values in (("loss", epoch.loss), ("score", epoch.score)):
            if values is not None:
                for k, value in zip(epoch.models, values, strict=True):
                    self._writer.add_scalar(f"{name}/member-{k}", value, epoch.number)
        self._writer.flush()

    def close(self) -> None:
        """Close the file; another training opens another one."""
        self._last = 0
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        # A clone of an estimator copies its callbacks; an open file cannot be copied.
        return self.__dict__ | {"_writer": None, "_last": 0}


def _summary_writer() -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 - slow, and optional
    except ImportError as error:
        raise CoCoError(
            "TensorBoardCallback needs the package tensorboard, which is not installed; "
            "pip install 'cocoloss[tensorboard]'"
        ) from error
    return SummaryWriter


def _new_folder(parent: Path) -> Path:
    """Make and return the first folder of the name run-1, run-2, ... that does not exist."""
    if parent.exists() and not parent.is_dir():
        raise CoCoError(f"cannot write curves to {parent}: it is a file")
    number = 1
    while True:
        try:
            (parent / f"run-{number}").mkdir(parents=True)
        except FileExistsError:
            number += 1
        except OSError as error:
            raise CoCoError(
                f"cannot write curves to {parent}: {error.strerror or error}; choose another "
                f"log_dir"
            ) from error
        else:
            return parent / f"run-{number}"
