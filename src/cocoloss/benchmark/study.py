"""Hyperparameters by ask and tell: a study that can be stopped, replayed and gone on with.

The sampler of trial n is seeded by the name of the study and by n, and knows the trials that were
told before it and those still running, in the order of their numbers. So a study that is told
again what it was told before asks for the same points, whatever happened in between.
"""

import hashlib
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cocoloss.exceptions import CoCoError

Point = dict[str, Any]
"""What Optuna calls the parameters of a trial: plain numbers by name."""


@dataclass(frozen=True)
class Trial:
    """A point to try.

    Attributes
    ----------
    number : int
        From 0.
    point : dict
        What the space drew: numbers, texts and truth values by name.
    params : dict
        What the space made of it: arguments of the model.
    """

    number: int
    point: Point
    params: dict[str, Any]


class Study:
    """Asks for points to try, and learns from their scores; higher is better.

    Parameters
    ----------
    name : str
        Seeds the samplers.
    space : callable
        Gets an Optuna trial, returns arguments of a model.
    first : dict, optional
        Point of the first trial.

    Examples
    --------
    >>> study = Study("parabola", lambda trial: {"x": trial.suggest_float("x", -1, 1)})
    >>> for _ in range(20):
    ...     trial = study.ask()
    ...     study.tell(trial.number, trial.point, -trial.params["x"] ** 2)
    >>> bool(abs(study.best.params["x"]) < 0.2)
    True
    """

    def __init__(
        self,
        name: str,
        space: Callable[[Any], dict[str, Any]],
        *,
        first: Point | None = None,
    ) -> None:
        self._optuna = load_optuna()
        self.name, self.space, self.first = name, space, first
        self._asked: dict[int, Point] = {}  # still running
        self._told: dict[int, tuple[Point, float | None]] = {}

    def ask(self) -> Trial:
        """Return the next trial."""
        number = len(self._asked) + len(self._told)
        study = self._optuna.create_study(direction="maximize", sampler=self._sampler(number))
        for earlier in range(number):
            study.add_trial(self._frozen(earlier))
        if number == 0 and self.first is not None:
            study.enqueue_trial(self.first)
        trial = study.ask()
        params = self.space(trial)
        self._asked[number] = dict(trial.params)
        return Trial(number, dict(trial.params), params)

    def tell(self, number: int, point: Mapping[str, Any], score: float | None) -> None:
        """Take the score of a trial.

        Parameters
        ----------
        number : int
            Of the trial.
        point : dict
            What was tried; another one than was asked for if the score was found in a store.
        score : float or None
            None, or a number that is not finite, if the trial failed.
        """
        if number not in self._asked:
            raise CoCoError(
                f"trial {number} of study {self.name!r} was not asked for, or told twice"
            )
        del self._asked[number]
        finite = score is not None and math.isfinite(score)
        self._told[number] = (dict(point), score if finite else None)

    def score_of(self, point: Point) -> float | None:
        """Return the score of a point that was tried already, so that none is tried twice."""
        for tried, score in self._told.values():
            if tried == point and score is not None:
                return score
        return None

    @property
    def n_told(self) -> int:
        """How many trials have ended."""
        return len(self._told)

    @property
    def n_scored(self) -> int:
        """How many of them have a score."""
        return sum(score is not None for _, score in self._told.values())

    @property
    def best(self) -> Trial:
        """The trial of the highest score; of equal ones the earliest."""
        scores = {n: score for n, (_, score) in self._told.items() if score is not None}
        if not scores:
            raise CoCoError(
                f"none of the {len(self._told)} trials of study {self.name!r} has a score; see the "
                f"failures of its trials"
            )
        number = min(scores, key=lambda n: (-scores[n], n))
        point = self._told[number][0]
        return Trial(number, point, self.params_of(point))

    @property
    def best_score(self) -> float:
        """The highest score."""
        score = self._told[self.best.number][1]
        assert score is not None
        return score

    def params_of(self, point: Point) -> dict[str, Any]:
        """Return the arguments that the space makes of a point."""
        return self.space(self._optuna.trial.FixedTrial(point))

    def _sampler(self, number: int) -> Any:
        # "constant_liar" makes it keep away from points that are being tried. Optuna 5 has that by
        # default, Optuna 4 calls it an experiment.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self._optuna.exceptions.ExperimentalWarning)
            return self._optuna.samplers.TPESampler(seed=self._seed(number), constant_liar=True)

    def _seed(self, number: int) -> int:
        digest = hashlib.sha256(f"{self.name}/{number}".encode()).digest()
        return int.from_bytes(digest[:4], "big")

    def _frozen(self, number: int) -> Any:
        """Return an earlier trial in Optuna's form."""
        states = self._optuna.trial.TrialState
        if number in self._asked:
            point, score, state = self._asked[number], None, states.RUNNING
        else:
            point, score = self._told[number]
            state = states.FAIL if score is None else states.COMPLETE
        fixed = self._optuna.trial.FixedTrial(point)
        self.space(fixed)
        return self._optuna.trial.create_trial(
            state=state, params=point, distributions=fixed.distributions, value=score
        )


def load_optuna() -> Any:
    """Import Optuna and silence it, or say how to get it."""
    try:
        import optuna  # noqa: PLC0415 - optional
    except ImportError as error:
        raise CoCoError(
            "tuning needs optuna, which is not installed; pip install 'cocoloss[tune]'"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna
