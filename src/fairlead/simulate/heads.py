"""Finds the best task that can start, without looking at those that cannot.

Each lane has a heap of heads. A head that turns out to lack a limit goes to the lot of that limit, and its
sub-queue is not looked at until the limit has room: then the lot puts one marker among the heads of the lane,
for its first sub-queue. A marker that comes first while its lot is closed again is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from fairlead.simulate.copies import Copies
from fairlead.simulate.fleet import Audience, Fleet
from fairlead.simulate.limits import Limits
from fairlead.simulate.queues import ASIDE, IN_LANE, Lane, Lot, SubQueue
from fairlead.simulate.values import PLACES, Kind, Needs


class Facts(NamedTuple):
    """Of a kind, whatever the place."""

    audience: Audience
    may_start: bool
    rates: Needs  #: that it may wait for
    signature: str  #: if it may ask for a hold, else empty


class Heads:
    def __init__(self, limits: Limits, fleet: Fleet, paused: Iterable[str]) -> None:
        self._limits, self._fleet, self._paused = limits, fleet, frozenset(paused)
        self.queues = Copies[int, SubQueue]()
        self._lanes = Copies[int, Lane]()
        self._lots = Copies[int, Lot]()
        # the numbers of sub-queues (by kind, and by what makes kinds interchangeable), lanes and lots:
        self._of_kind: dict[tuple[Kind, int], int] = {}
        self._alike: dict[tuple[int, object, bool], int] = {}
        self._lane_of: dict[tuple[int, Audience], int] = {}
        self._lot_of: dict[tuple[int, Needs], int] = {}
        self._of_place: list[list[int]] = [[] for _ in PLACES]  #: the lanes
        self._aside: list[list[int]] = [[] for _ in PLACES]  #: sub-queues with a hold
        self._facts: dict[Kind, Facts] = {}

    def fork(self, limits: Limits, fleet: Fleet) -> Heads:
        copy = Heads(limits, fleet, self._paused)
        copy.queues, copy._lanes, copy._lots = Copies(self.queues), Copies(self._lanes), Copies(self._lots)
        copy._of_kind, copy._alike = self._of_kind.copy(), self._alike.copy()
        copy._lane_of, copy._lot_of = self._lane_of.copy(), self._lot_of.copy()
        copy._facts = self._facts.copy()
        copy._of_place = [lanes.copy() for lanes in self._of_place]
        copy._aside = [queues.copy() for queues in self._aside]
        return copy

    @property
    def count(self) -> int:
        """Of sub-queues."""
        return len(self._alike)

    def all_queues(self) -> Iterator[SubQueue]:
        return (self.queues[number] for number in range(self.count))

    # Sub-queues

    def queue_of(self, kind: Kind, place: int) -> SubQueue:
        number = self._of_kind.get((kind, place))
        if number is None:
            number = self._of_kind[kind, place] = self._find(kind, place)
        return self.queues[number]

    def _find(self, kind: Kind, place: int) -> int:
        """Those of several slots limits may be held for: they are separate, as in the rules."""
        facts = self._facts.get(kind) or self._facts.setdefault(kind, self._facts_of(kind))
        name = f"{PLACES[place]}:{facts.signature}" if facts.signature else ""
        like = (place, name or (facts.audience, kind.needs), facts.may_start)
        number = self._alike.get(like)
        if number is None:
            number = self._alike[like] = len(self._alike)
            lane = self._lane(place, facts.audience) if facts.may_start else None
            self.queues[number] = SubQueue(number, place, lane, name, kind.needs, facts.rates)
        return number

    def _facts_of(self, kind: Kind) -> Facts:
        audience = self._fleet.audience(kind)
        may_start = bool(audience) and kind.type not in self._paused and self._limits.could_have(kind.needs)
        if may_start:
            self._limits.know(kind.needs)
        return Facts(
            audience,
            may_start,
            self._limits.rates_of(kind.needs) if may_start else (),
            kind.signature if len(self._limits.slots_of(kind.needs)) > 1 else "",
        )

    def _lane(self, place: int, audience: Audience) -> int:
        number = self._lane_of.get((place, audience))
        if number is None:
            number = self._lane_of[place, audience] = len(self._lane_of)
            self._lanes[number] = Lane(place, audience, [])
            self._of_place[place].append(number)
        return number

    def changed(self, queue: SubQueue, was_empty: bool = False) -> None:
        """It has another head."""
        head = queue.head
        if head is None or queue.lane is None or queue.home == ASIDE:
            return
        key = (head[0], head[1], queue.number)
        if was_empty:
            queue.home = IN_LANE
        if queue.home == IN_LANE:
            heappush(self._lanes[queue.lane].heap, key)
            return
        lot = self._lots[queue.home]
        heappush(lot.heap, key)
        if lot.shown is not None and key[:2] < lot.shown:
            self._mark(lot, queue.home, queue)

    def put_aside(self, queue: SubQueue) -> None:
        """It has a hold, so that it may have room where others have none."""
        queue.home = ASIDE
        self._aside[queue.place].append(queue.number)

    def take_back(self, queue: SubQueue) -> None:
        self._aside[queue.place].remove(queue.number)
        queue.home = IN_LANE
        self.changed(queue)

    # The best

    def first_of(self, place: int, now: int) -> SubQueue | None:
        """The sub-queue with the best task of a place that a worker with a slot can start.

        "Can start" includes those for which an elastic run must become shorter first.
        """
        best: SubQueue | None = None
        base = 0 if place == 0 else 1
        for number in self._of_place[place]:
            lane = self._lanes[number]
            if lane.heap and self._fleet.has_slot(lane.audience, base):
                best = better(best, self._first_of_lane(lane, now))
        for number in self._aside[place]:
            queue = self.queues[number]
            assert queue.lane is not None
            if self._fleet.has_slot(self._lanes[queue.lane].audience, base) and self._can_start(queue, now):
                best = better(best, queue)
        return best

    def audience(self, queue: SubQueue) -> Audience:
        assert queue.lane is not None
        return self._lanes[queue.lane].audience

    def _first_of_lane(self, lane: Lane, now: int) -> SubQueue | None:
        heap = lane.heap
        while heap:
            _, seq, number = heap[0]
            if number < 0:
                self._open(lane, ~number, seq, now)
                continue
            queue = self.queues[number]
            if queue.home != IN_LANE or queue.head is None or queue.head[1] != seq:
                heappop(heap)
            elif lacking := self._lacking(queue, now):
                heappop(heap)
                self._park(queue, lacking)
            else:
                return queue
        return None

    def _can_start(self, queue: SubQueue, now: int) -> bool:
        return not self._lacking(queue, now)

    def _lacking(self, queue: SubQueue, now: int) -> Needs:
        """What it lacks, unless that can be relieved."""
        lacking = self._limits.lacked_by(queue, now)
        if lacking and self._limits.relief(lacking, queue.place >> 1, queue.number, now):
            return ()
        return lacking

    # Lots

    def settle(self, now: int) -> None:
        """Parks all that cannot start or shares a limit with many, so that no fork has to."""
        for queue in self.all_queues():
            if queue.home == IN_LANE and queue.head:
                lacking = self._lacking(queue, now)
                if lacking or any(self._limits.is_gate(name) for name, _ in queue.needs):
                    self._park(queue, lacking)
        for number in range(len(self._lane_of)):
            lane = self._lanes[number]
            lane.heap = [key for key in lane.heap if self.queues[key[2]].home == IN_LANE]
            heapify(lane.heap)
        for number in range(len(self._lot_of)):
            self._show(number, now)

    def _park(self, queue: SubQueue, lacking: Needs) -> None:
        """At a limit of its own that it lacks, else at all those that many need, together."""
        own = next((need for need in lacking if not self._limits.is_gate(need[0])), None)
        gates = tuple(need for need in queue.needs if self._limits.is_gate(need[0]))
        assert queue.lane is not None and queue.head is not None
        queue.home = self._lot(queue.lane, queue.place, gates if own is None else (own,))
        lot = self._lots[queue.home]
        lot.shown = None  # it is closed, and a marker that is still there may be worse than this head
        heappush(lot.heap, (queue.head[0], queue.head[1], queue.number))

    def _lot(self, lane: int, place: int, needs: Needs) -> int:
        number = self._lot_of.get((lane, needs))
        if number is None:
            number = self._lot_of[lane, needs] = len(self._lot_of)
            self._lots[number] = Lot(lane, place, needs)
            for name, _ in needs:
                self._limits.uses[name].lots.append(number)
        return number

    def show(self, names: Iterable[str], now: int) -> None:
        """These limits have more room."""
        for name in names:
            for number in self._limits.uses[name].lots:
                self._show(number, now)

    def _show(self, number: int, now: int) -> None:
        lot = self._lots[number]
        if lot.shown is None and lot.heap:
            first = self._first_of_lot(lot, number)
            if first is not None and self._limits.may_open(lot.needs, lot.place >> 1, now):
                self._mark(lot, number, first)

    def _mark(self, lot: Lot, number: int, first: SubQueue) -> None:
        assert first.head is not None
        lot.shown = first.head[:2]
        heappush(self._lanes[lot.lane].heap, (*lot.shown, ~number))

    def _open(self, lane: Lane, number: int, seq: int, now: int) -> None:
        """A marker comes first: the first of its lot goes among the heads, and the marker to the next one."""
        heappop(lane.heap)
        lot = self._lots[number]
        if lot.shown is None or lot.shown[1] != seq:
            return
        lot.shown = None
        first = self._first_of_lot(lot, number)
        if first is None or not self._limits.may_open(lot.needs, lot.place >> 1, now):
            return
        assert first.head is not None
        if first.head[1] == seq:
            heappush(lane.heap, heappop(lot.heap))
            first.home = IN_LANE
            first = self._first_of_lot(lot, number)
        if first is not None:
            self._mark(lot, number, first)

    def _first_of_lot(self, lot: Lot, number: int) -> SubQueue | None:
        heap = lot.heap
        while heap:
            _, seq, queue_number = heap[0]
            queue = self.queues[queue_number]
            if queue.home == number and queue.head is not None and queue.head[1] == seq:
                return queue
            heappop(heap)
        return None


def better(one: SubQueue | None, other: SubQueue | None) -> SubQueue | None:
    if one is None or other is None:
        return other or one
    assert one.head is not None and other.head is not None
    return one if one.head < other.head else other
