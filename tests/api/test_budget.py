"""Many large requests at once: a server holds a bounded number of their bytes, and small ones do not wait."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx

from fairlead.api.budget import MOST_BYTES
from fairlead.api.request import BATCH_BODY
from tests.api.requests import TASKS, good, refused, submit
from tests.api.serving import Gateway
from tests.waiting import wait_until

BATCH = f"{TASKS}/batch"
LARGE = {"tasks": [{"task_type": "echo", "parameters": {"x": "x" * 20_000}}]}


@contextlib.asynccontextmanager
async def announced(gateway: Gateway, size: str) -> AsyncIterator[asyncio.StreamWriter]:
    """A batch of which only the head has arrived."""
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    head = f"POST {BATCH} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n{size}\r\n\r\n"
    writer.write(head.encode())
    await writer.drain()
    try:
        yield writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_beyond_it_large_requests_are_refused_and_small_ones_served(
    api: httpx.AsyncClient, gateway: Gateway
) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for n in range(MOST_BYTES // BATCH_BODY):
            size = "Transfer-Encoding: chunked" if n % 2 else f"Content-Length: {BATCH_BODY}"
            await stack.enter_async_context(announced(gateway, size))

        async def is_full() -> bool:
            return (await api.post(BATCH, json=LARGE)).status_code == 503

        await wait_until(is_full)
        answer = await api.post(BATCH, json=LARGE)
        refused(answer, 503, "overloaded")
        assert answer.headers["retry-after"] == "1"
        await submit(api)
        waiting = asyncio.create_task(api.post(BATCH, json=LARGE))
    good(await waiting, 201)  # they have gone, and it is its turn


async def test_answered_and_refused_requests_return_their_bytes(api: httpx.AsyncClient) -> None:
    large = {"tasks": [{"task_type": "echo", "parameters": {"x": "x" * 250_000}}] * 40}  # 10 MB
    for _ in range(8):
        good(await api.post(BATCH, json=large), 201)
        refused(await api.post(BATCH, json={**large, "nope": 1}), 422, "invalid_input", "nope")
