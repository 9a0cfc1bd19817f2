"""Bodies in tiny chunks are read in turns: between two of them the loop serves other connections."""

import asyncio
import socket

from starlette.types import Receive, Scope, Send

from fairlead.api.http.manager import Bounds
from fairlead.api.http.reader import STEP
from fairlead.api.http.server import HttpServer

CHUNK = b"1\r\nx\r\n"
COUNT = 30_000
SENT = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNK * COUNT + b"0\r\n\r\n"


async def test_a_turn_reads_few_chunks() -> None:
    turns: list[int] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        more = True
        while more:
            message = await receive()
            turns.append(len(message["body"]))
            more = message["more_body"]
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        opened.listen()
        async with HttpServer.listening(app, Bounds(), opened):
            reader, writer = await asyncio.open_connection(*opened.getsockname())
            writer.write(SENT)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            writer.close()
            await writer.wait_closed()
    assert sum(turns) == COUNT
    assert max(turns) <= STEP // len(CHUNK) + 1
