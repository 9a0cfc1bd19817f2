"""Which tasks came lately: more of the same kinds are expected at the same rate."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

WINDOW_MS = 300_000
MOST = 1_000  # that are remembered
LEAST_WINDOW_MS = 60_000  # after a start: a rate that was seen for a moment is none


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

    def expected(self, now: int, seed: int) -> Iterator[Arrival]:
        """Without an end, drawn from those of the last minutes; the same for the same seed."""
        recent = [arrival for arrival in self._latest if arrival.at > now - WINDOW_MS]
        if not recent:
            return
        full = len(self._latest) == MOST and len(recent) == MOST
        since = recent[0].at if full else max(self._since, now - WINDOW_MS)
        every = max(LEAST_WINDOW_MS, now - since) / len(recent)
        chance, at = random.Random(seed), float(now)
        while True:
            at += chance.expovariate(1 / every)
            like = recent[int(chance.random() * len(recent))]
            yield Arrival(
                round(at),
                like.task_type,
                like.capabilities,
                like.needs,
                like.priority,
                like.account,
                like.elastic,
            )
