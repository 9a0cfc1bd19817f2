"""When waiting tasks are promoted."""

from __future__ import annotations

from heapq import heappop, heappush

from fairlead.rules.values import Policy
from fairlead.simulate.queues import Entry
from fairlead.simulate.values import PLACES

Aged = tuple[
    int, int, Entry
]  #: arrival, seq: tasks that arrived together move in the order in which they came

NEVER = 1 << 62


class Ageing:
    """The tasks of one place by their age. Those that have left it are dropped when their time comes."""

    def __init__(self, place: int, after: int) -> None:
        self.place, self._after = place, after
        self._earlier: list[Aged] = []  #: sorted; shared by all forks
        self._at = 0
        self._later: list[Aged] = []  #: a heap
        self.next = NEVER  #: nobody leaves it by age before; not always the exact instant

    @classmethod
    def of(cls, place: int, policy: Policy) -> Ageing:
        after = {"2n": policy.low_to_medium, "1n": policy.medium_to_high, "1p": policy.low_to_high}
        return cls(place, after[PLACES[place].value])

    def fork(self) -> Ageing:
        copy = Ageing(self.place, self._after)
        copy._earlier, copy._at, copy._later = self._earlier, self._at, self._later.copy()
        copy.next = self.next
        return copy

    def begin(self, entries: list[Entry], where: bytearray) -> None:
        if self._after:
            self._earlier = sorted((entry[2].arrival, entry[1], entry) for entry in entries)
            self.find_next(where)

    def add(self, entry: Entry) -> None:
        if self._after:
            heappush(self._later, (entry[2].arrival, entry[1], entry))
            self.next = min(self.next, entry[2].arrival + self._after)

    def find_next(self, where: bytearray) -> None:
        first = self._first(where)
        self.next = NEVER if first is None else first[0] + self._after

    def pop(self, where: bytearray, now: int) -> Entry | None:
        """The first task, if it is due."""
        first = self._first(where)
        self.next = NEVER if first is None else first[0] + self._after
        if first is None or self.next > now:
            return None
        if self._later and self._later[0] is first:
            heappop(self._later)
        else:
            self._at += 1
        return first[2]

    def _first(self, where: bytearray) -> Aged | None:
        earlier, later, place = self._earlier, self._later, self.place
        while self._at < len(earlier) and where[earlier[self._at][2][2].number] != place:
            self._at += 1
        while later and where[later[0][2][2].number] != place:
            heappop(later)
        one = earlier[self._at] if self._at < len(earlier) else None
        if not later or (one is not None and one[:2] < later[0][:2]):
            return one
        return later[0]
