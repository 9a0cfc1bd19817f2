"""Bounds the bytes of request bodies that a process holds: beyond them a request waits, or is refused."""

import asyncio
from collections import deque

from fairlead.api.problems import Overloaded

MOST_BYTES = 64 * 1024 * 1024  # of bodies; the decoded values take a few times as much
SMALL_BYTES = 16 * 1024  # up to which a body does not count: small ones do not wait behind large ones
WAIT_SECONDS = 2.0


class Budget:
    """`taken = await budget.take(size)` before a body is read, and at the end `budget.give_back(taken)`.

    First come, first served. Small bodies take nothing.
    """

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, size: int) -> int:
        """How many bytes were taken. Raises Overloaded when there is no room for them in time."""
        if size <= SMALL_BYTES:
            return 0
        if size <= self._left and not self._waiting:
            self._left -= size
            return size
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await asyncio.wait([turn], timeout=WAIT_SECONDS)
        except asyncio.CancelledError:
            if turn.done():
                self.give_back(size)
            raise
        finally:
            if not turn.done():
                self._waiting.remove((size, turn))
                self._call_next()  # those behind it may fit
        if not turn.done():
            raise Overloaded()
        return size

    def give_back(self, size: int) -> None:
        self._left += size
        self._call_next()

    def _call_next(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._left:
            size, turn = self._waiting.popleft()
            self._left -= size
            turn.set_result(None)
