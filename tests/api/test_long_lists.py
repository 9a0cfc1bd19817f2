"""Lists of what there may be thousands of: bounded answers, which hold nobody up and lead to all of it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from fairlead.client.client import Client
from fairlead.settings import EngineSettings, Settings, Slots
from fairlead.settings.pipelines import SERVICE
from fairlead.store.store import Store
from tests.api.asking import good
from tests.api.lagging import Lags, gateway, http, lags
from tests.api.serving import Gateway
from tests.api.test_metrics import read

__all__ = ["gateway", "http", "lags"]

MANY = 10_000
LIMITS = "/api/v1/limits"


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[Client]:
    async with Client(Settings(engine=EngineSettings(url=gateway.url))) as client:
        yield client


async def all_of(http: httpx.AsyncClient, path: str, name: str, **query: Any) -> list[list[Any]]:
    """The pages of a list."""
    pages, cursor = [], ""
    while cursor is not None:
        page = good(await http.get(path, params={**query, "cursor": cursor}))
        pages.append(page[name])
        cursor = page["next_cursor"]
    return pages


async def define(store: Store, names: list[str]) -> None:
    for first in range(0, len(names), 1000):
        await store.declare("code", {}, {name: Slots(limit=3) for name in names[first : first + 1000]})


async def test_a_limit_for_each_customer(
    http: httpx.AsyncClient, store: Store, client: Client, lags: Lags
) -> None:
    names = [f"customer:{n:05}" for n in range(MANY)]
    await define(store, names)
    answer = good(await http.get(LIMITS))
    assert [one["name"] for one in answer["limits"]] == names[:1000]
    following = good(await http.get(LIMITS, params={"limit": 5, "cursor": answer["next_cursor"]}))
    assert [one["name"] for one in following["limits"]] == names[1000:1005]
    assert [one.name for one in await client.limits.all()] == names
    page = read((await http.get("/metrics")).text)
    assert page["limits_left_out", ""] == 0
    for series in ("limit", "limit_active", "limit_waiting"):
        assert sum(name == series for name, _ in page) == MANY
    await lags.check(lambda: http.get(LIMITS))
    await lags.check(lambda: http.get("/metrics"))


async def test_pages_of_limits_have_each_of_them_once(http: httpx.AsyncClient, store: Store) -> None:
    names = [f"n{n:02}" for n in range(10)]
    await define(store, names)
    pages = await all_of(http, LIMITS, "limits", limit=4)
    assert [[one["name"] for one in page] for page in pages] == [names[:4], names[4:8], names[8:]]
    assert (await http.get(LIMITS, params={"limit": 1001})).status_code == 422


async def test_services_are_found_among_many_limits(
    http: httpx.AsyncClient, store: Store, lags: Lags
) -> None:
    services = [f"s{n}" for n in range(5)]
    around = [f"{word}{n:04}" for word in ("a", "zz") for n in range(MANY // 2)]
    await define(store, [*around, *(SERVICE + name for name in services)])
    pages = await all_of(http, "/api/v1/services", "services", limit=2)
    assert [one["name"] for page in pages for one in page] == services
    assert max(map(len, pages)) == 2
    answer = good(await http.get("/api/v1/services"))
    assert ([one["name"] for one in answer["services"]], answer["next_cursor"]) == (services, None)
    await lags.check(lambda: http.get("/api/v1/services"))


async def test_what_a_scrape_leaves_out_is_counted(http: httpx.AsyncClient, store: Store, lags: Lags) -> None:
    """Names as long as they may be: 16 MiB of series have room for less than 3,000 of them."""
    names = [f"{n:03}".rjust(200, "x") for n in range(1000)]
    tenants = [f"{n}".rjust(200, "\u20ac") for n in range(3)]
    for tenant in tenants:
        await asyncio.gather(*(store.limits.set(name, Slots(limit=1), tenant=tenant) for name in names))
    answer = await http.get("/metrics")
    assert 16 << 20 < len(answer.content) < 17 << 20
    page = read(answer.text)
    shown = {label for name, label in page if name == "limit"}
    assert shown == {label for name, label in page if name == "limit_waiting"}
    assert page["limits_left_out", ""] == len(names) * len(tenants) - len(shown) > 0
    await lags.check(lambda: http.get("/metrics"))
    pages = await all_of(http, LIMITS, "limits")
    assert sum(map(len, pages)) == len(names) * len(tenants)
