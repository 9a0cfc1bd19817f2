"""The ledger: every limit, who has taken what of it, and what is kept back for whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead.errors import InvalidInput
from fairlead.priority import Priority
from fairlead.rules.holds import Hold, impatient
from fairlead.rules.limits import Companions, Limit, Rate, Slots
from fairlead.rules.values import Policy, Task


class Ledger:
    def __init__(self) -> None:
        self.limits: dict[str, Limit] = {}
        self.taken: dict[int, Mapping[str, int]] = {}  #: by the fence of the lease
        self.holds: dict[str, Hold] = {}  #: by sub-queue
        self.companions = Companions()

    def check(self, limits: Mapping[str, int]) -> None:
        """Refuse what could never start."""
        for name, units in limits.items():
            if name not in self.limits:
                raise InvalidInput("limits", f"there is no limit {name}")
            if not self.limits[name].accepts(units):
                raise InvalidInput("limits", f"{units} units are more than {name} has")

    # Room

    def used(self, name: str) -> int:
        return sum(units.get(name, 0) for units in self.taken.values())

    def room(
        self, name: str, now: int, sub_queue: str | None = None, priority: Priority = Priority.LOW
    ) -> int:
        limit = self.limits[name]
        if isinstance(limit, Rate):
            return limit.room(now)
        held_back = sum(
            hold.units.get(name, 0) for hold in self.holds.values() if hold.keeps_from(sub_queue, priority)
        )
        return limit.room(self.used(name), held_back)

    def has_room(self, task: Task, now: int) -> bool:
        """All or none: room for each of its limits."""
        return all(
            self.room(name, now, task.sub_queue, task.place.priority) >= units
            for name, units in task.limits.items()
        )

    def take(self, fence: int, limits: Mapping[str, int], now: int) -> None:
        self.taken[fence] = limits
        for name, units in limits.items():
            limit = self.limits[name]
            if isinstance(limit, Rate):
                limit.take(units, now)

    def give_back(self, fence: int) -> None:
        del self.taken[fence]

    # Changes by the operator

    def define(self, name: str, limit: Limit, now: int) -> None:
        """A limit that is there keeps its pause and, as a rate, the units that it owes."""
        old = self.limits.get(name)
        if old:
            limit.paused = old.paused
        if isinstance(old, Rate) and isinstance(limit, Rate):
            limit.take_over(old, now)
        self.limits[name] = limit
        self._end_hopeless_holds(name)

    def pause(self, name: str, paused: bool) -> None:
        self.limits[name].paused = paused
        self._end_hopeless_holds(name)

    def _end_hopeless_holds(self, name: str) -> None:
        for hold in list(self.holds.values()):
            if name in hold.needs and not self._could_have(name, hold.needs[name]):
                del self.holds[hold.sub_queue]

    def _could_have(self, name: str, units: int) -> bool:
        return not self.limits[name].paused and self.limits[name].fits(units)

    # Holds

    def make_holds(self, queued: Iterable[Task], policy: Policy, now: int) -> None:
        wide = (task for task in queued if len(self._slots(task)) >= 2)
        for head in impatient(wide, policy, now):
            units = self._to_hold(head)
            if units and not self.has_room(head, now):
                self.holds[head.sub_queue] = Hold(
                    head.sub_queue, head.type, head.place.priority, head.id, head.limits, units
                )

    def _slots(self, task: Task) -> list[str]:
        return [name for name in task.limits if isinstance(self.limits[name], Slots)]

    def _to_hold(self, head: Task) -> Mapping[str, int]:
        """What to hold: all limits of the set or none, so that two holds never wait for each other."""
        names = self.companions.overlapping(self._slots(head))
        taken = {name for hold in self.holds.values() for name in hold.units}
        hopeful = all(self._could_have(name, units) for name, units in head.limits.items())
        if head.sub_queue in self.holds or names & taken or not hopeful:
            return {}
        return {name: head.limits[name] for name in names}

    def end_holds_of(self, paused_types: Iterable[str]) -> None:
        for hold in list(self.holds.values()):
            if hold.type in paused_types:
                del self.holds[hold.sub_queue]

    def end_hold(self, task: Task, started: bool) -> None:
        """A task leaves its sub-queue: any start, or the loss of the one it was made for, ends the hold."""
        hold = self.holds.get(task.sub_queue)
        if hold and (started or hold.head == task.id):
            del self.holds[task.sub_queue]
