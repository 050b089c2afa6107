"""What a benchmark will do, before it does anything: units of work, and roughly how long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cocoloss.benchmark.experiments import check_options, experiment_of
from cocoloss.benchmark.keys import FAILED, OK, OPEN, TableInfo, Unit
from cocoloss.benchmark.spec import Spec
from cocoloss.exceptions import CoCoError

if TYPE_CHECKING:
    from cocoloss.benchmark.store import Store


@dataclass(frozen=True)
class Plan:
    """What a benchmark will do.

    Attributes
    ----------
    spec : Spec
    infos : list of TableInfo
    units : list of Unit
        In the order in which they will begin.
    left_out : dict of str to str
        Tables that cannot be used, and why.
    """

    spec: Spec
    infos: Sequence[TableInfo]
    units: Sequence[Unit]
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_tasks(self) -> int:
        """How many tasks there are."""
        return sum(unit.tasks for unit in self.units)

    @property
    def seconds(self) -> float:
        """Roughly, of all tasks on one core."""
        return sum(unit.seconds for unit in self.units)


@dataclass(frozen=True)
class Remainder:
    """What of a plan is left.

    Attributes
    ----------
    done : int
        Tasks that are in the store; those that failed too, unless they are to be done again.
    seconds : float
        Roughly, of those that are not, on one core.
    ratios : dict of str to float
        How many times longer than planned tasks took, by model, and "" for all together; empty if
        none has run.
    failed : int
        Tasks in the store that failed or took too long.
    failed_units : int
        Pairs of table and model with failures.
    """

    done: int
    seconds: float
    ratios: Mapping[str, float] = field(default_factory=dict)
    failed: int = 0
    failed_units: int = 0

    @property
    def measured(self) -> bool:
        """Whether tasks that have run say how long the others take."""
        return bool(self.ratios)

    def seconds_of(self, unit: Unit) -> float:
        """Return how long a unit takes on one core: as planned, or as tasks like it took."""
        return _seconds_of(unit, self.ratios)


def make_plan(
    spec: Spec, infos: Sequence[TableInfo], left_out: Mapping[str, str] | None = None
) -> Plan:
    """List what a benchmark will do.

    Units of one table follow each other, so that it is sent once and dropped when it is done with;
    what takes longest begins first, so that the workers end together.

    Raises
    ------
    CoCoError
        If the experiment refuses the spec, or there is nothing to do.
    """
    experiment = experiment_of(spec)
    with spec.at():
        check_options(experiment, spec.kind, spec.options)
    units = experiment.plan(spec, infos)
    if not units:
        raise CoCoError(f"{spec.name}: nothing to do; no dataset, or no model that suits one")
    total: dict[str, float] = {}
    for unit in units:
        total[unit.dataset] = total.get(unit.dataset, 0.0) + unit.seconds
    units = sorted(units, key=lambda u: (-total[u.dataset], u.dataset, -u.seconds, u.model))
    return Plan(spec, infos, units, left_out or {})


def trials_of_nobody(spec: Spec) -> list[str]:
    """Return the models that ``tuning.trials`` names in vain, since they are not run.

    They are no error: to leave a model out for a while must not make another benchmark.
    """
    return [name for name in spec.tuning.trials if name not in spec.models.names]


def remainder(plan: Plan, store: "Store | None", *, retry_failed: bool = False) -> Remainder:
    """Return what of a plan is left to do, with times as measured where something has run.

    Parameters
    ----------
    plan : Plan
    store : Store or None
        None if there is none yet.
    retry_failed : bool, default=False
        Whether what failed is to be done again.
    """
    if store is None:
        return Remainder(0, plan.seconds)
    spec_hash = plan.spec.hash
    states = store.unit_states(spec_hash)
    found: dict[tuple[str, str], tuple[int, float]] = {}
    bad: dict[tuple[str, str], int] = {}  # of them failed
    for count in store.counts(spec_hash):
        tasks, seconds = found.get(count[:2], (0, 0.0))
        found[count[:2]] = tasks + count.tasks, seconds + count.seconds
        bad[count[:2]] = bad.get(count[:2], 0) + count.tasks * (count.status != OK)
    ratios = _measured_over_planned(plan.units, found)
    done, left = 0, 0.0
    for unit in plan.units:
        pair = (unit.dataset, unit.model)
        here = unit.tasks
        if states.get(unit.key, OPEN) == OPEN:
            here = min(found.get(pair, (0, 0.0))[0], unit.tasks)
        if retry_failed:
            here = max(0, here - bad.get(pair, 0))
        done += here
        left += _seconds_of(unit, ratios) * (1 - here / max(unit.tasks, 1))
    failed = sum(bad.get((unit.dataset, unit.model), 0) for unit in plan.units)
    failed_units = sum(states.get(unit.key) == FAILED for unit in plan.units)
    return Remainder(done, left, ratios, failed, failed_units)


def _seconds_of(unit: Unit, ratios: Mapping[str, float]) -> float:
    return unit.seconds * ratios.get(unit.model, ratios.get("", 1.0))


def _measured_over_planned(
    units: Sequence[Unit], found: Mapping[tuple[str, str], tuple[int, float]]
) -> dict[str, float]:
    """Return how much longer tasks took than was thought, by model, and "" for all together."""
    took: dict[str, float] = {}
    thought: dict[str, float] = {}
    for unit in units:
        tasks, seconds = found.get((unit.dataset, unit.model), (0, 0.0))
        for name in (unit.model, "") if tasks and unit.seconds > 0 else ():
            took[name] = took.get(name, 0.0) + seconds
            thought[name] = thought.get(name, 0.0) + unit.seconds * tasks / unit.tasks
    return {name: took[name] / thought[name] for name in took}
