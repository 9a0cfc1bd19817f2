"""Load without wrk: `python -m benchmarks.http_load ADDRESS PATH FILE CONNECTIONS SECONDS` posts the file."""

import asyncio
import re
import sys
import time
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import uvloop

LENGTH = re.compile(rb"content-length: (\d+)", re.I)


class Poster(asyncio.Protocol):
    """One connection: sends the same request again when it was answered."""

    def __init__(self, request: bytes) -> None:
        self.done = 0
        self.wrong = b""  # the first answer that was not as it should be
        self._request = request
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._came += data
        head, found, body = self._came.partition(b"\r\n\r\n")
        length = LENGTH.search(head)
        if found and length and len(body) >= int(length[1]):
            self.wrong = self.wrong or (b"" if head.startswith(b"HTTP/1.1 201 ") else self._came)
            self.done += 1
            self._came = b""
            self._transport.write(self._request)


async def load(address: str, path: str, body: bytes, connections: int, seconds: float) -> str:
    url = urlsplit(address)
    head = f"POST {path} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Type: application/json\r\n"
    request = head.encode() + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    loop = asyncio.get_running_loop()
    started = time.perf_counter()
    opened = [
        await loop.create_connection(lambda: Poster(request), url.hostname, url.port)
        for _ in range(connections)
    ]
    await asyncio.sleep(seconds)
    while not all(poster.done for _, poster in opened):  # a short run on a slow machine
        await asyncio.sleep(0.01)
    took, done = time.perf_counter() - started, sum(poster.done for _, poster in opened)
    for transport, poster in opened:
        transport.abort()
        assert not poster.wrong, poster.wrong
    return f"{done} requests in {took:.3f}s"


if __name__ == "__main__":
    _, address, path, file, connections, seconds = sys.argv
    content = Path(file).read_bytes()
    print(uvloop.run(load(address, path, content, int(connections), float(seconds))))
