"""Which tasks came lately: more of the same kinds are expected at the same rate."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

WINDOW_MS = 300_000
MOST = 1_000  # that are remembered
LEAST_WINDOW_MS = 60_000  # after a start: a rate that was seen for a moment is none

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Arrival:
    at: int  #: ms
    task_type: str
    capabilities: str
    needs: str
    priority: int
    account: str
    elastic: bool


class Arrivals:
    def __init__(self, since: int = 0) -> None:
        self._since = since  #: from when on they were noticed
        self._latest: deque[Arrival] = deque(maxlen=MOST)

    def learn(self, arrival: Arrival) -> None:
        self._since = self._since or arrival.at
        self._latest.append(arrival)

    def limits(self, now: int) -> set[str]:
        """Those that tasks like them need."""
        recent, _ = self.recent(now)
        every = {need for arrival in recent for need in arrival.needs.split(",") if need}
        return {need.rpartition("=")[0] for need in every}

    def recent(self, now: int) -> tuple[list[Arrival], float]:
        """Those of the last minutes, and how many ms there were between two of them."""
        recent = [arrival for arrival in self._latest if arrival.at > now - WINDOW_MS]
        if not recent:
            return [], 0.0
        is_full = len(recent) == MOST
        since = recent[0].at if is_full else max(self._since, now - WINDOW_MS)
        return recent, max(LEAST_WINDOW_MS if not is_full else 1, now - since) / len(recent)


def expected(kinds: Sequence[T], every: float, now: int, seed: int) -> Iterator[tuple[int, T]]:
    """When tasks like these come, without an end: any of them, at this rate. The same for the same seed."""
    chance, at, count = random.Random(seed), float(now), len(kinds)
    while kinds:
        at += chance.expovariate(1 / every)
        yield round(at), kinds[int(chance.random() * count)]
