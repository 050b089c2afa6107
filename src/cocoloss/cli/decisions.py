"""What decides between classes on the command line: costs, priors, a threshold."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cocoloss.cli.messages import listed, note
from cocoloss.cli.options import packed
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cocoloss.heads.decisions import Decider

COSTS = click.option(
    "--costs",
    metavar="CLASS=COST,...|FILE",
    help="What mistakes cost, to predict what is cheapest: 'sick=10,well=1' for those about each "
    "class, 'sick:well=10,...' for sick taken for well, or a CSV with true classes in its first "
    "column and predicted ones in its header.",
)
OPTIONS = ("--costs", "--priors", "--threshold", "--positive")


@dataclass(frozen=True)
class Asked:
    """What the user says of decisions, as text."""

    costs: str | None
    priors: str | None
    threshold: float | None
    positive: str | None

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        values = zip(OPTIONS, vars(self).values(), strict=True)
        return [option for option, value in values if value is not None]

    def read(self, model: Any, decider: "Decider") -> tuple[Any, "Callable[[Any], Any]"]:
        """Return the model under the priors that count, and what makes classes of its posteriors.

        Everything is tried once, so that what is wrong is said before the table is read.
        """
        import numpy as np  # noqa: PLC0415 - heavy

        classes = decider.classes
        costs = None if self.costs is None else read_costs(self.costs, classes)
        priors = None if self.priors is None else read_priors(self.priors, classes)
        positive = (
            None if self.positive is None else _class_of(self.positive, classes, "--positive")
        )
        meant = decider.model(model, costs, priors)

        def decided(proba: Any) -> Any:
            return classes[decider.decide(proba, costs, self.threshold, positive)]

        decided(np.full((1, len(classes)), 1 / len(classes)))
        if costs is not None and priors is None and meant is not model:
            pairs = zip(classes.tolist(), meant.prior, strict=True)
            shares = listed(f"{name} {share:.1%}" for name, share in pairs)
            note(
                f"costs are counted for classes as frequent as in training, {shares}; say --priors "
                f"if they are not, where the model is used"
            )
        return meant, decided


decision_options = packed(
    "asked",
    Asked,
    [
        COSTS,
        click.option(
            "--priors",
            metavar="empirical|uniform|CLASS=SHARE,...",
            help="Count classes as often as they occur in training, all alike, or by shares such "
            "as 'sick=0.01,well=0.99', instead of as `fit` was told.",
        ),
        click.option(
            "--threshold",
            type=click.FloatRange(0, 1),
            metavar="PROBABILITY",
            help="Of two classes: from which probability on a row is of the class --positive.",
        ),
        click.option(
            "--positive",
            metavar="CLASS",
            help="The class of --threshold; 1, true and yes are known.",
        ),
    ],
)


def read_costs(text: str, classes: Any) -> Any:
    """Return costs by class and pair of classes, or those of a file, as a matrix."""
    from cocoloss.heads.decisions import cost_matrix  # noqa: PLC0415 - heavy

    if Path(text).is_file():
        return cost_matrix(_costs_in(Path(text), classes), classes)
    if "=" not in text:
        first, second = classes.tolist()[:2]
        raise CoCoError(
            f"--costs {text}: there is no such file; name one, or write '{first}=5,{second}=1'"
        )
    return cost_matrix(_by_class(text, classes, "--costs", pairs=True), classes)


def read_priors(text: str, classes: Any) -> Any:
    """Return priors by name or by class."""
    if "=" in text:
        return _by_class(text, classes, "--priors")
    if text not in ("uniform", "empirical"):
        first, second = classes.tolist()[:2]
        raise CoCoError(
            f"--priors must be empirical, uniform, or shares such as '{first}=0.1,{second}=0.9', "
            f"not {text!r}"
        )
    return text


def _by_class(text: str, classes: Any, option: str, *, pairs: bool = False) -> dict[Any, float]:
    """Return numbers by class, or by pair of classes, such as ``a=1,b=2`` and ``a:b=3``."""
    numbers: dict[Any, float] = {}
    for entry in text.split(","):
        name, equals, number = entry.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            equals = ""
        if not equals:
            raise CoCoError(
                f"{option} {text}: {entry!r} is not CLASS=NUMBER; classes with commas in their "
                f"names need a file of costs"
            )
        key = _pair_of(name.strip(), classes) if pairs else None
        key = _class_of(name.strip(), classes, option) if key is None else key
        if key in numbers:
            raise CoCoError(f"{option} {text}: {name.strip()!r} is there twice")
        numbers[key] = value
    return numbers


def _pair_of(name: str, classes: Any) -> tuple[Any, Any] | None:
    """Return the classes on both sides of a colon, unless that is in the name of one."""
    known = {str(each): each for each in classes.tolist()}
    if name in known:
        return None
    cuts = [k for k, letter in enumerate(name) if letter == ":"]
    for true, predicted in ((name[:k].strip(), name[k + 1 :].strip()) for k in cuts):
        if true in known and predicted in known:
            return known[true], known[predicted]
    return None


def _class_of(name: str, classes: Any, option: str) -> Any:
    known = {str(each): each for each in classes.tolist()}
    if name not in known:
        raise CoCoError(f"{option}: there is no class {name!r}; there are {listed(known)}")
    return known[name]


def _costs_in(path: Path, classes: Any) -> Any:
    """Return the table of costs in a file, under its classes."""
    from cocoloss.tables import open_table  # noqa: PLC0415 - heavy

    table = open_table(path, header=True)
    first = table.column_names[0]
    frame = table.with_options(text=[first]).read().set_index(first)
    frame.index = [_class_of(str(name), classes, f"{path}, first column") for name in frame.index]
    frame.columns = [_class_of(str(name), classes, f"{path}, header") for name in frame.columns]
    return frame
