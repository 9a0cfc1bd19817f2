"""Requests that no honest client sends (too large, too slow, incomplete, not HTTP) are refused in time."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import httpx
import pytest

from tests.api.requests import TASKS, good, submit
from tests.api.serving import Gateway

PATIENCE = 20.0
HEAD = b"POST /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
BODY = b'{"task_type": "echo"}'
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__READ_SECONDS": "3"}


@contextlib.asynccontextmanager
async def line(gateway: Gateway) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def rest(reader: asyncio.StreamReader) -> bytes:
    """Everything until the server closes the connection, which it does in time."""
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError):
            return await reader.read()
    return b""


async def answer_to(gateway: Gateway, sent: bytes) -> bytes:
    async with line(gateway) as (reader, writer):
        with contextlib.suppress(ConnectionError):
            writer.write(sent)
            await writer.drain()
        return await rest(reader)


def memory_of(gateway: Gateway) -> int:
    """MiB."""
    status = Path(f"/proc/{gateway.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) // 1024


# Too slow


async def test_a_connection_without_a_request_is_closed(gateway: Gateway) -> None:
    assert await answer_to(gateway, b"") == b""


async def test_a_head_that_never_ends_is_cut(gateway: Gateway) -> None:
    assert await answer_to(gateway, HEAD) == b""


async def test_a_head_that_drips_is_cut(gateway: Gateway) -> None:
    async with line(gateway) as (reader, writer):
        writer.write(HEAD + b"X-Slow: ")
        cut = asyncio.create_task(rest(reader))
        with contextlib.suppress(ConnectionError):
            while not cut.done():
                writer.write(b"X")
                await writer.drain()
                await asyncio.wait({cut}, timeout=0.05)
        assert await cut == b""


async def test_a_body_that_stays_out_is_answered_with_408(gateway: Gateway) -> None:
    answer = await answer_to(gateway, HEAD + b"Content-Length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in answer and b"connection: close" in answer


async def test_a_body_that_drips_after_its_refusal_is_cut(gateway: Gateway) -> None:
    """It was refused for its length: what comes then is of no use, and the line is not held open by it."""
    async with line(gateway) as (reader, writer):
        writer.write(HEAD + b"Content-Length: 99999999\r\n\r\n")
        cut = asyncio.create_task(rest(reader))
        with contextlib.suppress(ConnectionError):
            while not cut.done():
                writer.write(b"x")
                await writer.drain()
                await asyncio.wait({cut}, timeout=0.05)
        assert (await cut).startswith(b"HTTP/1.1 413 ")


async def test_empty_lines_do_not_keep_a_connection_open(gateway: Gateway) -> None:
    async with line(gateway) as (reader, writer):
        writer.write(WHOLE)
        assert b" 201 " in await reader.readline()
        cut = asyncio.create_task(rest(reader))
        with contextlib.suppress(ConnectionError):
            while not cut.done():
                writer.write(b"\r\n")
                await writer.drain()
                await asyncio.wait({cut}, timeout=0.05)
        assert (await cut).endswith(b"}")


async def test_a_thousand_idle_lines_do_not_keep_others_out(api: httpx.AsyncClient, gateway: Gateway) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(500):
            _, writer = await stack.enter_async_context(line(gateway))
            writer.write(HEAD)
        await submit(api)


# Too much


@pytest.mark.parametrize(
    "head",
    [
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: " + b"x" * (1 << 20) + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Large: " + b"x" * (66 << 10) + b"\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X-Many: x\r\n" * 100_000 + b"\r\n",
        b"GET /healthz?" + b"a" * (1 << 20) + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=["a header of 1 MiB", "a header of 66 KiB", "100,000 headers", "an address of 1 MiB"],
)
async def test_a_head_that_is_too_large_is_refused(gateway: Gateway, head: bytes) -> None:
    answer = await answer_to(gateway, head)
    # a reset may overtake the answer when much is still being sent
    assert answer == b"" or answer.startswith(b"HTTP/1.1 431 "), answer
    if len(head) < 1 << 17:
        assert b'"code":"head_too_large"' in answer


async def test_endless_heads_and_bodies_take_no_memory(api: httpx.AsyncClient, gateway: Gateway) -> None:
    await submit(api)
    before = memory_of(gateway)
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    flood = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 160  # 10 MiB
    await asyncio.gather(*(answer_to(gateway, flood) for _ in range(16)))
    await asyncio.gather(*(answer_to(gateway, HEAD + b"X: " + b"x" * (8 << 20)) for _ in range(16)))
    await submit(api)
    assert memory_of(gateway) - before < 100


# Not HTTP


async def test_a_request_that_is_not_http_is_refused_and_disconnected(
    gateway: Gateway, subtests: pytest.Subtests
) -> None:
    for sent in [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(64),
        b"HELLO\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api/v1/tasks/\xff\xfe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET http://[/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\n Folded: x\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: many\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
        HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked, gzip\r\n\r\n",
    ]:
        with subtests.test(sent=sent):
            answer = await answer_to(gateway, sent)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 4"), answer
            if b"HTTP/1.1 400 " in answer:
                assert b"content-type: application/problem+json" in answer


async def test_a_request_without_a_host_is_refused(gateway: Gateway) -> None:
    answer = await answer_to(gateway, b"GET /api/v1/tasks HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 421 ")


async def test_two_requests_at_once_are_answered_in_order(gateway: Gateway) -> None:
    last = b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
    answer = await answer_to(gateway, WHOLE + WHOLE + last)
    assert [part.split(b" ")[0] for part in answer.split(b"HTTP/1.1 ")[1:]] == [b"201", b"201", b"404"]


# Half


async def test_a_half_closed_connection_is_served_or_closed(gateway: Gateway) -> None:
    for sent in (WHOLE, HEAD, HEAD + b"Content-Length: 100\r\n\r\n{", b""):
        async with line(gateway) as (reader, writer):
            writer.write(sent)
            writer.write_eof()
            answer = await rest(reader)
            assert answer == b"" or answer.startswith(b"HTTP/1.1 "), answer


async def test_lines_that_break_anywhere_leave_nothing_behind(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    torn = WHOLE.replace(b"echo", b"torn")
    for length in range(0, len(torn), 7):
        async with line(gateway) as (_, writer):
            writer.write(torn[:length])
    assert good(await api.get(TASKS, params={"task_type": "torn"}))["tasks"] == []


async def test_an_answer_that_nobody_reads_takes_no_memory(api: httpx.AsyncClient, gateway: Gateway) -> None:
    for _ in range(5):
        await submit(api, parameters={"a": "x" * 200_000})
    before = memory_of(gateway)
    request = b"GET /api/v1/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(10):
            _, writer = await stack.enter_async_context(line(gateway))
            writer.write(request * 50)
        for _ in range(5):
            good(await api.get(TASKS))
        assert memory_of(gateway) - before < 100
