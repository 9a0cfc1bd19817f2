"""The scheduling rule, run forward on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop
from itertools import islice

from fairlead.simulate.ages import NEVER
from fairlead.simulate.board import Board, Duration, Ended
from fairlead.simulate.values import Running, Snapshot, Task

Left = Callable[[Running], int]


class Simulation(Board):
    """What happens after a snapshot; the docstring of the package says how to use it."""

    def __init__(
        self,
        snapshot: Snapshot,
        *,
        arrivals: Iterable[Task] = (),
        duration: Duration | None = None,
        left: Left | None = None,
        ended: Ended | None = None,
    ) -> None:
        super().__init__(snapshot)
        self._begin(arrivals, duration, left, ended)
        self._heads.settle(self.now)

    def fork(
        self,
        *,
        arrivals: Iterable[Task] = (),
        duration: Duration | None = None,
        left: Left | None = None,
        ended: Ended | None = None,
    ) -> Simulation:
        """The same beginning with other durations, without the cost of preparing it.

        The simulation that is forked must not have been run, nor be run before its forks have ended.
        """
        if not self._is_due:
            raise ValueError(
                "a simulation that has been run cannot be forked: fork it first, and run the fork"
            )
        copy = Simulation.__new__(Simulation)
        self._copy_to(copy)
        copy._begin(arrivals, duration, left, ended)
        return copy

    def _begin(
        self,
        arrivals: Iterable[Task],
        duration: Duration | None,
        left: Left | None,
        ended: Ended | None,
    ) -> None:
        self._arrivals = iter(arrivals)
        self._next_arrival = next(self._arrivals, None)
        self._duration, self._ended = duration, ended
        self._learns = self._next_arrival is not None or ended is not None
        for run, running in zip(self._runs, self.snapshot.running, strict=True):
            copy = run.fork()
            copy.end = self.now + max(0, running.left if left is None else left(running))
            self._ends.append((copy.end, copy.fence, copy))
            self._limits.elastic.add(copy)
        heapify(self._ends)
        self._is_due = True  #: what happens at this instant has not been done yet

    def starts(self, until: int | None = None, most: int | None = None) -> Iterator[tuple[int, int]]:
        """The number of each task that starts, and when: the first `most`, and none after `until`.

        Ends when nothing can start any more. Another call continues where this one ended.
        """
        return islice(self._starts(until), most)

    def _starts(self, until: int | None) -> Iterator[tuple[int, int]]:
        while True:
            if self._advance():
                while (number := self._start_best()) is not None:
                    yield number, self.now
            at = self._next_instant()
            if at is None or (until is not None and at > until):
                return
            self.now, self._is_due = max(self.now, at), True

    def _advance(self) -> bool:
        """Does all that is due now; returns whether a task may be able to start.

        A promotion alone does not let a task start that could not before, unless there are holds.
        """
        if not self._is_due:
            return True
        self._is_due = False
        some = self._end_runs() | self._accept_arrivals()
        for place, ageing in self._ageing.items():
            while ageing.next <= self.now and (entry := ageing.pop(self._where, self.now)):
                self._promote(entry, place)
        refilled = self._refills.due(self.now)
        self._heads.show(refilled, self.now)
        if self._fleet.is_full():
            return False
        return self._holds.look(self.now) or some or bool(refilled) or self.now == self.snapshot.now

    def _end_runs(self) -> bool:
        ends, now, some = self._ends, self.now, False
        while ends and ends[0][0] <= now:
            end, _, run = heappop(ends)
            if run.end == end:
                self._end(run)
                some = True
        return some

    def _accept_arrivals(self) -> bool:
        some = False
        while self._next_arrival is not None and self._next_arrival.arrival <= self.now:
            self.submit(self._next_arrival)
            self._next_arrival = next(self._arrivals, None)
            some = True
        return some

    def _next_instant(self) -> int | None:
        ends, at = self._ends, NEVER
        while ends and ends[0][2].end != ends[0][0]:
            heappop(ends)
        if ends:
            at = ends[0][0]
        if self._next_arrival is not None:
            at = min(at, self._next_arrival.arrival)
        at = min(at, self._refills.next(self.now), self._holds.next_end(self.now))
        for ageing in self._ageing.values():
            if ageing.next < at:
                ageing.find_next(self._where)
                at = min(at, ageing.next)
        return None if at == NEVER else at
