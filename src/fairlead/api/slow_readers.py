"""A reader that takes nothing of what is sent is given up: what waits for it would be kept for ever."""

import asyncio
from typing import Any


class GivesUpSlowReaders(asyncio.Protocol):
    """Goes before a protocol of uvicorn, which waits for its reader as long as the reader likes."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    write_seconds: float
    _behind: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        self._wait_no_more()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        super().connection_lost(exc)

    def give_up(self) -> None:
        self.transport.abort()

    def _wait_for_reader(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._behind = self.loop.call_later(self.write_seconds, self._look_at_reader, unsent)

    def _look_at_reader(self, unsent_before: int) -> None:
        """Who has taken some of it is slow, but reads."""
        if self.transport.get_write_buffer_size() < unsent_before:
            self._wait_for_reader()
        else:
            self.give_up()

    def _wait_no_more(self, *_: Any) -> None:
        if self._behind:
            self._behind.cancel()
            self._behind = None
