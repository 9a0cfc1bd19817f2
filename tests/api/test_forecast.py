"""The forecast over HTTP, in the client and on the command line."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from fairlead import Fairlead
from fairlead.clock import now_ms
from fairlead.model.forecast import ForecastRun, LimitForecast, Outlook, Track
from fairlead.model.priority import Priority
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.requests import good, refused, submit
from tests.api.serving import Gateway
from tests.store.namespace import raw

FORECAST = "/api/v1/forecast"
IDS = ("task_id", "lease_id", "job_id", "user_id", "tenant", "task_type")


def run(task_id: str, tenant: str | None, *, is_running: bool = False) -> ForecastRun:
    now = now_ms()
    return ForecastRun(
        is_running=is_running,
        priority=Priority.LOW,
        task_id=task_id,
        job_id="job",
        user_id="ann",
        task_type="draw",
        tenant=tenant,
        start_p50=now,
        start_p90=now + 1_000,
        end_p50=now + 2_000,
        end_p90=now + 3_000,
    )


async def save(store: Store, **limits: LimitForecast) -> None:
    """A gateway beside it does no upkeep for a minute, so this forecast stays."""
    await raw(store).set(store.connection.keys.key("caretaker"), "me", px=60_000)
    head = {"head": {"at": now_ms(), "run": 0, "lengths": [], "corrections": [[[1000, 1000]]] * 3}}
    assert await store.estimates.save_forecast(
        "me", head, 60_000, Outlook(limits=limits, pressures={}, types={})
    )


def limit(name: str, *runs: ForecastRun, tenant: str | None = None, **facts: Any) -> LimitForecast:
    known: dict[str, Any] = {
        "kind": "slots",
        "limit": 1,
        "active": 1,
        "waiting": 1,
        "tracks": (Track(0, runs),),
    } | facts
    return LimitForecast(name=name, tenant=tenant, **known)


@pytest.fixture
async def shared(store: Store) -> Store:
    """A limit that all tenants share, one of acme, and one of the operator."""
    await store.limits.set("gpu", Slots(limit=1, shared=True))
    await store.limits.set("mine", Slots(limit=1), tenant="acme")
    await store.limits.set("secret", Slots(limit=1))
    runs = run("t1", "acme", is_running=True), run("t2", "other")
    everybody = limit("workers", *runs, kind="workers")
    limits = {"": everybody, "secret": limit("secret"), "gpu": limit("gpu", *runs)}
    await save(store, **limits, **{"acme/mine": limit("mine", tenant="acme")})
    return store


@pytest.fixture
async def clients(gateway: Gateway, keys: Keys) -> AsyncIterator[dict[str, httpx.AsyncClient]]:
    """Of a tenant, and of the operator."""
    async with AsyncExitStack() as stack:
        made = {}
        for name, tenant in (("acme", "acme"), ("operator", None)):
            headers = bearer(await keys.make(tenant=tenant))
            client = httpx.AsyncClient(base_url=gateway.url, headers=headers, trust_env=False)
            made[name] = await stack.enter_async_context(client)
        yield made


async def test_an_operator_sees_all_limits_and_the_workers(
    shared: Store, clients: dict[str, httpx.AsyncClient]
) -> None:
    api = clients["operator"]
    found = good(await api.get(FORECAST))
    assert [one["name"] for one in found["limits"]] == ["secret", "gpu", "mine"]
    assert found["workers"]["kind"] == "workers"
    runs = found["limits"][1]["tracks"][0]["runs"]
    assert [(one["task_id"], one["state"], one["priority"]) for one in runs] == [
        ("t1", "running", "low"),
        ("t2", "expected", "low"),
    ]
    named = good(await api.get(FORECAST, params={"limit": "gpu", "limits": "secret,gpu"}))
    assert [one["name"] for one in named["limits"]] == ["gpu", "secret"]
    (near,) = good(await api.get(FORECAST, params={"limit": "gpu", "seconds": 0}))["limits"]
    assert near["tracks"][0]["runs"][-1]["task_id"] in ("t1", "t2")


async def test_a_tenant_sees_tasks_of_others_as_anonymous(
    shared: Store, clients: dict[str, httpx.AsyncClient]
) -> None:
    acme = clients["acme"]
    found = good(await acme.get(FORECAST))
    assert [one["name"] for one in found["limits"]] == ["gpu", "mine"]
    assert found["workers"] is None
    own, foreign = found["limits"][0]["tracks"][0]["runs"]
    assert (own["task_id"], own["foreign"]) == ("t1", False)
    assert [foreign[name] for name in IDS] == [None] * len(IDS)
    assert (foreign["foreign"], foreign["priority"]) == (True, "low")
    refused(await acme.get(FORECAST, params={"limit": "secret"}), 404, "unknown_limit")
    theirs = await shared.submit_one(NewTask(task_type="draw", tenant="other"))
    refused(await acme.get(FORECAST, params={"follow": theirs.task_id}), 404, "unknown_job")


async def test_a_task_is_followed_with_its_sentence(
    shared: Store, clients: dict[str, httpx.AsyncClient]
) -> None:
    task_id = (await submit(clients["acme"]))["task_id"]
    for client in clients.values():
        follow = good(await client.get(FORECAST, params={"follow": task_id}))["follow"]
        assert follow["sentence"]
        assert [step["task_id"] for step in follow["steps"]] == [task_id]


async def test_the_python_api_reads_the_same_from_the_store_and_from_a_gateway(
    shared: Store, gateway: Gateway, keys: Keys
) -> None:
    known = await shared.forecast(["gpu"])
    async with Fairlead(gateway.url, key=await keys.make()) as fl:
        assert await fl.forecast(["gpu"]) == known
