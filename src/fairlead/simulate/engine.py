"""The scheduling rule, run forward on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop
from itertools import islice

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
        """The number of each task that starts, and when: at most so many, and none after an instant.

        Ends when nothing can start any more. Another call continues.
        """
        return islice(self._starts(until), most)

    def _starts(self, until: int | None) -> Iterator[tuple[int, int]]:
        while True:
            if self._is_due:
                self._advance()
            while (number := self._start_best()) is not None:
                yield number, self.now
            at = self._next_instant()
            if at is None or (until is not None and at > until):
                return
            self.now, self._is_due = at, True

    def _advance(self) -> None:
        """All that is due now."""
        now, ends, self._is_due = self.now, self._ends, False
        while ends and ends[0][0] <= now:
            end, _, run = heappop(ends)
            if run.end == end:
                self._end(run)
        while self._next_arrival is not None and self._next_arrival.arrival <= now:
            self.submit(self._next_arrival)
            self._next_arrival = next(self._arrivals, None)
        for place, ageing in self._ageing.items():
            while entry := ageing.pop(self._where, now):
                self._promote(entry, place)
        self._heads.show(self._refills.due(now), now)
        if not self._fleet.is_full():
            self._holds.look(now)

    def _next_instant(self) -> int | None:
        ends, instants = self._ends, []
        while ends and ends[0][2].end != ends[0][0]:
            heappop(ends)
        if ends:
            instants.append(ends[0][0])
        if self._next_arrival is not None:
            instants.append(self._next_arrival.arrival)
        instants += [due for ageing in self._ageing.values() if (due := ageing.due(self._where)) is not None]
        if (refill := self._refills.next(self.now)) is not None:
            instants.append(refill)
        if (end := self._holds.next_end(self.now)) is not None:
            instants.append(end)
        return min(instants, default=None)
