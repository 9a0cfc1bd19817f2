"""Tenants beside each other: none sees or changes what another names, creates and holds."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from fairlead.settings import Slots, TaskSettings
from fairlead.store.store import Store
from tests.api.contract import hold_to_contract
from tests.api.key_holders import Keys, bearer
from tests.api.requests import TASKS, HttpWorker, good, ids, refused, submit, task
from tests.api.serving import Gateway

CHOSEN = "01890000-0000-7000-8000-0000000000aa"
JOBS = "/api/v1/jobs"
LIMITS = "/api/v1/limits"
GPU = f"{LIMITS}/gpu"
LEASE = {"lease_seconds": 30, "lease_id": "mine"}

Clients = dict[str, httpx.AsyncClient]


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_SERVER__FAILED_KEYS_PER_MINUTE": "0"}


@pytest.fixture
async def clients(gateway: Gateway, keys: Keys) -> AsyncIterator[Clients]:
    """Of two tenants, each with every scope, and of the operator."""
    async with AsyncExitStack() as stack:
        made: Clients = {}
        for name, tenant in (("acme", "acme"), ("other", "other"), ("operator", None)):
            headers = bearer(await keys.make(tenant=tenant))
            hooks: dict[str, list[Any]] = {"response": [hold_to_contract]}
            client = httpx.AsyncClient(
                base_url=gateway.url, headers=headers, timeout=40, event_hooks=hooks, trust_env=False
            )
            made[name] = await stack.enter_async_context(client)
        yield made


async def test_two_tenants_that_choose_the_same_id_have_two_tasks(clients: Clients) -> None:
    acme, other, operator = clients.values()
    one = await submit(acme, "draw", parameters={"n": 1}, task_id=CHOSEN)
    two = await submit(other, "write", task_id=CHOSEN)
    three = await submit(operator, "read", task_id=CHOSEN)
    assert len({one["task_id"], two["task_id"], three["task_id"]}) == 3
    again = await acme.post(TASKS, json={"task_type": "draw", "parameters": {"n": 1}, "task_id": CHOSEN})
    assert good(again)["task_id"] == one["task_id"]
    for client, task_type in ((acme, "draw"), (other, "write"), (operator, "read")):
        assert good(await client.get(f"{TASKS}/{CHOSEN}"))["task_type"] == task_type
    batch = {"tasks": [{"task_type": "write", "task_id": CHOSEN}]}
    (row,) = good(await other.post(f"{TASKS}/batch", json=batch), 201)["tasks"]
    assert (row["task_id"], row["repeated"]) == (two["task_id"], True)
    good(await other.delete(f"{TASKS}/{CHOSEN}"))
    assert good(await acme.get(f"{TASKS}/{CHOSEN}"))["status"] == "queued"


async def test_choosing_the_id_of_another_tenants_task_reveals_nothing_about_it(clients: Clients) -> None:
    acme, other, _ = clients.values()
    theirs = (await submit(acme, "draw"))["task_id"]
    taken = await submit(other, "draw", task_id=theirs)
    free = await submit(other, "draw", task_id=CHOSEN)
    assert {theirs, CHOSEN}.isdisjoint({taken["task_id"], free["task_id"]})
    unlike = {"task_id", "queue_position"}
    assert {k: v for k, v in taken.items() if k not in unlike} == {
        k: v for k, v in free.items() if k not in unlike
    }


async def test_two_tenants_that_choose_the_same_id_have_two_jobs(clients: Clients, store: Store) -> None:
    await store.declare("code", {"draw": TaskSettings()}, {}, {"story": (("draw",),)})
    acme, other, _ = clients.values()
    body = {"feature_name": "story", "input_data": {}, "job_id": CHOSEN}
    one, two = [good(await client.post(JOBS, json=body), 201) for client in (acme, other)]
    assert one["job_id"] != two["job_id"]
    assert good(await acme.post(JOBS, json=body)) == {**one, "repeated": True}
    good(await other.delete(f"{JOBS}/{CHOSEN}"))
    assert good(await acme.get(f"{JOBS}/{CHOSEN}"))["id"] == one["job_id"]
    assert good(await acme.get(f"{JOBS}/{CHOSEN}"))["status"] == "PENDING"
    refused(await acme.get(f"{JOBS}/{two['job_id']}"), 404, "unknown_job")


async def test_a_tenant_lists_and_explains_its_own_jobs(clients: Clients, store: Store) -> None:
    await store.declare("code", {"draw": TaskSettings()}, {}, {"story": (("draw",),)})
    ids = {
        name: good(await client.post(JOBS, json={"feature_name": "story"}), 201)["job_id"]
        for name, client in clients.items()
    }
    for name in ("acme", "other"):
        page = good(await clients[name].get(JOBS))
        assert [one["id"] for one in page["jobs"]] == [ids[name]]
        assert good(await clients[name].get(f"{JOBS}/{ids[name]}/explain"))["steps"][0]["name"] == "draw"
    assert [one["id"] for one in good(await clients["operator"].get(JOBS))["jobs"]] == [*ids.values()][::-1]
    refused(await clients["acme"].get(f"{JOBS}/{ids['other']}/explain"), 404, "unknown_job")


async def names(client: httpx.AsyncClient, **query: str) -> list[tuple[str, str | None]]:
    listed = good(await client.get(LIMITS, params=query))["limits"]
    return sorted(((one["name"], one["tenant"]) for one in listed), key=str)


async def test_a_group_belongs_to_its_tenant_whoever_came_first(clients: Clients) -> None:
    acme, other, operator = clients.values()
    group = {"concurrency_group": "gpu"}
    one = await submit(acme, **group, concurrency_limit=1)
    two = await submit(other, **group, concurrency_limit=2)
    assert [good(await client.get(GPU))["limit"] for client in (acme, other)] == [1, 2]
    refused(await operator.get(GPU), 404, "unknown_limit")
    assert await names(acme) == [("gpu", "acme")]
    assert await names(other) == [("gpu", "other")]
    assert await names(operator) == [("gpu", "acme"), ("gpu", "other")]
    assert await names(operator, tenant="acme") == [("gpu", "acme")]
    assert good(await operator.get(GPU, params={"tenant": "other"}))["limit"] == 2

    worker = await HttpWorker.register(operator)
    assert sorted(ids(await worker.poll(5))) == sorted([one["task_id"], two["task_id"]])
    full = await submit(acme, **group)
    assert full["blocked_by"] == ["gpu"]
    assert (await submit(other, **group))["blocked_by"] == []
    assert (await task(acme, full["task_id"]))["limits"] == {"gpu": 1}
    why = good(await acme.get(f"{TASKS}/{full['task_id']}/explain"))
    (blocker,) = why["blocked_by"]
    assert (blocker["limit"], blocker["tenant"], blocker["of"]) == ("gpu", "acme", 1)
    assert why["sentence"].startswith("It waits for a unit of gpu, which ")


async def test_an_operators_limit_is_not_there_for_tenants_until_it_is_shared(clients: Clients) -> None:
    acme, other, operator = clients.values()
    good(await operator.put(GPU, json={"limit": 1}))
    body = {"task_type": "draw", "limits": {"gpu": 1}}
    for client in (acme, other):
        assert await names(client) == []
        refused(await client.get(GPU), 404, "unknown_limit")
        refused(await client.post(TASKS, json=body), 422, "unknown_limit", "limits.gpu")
        refused(await client.post(f"{GPU}/leases", json=LEASE), 404, "unknown_limit")
    assert (await submit(operator, limits={"gpu": 1}))["blocked_by"] == []

    assert good(await operator.put(GPU, json={"limit": 1, "shared": True}))["shared"]
    assert good(await operator.put(GPU, json={"limit": 2}))["shared"], "a change leaves it shared"
    assert await names(acme) == await names(other) == [("gpu", None)]
    good(await acme.post(TASKS, json=body), 201)
    good(await other.post(f"{GPU}/leases", json=LEASE), 201)
    assert good(await operator.get(GPU))["active"] == 1
    assert not good(await operator.put(GPU, json={"limit": 2, "shared": False}))["shared"]
    refused(await acme.get(GPU), 404, "unknown_limit")
    good(await other.delete(f"{GPU}/leases/mine"))


async def test_holders_of_a_shared_limit_are_seen_by_their_own_tenant(clients: Clients) -> None:
    acme, other, operator = clients.values()
    good(await operator.put(GPU, json={"limit": 9, "shared": True}))
    for client in (acme, other):
        await submit(client, limits={"gpu": 1})
        lease = good(await client.post(f"{GPU}/leases", json=LEASE), 201)
        assert lease["lease_id"] == "mine"
        assert good(await client.post(f"{GPU}/leases", json=LEASE), 201) == lease, "the same once more"
    await (await HttpWorker.register(operator)).poll(5)
    seen = {name: good(await client.get(GPU)) for name, client in clients.items()}
    assert {name: len(one["slots"]) for name, one in seen.items()} == {"acme": 2, "other": 2, "operator": 4}
    assert {one["active"] for one in seen.values()} == {4}
    tasks = [{slot["task_id"] for slot in seen[name]["slots"]} for name in ("acme", "other")]
    assert tasks[0] & tasks[1] == {None}
    one = good(await acme.get(GPU, params={"lease_id": "mine"}))["slots"]
    assert [(slot["slot_id"], slot["tenant"]) for slot in one] == [("mine", "acme")]
    (theirs,) = tasks[1] - {None}
    assert good(await acme.get(GPU, params={"lease_id": theirs}))["slots"] == []


async def test_a_lease_is_renewed_and_released_by_its_tenant_alone(clients: Clients) -> None:
    acme, other, operator = clients.values()
    good(await operator.put(GPU, json={"limit": 3, "shared": True}))
    good(await acme.post(f"{GPU}/leases", json=LEASE), 201)
    for client in (other, operator):
        refused(await client.post(f"{GPU}/leases/mine/renew", json={}), 409, "fenced")
        refused(await client.delete(f"{GPU}/leases/mine"), 409, "fenced")
        refused(await client.delete(f"{GPU}/leases/mine?force=true"), 409, "fenced")
    good(await acme.post(f"{GPU}/leases/mine/renew", json={"lease_seconds": 60}))
    good(await acme.delete(f"{GPU}/leases/mine"))
    good(await acme.post(f"{GPU}/leases", json=LEASE), 201)
    good(await operator.delete(f"{GPU}/leases/mine?force=true&tenant=acme"))
    assert good(await operator.get(GPU))["active"] == 0


async def test_a_tenant_sets_its_own_limits_and_shares_none(clients: Clients) -> None:
    acme, other, operator = clients.values()
    good(await operator.put(GPU, json={"limit": 5, "shared": True}))
    own = good(await acme.put(GPU, json={"limit": 1}))
    assert (own["limit"], own["tenant"], own["shared"]) == (1, "acme", False)
    refused(await acme.put(GPU, json={"limit": 1, "shared": True}), 422, "invalid_input", "shared")
    assert good(await other.get(GPU))["limit"] == good(await operator.get(GPU))["limit"] == 5
    assert good(await acme.get(GPU))["limit"] == 1
    good(await operator.put(GPU, params={"tenant": "acme"}, json={"limit": 2}))
    assert good(await acme.get(GPU))["limit"] == 2
    for method, body in (("PUT", {"limit": 7}), ("GET", None)):
        answer = await acme.request(method, GPU, params={"tenant": "other"}, json=body)
        refused(answer, 403, "forbidden")
    refused(await acme.get(LIMITS, params={"tenant": "other"}), 403, "forbidden")
    assert await names(acme) == [("gpu", "acme"), ("gpu", None)]
    assert await names(operator, tenant="other") == [("gpu", None)]


async def test_the_limits_of_a_task_type_apply_to_all_tenants_together(
    clients: Clients, store: Store
) -> None:
    """The scarce resource: no tenant has to name it, and none can avoid it."""
    acme, other, operator = clients.values()
    await store.declare("code", {"draw": TaskSettings(limits={"gpu": 1})}, {"gpu": Slots(limit=1)})
    first = await submit(acme, "draw")
    worker = await HttpWorker.register(operator)
    assert ids(await worker.poll(5)) == [first["task_id"]]
    second = await submit(other, "draw", concurrency_group="gpu", concurrency_limit=50)
    assert second["blocked_by"] == ["gpu"]
    assert await worker.poll(5) == []
    assert (await task(other, second["task_id"]))["limits"] == {"gpu": 1}
    why = good(await other.get(f"{TASKS}/{second['task_id']}/explain"))
    assert [(one["limit"], one["tenant"]) for one in why["blocked_by"]] == [("gpu", None)]
    refused(await other.get(GPU), 404, "unknown_limit")


async def test_metrics_distinguish_the_limits_of_tenants(clients: Clients) -> None:
    acme, other, operator = clients.values()
    for client in (acme, other):
        await submit(client, concurrency_group="gpu", concurrency_limit=3)
    shown = (await operator.get("/metrics")).text
    for name in ("acme/gpu", "other/gpu"):
        assert f'fairlead_limit_waiting{{limit="{name}"}} 1' in shown
    refused(await acme.get("/metrics"), 403, "forbidden")


async def test_a_tenants_limit_is_not_a_service(clients: Clients) -> None:
    acme, other, _ = clients.values()
    await submit(acme, concurrency_group="service:acme-secret", concurrency_limit=3)
    assert good(await other.get("/api/v1/services")) == {"services": [], "next_cursor": None}


async def test_the_numbers_of_a_tenant_are_its_own(clients: Clients) -> None:
    acme, other, operator = clients.values()
    for client, count in ((acme, 1), (other, 3), (operator, 2)):
        for _ in range(count):
            await submit(client, priority="high")
    worker = await HttpWorker.register(operator, capacity=7)
    for polled in await worker.poll(6):
        if polled["tenant"] == "other":
            good(await worker.complete(polled))
    await submit(acme, priority="low")
    await submit(other, priority="low", delay_seconds=60)
    mine, theirs, total = [good(await client.get("/api/v1/queue/stats")) for client in clients.values()]
    assert [one["queues"]["low"]["depth"] for one in (mine, theirs, total)] == [1, 0, 1]
    assert [one["delayed"] for one in (mine, theirs, total)] == [0, 1, 1]
    done = [one["throughput"]["completed_last_minute"] for one in (mine, theirs, total)]
    assert done == [0, 3, 3]
    assert [one["workers"]["used_capacity"] for one in (mine, theirs, total)] == [1, 0, 3]
    assert (mine["workers"]["active"], mine["workers"]["total_capacity"]) == (None, None)
    assert (total["workers"]["active"], total["workers"]["total_capacity"]) == (1, 7)


async def test_a_tenant_does_not_see_which_task_of_another_holds_a_limit(
    clients: Clients, store: Store
) -> None:
    acme, other, operator = clients.values()
    await store.limits.set("gpu", Slots(limit=2), shared=True)
    body = {"limits": {"gpu": 1}}
    theirs, mine = [await submit(one, "draw", **body) for one in (other, acme)]
    worker = await HttpWorker.register(operator)
    assert len(await worker.poll(2)) == 2
    waiting = await submit(acme, "draw", **body)
    path = f"{TASKS}/{waiting['task_id']}/explain"
    seen = {held["task_id"]: held for held in good(await acme.get(path))["blocked_by"][0]["holders"]}
    assert set(seen) == {mine["task_id"], None}
    foreign = seen[None]
    assert foreign["foreign"]
    assert (foreign["worker"], foreign["lease_id"], foreign["tenant"]) == (None, None, None)
    assert foreign["ends_at"]
    answer = (await acme.get(path)).text
    assert theirs["task_id"] not in answer
    all_of_them = good(await operator.get(path))["blocked_by"][0]["holders"]
    assert {held["task_id"] for held in all_of_them} == {mine["task_id"], theirs["task_id"]}
    explained = good(await acme.get(f"{TASKS}/{mine['task_id']}/explain"))
    assert explained["chosen_because"]["skipped_for"] == []
