"""What a simulation starts from: the kinds of tasks, the tasks, and the snapshot of a namespace.

Times are whole milliseconds. All of it is immutable for the simulation: many can share it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead.model.priority import Priority
from fairlead.rules.ageing import STEPS
from fairlead.rules.fairness import Ledger
from fairlead.rules.limits import Companions, Limit
from fairlead.rules.tiers import needs_of_tier
from fairlead.rules.values import Place, Policy, Tier, Worker

PLACES = tuple(Place)  #: in the engine a place is its number here: its priority is `number >> 1`
NATIVE = tuple(PLACES.index(Place.native(priority)) for priority in Priority)  #: by base priority
BY_AGE = {PLACES.index(place): PLACES.index(better) for place, better in STEPS.items()}  #: in order

#: How much of several limits a task takes, by name.
Needs = tuple[tuple[str, int], ...]


@dataclass(frozen=True, eq=False, slots=True)
class Kind:
    """What tasks have in common. Make each kind once: two objects are two kinds, and are queued apart."""

    type: str = ""
    capabilities: frozenset[str] = frozenset()
    needs: Needs = ()  #: sorted by name, those of tiers included
    tier: int | None = None  #: number of the tier that its runs begin with; None: its runs are not bounded
    elastic: bool = False

    @classmethod
    def of(
        cls,
        type: str,
        capabilities: Collection[str],
        limits: Mapping[str, int],
        tiers: Sequence[Tier] = (),
        duration: str | None = None,
    ) -> Kind:
        """`limits` are without those of the tier, which are added. Without a `duration` it is elastic."""
        number, own = needs_of_tier(tiers, duration)
        needs = tuple(sorted({**limits, **own}.items()))
        return cls(type, frozenset(capabilities), needs, number, bool(tiers) and duration is None)

    @property
    def signature(self) -> str:
        """As in `rules.values.Task`: the sub-queue without its place."""
        needs = ",".join(f"{name}={units}" for name, units in self.needs)
        return f"{self.type};{','.join(sorted(self.capabilities))}|{needs}"


class Task(NamedTuple):
    """`number` counts the tasks of a simulation from 0: first those that wait in the snapshot."""

    number: int
    kind: Kind
    base: int = Priority.MEDIUM
    account: str = ""  #: whose fair share it is counted in
    arrival: int = 0
    duration: int = 0  #: of its run, unless the simulation is given a function
    weight: float = 1.0  #: of its account
    factor: int | None = None  #: fixed when its job was submitted; None: that of its account at its arrival
    reserved: Mapping[Place, tuple[int, int]] | None = None  #: tag and seq, by its job
    is_probe: bool = False  #: it shows when a task like it could start, takes nothing, and changes nothing


class Waiting(NamedTuple):
    """A task in the queue."""

    task: Task
    place: Place
    tag: int
    seq: int
    stride: int = 100  #: see `rules.fairness.stride_of`


class Running(NamedTuple):
    """A run, a lease without a task, or a cancelled task that its worker has not stopped yet."""

    left: int  #: how long it still holds what it has
    needs: Needs = ()  #: what it holds, the units of longer tiers included
    worker: str | None = None  #: whose slot it takes; None: it takes no slot of the fleet
    base: int = Priority.MEDIUM
    account: str = ""
    started: int = 0
    tier: int | None = None  #: of an elastic run: number of the longest tier it holds
    number: int = -1  #: what `ended` is called with


@dataclass(frozen=True)
class Snapshot:
    """A namespace at one instant.

    `limits` are not changed. `workers` are the listed ones; of a worker only what decides about starts is
    read. `last_seq` is the greatest number given to a task so far.
    """

    now: int = 0
    policy: Policy = field(default_factory=Policy)
    workers: Sequence[Worker] = ()
    limits: Mapping[str, Limit] = field(default_factory=dict)  #: those of tiers included
    paused_types: Collection[str] = ()
    waiting: Sequence[Waiting] = ()
    running: Sequence[Running] = ()  #: in the order in which they started
    ledgers: Mapping[Place, Ledger] = field(default_factory=dict)  #: as `rules.fairness.Shares.ledgers`
    streaks: Mapping[Priority, int] = field(default_factory=dict)
    pace: Mapping[str, int] = field(default_factory=dict)  #: as `rules.fairness.Shares.pace`
    mean: int | None = None
    jobs_open: bool = False  #: then finish tags are kept when a place is empty
    companions: Companions | None = None  #: None: only what is waiting has ever been submitted
    held: Mapping[str, int] = field(default_factory=dict)  #: since when sub-queues have a hold, by name
    asks: Mapping[str, int] = field(default_factory=dict)  #: from when others may ask for one, if known
    last_seq: int = 0
