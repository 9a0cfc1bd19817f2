"""Servers that answer what a gateway never would, or nothing at all."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def answering(answer: Answer) -> AsyncIterator[str]:
    """Its URL; every connection gets this."""

    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await answer(reader, writer)
        writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()[:2]
        yield f"http://{host}:{port}"
    for one in serving:
        one.cancel()
    await asyncio.gather(*serving, return_exceptions=True)
    await asyncio.sleep(0)  # the loop closes what was aborted


@contextlib.contextmanager
def kept_port() -> Iterator[int]:
    """A reserved port: a gateway can listen there later, and nothing does until then."""
    with socket.socket() as kept:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what listens there sets it too
        kept.bind(("127.0.0.1", 0))
        yield kept.getsockname()[1]


@contextlib.contextmanager
def unreachable_url() -> Iterator[str]:
    """A URL at which nothing answers, whatever else is started meanwhile."""
    with kept_port() as port:
        yield f"http://127.0.0.1:{port}"


async def finish(writer: asyncio.StreamWriter) -> None:
    """Until everything has been sent."""
    writer.close()
    await writer.wait_closed()


async def read_request(reader: asyncio.StreamReader) -> bytes:
    """One whole request; its first line names the route."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.split(b":")[1])
    return head + await reader.readexactly(length)


def always(status: int, body: bytes, media: str = "application/problem+json", extra: str = "") -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        head = f"HTTP/1.1 {status} Some\r\ncontent-type: {media}\r\nconnection: close\r\n{extra}"
        writer.write(head.encode() + b"content-length: %d\r\n\r\n%b" % (len(body), body))
        await finish(writer)

    return answer


@contextlib.asynccontextmanager
async def losing_answers(url: str, first: int = 0, *, every: int = 0) -> AsyncIterator[str]:
    """A proxy of a gateway that passes requests on, but loses answers: the first, or one in a number."""
    host, port = url.removeprefix("http://").split(":")
    count = 0

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal count
        request = await read_request(reader)
        theirs, ours = await asyncio.open_connection(host, int(port))
        try:
            ours.write(request.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n", 1))
            answer = await theirs.read()
        finally:
            ours.transport.abort()
        count += 1
        if count > first and not (every and count % every == 0):
            writer.write(answer)
            await finish(writer)

    async with answering(pass_on) as proxy:
        yield proxy
