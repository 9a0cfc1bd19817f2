"""The namespace at a glance: once, and as a stream that many can watch for the price of one."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
import pytest

from fairlead.api.live import overviews
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.requests import ENDLESS, good
from tests.api.serving import Gateway
from tests.waiting import wait_until

OVERVIEW = "/api/v1/overview"


@pytest.fixture
async def gateway_client(gateway: Gateway, store: Store) -> AsyncIterator[httpx.AsyncClient]:
    """`api` reads every answer to its end."""
    async with httpx.AsyncClient(base_url=gateway.url, timeout=40, trust_env=False) as client:
        yield client


async def messages(api: httpx.AsyncClient) -> AsyncGenerator[dict[str, Any]]:
    async with api.stream("GET", ENDLESS) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line[6:])


def depth(message: dict[str, Any]) -> int:
    found: int = message["stats"]["queues"]["medium"]["depth"]
    return found


async def test_it_shows_what_there_is(api: httpx.AsyncClient, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))
    shown = good(await api.get(OVERVIEW))
    assert shown["counts"] == {"limits": 1, "jobs": 0, "dead_letters": 0, "crons": 0}
    assert depth(shown) == 1


async def test_a_change_is_in_the_next_message(gateway_client: httpx.AsyncClient, store: Store) -> None:
    async with aclosing(messages(gateway_client)) as stream:
        assert depth(await anext(stream)) == 0
        await store.submit_one(NewTask(task_type="draw"))
        async with asyncio.timeout(10):
            while depth(await anext(stream)) == 0:
                pass


async def test_a_limit_that_changes_is_news_too(gateway_client: httpx.AsyncClient, store: Store) -> None:
    async with aclosing(messages(gateway_client)) as stream:
        await anext(stream)
        await store.limits.set("gpu", Slots(limit=1))
        async with asyncio.timeout(10):
            while (await anext(stream))["counts"]["limits"] == 0:
                pass


async def test_it_ends_after_as_many_messages_as_asked_for(api: httpx.AsyncClient) -> None:
    answer = await api.get(f"{ENDLESS}?messages=2")
    assert answer.text.count("event: OVERVIEW\ndata: ") == 2


async def test_the_store_is_read_once_however_many_watch(store: Store) -> None:
    reads: list[str | None] = []
    get = store.overviews.get

    async def counted(tenant: str | None = None) -> Any:
        reads.append(tenant)
        return await get(tenant)

    store.overviews.get = counted  # type: ignore[method-assign]
    shared = overviews.Overviews(store)
    streams = [shared.messages(None) for _ in range(20)]
    assert len({await anext(stream) for stream in streams}) == 1
    assert len(reads) < 5
    for stream in streams:
        await stream.aclose()
    await wait_until(lambda: not [one for one in asyncio.all_tasks() if "_look" in repr(one)])


async def test_without_keys_everybody_is_logged_in(api: httpx.AsyncClient) -> None:
    shown = good(await api.get("/api/v1/session"))
    assert (shown["needs_key"], shown["name"], shown["csrf_token"]) == (False, "anybody", None)
    assert "admin" in shown["scopes"]
