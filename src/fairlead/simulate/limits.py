"""The limits of a simulation: what is used of each, and what a sub-queue lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fairlead.rules.limits import Limit, Rate
from fairlead.rules.tiers import PREFIX
from fairlead.rules.values import Tier
from fairlead.simulate.copies import Copies
from fairlead.simulate.queues import SubQueue
from fairlead.simulate.runs import ElasticRuns
from fairlead.simulate.values import Needs

MANY = 8  #: sets of needs that name a limit: then those that need it and others like it wait for all at once
NOBODY = -1  #: the owner of no hold


@dataclass(frozen=True)
class Hold:
    """As in `rules.holds`."""

    queue: int
    priority: int
    head: int  #: number of the task it was made for
    since: int
    units: Mapping[str, int]


class Use:
    """One limit."""

    __slots__ = ("hold", "lots", "rate", "sets", "size", "tier", "used")

    def __init__(self, size: int = 0, rate: Rate | None = None, tier: int = -1) -> None:
        self.size, self.rate = size, rate
        self.tier = tier  #: its number; -1: not of a tier
        self.used = 0
        self.hold: Hold | None = None
        self.sets = 0  #: different needs that name it
        self.lots: list[int] = []  #: those that wait for it

    @classmethod
    def of(cls, limit: Limit, tier: int) -> Use:
        return cls(rate=replace(limit)) if isinstance(limit, Rate) else cls(limit.limit, tier=tier)

    def fork(self) -> Use:
        copy = Use(self.size, self.rate and replace(self.rate), self.tier)
        copy.used, copy.hold, copy.sets, copy.lots = self.used, self.hold, self.sets, self.lots.copy()
        return copy

    def room(self, priority: int, owner: int, now: int, name: str) -> int:
        if self.rate is not None:
            return self.rate.room(now)
        hold = self.hold
        if hold is None or hold.queue == owner or priority < hold.priority:
            return self.size - self.used
        return self.size - self.used - hold.units[name]


class Limits:
    """Limits that are paused or too small for a task are not its concern: such a task never gets here."""

    def __init__(self, limits: Mapping[str, Limit], tiers: tuple[Tier, ...]) -> None:
        self._limits = limits
        self._tiers = {PREFIX + tier.name: number for number, tier in enumerate(tiers)}
        self.names_of_tiers = tuple(self._tiers)
        self.uses = Copies[str, Use]()
        self.elastic = ElasticRuns(len(tiers))
        self._known: set[Needs] = set()
        for name, limit in limits.items():
            self.uses[name] = Use.of(limit, self._tiers.get(name, -1))

    def fork(self) -> Limits:
        copy = Limits({}, ())
        copy._limits, copy._tiers, copy.names_of_tiers = self._limits, self._tiers, self.names_of_tiers
        copy.uses = Copies(self.uses)
        copy.elastic = self.elastic.fork()
        copy._known = self._known.copy()
        return copy

    def could_have(self, needs: Needs) -> bool:
        """Whether it could start if nothing else ran."""
        return all(not self._limits[name].paused and self._limits[name].fits(units) for name, units in needs)

    def slots_of(self, needs: Needs) -> list[str]:
        return [name for name, _ in needs if not isinstance(self._limits[name], Rate)]

    def rates_of(self, needs: Needs) -> Needs:
        return tuple(need for need in needs if isinstance(self._limits[need[0]], Rate))

    def know(self, needs: Needs) -> None:
        """A sub-queue needs these."""
        if needs not in self._known:
            self._known.add(needs)
            for name, _ in needs:
                self.uses[name].sets += 1

    def is_gate(self, name: str) -> bool:
        """Whether those that need it and others like it wait for all of them together."""
        use = self.uses[name]
        return use.sets >= MANY or use.tier >= 0

    def lacking(self, needs: Needs, priority: int, owner: int, now: int) -> Needs:
        if not needs:
            return ()
        uses = self.uses
        return tuple([need for need in needs if uses[need[0]].room(priority, owner, now, need[0]) < need[1]])

    def lacked_by(self, queue: SubQueue, now: int) -> Needs:
        return self.lacking(queue.needs, queue.place >> 1, queue.number, now)

    def relief(self, lacking: Needs, priority: int, owner: int, now: int) -> tuple[int, int] | None:
        """The shortest and the longest of the lacking tiers, if an elastic run can give back all of them."""
        if not self.elastic.count:
            return None
        numbers = [self.uses[name].tier for name, _ in lacking]
        if min(numbers) < 1 or not self.elastic.has(max(numbers)):
            return None
        if any(self.uses[name].room(priority, owner, now, name) for name, _ in lacking):
            return None
        return min(numbers), max(numbers)

    def may_open(self, needs: Needs, priority: int, now: int) -> bool:
        """Whether whoever waits for these may start, if need be after an elastic run has become shorter."""
        lacking = self.lacking(needs, priority, NOBODY, now)
        return not lacking or self.relief(lacking, priority, NOBODY, now) is not None

    def take_tiers(self, tier: int, priority: int, now: int) -> Needs:
        """What an elastic run takes beyond its tier, as long as there is room."""
        taken = []
        for name in self.names_of_tiers[tier + 1 :]:
            use = self.uses[name]
            if use.room(priority, NOBODY, now, name) < 1:
                break
            use.used += 1
            taken.append((name, 1))
        return tuple(taken)

    def take(self, needs: Needs, now: int) -> None:
        for name, units in needs:
            use = self.uses[name]
            if use.rate is not None:
                use.rate.take(units, now)
            else:
                use.used += units

    def occupy(self, needs: Needs) -> None:
        """Of a run that is there from the beginning: its rates are in their state already."""
        for name, units in needs:
            self.uses[name].used += units

    def give_back(self, needs: Needs) -> None:
        for name, units in needs:
            use = self.uses[name]
            if use.rate is None:
                use.used -= units
