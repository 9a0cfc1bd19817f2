"""The embedded engine: a private, durable server on a unix socket, one per data folder.

Whoever starts the server owns it: it ends when its owner closes it or dies. Others that open the same folder
connect to the running server and do not own it. When the owner goes, they see `StoreUnavailable` and may call
`open_engine` again, which connects to the next server or starts one, with all data.
"""

import asyncio
import os
import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from redis.exceptions import BusyLoadingError, RedisError, ResponseError

from fairlead.clock import monotonic
from fairlead.errors import EngineFailed
from fairlead.log.events import EventLog
from fairlead.store.address import ANSWER_WITHIN, make_client
from fairlead.store.engine.folder import EngineFolder
from fairlead.store.engine.process import ServerProcess, find_server, server_arguments
from fairlead.store.engine.state import was_truncated

log = EventLog("fairlead.store")

DURABILITIES = ("always", "everysec", "ledger")
SILENT_SECONDS = 30.0
LOADING_SECONDS = 600.0
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.1

Answer = Literal["ready", "loading", "silent"]


class Engine(AbstractAsyncContextManager["Engine"]):
    """A running server: where it is, and whether it ends with us."""

    def __init__(self, folder: EngineFolder, socket: Path, server: ServerProcess | None = None) -> None:
        self.socket = socket
        self._folder = folder
        self._server = server

    @property
    def url(self) -> str:
        return url_of(self.socket)

    @property
    def owned(self) -> bool:
        return self._server is not None

    async def close(self) -> None:
        """Stop the server if it is ours; safe to call again."""
        if self._server is None or not self._server.running:
            return
        # The socket first: a process that opens the folder now waits for the end of this server instead of
        # adopting one that is about to go. The lock keeps it waiting until the last byte is written.
        self._folder.remove_socket()
        await self._server.stop()

    async def __aexit__(self, *_: object) -> None:
        await self.close()


def url_of(socket: Path) -> str:
    return f"unix://{quote(str(socket))}"


async def open_engine(data: Path, *, durability: str = "always") -> Engine:
    """Connect to the server of this data folder, or start it; any number of processes may do so at once.

    A server that already runs keeps the durability it was started with.
    """
    if sys.platform == "win32":
        raise EngineFailed(
            "there is no embedded server on Windows: give the URL of a running Redis or Valkey"
        )
    if durability not in DURABILITIES:
        raise EngineFailed(f"durability is one of {', '.join(DURABILITIES)}, not {durability!r}")
    folder = EngineFolder(data)
    folder.prepare()
    patience = Patience(folder, log_start=0)
    while True:
        lock = folder.take_lock()
        if lock is not None:
            try:
                return await _start(folder, lock, durability)
            finally:
                # Closed, not unlocked: the lock is shared with the server, which now holds it alone.
                os.close(lock)
        socket = folder.socket
        answer = await _ask(socket)
        if answer == "ready":
            return Engine(folder, socket)
        await patience.spend(
            answer, f"another process holds {folder.path}, but no server answers at {socket}"
        )


async def _start(folder: EngineFolder, lock: int, durability: str) -> Engine:
    socket = folder.choose_socket()
    log_start = folder.log_size()
    command = [str(find_server(os.environ)), *server_arguments(folder, socket, durability)]
    server = ServerProcess(command, folder.log, lock)
    server.start()
    try:
        patience = Patience(folder, log_start)
        while (answer := await _ask(socket)) != "ready":
            if not server.running:
                raise patience.failed(f"the embedded server ended with code {server.exit_code}")
            await patience.spend(answer, f"the embedded server does not answer at {socket}")
        if was_truncated(folder.end_of_log(log_start)):
            folder.note_truncation()
            log.warning("engine_data_truncated", folder=str(folder.path))
    except BaseException:
        # Also when the caller gave up waiting (cancelled): nobody would be left to stop this server.
        server.kill()
        raise
    return Engine(folder, socket, server)


class Patience:
    """How long to wait for a server: a while for a silent one, long for one that is reading its data."""

    def __init__(self, folder: EngineFolder, log_start: int) -> None:
        self._folder = folder
        self._log_start = log_start
        self._began = monotonic()
        self._silent_since = self._began
        self._pause = FIRST_PAUSE

    async def spend(self, answer: Answer, complaint: str) -> None:
        """Pause before the next look, each time a little longer; or fail when it has been long enough."""
        now = monotonic()
        if answer == "loading":
            self._silent_since = now
            if now - self._began > LOADING_SECONDS:
                seconds = f"{LOADING_SECONDS:.0f} s"
                raise self.failed(f"the embedded server is still reading its data after {seconds}")
        elif now - self._silent_since > SILENT_SECONDS:
            raise self.failed(f"{complaint} for {SILENT_SECONDS:.0f} s")
        await asyncio.sleep(self._pause)
        self._pause = min(self._pause * 1.1, LONGEST_PAUSE)

    def failed(self, what: str) -> EngineFailed:
        lines = self._folder.last_log_lines(self._log_start)
        return EngineFailed(f"{what}; the end of {self._folder.log}:\n{lines}")


async def _ask(socket: Path) -> Answer:
    client = make_client(url_of(socket), answer_within=ANSWER_WITHIN)
    try:
        await client.ping()
    except BusyLoadingError:
        return "loading"
    except ResponseError:
        return "ready"  # busy with a script, say: it is there and it answers
    except (RedisError, OSError):
        return "silent"
    finally:
        await client.aclose()
    return "ready"
