"""The front of an object that is opened by `async with`."""

import os
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, TypeVar

from fairlead.sync.connection import Connection
from fairlead.sync.forwarding import Front, check_may_block

A = TypeVar("A", bound=AbstractAsyncContextManager[Any])


class Opened(Front[A]):
    """It is opened on first use and closed at exit, or by `with`. A forked process opens it by itself."""

    def __init__(self, counterpart: A) -> None:
        self._theirs = counterpart
        self._connections: dict[int, Connection[A]] = {}  # by process: a forked one inherits its parent's

    def __enter__(self) -> Self:
        self._connected()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnects. The next use connects again."""
        if connection := self._connections.pop(os.getpid(), None):
            connection.close()

    def _connected(self) -> Connection[A]:
        check_may_block()
        process = os.getpid()
        connection = self._connections.get(process)
        if connection is None:  # another thread may be here too: the first one's is taken
            connection = self._connections.setdefault(process, Connection(self._theirs))
        try:
            connection.open()
        except Exception:
            if self._connections.get(process) is connection:  # the next use tries again
                del self._connections[process]
            connection.close()
            raise
        return connection

    def _counterpart(self, connection: Connection[A]) -> A:
        return connection.app
