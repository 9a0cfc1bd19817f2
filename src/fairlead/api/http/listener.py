"""New connections, accepted one by one, so that running out of files, or of room, is survived."""

import asyncio
import contextlib
import socket

from fairlead.api.http.connection import HttpConnection
from fairlead.api.http.manager import ConnectionManager
from fairlead.api.http.problems import ServerFull
from fairlead.api.http.wire import refusal
from fairlead.log.limited import LimitedLog

ACCEPTED_IN_A_ROW = 64  # before others have their turn
PAUSE_SECONDS = 0.5  # after which it is tried again, when the system has no more files or memory
CLOSED_FOR_FILES = 16  # idle connections, each time

seldom = LimitedLog("fairlead.api", seconds=60)


class Listener:
    """Of a socket that is open already, and that other processes may listen on too."""

    def __init__(self, manager: ConnectionManager, opened: socket.socket) -> None:
        self._manager = manager
        self._opened = opened
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
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
                return  # those who have just come are looked at first: they may be idle in a moment
            try:
                connection, _ = self._opened.accept()
            except (BlockingIOError, InterruptedError, ConnectionError):
                return  # another process was faster, or the client has left
            except OSError as problem:
                self._wait(problem)
                return
            self._admit(connection, is_full)

    def _admit(self, connection: socket.socket, is_full: bool) -> None:
        """An idle connection makes room for one that may ask for something."""
        connection.setblocking(False)
        if is_full and not self._manager.close_idle():
            self._refuse(connection)
            return
        arriving = HttpConnection(self._manager)
        self._manager.expect(arriving)  # until it joins: counted once, and never twice
        task = self._loop.create_task(self._hand_over(connection, arriving))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hand_over(self, connection: socket.socket, arriving: HttpConnection) -> None:
        try:
            await self._loop.connect_accepted_socket(lambda: arriving, connection)
        except OSError:  # it has gone already
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
        """Trying again at once would fail again, and take all time. Those who are in are served meanwhile."""
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
