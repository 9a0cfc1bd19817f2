"""A server that loses its data while gateways and workers use it, and what the handlers say of that time."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import redis

from tests.faults.killable import KillableServer


class Forgetful(KillableServer):
    """A server without an append-only file: its data is in its memory, and in a snapshot if one was taken."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._snapshot = folder / "dump.rdb"
        self._kept = folder / "kept.rdb"

    def flush(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.flushall()

    def take_snapshot(self) -> None:
        with redis.Redis.from_url(self.url) as client:
            client.save()
        self._snapshot.rename(self._kept)

    async def restart_empty(self) -> None:
        self.kill()
        await self.start()

    async def restore_snapshot(self) -> None:
        self.kill()
        shutil.copy(self._kept, self._snapshot)
        await self.start()


@contextlib.contextmanager
def forgetful() -> Iterator[Forgetful]:
    folder = Path(tempfile.mkdtemp(prefix="fl-test-"))
    server = Forgetful(folder)
    try:
        yield server
    finally:
        server.kill()
        shutil.rmtree(folder, ignore_errors=True)


class Record:
    """What handlers wrote: one line when a run begins, one when it ends, in the order of events."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def lines(self) -> list[list[str]]:
        text = self._path.read_text() if self._path.exists() else ""
        return [line.split() for line in text.splitlines()]

    def fences(self) -> list[int]:
        return [int(fence) for word, _, fence in self.lines() if word == "began"]

    def most_at_once(self) -> int:
        running = most = 0
        for word, *_ in self.lines():
            running += 1 if word == "began" else -1
            most = max(most, running)
        return most
