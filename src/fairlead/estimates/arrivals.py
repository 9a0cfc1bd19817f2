"""Which tasks came lately: in the next minutes and hours, tasks like those of the last ones are expected."""

from __future__ import annotations

import math
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from fairlead.estimates.durations import RunKind

SHORTEST_MS = 300_000
MOST = 1_000  # that are remembered
LEAST_SPAN_MS = 60_000  # after a start: a rate that was seen for a moment is none

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Arrival:
    at: int  #: ms
    run_kind: RunKind
    capabilities: str
    priority: int
    elastic: bool


@dataclass(frozen=True, slots=True)
class Window(Generic[T]):
    """For this many ms from now, tasks like these arrive, one in `every` ms."""

    until: float
    kinds: Sequence[T]
    every: float


class Arrivals:
    def __init__(self, since: int = 0) -> None:
        self._since = since  #: from when on they were noticed
        self._latest: deque[Arrival] = deque(maxlen=MOST)

    def learn(self, arrival: Arrival) -> None:
        self._since = self._since or arrival.at
        self._latest.append(arrival)

    def limits(self) -> set[str]:
        """Those that tasks like them need."""
        every = {need for needs in {one.run_kind.needs for one in self._latest} for need in needs.split(",")}
        return {need.rpartition("=")[0] for need in every if need}

    def windows(self, now: int) -> Iterator[Window[Arrival]]:
        """One after another. The last minutes say most about the next ones, but little about the next day:
        that is like the last day.
        """
        latest = list(self._latest)
        if not latest:
            return
        is_full = len(latest) == MOST
        span = max(1 if is_full else LEAST_SPAN_MS, now - (latest[0].at if is_full else self._since))
        times, length = [one.at for one in latest], SHORTEST_MS
        while length < span:
            some = latest[bisect_right(times, now - length) :]
            yield Window(length, some, length / max(1, len(some)))
            length *= 2
        yield Window(math.inf, latest, span / len(latest))


def expected(windows: Sequence[Window[T]], now: int, seed: int) -> Iterator[tuple[int, T]]:
    """When tasks like these come, usually without an end. The same for the same seed."""
    chance, at = random.Random(seed), float(now)
    for window in windows:
        while window.kinds:
            following = at + chance.expovariate(1 / window.every)
            if following > now + window.until:
                break
            at = following
            yield round(at), window.kinds[int(chance.random() * len(window.kinds))]
        at = now + window.until
