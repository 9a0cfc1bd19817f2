"""Runs, and the elastic ones among them that can become shorter."""

from __future__ import annotations

from heapq import heappop, heappush
from random import Random

from fairlead.simulate.values import Needs


class Run:
    """`needs` is what it holds, the units of longer tiers that it took as long as they were free included."""

    __slots__ = ("account", "base", "end", "fence", "needs", "number", "started", "tier", "worker")

    def __init__(self, number: int, needs: Needs, base: int, account: str, started: int, fence: int) -> None:
        self.number, self.needs, self.base, self.account = number, needs, base, account
        self.started, self.fence = started, fence
        self.end = started
        self.worker = -1  #: it takes no slot
        self.tier = -1  #: the longest that it holds, if it is elastic

    def fork(self) -> Run:
        copy = Run(self.number, self.needs, self.base, self.account, self.started, self.fence)
        copy.end, copy.worker, copy.tier = self.end, self.worker, self.tier
        return copy


class ElasticRuns:
    """Those that hold more than the shortest tier, by the longest that they hold, the youngest first."""

    def __init__(self, tiers: int) -> None:
        self.count = 0
        self.dice: Random | None = None  #: None: the youngest is shortened
        self._heaps: list[list[tuple[int, Run]]] = [[] for _ in range(tiers)]

    def fork(self) -> ElasticRuns:
        """Without the runs, which the fork adds itself."""
        copy = ElasticRuns(len(self._heaps))
        copy.dice = self.dice
        return copy

    def add(self, run: Run) -> None:
        if run.tier > 0:
            self.count += 1
            heappush(self._heaps[run.tier], (-run.fence, run))

    def has(self, tier: int) -> bool:
        return any(self._top(longer) for longer in range(tier, len(self._heaps)))

    def victim(self, tier: int) -> Run:
        """Of those that hold this tier."""
        if self.dice:
            longer = (entry for heap in self._heaps[tier:] for entry in heap)
            return self.dice.choice([run for _, run in longer if run.tier >= tier])
        tops = (self._top(longer) for longer in range(tier, len(self._heaps)))
        return max(filter(None, tops), key=lambda run: run.fence)

    def drop(self, run: Run) -> None:
        """It has ended, or becomes shorter."""
        if run.tier > 0:
            self.count -= 1
            run.tier = 0

    def _top(self, tier: int) -> Run | None:
        heap = self._heaps[tier]
        while heap and heap[0][1].tier != tier:
            heappop(heap)
        return heap[0][1] if heap else None
