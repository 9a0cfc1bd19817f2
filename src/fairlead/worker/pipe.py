"""A pipe between two processes (or two threads): JSON messages, one per line, over a socket pair."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import msgspec

MOST_BYTES = 4 * 1024 * 1024  # of one message; parameters and results are far smaller


class MessagePipe:
    """One end, used in one event loop. The other end going away ends the iteration."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def over(cls, end: socket.socket) -> "MessagePipe":
        return cls(*await asyncio.open_connection(sock=end, limit=MOST_BYTES))

    @property
    def ended(self) -> bool:
        return self._reader.at_eof()

    def send(self, message: Any) -> None:
        """Queued; what cannot be delivered is dropped, because the other end is gone."""
        if not self._writer.is_closing():
            self._writer.write(msgspec.json.encode(message) + b"\n")

    async def receive(self) -> Any | None:
        """The next message, or None when the other end has gone."""
        try:
            line = await self._reader.readline()
        except (OSError, ValueError):
            return None
        return msgspec.json.decode(line) if line.endswith(b"\n") else None

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.receive()) is not None:
            yield message

    def cut(self) -> None:
        """Ends the iteration, even if another process holds the other end."""
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
