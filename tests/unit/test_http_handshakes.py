"""Few handshakes are under way at a time: the others wait, and plain requests pass them."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

from starlette.types import Receive, Scope, Send

from fairlead.api.http.handshake import MOST_UNDER_WAY
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
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
            await send({"type": "http.response.body"})
            return
        self.seen += 1
        self.under_way += 1
        assert self.under_way <= MOST_UNDER_WAY
        try:
            await self.open.wait()
        finally:
            self.under_way -= 1
        await send({"type": "websocket.accept"})
        while (await receive())["type"] != "websocket.disconnect":
            pass


@contextlib.asynccontextmanager
async def served(app: Application, bounds: Bounds | None = None) -> AsyncIterator[tuple[str, int]]:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        opened.listen()
        async with HttpServer.listening(app, bounds or Bounds(), opened):
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


async def test_a_client_that_leaves_before_its_turn_is_not_served() -> None:
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


async def test_handshakes_that_the_application_does_not_answer_are_refused_in_time_and_make_room() -> None:
    app = Application()
    async with served(app, Bounds(handshake_seconds=0.5)) as address:
        sockets = [await ask(address, HANDSHAKE) for _ in range(5 * MOST_UNDER_WAY)]
        async with asyncio.timeout(20):
            answers = [await each[0].read() for each in sockets]  # to the end of the connection
        assert {answer.split()[1] for answer in answers} == {b"503"}
        assert all(
            b'"code":"handshake_timeout"' in answer and b"retry-after: 1" in answer for answer in answers
        )
        await wait_until(lambda: app.under_way == 0, 10, "the application was cancelled")
        app.open.set()
        later = await ask(address, HANDSHAKE)
        assert await status(later) == b"101"
        await close(later, *sockets)


async def test_a_socket_that_was_accepted_stays_open_after_the_time_for_its_handshake() -> None:
    app = Application()
    app.open.set()
    async with served(app, Bounds(handshake_seconds=0.2)) as address:
        accepted = await ask(address, HANDSHAKE)
        assert await status(accepted) == b"101"
        app.open.clear()
        refused = await ask(address, HANDSHAKE)  # begins later, and times out
        assert await status(refused) == b"503"
        accepted[1].write(b"\x89\x80\x00\x00\x00\x00")  # a ping
        while (await accepted[0].readline()).strip():
            pass  # the rest of the head
        assert await accepted[0].readexactly(2) == b"\x8a\x00"
        await close(accepted, refused)


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
