"""A service for tests: a real HTTP server that answers, hangs, lies, drips, floods and disconnects."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

GOOD = {"data": {"text": "longer"}, "metrics": {"execution_time_ms": 5, "tokens": 7}}

Reply = Callable[["Request", asyncio.StreamWriter], Awaitable[None]]


@dataclass(frozen=True)
class Request:
    line: str
    headers: Mapping[str, str]
    body: Any
    connection: int  # which connection it came over, from 1


@dataclass
class RawService:
    """`reply` handles a request; all requests are kept."""

    url: str
    reply: Reply
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    gone: int = 0  # connections that the other side has closed
    handlers: set["asyncio.Task[Any]"] = field(default_factory=set)

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        if here := asyncio.current_task():
            self.handlers.add(here)
        try:
            while True:
                request = await read_request(reader, number)
                self.requests.append(request)
                leaving = asyncio.create_task(reader.read(1))
                replying = asyncio.ensure_future(self.reply(request, writer))
                await asyncio.wait({leaving, replying}, return_when=asyncio.FIRST_COMPLETED)
                if not replying.done():
                    replying.cancel()
                    return
                leaving.cancel()
                await asyncio.wait({leaving})  # not awaited itself: that would hide that we are cancelled
                await replying
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # of a handler that is cancelled at the end of a test, asyncio would complain
        finally:
            self.gone += 1
            writer.close()


async def read_request(reader: asyncio.StreamReader, connection: int) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value for name, _, value in (one.partition(": ") for one in rest)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line, headers, msgspec.json.decode(body) if body else None, connection)


@contextlib.asynccontextmanager
async def raw_service(reply: Reply, port: int = 0) -> AsyncIterator[RawService]:
    made = RawService("", reply)
    server = await asyncio.start_server(made.handle, "127.0.0.1", port, reuse_port=bool(port))
    host, port = server.sockets[0].getsockname()
    made.url = f"http://{host}:{port}/v1/execute?model=small"
    try:
        yield made
    finally:
        server.close()
        for task in made.handlers:
            task.cancel()
        await asyncio.gather(*made.handlers, return_exceptions=True)


def says(body: Any, status: str = "200 OK", **headers: str) -> Reply:
    """A complete answer; text or bytes unchanged, anything else as JSON. Header names have _ for -."""

    async def reply(_: Request, writer: asyncio.StreamWriter) -> None:
        content = (
            body
            if isinstance(body, bytes)
            else body.encode()
            if isinstance(body, str)
            else msgspec.json.encode(body)
        )
        fields = {"content-type": "application/json", "content-length": str(len(content))}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
        writer.write(f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + content)
        await writer.drain()

    return reply


async def hangs(_: Request, writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def drips(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def floods(_: Request, writer: asyncio.StreamWriter) -> None:
    """50 MB, far more than anybody wants."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 50000000\r\n\r\n"
    writer.write(head + b'{"data": "')
    for _million in range(50):
        writer.write(b"x" * 1_000_000)
        await writer.drain()


async def resets(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def closes(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def gibberish(_: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff no HTTP at all\r\n\r\n")
    await writer.drain()
    writer.close()


async def breaks_off(_: Request, writer: asyncio.StreamWriter) -> None:
    """In the middle of an answer of known length."""
    writer.write(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"data"')
    await writer.drain()
    writer.close()


async def breaks_off_between_chunks(_: Request, writer: asyncio.StreamWriter) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    writer.write(head + b'b\r\n{"data": 1}\r\n')  # whole by its looks, but the last chunk is missing
    await writer.drain()
    writer.close()
