"""The sums of the limits that a scrape does not show separately: there may be any number of them."""

import asyncio
from collections.abc import Collection

from fairlead.clock import monotonic
from fairlead.model.metrics import LimitUse
from fairlead.store.store import Store

OTHER = "other"
FRESH_SECONDS = 15.0


class OtherLimits:
    """Reads all limits in the background when it is asked: an answer is that of the time before."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._sums: tuple[LimitUse, LimitUse] | None = None
        self._read_at = 0.0
        self._reading: asyncio.Task[None] | None = None

    async def sums(self, shown: Collection[str]) -> tuple[LimitUse, LimitUse]:
        """Of those that are not shown, and of the slots limits among them."""
        if self._reading is None and (self._sums is None or monotonic() - self._read_at > FRESH_SECONDS):
            self._reading = asyncio.create_task(self._read(frozenset(shown)))
        if self._sums is None and self._reading:
            await asyncio.shield(self._reading)
        return self._sums or (LimitUse(OTHER), LimitUse(OTHER))

    async def _read(self, shown: frozenset[str]) -> None:
        try:
            every, slots, last = LimitUse(OTHER), LimitUse(OTHER), ""
            while uses := await self._store.metrics.limits_after(last):
                last = uses[-1].name
                for use in uses:
                    if use.name not in shown:
                        every = _sum(every, use)
                        slots = _sum(slots, use) if use.is_slots else slots
            self._sums, self._read_at = (every, slots), monotonic()
        finally:
            self._reading = None


def _sum(one: LimitUse, other: LimitUse) -> LimitUse:
    return LimitUse(
        OTHER,
        limit=one.limit + other.limit,
        active=one.active + other.active,
        waiting=one.waiting + other.waiting,
    )
