"""What a benchmark will do, before it does anything: units of work, and roughly how long."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cocoloss.benchmark.experiments import check_options, load_experiment
from cocoloss.benchmark.keys import TableInfo, Unit
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
    """

    spec: Spec
    infos: Sequence[TableInfo]
    units: Sequence[Unit]

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
        Tasks that are in the store.
    seconds : float
        Roughly, of those that are not, on one core.
    measured : bool
        Whether tasks that have run say how long the others take.
    """

    done: int
    seconds: float
    measured: bool


def make_plan(spec: Spec, infos: Sequence[TableInfo]) -> Plan:
    """List what a benchmark will do.

    Units of one table follow each other, so that it is sent once and dropped when it is done with;
    what takes longest begins first, so that the workers end together.

    Raises
    ------
    CoCoError
        If the experiment refuses the spec, or there is nothing to do.
    """
    check_options(spec.kind, spec.options)
    units = load_experiment(spec.kind).plan(spec, infos)
    if not units:
        raise CoCoError(f"{spec.name}: nothing to do; no dataset, or no model that suits one")
    total: dict[str, float] = {}
    for unit in units:
        total[unit.dataset] = total.get(unit.dataset, 0.0) + unit.seconds
    units = sorted(units, key=lambda u: (-total[u.dataset], u.dataset, -u.seconds, u.model))
    return Plan(spec, infos, units)


def remainder(plan: Plan, store: "Store | None") -> Remainder:
    """Return what of a plan is left to do, with times as measured where something has run."""
    if store is None:
        return Remainder(0, plan.seconds, measured=False)
    spec_hash = plan.spec.hash
    states = store.unit_states(spec_hash)
    found: dict[tuple[str, str], tuple[int, float]] = {}
    for count in store.counts(spec_hash):
        tasks, seconds = found.get(count[:2], (0, 0.0))
        found[count[:2]] = tasks + count.tasks, seconds + count.seconds
    ratios = _measured_over_planned(plan.units, found)
    done, left = 0, 0.0
    for unit in plan.units:
        if states.get(unit.key, "open") != "open":
            done += unit.tasks
            continue
        here = min(found.get((unit.dataset, unit.model), (0, 0.0))[0], unit.tasks)
        done += here
        ratio = ratios.get(unit.model, ratios.get("", 1.0))
        left += unit.seconds * (1 - here / max(unit.tasks, 1)) * ratio
    return Remainder(done, left, measured=bool(ratios))


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
