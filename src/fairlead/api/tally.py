"""What a server process counts by itself: requests, calls of the store, and how late its event loop is.

The counts of all processes are added up in the store, so that every scrape shows the same, and a process that
ends leaves its counts behind. What a killed process has counted in its last seconds is lost.
"""

import asyncio
import os
from bisect import bisect_left
from collections import Counter

import uuid_utils

from fairlead.clock import monotonic
from fairlead.errors import FairleadError
from fairlead.model.metrics import SERVED_BOUNDS
from fairlead.store.store import Store

EVERY_SECONDS = 5.0  # between two times that counts are added
LOOK_SECONDS = 0.5  # between two looks at the event loop
UNCOUNTED = frozenset({"add_counts"})  # otherwise each would cause the next


class Tally:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._process = f"{os.getpid()}-{uuid_utils.uuid7()}"
        self._counts: Counter[str] = Counter()
        self._lag = 0.0  # the greatest since counts were added
        store.connection.observe = self.count_call

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._counts[f"requests:{status}:{route}"] += 1
        self._observe("request", route, seconds)

    def count_call(self, act: str, seconds: float) -> None:
        if act not in UNCOUNTED:
            self._observe("call", act, seconds)

    def _observe(self, name: str, of: str, seconds: float) -> None:
        self._counts[f"{name}:{bisect_left(SERVED_BOUNDS, seconds) + 1}:{of}"] += 1
        self._counts[f"{name}_ms:{of}"] += round(seconds * 1000)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._watch_loop(EVERY_SECONDS)
            await self.add()

    async def _watch_loop(self, seconds: float) -> None:
        ends = monotonic() + seconds
        while (began := monotonic()) < ends:
            await asyncio.sleep(LOOK_SECONDS)
            self._lag = max(self._lag, monotonic() - began - LOOK_SECONDS)

    async def add(self) -> None:
        """Adds to the store what was counted since the last time; what fails is added the next time.

        If only the reply was lost, it is counted twice: the acts themselves count tasks, which is exact.
        """
        counts, self._counts = self._counts, Counter()
        lag, self._lag = self._lag, 0.0
        try:
            await self._store.metrics.add(self._process, counts, round(lag * 1000))
        except FairleadError:
            self._counts.update(counts)
