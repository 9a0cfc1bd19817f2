"""Crowds of clients in one loop, on plain sockets: what they cost leaves room for the server beside them."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from tests.api.serving import Gateway

END = b"\r\n\r\n"
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)


class Client(asyncio.Protocol):
    """Sends its request, and keeps what it is sent until `look` finds that this is all."""

    def __init__(self, request: bytes) -> None:
        self.received = bytearray()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request = request

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.look()

    def look(self) -> None:
        raise NotImplementedError

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(ConnectionError(f"it was closed ({exc}) after {bytes(self.received[-300:])!r}"))

    def end(self, problem: Exception | None = None) -> None:
        if not self.done.done():
            if problem:
                self.done.set_exception(problem)
            else:
                self.done.set_result(None)


class Reader(Client):
    """Asks for these pages at once, over one connection."""

    def __init__(self, paths: Sequence[str]) -> None:
        super().__init__(b"".join(_get(path) for path in paths))
        self.answers: list[tuple[int, Any]] = []
        self._wanted = len(paths)

    def look(self) -> None:
        while (head_end := self.received.find(END)) >= 0:
            head = bytes(self.received[:head_end]).lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            end = head_end + len(END) + length
            if len(self.received) < end:
                return
            body = json.loads(self.received[head_end + len(END) : end])
            self.answers.append((int(head[9:12]), body))
            del self.received[:end]
        if len(self.answers) == self._wanted:
            self.end()


class Poller(Reader):
    """A worker that waits for a task, for half a minute."""

    def __init__(self, worker: str) -> None:
        super().__init__([])
        body = json.dumps({"available_capacity": 1, "wait_seconds": 30})
        head = f"POST /internal/workers/{worker}/poll HTTP/1.1\r\nHost: localhost\r\n"
        content = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        self._request = (head + content).encode()
        self._wanted = 1


class Watcher(Client):
    """Watches one task, over a WebSocket or as Server-Sent Events, until it is cancelled."""

    def __init__(self, task_id: str, over_socket: bool) -> None:
        path = f"/ws/{task_id}" if over_socket else f"/api/v1/tasks/{task_id}/events"
        super().__init__(_get(path, UPGRADE if over_socket else ""))
        self.task_id = task_id
        self.queued: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def look(self) -> None:
        if self._received("QUEUED") and not self.queued.done():
            self.queued.set_result(None)
        if self._received("CANCELLED"):
            self.end()

    def _received(self, kind: str) -> bool:
        start = self.received.find(f'"type":"{kind}"'.encode())
        return start >= 0 and self.received.find(self.task_id.encode(), start) >= 0

    def end(self, problem: Exception | None = None) -> None:
        super().end(problem)
        if problem and not self.queued.done():
            self.queued.set_exception(problem)


def _get(path: str, headers: str = "") -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n".encode()


async def connect(gateway: Gateway, clients: Sequence[Client], at_once: int = 100) -> None:
    loop, turns = asyncio.get_running_loop(), asyncio.Semaphore(at_once)

    async def open_one(client: Client) -> None:
        async with turns:
            await loop.create_connection(lambda: client, "127.0.0.1", gateway.port)

    await asyncio.gather(*map(open_one, clients))


def hang_up(clients: Sequence[Client]) -> None:
    for client in clients:
        client.transport.abort()
        for future in (client.done, getattr(client, "queued", client.done)):
            if future.done() and not future.cancelled():
                future.exception()  # it has been looked at
