"""The HTTP server with applications of our own: what ASGI promises them, and what they may get wrong."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.api.http.manager import Bounds
from fairlead.api.http.server import HttpServer
from tests.waiting import wait_until

GET = b"GET /path%20a?q=1 HTTP/1.1\r\nHost: a\r\n\r\n"
CLOSE = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
Handler = Callable[[Scope, Receive, Send], Awaitable[None]]
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def over_http(handler: Handler) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http", "it knows nothing else"
        await handler(scope, receive, send)

    return app


@contextlib.asynccontextmanager
async def serving(app: ASGIApp, **bounds: float) -> AsyncIterator[tuple[HttpServer, int]]:
    with socket.create_server(("127.0.0.1", 0)) as opened:
        port = opened.getsockname()[1]
        async with HttpServer.listening(app, Bounds(**bounds), opened) as server:  # type: ignore[arg-type]
            yield server, port


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def answered(port: int, request: bytes) -> bytes:
    """Everything until the server closes the connection."""
    async with connected(port) as (reader, writer), asyncio.timeout(20):
        writer.write(request)
        return await reader.read()


async def start(send: Send, *headers: tuple[bytes, bytes], status: int = 200) -> None:
    await send({"type": "http.response.start", "status": status, "headers": list(headers)})


async def body(send: Send, data: bytes, *, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": more})


async def test_an_answer_of_unknown_length_comes_in_chunks() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        await body(send, b"one", more=True)
        await body(send, b"", more=True)
        await body(send, b"three")

    async with serving(over_http(app)) as (_, port):
        head, _, chunks = (await answered(port, CLOSE)).partition(b"\r\n\r\n")
    assert b"transfer-encoding: chunked" in head and b"connection: close" in head
    assert chunks == b"3\r\none\r\n5\r\nthree\r\n0\r\n\r\n"


async def test_an_application_receives_the_request() -> None:
    seen: list[Scope] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        await start(send, (b"content-length", b"0"))
        await body(send, b"")

    async with serving(over_http(app)) as (_, port), connected(port) as (reader, writer):
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        client = writer.get_extra_info("sockname")
    (scope,) = seen
    assert (scope["method"], scope["path"], scope["query_string"]) == ("GET", "/path a", b"q=1")
    assert (scope["client"], scope["server"]) == (client, ("127.0.0.1", port))
    assert (scope["raw_path"], scope["headers"]) == (b"/path%20a", [(b"host", b"a")])


@pytest.mark.parametrize("begun", [False, True])
async def test_a_failure_of_the_application_is_logged_and_its_client_disconnected(
    caplog: pytest.LogCaptureFixture, begun: bool
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if begun:
            await start(send, (b"content-length", b"10"))
            await body(send, b"half", more=True)
        raise ValueError("a secret of ours")

    async with serving(over_http(app)) as (_, port):
        answer = await answered(port, GET)
    assert b"secret" not in answer
    assert answer.endswith(b"half") if begun else answer.startswith(b"HTTP/1.1 500 ")
    assert "request_failed" in caplog.text


@pytest.mark.parametrize(
    "lengths", [(b"5", b"longer than that"), (b"50", b"shorter")], ids=["too long", "too short"]
)
async def test_an_answer_has_its_declared_length(
    caplog: pytest.LogCaptureFixture, lengths: tuple[bytes, bytes]
) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send, (b"content-length", lengths[0]))
        await body(send, lengths[1])

    async with serving(over_http(app)) as (_, port):
        assert b"th" not in (await answered(port, GET)).partition(b"\r\n\r\n")[2]
    assert "differs from its declared length" in caplog.text


async def test_an_application_is_notified_that_its_client_disconnected() -> None:
    gone = asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
        assert await receive() == {"type": "http.disconnect"}
        gone.set()

    async with serving(over_http(app)) as (_, port):
        async with connected(port) as (_, writer):
            writer.write(GET)
            await writer.drain()
        async with asyncio.timeout(20):
            await gone.wait()


async def test_a_body_that_the_application_does_not_read_is_not_received() -> None:
    released = asyncio.Event()
    taken = 0

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal taken
        await released.wait()
        while (message := await receive()).get("more_body"):
            taken += len(message["body"])
        await start(send, (b"content-length", b"0"))
        await body(send, b"")

    size = 64 << 20
    head = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % size
    async with serving(over_http(app), read_seconds=60.0) as (_, port), connected(port) as (_, writer):
        writer.write(head)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                for _ in range(64):
                    writer.write(bytes(1 << 20))
                    await writer.drain()
        released.set()
        await writer.drain()
        await wait_until(lambda: taken > 0)


async def test_reading_continues_after_a_body_that_came_before_it_was_read() -> None:
    size = 100_000
    came_whole: list[bool] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.05 * len(came_whole))  # as if it called a store first
        first = message = await receive()
        while message["more_body"]:
            message = await receive()
        came_whole.append(len(first["body"]) == size)
        await start(send, (b"content-length", b"4"))
        await body(send, b"done")

    request = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (size, bytes(size))
    async with serving(over_http(app)) as (_, port), connected(port) as (reader, writer):
        async with asyncio.timeout(30):
            while came_whole.count(True) < 2:
                writer.write(request)
                await reader.readuntil(b"done")


async def test_the_server_does_not_wait_for_a_client_that_does_not_read() -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await start(send)
        await body(send, bytes(8 << 20))

    async with serving(over_http(app), write_seconds=0.3) as (server, port), connected(port) as (_, writer):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(CLOSE)
        await wait_until(lambda: server.connections == 1)
        await wait_until(lambda: server.connections == 0)


async def test_requests_under_way_end_within_the_grace() -> None:
    begun, released = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await released.wait()
        await start(send, (b"content-length", b"4"))
        await body(send, b"done")

    async with serving(over_http(app)) as (server, port), connected(port) as (reader, writer):
        writer.write(GET + GET)
        await begun.wait()
        stopping = asyncio.create_task(server.stop(20, asyncio.Event()))
        await asyncio.sleep(0)
        released.set()
        answer = await reader.read()
        await stopping
    assert answer.endswith(b"done") and answer.count(b"HTTP/1.1 200") == 1 and b"connection: close" in answer


@pytest.mark.parametrize("hurried", [False, True])
async def test_a_request_that_takes_longer_than_the_grace_is_cut_off(
    caplog: pytest.LogCaptureFixture, hurried: bool
) -> None:
    begun, hurry = asyncio.Event(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with serving(over_http(app)) as (server, port), connected(port) as (reader, writer):
        writer.write(GET)
        await begun.wait()
        if hurried:
            hurry.set()
        async with asyncio.timeout(20):
            await server.stop(600 if hurried else 0.1, hurry)
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
    assert "requests_cut count=1" in caplog.text


@pytest.fixture(autouse=True)
def all_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
