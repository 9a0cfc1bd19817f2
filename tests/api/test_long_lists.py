"""Lists with thousands of items: bounded answers, which delay nobody and lead to the next page."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from fairlead.client.client import Client
from fairlead.settings import EngineSettings, Settings, Slots, TaskSettings
from fairlead.settings.pipelines import SERVICE
from fairlead.store.metrics import MOST_LIMITS
from fairlead.store.store import Store
from tests.api.lagging import Lags, gateway, http, lags
from tests.api.requests import good, refused
from tests.api.serving import Gateway
from tests.api.test_metrics import read
from tests.waiting import wait_until

__all__ = ["gateway", "http", "lags"]

MANY = 10_000
LIMITS, WORKERS, PIPELINES = "/api/v1/limits", "/api/v1/workers", "/api/v1/pipelines"


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
    assert page["limits_left_out", ""] == MANY - MOST_LIMITS
    for series in ("limit", "limit_active", "limit_waiting"):
        assert sum(name == series for name, _ in page) == MOST_LIMITS + 1

    async def others_are_counted() -> bool:  # in the background: the first scrape may show those of before
        return read((await http.get("/metrics")).text)["limit", "other"] == 3 * (MANY - MOST_LIMITS)

    await wait_until(others_are_counted)
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


async def test_a_pipeline_for_each_customer(http: httpx.AsyncClient, store: Store, lags: Lags) -> None:
    stages = tuple(("draw",) for _ in range(32))
    names = [f"customer:{n:05}" for n in range(MANY)]
    for first in range(0, MANY, 500):
        some = dict.fromkeys(names[first : first + 500], stages)
        await store.declare("code", {"draw": TaskSettings()}, {}, some)
    answer = good(await http.get(PIPELINES))
    assert [one["name"] for one in answer["pipelines"]] == names[:1000]
    assert answer["pipelines"][0]["stages"] == [["draw"]] * 32
    following = good(await http.get(PIPELINES, params={"limit": 5, "cursor": answer["next_cursor"]}))
    assert [one["name"] for one in following["pipelines"]] == names[1000:1005]
    jobs = "/api/v1/jobs"
    await lags.check(lambda: http.get(PIPELINES))
    await lags.check(lambda: http.post(jobs, json={"feature_name": names[-1]}))
    await lags.check(lambda: http.post(jobs, json={"feature_name": "nowhere"}))
    assert good(await http.post(jobs, json={"feature_name": names[5]}), 201)["status"] == "PENDING"
    refusal = await http.post(jobs, json={"feature_name": "nowhere"})
    problem = refused(refusal, 422, "unknown_pipeline", "feature_name")
    assert problem["detail"].endswith("customer:00009 and 9990 more.")


async def test_a_scrape_is_small_with_names_as_long_as_they_may_be(
    http: httpx.AsyncClient, store: Store, lags: Lags
) -> None:
    names = [f"{n:03}".rjust(200, "x") for n in range(1000)]
    tenants = [f"{n}".rjust(200, "\u20ac") for n in range(3)]
    for tenant in tenants:
        await asyncio.gather(*(store.limits.set(name, Slots(limit=1), tenant=tenant) for name in names))
    answer = await http.get("/metrics")
    assert len(answer.content) < 2 << 20
    page = read(answer.text)
    shown = {label for name, label in page if name == "limit"} - {"other"}
    assert shown == {label for name, label in page if name == "limit_waiting"} - {"other"}
    assert page["limits_left_out", ""] == len(names) * len(tenants) - len(shown) > 0
    await lags.check(lambda: http.get("/metrics"))
    pages = await all_of(http, LIMITS, "limits")
    assert sum(map(len, pages)) == len(names) * len(tenants)


async def register(store: Store, count: int, **offer: Any) -> set[str]:
    ids = [f"w{n:04}" for n in range(count)]
    for first in range(0, count, 100):
        await asyncio.gather(*(store.workers.register(one, **offer) for one in ids[first : first + 100]))
    return set(ids)


async def test_thousands_of_workers(
    http: httpx.AsyncClient, store: Store, client: Client, lags: Lags
) -> None:
    ids = await register(store, 3000, task_types=["draw", "count"], capabilities=["gpu"])
    answer = good(await http.get(WORKERS))
    seen = [one["seen_at"] for one in answer["workers"]]
    assert (len(seen), seen) == (1000, sorted(seen, reverse=True))
    pages = await all_of(http, WORKERS, "workers", limit=300)
    assert {one["worker_id"] for page in pages for one in page} == ids
    assert max(map(len, pages)) == 300
    stats = await client.stats()
    assert {one.worker_id for one in stats.workers} == ids
    assert {one.capabilities for one in stats.workers} == {("gpu",)}
    assert good(await http.get("/api/v1/queue/stats"))["workers"]["active"] == 3000
    assert read((await http.get("/metrics")).text)["workers", "active"] == 3000
    for path in (WORKERS, "/api/v1/queue/stats", "/metrics"):
        await lags.check(lambda path=path: http.get(path))  # type: ignore[misc]


async def test_workers_of_many_types(
    http: httpx.AsyncClient, store: Store, client: Client, lags: Lags
) -> None:
    """Each offers about 200 KiB of names."""
    types = [f"{n:04}".rjust(200, "x") for n in range(1000)]
    ids = await register(store, 40, task_types=types)
    answer = await http.get(WORKERS)
    assert len(answer.content) < 1536 * 1024
    pages = await all_of(http, WORKERS, "workers")
    assert sorted(one["worker_id"] for page in pages for one in page) == sorted(ids)
    assert {one.task_types for one in (await client.stats()).workers} == {tuple(types)}
    assert len((await http.get("/api/v1/queue/stats")).content) < 1000
    await lags.check(lambda: http.get(WORKERS))
    await lags.check(lambda: http.get("/api/v1/queue/stats"))


@pytest.mark.parametrize("limit", [1, 2, 7])
async def test_pages_of_workers_have_each_of_them_once(
    http: httpx.AsyncClient, store: Store, limit: int
) -> None:
    ids = await register(store, 10)
    pages = await all_of(http, WORKERS, "workers", limit=limit)
    assert sorted(one["worker_id"] for page in pages for one in page) == sorted(ids)
    assert max(map(len, pages)) == limit
    for cursor in ("x", "-1", "9" * 21):
        assert (await http.get(WORKERS, params={"cursor": cursor})).status_code == 422
