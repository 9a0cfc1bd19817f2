"""Few handshakes are under way at a time: the others wait, and plain requests pass them."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from starlette.types import Receive, Scope, Send

from fairlead.api.http.handshake_queue import MOST_UNDER_WAY
from fairlead.api.http.manager import Bounds
from fairlead.api.http.server import HttpServer
from tests.waiting import wait_until

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PLAIN = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Application:
    """Lets no handshake through until it is opened."""

    def __init__(self) -> None:
        self.under_way = 0
        self.seen = 0
        self.open = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] != "lifespan"  # which says that it has none
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body"})
            return
        self.seen += 1
        self.under_way += 1
        assert self.under_way <= MOST_UNDER_WAY
        await self.open.wait()
        self.under_way -= 1
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass


@contextlib.asynccontextmanager
async def served(app: Application) -> AsyncIterator[tuple[str, int]]:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        opened.listen()
        async with HttpServer.listening(app, Bounds(), opened):
            yield opened.getsockname()


async def ask(address: tuple[str, int], sent: bytes) -> Streams:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(sent)
    return reader, writer


async def status(streams: Streams) -> bytes:
    return (await streams[0].readline()).split()[1]


async def close(*several: Streams) -> None:
    for _, writer in several:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def test_plain_requests_pass_the_handshakes_that_wait() -> None:
    app = Application()
    async with served(app) as address:
        sockets = [await ask(address, HANDSHAKE) for _ in range(5 * MOST_UNDER_WAY)]
        await wait_until(lambda: app.seen == MOST_UNDER_WAY, 10)
        plain = await ask(address, PLAIN)
        assert await status(plain) == b"200"
        assert app.seen == MOST_UNDER_WAY
        app.open.set()
        assert {await status(each) for each in sockets} == {b"101"}
        await close(plain, *sockets)


async def test_who_leaves_before_its_turn_is_not_served() -> None:
    app = Application()
    async with served(app) as address:
        first = [await ask(address, HANDSHAKE) for _ in range(MOST_UNDER_WAY)]
        await wait_until(lambda: app.seen == MOST_UNDER_WAY, 10)
        await close(*[await ask(address, HANDSHAKE) for _ in range(20)])
        last = await ask(address, HANDSHAKE)
        app.open.set()
        assert await status(last) == b"101"
        assert app.seen == MOST_UNDER_WAY + 1
        await close(last, *first)


async def test_a_client_that_leaves_in_the_middle_makes_room() -> None:
    app = Application()
    async with served(app) as address:
        first = [await ask(address, HANDSHAKE) for _ in range(MOST_UNDER_WAY)]
        await wait_until(lambda: app.seen == MOST_UNDER_WAY, 10)
        last = await ask(address, HANDSHAKE)
        app.under_way -= 1  # the application does not notice by itself
        await close(first.pop())
        await wait_until(lambda: app.seen == MOST_UNDER_WAY + 1, 10)
        app.open.set()
        assert await status(last) == b"101"
        await close(last, *first)


async def test_handshakes_that_wait_are_refused_when_the_server_stops() -> None:
    app = Application()
    async with served(app) as address:
        first = [await ask(address, HANDSHAKE) for _ in range(MOST_UNDER_WAY)]
        await wait_until(lambda: app.seen == MOST_UNDER_WAY, 10)
        last = await ask(address, HANDSHAKE)
        plain = await ask(address, PLAIN)
        assert await status(plain) == b"200"  # so the handshake before it was read too
        await close(plain)
        app.open.set()
    answers = {await status(each) for each in (*first, last)}
    assert answers == {b"503"}
    assert app.seen == MOST_UNDER_WAY
    await close(last, *first)
