"""The connections of a process: what both protocols do alike, and what all connections share."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from starlette.types import ASGIApp

from fairlead.api.http.handshake import HandshakeQueue
from fairlead.api.http.outlet import Outlet

READ_BYTES = 64 * 1024  # at once, from one connection
LOOK_SECONDS = 1.0  # at most, between two checks of all connections
MOST_DISCARDED = 4 * 1024 * 1024  # bytes that are read after the last answer, so that it arrives


@dataclass(frozen=True, slots=True)
class Bounds:
    read_seconds: float = 10.0  # for a head, and then for its body
    write_seconds: float = 10.0  # in which a client that is behind must read some of what was sent
    idle_seconds: float = 60.0  # between two requests
    handshake_seconds: float = 10.0  # for the answer to a handshake, from its head on
    most_connections: int = 16_384

    @property
    def look_seconds(self) -> float:
        seconds = (self.read_seconds, self.write_seconds, self.idle_seconds, self.handshake_seconds)
        return min(LOOK_SECONDS, min(seconds) / 4)


class BoundedProtocol(ABC, asyncio.BufferedProtocol):
    """A connection. It reads no more at once than it should keep while it cannot process it, and ends so that
    the client can read the last answer."""

    outlet: Outlet

    def __init__(self, manager: "ConnectionManager") -> None:
        self._manager = manager
        self._unread = b""  # what has been received, from `_at` on
        self._at = 0
        self._is_reading = True
        self._again: asyncio.Handle | None = None  # when reading continues
        self._discarded: int | None = None  # bytes, once whatever arrives is of no use

    # What the transport calls

    def get_buffer(self, sizehint: int) -> memoryview:
        """All connections share it: the loop calls `buffer_updated` right after it has read into it."""
        return self._manager.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(bytes(self._manager.buffer[:nbytes]))

    def data_received(self, data: bytes) -> None:
        if self._discarded is not None:
            self._discarded += len(data)
            if self._discarded > MOST_DISCARDED:
                self.close()
            return
        self._unread = self._unread[self._at :] + data if self._unread else data
        self._at = 0
        self._advance()

    def pause_writing(self) -> None:
        self.outlet.pause(self._manager.now())

    def resume_writing(self) -> None:
        self.outlet.resume()

    # What the manager calls

    @abstractmethod
    def look(self, now: float) -> None:
        """Ends what has taken too long."""

    @abstractmethod
    def shut_down(self) -> None:
        """The server stops."""

    @abstractmethod
    def close(self) -> None:
        """Once everything is sent, for which the client has some time."""

    def abort(self) -> None:
        self.outlet.transport.abort()

    # Reading

    @abstractmethod
    def _advance(self) -> None:
        """Reads as much as can be processed now. While something is left nothing more is received."""

    def _continue(self) -> None:
        self._again = None
        self._advance()

    def _set_reading(self, wanted: bool) -> None:
        transport = self.outlet.transport
        if wanted != self._is_reading and not transport.is_closing():
            self._is_reading = wanted
            if wanted:
                transport.resume_reading()
            else:
                transport.pause_reading()

    def _discard_rest(self) -> None:
        """Closing now would reset the connection, because not all of it has been read, and the reset could
        overtake what was sent."""
        self._unread, self._at = b"", 0
        self._discarded = 0
        if self.outlet.is_open:
            self.outlet.transport.write_eof()
            self._set_reading(True)


class ConnectionManager:
    """The application, the bounds, and the check of all deadlines.

    One timer checks all connections: a timer for each, or for each request, would cost more.
    """

    def __init__(self, app: ASGIApp, bounds: Bounds) -> None:
        self.app = app
        self.bounds = bounds
        self.is_stopping = False
        self.handshakes = HandshakeQueue()
        self.buffer = memoryview(bytearray(READ_BYTES))
        self._connections: set[BoundedProtocol] = set()
        self._arriving: set[BoundedProtocol] = set()  # accepted, but without a transport yet
        self._idle: dict[BoundedProtocol, None] = {}  # between two requests, the longest idle first
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alone = asyncio.Event()
        self._timer = self._loop.call_later(bounds.look_seconds, self._look)
        self.now = self._loop.time

    def expect(self, connection: BoundedProtocol) -> None:
        self._arriving.add(connection)

    def join(self, connection: BoundedProtocol) -> None:
        self._arriving.discard(connection)
        self._connections.add(connection)
        if self.is_stopping:
            connection.shut_down()

    def leave(self, connection: BoundedProtocol) -> None:
        self._arriving.discard(connection)
        self._connections.discard(connection)
        self._idle.pop(connection, None)
        self._note_end()

    def note_idle(self, connection: BoundedProtocol) -> None:
        self._idle[connection] = None

    @property
    def count(self) -> int:
        return len(self._connections) + len(self._arriving)

    @property
    def has_arriving(self) -> bool:
        return bool(self._arriving)

    @property
    def has_idle(self) -> bool:
        return bool(self._idle)

    def close_idle(self) -> bool:
        """Closes the connection that has been idle the longest; False: all are in use."""
        if not self._idle:
            return False
        longest = next(iter(self._idle))
        del self._idle[longest]
        longest.close()
        return True

    def note_busy(self, connection: BoundedProtocol) -> None:
        self._idle.pop(connection, None)

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)
        return task

    async def stop(self, grace: float, hurried: asyncio.Event) -> int:
        """Gives requests under way the grace; returns how many had to be cut off."""
        self.is_stopping = True
        for connection in list(self._connections):
            connection.shut_down()
        self._note_end()
        await _either(self._alone, hurried, grace)
        cut = [task for task in self._tasks if not task.done()]
        for task in cut:
            task.cancel()
        for connection in list(self._connections):
            connection.abort()
        if cut:
            await asyncio.wait(cut, timeout=1.0)
        self._timer.cancel()
        return len(cut)

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._note_end()

    def _note_end(self) -> None:
        if self.is_stopping and not self._connections and not self._tasks:
            self._alone.set()

    def _look(self) -> None:
        now = self._loop.time()
        self._timer = self._loop.call_later(self.bounds.look_seconds, self._look)
        for connection in list(self._connections):
            connection.look(now)


async def _either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    waiting = [asyncio.ensure_future(event.wait()) for event in (one, other)]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()
