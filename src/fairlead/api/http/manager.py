"""What the connections of a process share: the application, the bounds, and the check of their deadlines."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import ASGIApp

from fairlead.api.http.handshake import HandshakeQueue

READ_BYTES = 64 * 1024  # at once, from one connection
LOOK_SECONDS = 1.0  # at most, between two checks of all connections


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


class Connection(Protocol):
    """A connection, as the manager sees it."""

    def look(self, now: float) -> None: ...
    def shut_down(self) -> None: ...
    def close(self) -> None: ...
    def abort(self) -> None: ...


class ConnectionManager:
    """One timer checks all connections: a timer for each, or for each request, would cost more."""

    def __init__(self, app: ASGIApp, bounds: Bounds) -> None:
        self.app = app
        self.bounds = bounds
        self.is_stopping = False
        self.handshakes = HandshakeQueue()
        self.buffer = memoryview(bytearray(READ_BYTES))
        self._connections: set[Connection] = set()
        self._arriving: set[Connection] = set()  # accepted, but without a transport yet
        self._idle: dict[Connection, None] = {}  # connections between two requests, the longest idle first
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._alone = asyncio.Event()
        self._timer = self._loop.call_later(bounds.look_seconds, self._look)
        self.now = self._loop.time

    def expect(self, connection: Connection) -> None:
        self._arriving.add(connection)

    def join(self, connection: Connection) -> None:
        self._arriving.discard(connection)
        self._connections.add(connection)
        if self.is_stopping:
            connection.shut_down()

    def leave(self, connection: Connection) -> None:
        self._arriving.discard(connection)
        self._connections.discard(connection)
        self._idle.pop(connection, None)
        self._note_end()

    def note_idle(self, connection: Connection) -> None:
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

    def note_busy(self, connection: Connection) -> None:
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
