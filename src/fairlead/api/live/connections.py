"""Open connections for live updates: how many a key may have, and when they must end."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator

from fairlead.api.problems import TooManyConnections
from fairlead.errors import FairleadError

LOOK_SECONDS = 2.0  # between two checks whether the keys of open connections are still valid

NORMAL = 1000
FAULT = 1011
SERVER_STOPS = 1012
TOO_SLOW = 1013
KEY_ENDED = 4401
GONE = 4404
TAKEN = 4409


class Connection:
    """`ended` is the code to close the connection with, once that is known."""

    def __init__(self, session: str | None) -> None:
        self.session = session
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def end(self, code: int) -> None:
        if not self.ended.done():
            self.ended.set_result(code)


class Connections:
    """Those of this process, by the id of the key they were opened with (None: without one)."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str | None, set[Connection]] = {}

    @contextlib.contextmanager
    def admitted(self, key_id: str | None, session: str | None = None) -> Iterator[Connection]:
        """`session`: the secret of the browser's session in which it was opened, and with which it ends."""
        mine = self._open.setdefault(key_id, set())
        if len(mine) >= self._most:
            raise TooManyConnections(self._most)
        connection = Connection(session)
        mine.add(connection)
        try:
            yield connection
        finally:
            mine.discard(connection)
            if not mine:
                self._open.pop(key_id, None)

    async def watch_keys(self, may_stay: Callable[[str | None, str | None], Awaitable[bool]]) -> None:
        """Ends connections whose key or session is no longer valid; one check for all that share both."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for key_id, session in {(key, one.session) for key, mine in self._open.items() for one in mine}:
                with contextlib.suppress(FairleadError):  # checked again later
                    if not await may_stay(key_id, session):
                        for connection in self._open.get(key_id, ()):
                            if connection.session == session:
                                connection.end(KEY_ENDED)

    def end_all(self) -> None:
        for mine in self._open.values():
            for connection in mine:
                connection.end(SERVER_STOPS)
