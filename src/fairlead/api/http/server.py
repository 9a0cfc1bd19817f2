"""The HTTP server of a process: it listens on an open socket until it is stopped."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from fairlead.api.http.connection import HttpConnection
from fairlead.api.http.manager import Bounds, ConnectionManager
from fairlead.api.http.wire import refusal
from fairlead.api.problems import ServerFull
from fairlead.background import TaskSet
from fairlead.log.events import EventLog, LimitedLog

ACCEPTED_IN_A_ROW = 64  # before open connections have their turn
PAUSE_SECONDS = 0.5  # before the next attempt, when the system has no more files or memory
CLOSED_FOR_FILES = 16  # idle connections, each time

log = EventLog("fairlead.api")
seldom = LimitedLog("fairlead.api", seconds=60)


class Listener:
    """Accepts connections one by one from a socket that other processes may share, and survives when files or
    room run out."""

    def __init__(self, manager: ConnectionManager, opened: socket.socket) -> None:
        self._manager = manager
        self._opened = opened
        self._loop = asyncio.get_running_loop()
        self._tasks = TaskSet()
        self._pause: asyncio.TimerHandle | None = None
        self._refusal = refusal(ServerFull(manager.bounds.most_connections))
        opened.setblocking(False)
        self._listen()

    def close(self) -> None:
        self._loop.remove_reader(self._opened.fileno())
        if self._pause:
            self._pause.cancel()
        self._opened.close()

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._opened.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_IN_A_ROW):
            is_full = self._manager.count >= self._manager.bounds.most_connections
            if is_full and self._manager.has_arriving and not self._manager.has_idle:
                return  # connections that have just arrived come first: they may be idle in a moment
            try:
                connection, _ = self._opened.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return  # another process was faster, or the client has disconnected
            except OSError as problem:
                self._wait(problem)
                return
            self._admit(connection, is_full)

    def _admit(self, connection: socket.socket, is_full: bool) -> None:
        """Closes an idle connection when there is no room for a new one."""
        connection.setblocking(False)
        if is_full and not self._manager.close_idle():
            self._refuse(connection)
            return
        arriving = HttpConnection(self._manager)
        self._manager.expect(arriving)  # counted here until it joins, and never twice
        self._tasks.start(self._hand_over(connection, arriving))

    async def _hand_over(self, connection: socket.socket, arriving: HttpConnection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: arriving, connection)
        except OSError:  # it has disconnected already
            self._manager.leave(arriving)
            connection.close()

    def _refuse(self, connection: socket.socket) -> None:
        seldom.warning(
            "connections_full",
            most=self._manager.bounds.most_connections,
            next_step="raise server.max_connections, or start more server processes",
        )
        with connection:
            with contextlib.suppress(OSError):
                # Unread bytes turn the close into a reset, which may overtake the answer.
                connection.recv(1 << 16)
            with contextlib.suppress(OSError):
                connection.send(self._refusal)
                connection.shutdown(socket.SHUT_WR)

    def _wait(self, problem: OSError) -> None:
        """A retry at once would fail again, and use all time. Open connections are served meanwhile."""
        seldom.error(
            "accept_failed",
            problem=problem.strerror,
            connections=self._manager.count,
            next_step="raise the limit of open files, or lower server.max_connections",
        )
        self._loop.remove_reader(self._opened.fileno())
        self._pause = self._loop.call_later(PAUSE_SECONDS, self._listen)
        for _ in range(CLOSED_FOR_FILES):
            self._manager.close_idle()


class HttpServer:
    """`async with HttpServer.listening(app, bounds, opened) as server:`, then `await server.stop(...)`."""

    def __init__(self, manager: ConnectionManager, listener: Listener) -> None:
        self._manager = manager
        self._listener = listener

    @classmethod
    @asynccontextmanager
    async def listening(
        cls, app: ASGIApp, bounds: Bounds, opened: socket.socket
    ) -> AsyncIterator["HttpServer"]:
        manager = ConnectionManager(app, bounds)
        server = cls(manager, Listener(manager, opened))
        try:
            yield server
        finally:
            await server.stop(0, asyncio.Event())

    @property
    def connections(self) -> int:
        return self._manager.count

    async def stop(self, grace: float, hurried: asyncio.Event) -> None:
        """Accepts no more connections; requests under way have the grace."""
        if self._manager.is_stopping:
            return
        self._listener.close()
        if cut := await self._manager.stop(grace, hurried):
            log.warning("requests_cut", count=cut, reason="they took longer than the grace")
