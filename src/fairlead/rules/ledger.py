"""The ledger: every limit, the units that are taken, and those kept back by holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fairlead.errors import InvalidInput
from fairlead.model.priority import Priority
from fairlead.rules.holds import Hold, Patience, heads
from fairlead.rules.limits import Companions, Limit, Rate, Slots
from fairlead.rules.values import Policy, Task

Served = Callable[[Task], bool]


class Ledger:
    def __init__(self) -> None:
        self.limits: dict[str, Limit] = {}
        self.taken: dict[int, Mapping[str, int]] = {}  #: by the fence of the lease
        self.holds: dict[str, Hold] = {}  #: by sub-queue
        self.kept: dict[str, list[Priority]] = {}  #: a unit each, for waiting tasks of these priorities
        self.companions = Companions()
        self.patience = Patience()

    def check(self, limits: Mapping[str, int]) -> None:
        """Raise if a task with these limits could never start."""
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
        return limit.room(self.used(name), held_back + self.kept_from(name, priority))

    def kept_from(self, name: str, priority: Priority) -> int:
        return sum(kept <= priority for kept in self.kept.get(name, ()))

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
        """An existing limit keeps its pause and, as a rate, the units that it owes."""
        old = self.limits.get(name)
        if old:
            limit.paused = old.paused
        if isinstance(old, Rate) and isinstance(limit, Rate):
            limit.take_over(old, now)
        self.limits[name] = limit

    def forget(self, name: str) -> None:
        del self.limits[name]
        self.companions.forget(name)

    # Holds

    def make_holds(self, queued: Iterable[Task], served: Served, policy: Policy, now: int) -> None:
        """`served`: whether there is a worker that may start a task."""
        first = heads(queued)
        self.review_holds(first, served, policy, now)
        candidates = [head for head in first.values() if self._to_hold(head)]
        for head in self.patience.due(candidates, policy, now):
            self.patience.postpone(head.sub_queue, now, policy)
            units = self._to_hold(head)
            may_take = self._may_take(head, units, policy) and not self.has_room(head, now)
            if may_take and self._helps(head, units, served, now):
                self.holds[head.sub_queue] = Hold(head.sub_queue, head.place.priority, head.id, now, units)

    def review_holds(self, first: Mapping[str, Task], served: Served, policy: Policy, now: int) -> None:
        """End the holds that no longer help, or have lasted long enough."""
        for name in sorted(self.holds):
            hold, head = self.holds[name], first[name]
            lasted = now - hold.since
            if lasted >= policy.hold_for or not self._helps(head, self._to_hold(head), served, now):
                del self.holds[name]
                self.patience.postpone(name, now, policy, lasted)

    def _slots(self, task: Task) -> list[str]:
        return [name for name in task.limits if isinstance(self.limits[name], Slots)]

    def _to_hold(self, head: Task) -> dict[str, int]:
        """Its slots limits that overlap with another of them."""
        return {name: head.limits[name] for name in self.companions.overlapping(self._slots(head))}

    def _may_take(self, head: Task, units: Mapping[str, int], policy: Policy) -> bool:
        """All limits of the set or none, so that two holds never wait for each other."""
        taken = {name for hold in self.holds.values() for name in hold.units}
        free = len(self.holds) < policy.most_holds and not taken.intersection(units)
        return free and head.sub_queue not in self.holds

    def _helps(self, head: Task, units: Mapping[str, int], served: Served, now: int) -> bool:
        """A worker serves it, it can start once others have finished, and all that it lacks is held."""
        sub_queue, priority = head.sub_queue, head.place.priority
        lacking = {n for n, want in head.limits.items() if self.room(n, now, sub_queue, priority) < want}
        hopeful = all(self._could_have(name, want) for name, want in head.limits.items())
        return served(head) and hopeful and lacking <= units.keys()

    def _could_have(self, name: str, units: int) -> bool:
        return not self.limits[name].paused and self.limits[name].fits(units)

    def end_hold(self, task: Task, started: bool) -> None:
        """A task leaves: the hold ends with any start, or when it was made for this task."""
        hold = self.holds.get(task.sub_queue)
        if hold and (started or hold.head == task.id):
            del self.holds[task.sub_queue]
