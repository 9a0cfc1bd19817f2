"""What is written to a client, and for how long the client may leave it unread."""

import asyncio
import math


class Outlet:
    """Of one connection, whichever protocol it speaks."""

    __slots__ = ("_due", "_seconds", "_unsent", "_writable", "lost", "paused", "transport")

    def __init__(self, transport: asyncio.Transport, seconds: float) -> None:
        self.transport = transport
        self.paused = False  # more is unsent than should be
        self.lost = False
        self._seconds = seconds
        self._writable = asyncio.Event()
        self._due = math.inf
        self._unsent = 0

    @property
    def is_open(self) -> bool:
        return not (self.lost or self.transport.is_closing())

    def write(self, *parts: bytes) -> None:
        self.transport.writelines(parts)

    async def drain(self) -> None:
        """Until the client has read enough, or has gone."""
        while self.paused and not self.lost:
            await self._writable.wait()

    def pause(self, now: float) -> None:
        self.paused = True
        self._writable.clear()
        self._wait(now)

    def resume(self) -> None:
        self.paused = False
        self._due = math.inf
        self._writable.set()

    def lose(self) -> None:
        """Pending writes are released; `paused` still says whether something was left unread."""
        self.lost = True
        self._due = math.inf
        self._writable.set()

    def is_stuck(self, now: float) -> bool:
        """The client takes nothing. A client that has taken some is slow, but reads."""
        if now < self._due:
            return False
        if self.transport.get_write_buffer_size() < self._unsent:
            self._wait(now)
            return False
        return True

    def _wait(self, now: float) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._due = now + self._seconds
