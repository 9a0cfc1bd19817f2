"""What attacks are made of: connections that send bytes, and a count of what became of them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

UPGRADE = (
    *("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"),
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
PAUSE = 0.05  # seconds before a connection that was cut is opened again


@dataclass
class Tally:
    """What an attack did: one that did nothing shows nothing."""

    connections: int = 0
    refused_connections: int = 0
    cut: int = 0
    megabytes_sent: float = 0
    megabytes_read: float = 0


@dataclass(frozen=True)
class Target:
    host: str
    port: int
    key: str  # empty: a stranger's attack
    ends_at: float  # of the monotonic clock
    tally: Tally = field(default_factory=Tally)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.ends_at

    def head(self, method: str, path: str, *headers: str) -> bytes:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.host}", *headers]
        if self.key:
            lines.append(f"Authorization: Bearer {self.key}")
        return "\r\n".join((*lines, "", "")).encode()

    @contextlib.asynccontextmanager
    async def line(self) -> AsyncIterator["Line"]:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        self.tally.connections += 1
        try:
            yield Line(self, reader, writer)
        finally:
            writer.transport.abort()


@dataclass(frozen=True)
class Line:
    target: Target
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, sent: bytes) -> None:
        self.writer.write(sent)
        self.target.tally.megabytes_sent += len(sent) / 1e6
        await self.writer.drain()

    async def answer(self) -> bytes:
        """The body of the next answer, of the length given in its head."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length:")
        )
        body = await self.reader.readexactly(length)
        self.target.tally.megabytes_read += (len(head) + length) / 1e6
        return body

    async def until_cut(self) -> None:
        """Reads until the server disconnects or the attack is over."""
        while chunk := await self.reader.read(1 << 16):
            self.target.tally.megabytes_read += len(chunk) / 1e6


OnLine = Callable[[Line], Awaitable[None]]
Attacker = Literal["stranger", "client", "worker"]  # the latter two have keys


@dataclass(frozen=True)
class Attack:
    """What each of `lines` concurrent connections does; those that are cut are opened again."""

    lines: int
    on_line: OnLine
    by: Attacker

    async def run(self, target: Target, share: float = 1) -> None:
        """Over that share of the connections."""
        async with asyncio.TaskGroup() as group:
            for opened in range(max(1, round(self.lines * share))):
                group.create_task(self._keep_on(target))
                if opened % 100 == 99:  # a burst larger than the backlog would only wait in the kernel
                    await asyncio.sleep(PAUSE)

    async def _keep_on(self, target: Target) -> None:
        while not target.is_over:
            try:
                async with asyncio.timeout_at(target.ends_at), target.line() as line:
                    await self.on_line(line)
            except TimeoutError:
                return
            except (ConnectionError, asyncio.IncompleteReadError):
                target.tally.cut += 1
            except OSError:
                target.tally.refused_connections += 1
            await asyncio.sleep(PAUSE)


ATTACKS: dict[str, Attack] = {}


def attack(lines: int, by: Attacker) -> Callable[[OnLine], OnLine]:
    def register(on_line: OnLine) -> OnLine:
        ATTACKS[on_line.__name__] = Attack(lines, on_line, by)
        return on_line

    return register
