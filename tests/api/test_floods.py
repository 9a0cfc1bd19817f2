"""Floods by which one client could take all memory or all time: each is bounded, and others do not wait."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from time import monotonic

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import submit
from tests.api.serving import Gateway
from tests.api.test_abuse import HEAD, line, memory_of, rest

MIB = 1 << 20
LONGEST_WAIT = 2.0  # seconds for another client; without the bounds it waited for many
GET = b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


class Bystander:
    """Another client, which asks all the time."""

    def __init__(self, api: httpx.AsyncClient) -> None:
        self._api = api
        self.answers = 0
        self.longest = 0.0

    async def ask(self) -> None:
        began = monotonic()
        (await self._api.get("/healthz")).raise_for_status()
        self.longest = max(self.longest, monotonic() - began)
        self.answers += 1

    async def ask_always(self) -> None:
        while True:
            await self.ask()
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def bystander(api: httpx.AsyncClient) -> AsyncIterator[Bystander]:
    """A client that is answered in time as long as the block runs."""
    other = Bystander(api)
    await other.ask()
    requests = asyncio.create_task(other.ask_always())
    try:
        yield other
        await other.ask()
        assert not requests.done()
    finally:
        requests.cancel()
        await asyncio.gather(requests, return_exceptions=True)
    assert other.longest < LONGEST_WAIT


async def send_much(writer: asyncio.StreamWriter, data: bytes, size: int) -> int:
    """Until this much is sent or the server accepts no more; returns what it accepted."""
    sent = 0
    with contextlib.suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(5):
            while sent < size:
                writer.write(data)
                await writer.drain()
                await asyncio.sleep(0)  # the reader has a turn
                sent += len(data)
    return sent


ENDLESS = {
    "trailers": (b"0\r\n", b"X-Trailer: y\r\n" * 4096),
    "one trailer": (b"0\r\nX-Trailer: ", b"y" * (64 << 10)),
    "a chunk extension": (b"1;x=", b"y" * (64 << 10)),
    "the size of a chunk": (b"", b"0" * (64 << 10)),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_the_data_between_the_chunks_of_a_body_is_bounded(
    api: httpx.AsyncClient, gateway: Gateway, what: str
) -> None:
    start, piece = ENDLESS[what]
    await submit(api)
    before = memory_of(gateway)
    async with line(gateway) as (reader, writer), bystander(api):
        writer.write(CHUNKED + start)
        answering = asyncio.create_task(rest(reader))
        assert await send_much(writer, piece, 64 * MIB) < 32 * MIB
        answer = await answering
    assert answer.startswith(b"HTTP/1.1 431 ") and b'"code":"head_too_large"' in answer
    assert memory_of(gateway) - before < 50


async def test_requests_that_are_sent_at_once_take_no_memory(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    """Their sender reads no answer: a few are read, and then nothing more."""
    await submit(api)
    before = memory_of(gateway)
    async with line(gateway) as (_, writer), bystander(api):
        await send_much(writer, GET * 4096, 64 * MIB)
        assert memory_of(gateway) - before < 50


async def test_each_of_many_floods_takes_little_memory(api: httpx.AsyncClient, gateway: Gateway) -> None:
    floods = 100
    before = memory_of(gateway)
    async with contextlib.AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(line(gateway)) for _ in range(floods)]
        await asyncio.gather(*(send_much(writer, GET * 4096, 64 * MIB) for _, writer in lines))
        await submit(api)
        assert (memory_of(gateway) - before) * 1024 / floods < 400  # KiB
        for _, writer in lines:
            writer.transport.abort()


async def test_others_are_answered_between_requests_that_are_sent_at_once(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    count = 20_000
    before = memory_of(gateway)
    async with line(gateway) as (reader, writer), bystander(api) as other:

        async def read_all() -> int:
            answers = 0
            while answers < count:
                answers += (await reader.readuntil(b"HTTP/1.1 200 OK\r\n")).count(b"HTTP/1.1 200 OK")
            return answers

        reading = asyncio.create_task(read_all())
        writer.write(GET * count)
        assert await reading == count
        assert other.answers > 20
        assert memory_of(gateway) - before < 50


async def test_a_head_submits_nothing(gateway: Gateway, store: Store) -> None:
    async with httpx.AsyncClient(base_url=gateway.url) as client:
        answer = await client.head("/task", params={"priority": "high"})
        assert (answer.status_code, answer.headers.get("allow")) == (405, "GET")
        assert (await store.stats()).queues["high"].depth == 0
        for path in ("/api/v1/tasks/batch", "/internal/workers/register"):
            answer = await client.head(path)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_a_request_that_a_proxy_could_parse_differently_is_refused(
    gateway: Gateway, subtests: pytest.Subtests
) -> None:
    for head in [
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\nHost: 127.0.0.1\r\nHost: 127.0.0.1\r\n\r\n",
        HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ]:
        with subtests.test(head=head):
            async with line(gateway) as (reader, writer):
                writer.write(head + GET)
                answer = await rest(reader)
            assert answer.startswith(b"HTTP/1.1 400 ") and b'"code":"malformed_request"' in answer
            assert b"HTTP/1.1 200 " not in answer, "what follows is not read"


async def test_a_body_is_read_also_with_an_upgrade_header(gateway: Gateway) -> None:
    """As some clients send it with every first request, in case the server speaks HTTP/2."""
    body = b'{"task_type": "echo"}'
    upgrade = (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n"
    )
    async with line(gateway) as (reader, writer):
        writer.write(HEAD + upgrade + b"Content-Length: %d\r\n\r\n%b" % (len(body), body) + GET)
        assert b" 201 " in await reader.readline()
        assert b"HTTP/1.1 200 OK" in await reader.readuntil(b"HTTP/1.1 200 OK")


async def test_a_client_that_expects_100_gets_it(gateway: Gateway) -> None:
    body = b'{"task_type": "echo"}'
    async with line(gateway) as (reader, writer):
        writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % len(body))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        assert b" 201 " in await reader.readline()


async def test_a_client_refused_before_its_body_is_disconnected(gateway: Gateway) -> None:
    """The body might follow or not: nothing that comes then can be distinguished from it."""
    async with line(gateway) as (reader, writer):
        writer.write(HEAD + b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
        answer = await rest(reader)
    assert answer.startswith(b"HTTP/1.1 413 ") and b"connection: close" in answer


async def test_an_old_client_gets_a_stream_that_it_can_read(gateway: Gateway, api: httpx.AsyncClient) -> None:
    task_id = (await submit(api))["task_id"]
    (await api.delete(f"/api/v1/tasks/{task_id}")).raise_for_status()
    async with line(gateway) as (reader, writer):
        writer.write(f"GET /api/v1/tasks/{task_id}/events HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n".encode())
        head, _, body = (await rest(reader)).partition(b"\r\n\r\n")
    assert b"chunked" not in head and b"connection: close" in head
    assert body.startswith(b"id: ") and body.endswith(b"\n\n")
