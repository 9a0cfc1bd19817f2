"""Tenants beside each other: what one names, makes and holds is neither seen nor touched by another."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack
from typing import Any

import httpx
import pytest

from fairlead.settings import TaskSettings
from fairlead.store.store import Store
from tests.api.asking import TASKS, good, refused, submit
from tests.api.contract import hold_to_contract
from tests.api.key_holders import Keys, bearer
from tests.api.serving import Gateway

CHOSEN = "01890000-0000-7000-8000-0000000000aa"
JOBS = "/api/v1/jobs"

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


async def test_to_choose_the_id_of_another_tenants_task_tells_nothing_of_it(clients: Clients) -> None:
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
