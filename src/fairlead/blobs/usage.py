"""How many bytes all blobs of a namespace take."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fairlead.clock import monotonic
from fairlead.errors import BlobStoreFull
from fairlead.log.events import LimitedLog

log = LimitedLog("fairlead.blobs", seconds=60)
BLOCK = 4096  # bytes: a smaller file takes as much
FRESH_SECONDS = 10.0  # how long a measurement is used; other processes add blobs meanwhile
PATIENT = 50  # a measurement is used for this many times as long as it took, at least


class Usage:
    """`measure` returns the bytes of all that is kept; what is added here until the next time is known."""

    def __init__(self, most: int, measure: Callable[[], Awaitable[int]]) -> None:
        self._most = most
        self._measure = measure
        self._bytes = 0
        self._reserved = 0
        self._measured_at = self._fresh_until = float("-inf")
        self._lock = asyncio.Lock()

    @asynccontextmanager
    async def room_for(self, size: int) -> AsyncIterator[None]:
        """Raises BlobStoreFull if there is none. What is added in the block is counted from its end on."""
        size = in_blocks(size)
        async with self._lock:
            now = monotonic()
            is_full = self._bytes + self._reserved + size > self._most
            if now > self._fresh_until or (is_full and now > self._measured_at + 1):
                self._bytes = await self._measure()
                self._measured_at = monotonic()
                self._fresh_until = self._measured_at + max(
                    FRESH_SECONDS, PATIENT * (self._measured_at - now)
                )
            if self._bytes + self._reserved + size > self._most:
                log.warning("blobs_full", bytes=self._bytes, max_total_bytes=self._most)
                used = self._bytes + self._reserved
                raise BlobStoreFull(
                    f"The blobs take {used} bytes, and {self._most} are allowed: wait until some expire, or "
                    "raise blobs.max_total_bytes."
                )
        self._reserved += size
        try:
            yield
        finally:
            self._reserved -= size

    def add(self, size: int) -> None:
        self._bytes += in_blocks(size)


def in_blocks(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
