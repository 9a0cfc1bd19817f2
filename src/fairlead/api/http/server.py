"""The HTTP server of a process: it listens on an open socket until it is stopped."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.types import ASGIApp

from fairlead.api.http.listener import Listener
from fairlead.api.http.manager import Bounds, ConnectionManager
from fairlead.log.events import EventLog

log = EventLog("fairlead.api")


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
