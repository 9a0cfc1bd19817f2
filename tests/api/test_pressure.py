"""Limits by pressure, busy types and promotions: what a real forecast of the queue says."""

from typing import Any

import httpx
import pytest

from fairlead.settings import Slots
from fairlead.store.store import Store
from fairlead.upkeep.estimator import Estimator
from tests.api.key_holders import Keys, bearer
from tests.api.requests import HttpWorker, good, refused, submit
from tests.store.namespace import raw

LIMITS = "/api/v1/limits"


@pytest.fixture(autouse=True)
async def admin(api: httpx.AsyncClient, keys: Keys) -> None:
    api.headers.update(bearer(await keys.make()))


async def forecast(store: Store) -> None:
    """The gateway makes none for a minute, so this one stays."""
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=60_000)
    assert await Estimator(store, "me").forecast()


async def all_pages(api: httpx.AsyncClient, **query: Any) -> list[str]:
    """The names of the limits."""
    found, cursor = list[str](), ""
    while True:
        page = good(await api.get(LIMITS, params={**query, "cursor": cursor}))
        found += [one["name"] for one in page["limits"]]
        if not (cursor := page["next_cursor"]):
            return found


async def work(api: httpx.AsyncClient, store: Store) -> None:
    """Two tasks wait for `long`, one for `short`, and one for `paused` for ever."""
    for name, size in {"idle": 1, "long": 1, "paused": 1, "short": 4}.items():
        await store.limits.set(name, Slots(limit=size))
    worker = await HttpWorker.register(api, capacity=3, reserve=0)
    await submit(api, "draw", limits={"long": 1}, priority="high")
    assert len(await worker.poll()) == 1
    await store.limits.pause("paused")
    for priority in ("low", "medium"):
        await submit(api, "draw", limits={"long": 1}, priority=priority)
    await submit(api, "chat", limits={"short": 4})
    await submit(api, "chat", limits={"paused": 1}, priority="low")
    await forecast(store)


async def test_limits_are_listed_by_pressure_with_who_waits_and_who_holds(
    api: httpx.AsyncClient, store: Store
) -> None:
    await work(api, store)
    page = good(await api.get(LIMITS, params={"sort": "pressure"}))
    assert (page["total"], page["waited_for"], page["next_cursor"]) == (4, 3, None)
    assert [one["name"] for one in page["limits"]] == ["paused", "long", "short", "idle"]
    paused, long, short, idle = (one.get("pressure") for one in page["limits"])
    assert (paused["waiting"], paused["last_start_p50"]) == ({"low": 1}, None)
    assert (long["waiting"], long["held"]) == ({"medium": 1, "low": 1}, {"high": 1})
    assert long["last_start_p50"] > short["last_start_p50"] >= short["at"]
    assert (short["waiting"], short["held"], idle) == ({"medium": 1}, {}, None)
    assert good(await api.get(f"{LIMITS}/long"))["pressure"] == long


async def test_pages_by_pressure_hold_every_limit_once(api: httpx.AsyncClient, store: Store) -> None:
    await work(api, store)
    for size in (1, 2, 1000):
        assert await all_pages(api, sort="pressure", limit=size) == ["paused", "long", "short", "idle"], size
    await store.limits.delete("idle")
    assert await all_pages(api, sort="pressure") == ["paused", "long", "short"]
    for cursor in ("pressure:x", "later", "pressure:9999999999"):
        answer = await api.get(LIMITS, params={"sort": "pressure", "cursor": cursor})
        refused(answer, 422, "invalid_input", "cursor")


async def test_limits_are_searched_and_filtered_by_state(api: httpx.AsyncClient, store: Store) -> None:
    await work(api, store)
    for sort in ("name", "pressure"):
        for query, names in [
            ({"search": "ON"}, ["long"]),
            ({"search": "o"}, ["long", "short"]),
            ({"state": "paused"}, ["paused"]),
            ({"state": "full"}, ["long"]),
            ({"state": "waiting"}, ["long", "paused", "short"]),
            ({"state": "waiting", "search": "r"}, ["short"]),
        ]:
            found = await all_pages(api, sort=sort, limit=1, **query)
            assert sorted(found) == names, (sort, query)


async def test_a_tenant_sees_shared_limits_and_its_own_by_pressure(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    await store.limits.set("shared", Slots(limit=1), shared=True)
    await store.limits.set("hidden", Slots(limit=1))
    for tenant in ("acme", "other"):
        await store.limits.set("own", Slots(limit=1), tenant=tenant)
        await store.limits.acquire("own", lease_ms=60_000, tenant=tenant, by_tenant=True)
    for name in ("shared", "hidden"):
        await store.limits.acquire(name, lease_ms=60_000)
    await forecast(store)
    key = bearer(await keys.make("read", tenant="acme"))
    page = good(await api.get(LIMITS, params={"sort": "pressure"}, headers=key))
    assert sorted(one["name"] for one in page["limits"]) == ["own", "shared"]
    assert (page["total"], page["limits"][0]["pressure"]["held"]) == (None, {"lease": 1})


async def test_types_are_listed_with_what_waits_and_runs(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    acme = bearer(await keys.make("read", "submit", tenant="acme"))
    await work(api, store)
    good(await api.post("/api/v1/tasks", json={"task_type": "draw"}, headers=acme), 201)
    types = {one["task_type"]: one for one in good(await api.get("/api/v1/task-types"))["task_types"]}
    assert (types["draw"]["waiting"], types["draw"]["running"]) == ({"medium": 1, "low": 1}, 1)
    assert (types["chat"]["waiting"], types["chat"]["running"]) == ({"medium": 1, "low": 1}, 0)
    own = good(await api.get("/api/v1/task-types", headers=acme))["task_types"]
    assert [(one["task_type"], one["waiting"], one.get("running")) for one in own] == [
        ("draw", {"all": 1}, None)
    ]


async def test_without_a_forecast_nothing_is_claimed(api: httpx.AsyncClient, store: Store) -> None:
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=60_000)
    await raw(store).delete(store.connection.keys.key("forecast"))
    await store.limits.set("gpu", Slots(limit=1))
    await store.pause_type("draw")
    page = good(await api.get(LIMITS, params={"sort": "pressure"}))
    assert (page["waited_for"], [one["name"] for one in page["limits"]]) == (None, ["gpu"])
    (draw,) = good(await api.get("/api/v1/task-types"))["task_types"]
    assert "waiting" not in draw and "running" not in draw


async def test_the_next_promotions_are_listed_the_soonest_first(
    api: httpx.AsyncClient, keys: Keys, store: Store
) -> None:
    acme = bearer(await keys.make("read", "submit", tenant="acme"))
    medium = (await submit(api, "chat"))["task_id"]
    low = (await submit(api, "draw", priority="low", user_id="ann"))["task_id"]
    await submit(api, "chat", priority="high")
    own = good(await api.post("/api/v1/tasks", json={"task_type": "draw"}, headers=acme), 201)["task_id"]
    first, *later = good(await api.get("/api/v1/queue/promotions"))["promotions"]
    assert (first["task_id"], first["user_id"]) == (low, "ann")  # after 10 minutes; the others after 20
    assert (first["from_priority"], first["to_priority"]) == ("low", "medium")
    assert first["at"] > first["waiting_since"]
    assert [(one["task_id"], one["to_priority"]) for one in later] == [(medium, "high"), (own, "high")]
    (alone,) = good(await api.get("/api/v1/queue/promotions?limit=1"))["promotions"]
    assert alone["task_id"] == low
    (only,) = good(await api.get("/api/v1/queue/promotions", headers=acme))["promotions"]
    assert (only["task_id"], only["tenant"]) == (own, "acme")
