"""When rate limits have the units again that a waiting task lacks."""

from __future__ import annotations

from heapq import heappop, heappush

from fairlead.simulate.ages import NEVER
from fairlead.simulate.limits import Limits
from fairlead.simulate.values import Needs

Want = tuple[str, int]  #: a rate limit, and how many of its units


class Refills:
    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: dict[Want, int] = {}  #: tasks that could start but for the rates, by what they want
        self._units: dict[str, set[int]] = {}  #: what was ever wanted of a limit
        self._taken: set[str] = set()  #: limits that must be looked at again
        self._at: dict[Want, int] = {}
        self._heap: list[tuple[int, Want]] = []

    def fork(self, limits: Limits) -> Refills:
        copy = Refills(limits)
        copy._waiting, copy._at, copy._heap = self._waiting.copy(), self._at.copy(), self._heap.copy()
        copy._units = {name: units.copy() for name, units in self._units.items()}
        copy._taken = self._taken.copy()
        return copy

    def enter(self, wants: Needs, tasks: int = 1) -> None:
        for want in wants:
            self._waiting[want] = self._waiting.get(want, 0) + tasks
            self._units.setdefault(want[0], set()).add(want[1])
            self._taken.add(want[0])

    def leave(self, wants: Needs) -> None:
        for want in wants:
            self._waiting[want] -= 1
            self._taken.add(want[0])

    def taken(self, wants: Needs) -> None:
        self._taken.update(name for name, _ in wants)

    def next(self, now: int) -> int:
        if self._taken:
            for name in self._taken:
                self._schedule(name, now)
            self._taken.clear()
        while self._heap and not self._is_wanted(*self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] if self._heap else NEVER

    def due(self, now: int) -> list[str]:
        """The limits that now have units which somebody wants."""
        names = []
        while self._heap and self._heap[0][0] <= now:
            at, want = heappop(self._heap)
            if self._is_wanted(at, want):
                names.append(want[0])
                del self._at[want]
        return names

    def _schedule(self, name: str, now: int) -> None:
        rate = self._limits.uses[name].rate
        assert rate is not None
        room = rate.room(now)
        for units in self._units.get(name, ()):
            want = (name, units)
            if room < units and self._waiting[want]:
                at = rate.refilled_at(units, now)
                if self._at.get(want) != at:
                    self._at[want] = at
                    heappush(self._heap, (at, want))

    def _is_wanted(self, at: int, want: Want) -> bool:
        if self._at.get(want) != at:
            return False
        if not self._waiting[want]:
            del self._at[want]
            return False
        return True
