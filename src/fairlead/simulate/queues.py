"""Where tasks wait: sub-queues, whose heads are in lanes if they may be able to start, and else in lots."""

from __future__ import annotations

from heapq import heappop

from fairlead.simulate.fleet import Audience
from fairlead.simulate.values import Needs, Task

Entry = tuple[int, int, Task, int]  #: tag, seq, task, stride; no two have the same seq
Key = tuple[int, int, int]  #: tag and seq of a head, and the number of its sub-queue (or of a lot, inverted)

IN_LANE, ASIDE = -1, -2  #: homes of a sub-queue, beside the number of a lot


class SubQueue:
    """Tasks of one place that are interchangeable except for their order.

    Types that the same workers serve, and that need the same, share one unless they could have a hold.
    """

    __slots__ = (
        "asks_at",
        "at",
        "earlier",
        "head",
        "home",
        "lane",
        "later",
        "name",
        "needs",
        "number",
        "place",
        "rates",
        "watched",
    )

    def __init__(
        self, number: int, place: int, lane: int | None, name: str, needs: Needs, rates: Needs
    ) -> None:
        self.number, self.place = number, place
        self.lane = lane  #: None: nothing of it can ever start
        self.name = name  #: as in the rules, if it may ask for a hold, else empty
        self.needs, self.rates = needs, rates  #: all limits, and the rates that it can wait for
        self.earlier: list[Entry] = []  #: sorted; shared by all forks
        self.at = 0
        self.later: list[Entry] = []  #: a heap
        self.head: Entry | None = None
        self.home = ASIDE if lane is None else IN_LANE
        self.watched = -1  #: the seq of the head that may ask from
        self.asks_at: int | None = None

    def fork(self) -> SubQueue:
        copy = SubQueue(self.number, self.place, self.lane, self.name, self.needs, self.rates)
        copy.earlier, copy.at, copy.later = self.earlier, self.at, self.later.copy()
        copy.head, copy.home, copy.watched, copy.asks_at = self.head, self.home, self.watched, self.asks_at
        return copy

    def find_head(self, where: bytearray) -> None:
        """`where` is the place of each task: one that has left is dropped when it comes first."""
        earlier, at, later, place = self.earlier, self.at, self.later, self.place
        while at < len(earlier) and where[earlier[at][2].number] != place:
            at += 1
        self.at = at
        while later and where[later[0][2].number] != place:
            heappop(later)
        first = earlier[at] if at < len(earlier) else None
        self.head = later[0] if later and (first is None or later[0] < first) else first


class Lane:
    """A place and an audience: the heads that may be able to start, and a marker for each open lot."""

    __slots__ = ("audience", "heap", "place")

    def __init__(self, place: int, audience: Audience, heap: list[Key]) -> None:
        self.place, self.audience, self.heap = place, audience, heap

    def fork(self) -> Lane:
        return Lane(self.place, self.audience, self.heap.copy())


class Lot:
    """The sub-queues of a lane that wait until some limits have room together."""

    __slots__ = ("heap", "lane", "needs", "place", "shown")

    def __init__(self, lane: int, place: int, needs: Needs) -> None:
        self.lane, self.place, self.needs = lane, place, needs
        self.heap: list[Key] = []
        self.shown: tuple[int, int] | None = None  #: tag and seq of its marker among the heads

    def fork(self) -> Lot:
        copy = Lot(self.lane, self.place, self.needs)
        copy.heap, copy.shown = self.heap.copy(), self.shown
        return copy
