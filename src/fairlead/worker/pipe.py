"""A pipe between two processes (or two threads): JSON messages, one per line, over a socket pair."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any, Protocol

import msgspec

MOST_BYTES = 4 * 1024 * 1024  # of one message; parameters and results are far smaller


class Pipe(Protocol):
    """One end, used in one event loop. The other end going away ends the iteration."""

    def send(self, message: Any) -> None: ...

    async def receive(self) -> Any | None: ...

    def __aiter__(self) -> AsyncIterator[Any]: ...


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


class Branch:
    """A pipe within a pipe: the messages of one of several."""

    def __init__(self, pipe: MessagePipe, number: int) -> None:
        self._pipe, self._number = pipe, number
        self.received: asyncio.Queue[Any | None] = asyncio.Queue()

    def send(self, message: Any) -> None:
        self._pipe.send({"branch": self._number, "message": message})

    async def receive(self) -> Any | None:
        message = await self.received.get()
        if message is None:
            self.received.put_nowait(None)  # for the next call, too
        return message

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.receive()) is not None:
            yield message


class Branches:
    """All of them; a message that names none is for each. Nothing else reads the pipe any more."""

    def __init__(self, pipe: MessagePipe, count: int) -> None:
        self.all = [Branch(pipe, number) for number in range(count)]
        self._reading = asyncio.create_task(self._read(pipe))

    async def _read(self, pipe: MessagePipe) -> None:
        async for message in pipe:
            to = [self.all[message["branch"]]] if "branch" in message else self.all
            for branch in to:
                branch.received.put_nowait(message["message"] if "branch" in message else message)
        for branch in self.all:
            branch.received.put_nowait(None)

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.wait({self._reading})
