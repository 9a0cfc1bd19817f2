"""What if: the work of the past again, under other limits."""

import asyncio
import itertools
from typing import Any

import httpx
import pytest

from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.requests import HttpWorker, good, refused, submit

SIMULATIONS = "/api/v1/simulations"


times = itertools.count(3_600)  # the work of the same time is kept for a minute


@pytest.fixture
def seconds() -> int:
    return next(times)


@pytest.fixture(autouse=True)
async def admin(api: httpx.AsyncClient, keys: Keys) -> None:
    api.headers.update(bearer(await keys.make()))


async def simulate(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    return good(await api.post(SIMULATIONS, json=body))


async def work(api: httpx.AsyncClient, store: Store, count: int = 6) -> None:
    """Some tasks, one after another, each for a moment."""
    await store.limits.set("gpu", Slots(limit=1))
    worker = await HttpWorker.register(api, capacity=4, reserve=0)
    for number in range(count):
        await submit(api, "draw", limits={"gpu": 1}, user_id=f"u{number % 2}")
    for _ in range(count):
        await worker.complete(await worker.poll_one(), {})


async def test_more_slots_make_the_waits_of_the_same_work_shorter(
    api: httpx.AsyncClient, store: Store, seconds: int
) -> None:
    await work(api, store)
    same = await simulate(api, seconds=seconds)
    assert (same["tasks"], same["slots"], same["before"]) == (6, 4, same["after"])
    assert [(one["name"], one["tasks"], one["most_needed"]) for one in same["limits"]] == [("gpu", 6, 1)]
    wide = await simulate(api, seconds=seconds, limits={"gpu": {"limit": 6}}, slots=6)
    assert wide["before"] == same["before"]
    before, after = (wide[name]["waits"]["all"]["max"] for name in ("before", "after"))
    assert after < before
    assert sum(one["count"] for one in wide["series"]) == 6
    first = next(one for one in wide["series"] if one["count"])
    assert first["p95"][1] <= first["p95"][0]
    assert (await store.limits.get("gpu")).limit == 1


async def test_a_limit_of_0_or_a_slow_rate_is_simulated(
    api: httpx.AsyncClient, store: Store, seconds: int
) -> None:
    await work(api, store)
    closed = await simulate(api, seconds=seconds, limits={"gpu": {"limit": 0}})
    assert (closed["after"]["unstarted"], closed["after"]["waits"]["all"]) == (6, None)
    slow = await simulate(api, seconds=seconds, limits={"gpu": {"rate": "1/min", "burst": 1}})
    assert slow["after"]["waits"]["all"]["max"] == pytest.approx(300, abs=30)


async def test_without_work_there_is_nothing_to_simulate(
    api: httpx.AsyncClient, store: Store, seconds: int
) -> None:
    await submit(api)
    answer = await simulate(api, seconds=seconds)
    assert (answer["tasks"], answer["before"], answer["series"], answer["since"]) == (0, None, [], None)


async def test_the_limits_of_a_tenant_are_its_own(
    api: httpx.AsyncClient, keys: Keys, store: Store, seconds: int
) -> None:
    await store.limits.set("own", Slots(limit=1), tenant="acme")
    acme = bearer(await keys.make("submit", "read", "admin", tenant="acme"))
    body = {"task_type": "draw", "limits": {"own": 1}}
    good(await api.post("/api/v1/tasks", json=body, headers=acme), 201)
    worker = await HttpWorker.register(api)
    await worker.complete(await worker.poll_one(), {})
    answer = await simulate(api, seconds=seconds, limits={"acme/own": {"limit": 3}})
    assert [one["name"] for one in answer["limits"]] == ["acme/own"]
    refused(await api.post(SIMULATIONS, json={}, headers=acme), 403, "forbidden")
    reader = bearer(await keys.make("read"))
    refused(await api.post(SIMULATIONS, json={}, headers=reader), 403, "forbidden")


async def test_mistakes_are_refused(api: httpx.AsyncClient, store: Store, seconds: int) -> None:
    await store.limits.set("gpu", Slots(limit=8))
    worker = await HttpWorker.register(api)
    await submit(api, "draw", limits={"gpu": 4})
    await worker.complete(await worker.poll_one(), {})
    for limits, field in [
        ({"cpu": {"limit": 1}}, "limits.cpu"),
        ({"gpu": {"limit": 3}}, "limits.gpu"),
        ({"gpu": {}}, "limits.gpu"),
        ({"gpu": {"rate": "fast"}}, "limits.gpu"),
        ({"gpu": {"limit": 1, "rate": "1/s"}}, "limits.gpu"),
    ]:
        refused(
            await api.post(SIMULATIONS, json={"seconds": seconds, "limits": limits}),
            422,
            "invalid_input",
            field,
        )
    refused(await api.post(SIMULATIONS, json={"seconds": 1}), 422, "invalid_input", "seconds")


async def test_one_simulation_runs_at_a_time(api: httpx.AsyncClient, store: Store, seconds: int) -> None:
    await work(api, store, 1)
    answers = await asyncio.gather(*(api.post(SIMULATIONS, json={"seconds": seconds}) for _ in range(4)))
    assert sorted({answer.status_code for answer in answers}) == [200, 429]
    assert await simulate(api, seconds=seconds)
