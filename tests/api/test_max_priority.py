"""A key may have a maximum priority: none of its requests exceeds it, on any endpoint."""

import json
from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.client.client import Client
from fairlead.errors import NotAllowed
from fairlead.model.job import NewJob
from fairlead.model.task import NewTask
from fairlead.settings import EngineSettings, Settings, Slots
from fairlead.store.store import Store
from tests.api.key_holders import Keys, bearer
from tests.api.listening import receive_one, socket
from tests.api.requests import TASKS, good, refused
from tests.api.serving import Gateway

JOBS, LEASES, CRON = "/api/v1/jobs", "/api/v1/limits/gpu/leases", "/internal/crons/nightly"
CODE = "priority_not_allowed"
TIMES = {"previous": "2026-01-31T12:00:00Z", "tick": "2026-01-31T12:01:00Z"}


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_PIPELINES__STORY": '["draw"]', "FAIRLEAD_TASKS__DRAW": "{ max_retries = 1 }"}


@pytest.fixture
async def key(keys: Keys) -> str:
    return await keys.make(max_priority="medium")


async def post(api: httpx.AsyncClient, key: str, path: str, **body: Any) -> httpx.Response:
    return await api.post(path, json=body, headers=bearer(key))


async def priority_of(store: Store, answer: dict[str, Any]) -> str:
    return (await store.get(answer["task_id"])).priority.word


async def test_a_task_may_not_be_more_urgent(api: httpx.AsyncClient, store: Store, key: str) -> None:
    detail = refused(await post(api, key, TASKS, task_type="echo", priority="high"), 403, CODE)["detail"]
    assert detail == "This key may use at most medium priority, not high: ask for less."
    for options, priority in (
        ({}, "medium"),
        ({"priority": "medium"}, "medium"),
        ({"priority": "low"}, "low"),
    ):
        answer = good(await post(api, key, TASKS, task_type="echo", **options), 201)
        assert await priority_of(store, answer) == priority


async def test_without_a_priority_the_key_decides(api: httpx.AsyncClient, store: Store, keys: Keys) -> None:
    low = await keys.make(max_priority="low")
    assert await priority_of(store, good(await post(api, low, TASKS, task_type="echo"), 201)) == "low"
    lease = {"lease_seconds": 30}
    await store.limits.set("gpu", Slots(limit=1))
    good(await post(api, low, LEASES, **lease), 201)


async def test_tasks_of_a_batch_that_are_too_urgent_are_refused(api: httpx.AsyncClient, key: str) -> None:
    tasks = [{"task_type": "echo", "priority": priority} for priority in ("low", "high", "medium")]
    answers = good(await post(api, key, f"{TASKS}/batch", tasks=tasks), 201)["tasks"]
    outcomes = [one.get("status") or (one["error"]["status"], one["error"]["code"]) for one in answers]
    assert outcomes == ["queued", (403, CODE), "queued"]


async def test_jobs_leases_periodic_tasks_and_the_simple_endpoint_are_bounded_too(
    api: httpx.AsyncClient, store: Store, key: str
) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    urgent = {"task_type": "echo", "priority": "high"}
    refused(await post(api, key, JOBS, feature_name="story", priority="high"), 403, CODE)
    refused(await post(api, key, LEASES, lease_seconds=9, wait_seconds=1, priority="high"), 403, CODE)
    refused(await post(api, key, f"{CRON}/tick", **TIMES, task=urgent), 403, CODE)
    refused(await api.get("/task", params={"priority": "high"}, headers=bearer(key)), 403, CODE)
    assert good(await post(api, key, JOBS, feature_name="story"), 201)["priority"] == "medium"
    assert good(await api.get("/task", headers=bearer(key)))["priority"] == "low"


async def test_sockets_are_bounded_too_also_those_opened_with_a_ticket(
    api: httpx.AsyncClient, gateway: Gateway, key: str
) -> None:
    ticket = good(await api.post("/api/v1/tickets", headers=bearer(key)), 201)["ticket"]
    for path, headers in (("/ws/tasks", bearer(key)), (f"/ws/tasks?ticket={ticket}", {})):
        async with socket(gateway, path, headers) as opened:
            await opened.send(json.dumps({"task_type": "echo", "priority": "high"}))
            assert (await receive_one(opened))["problem"]["code"] == CODE


async def test_a_key_that_takes_its_place_may_no_more(api: httpx.AsyncClient, store: Store, key: str) -> None:
    rotated = await store.api_keys.rotate(key.split("_")[1], 0)
    assert rotated.api_key.max_priority == "medium"
    refused(await post(api, rotated.key_text, TASKS, task_type="echo", priority="high"), 403, CODE)


async def test_the_python_client_raises_it_too(gateway: Gateway, store: Store, keys: Keys) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    low = await keys.make(max_priority="low")
    async with Client(Settings(engine=EngineSettings(url=gateway.url, key=low))) as client:
        with pytest.raises(NotAllowed, match="at most low priority"):
            await client.submit_one(NewTask(task_type="echo", priority="high"))
        with pytest.raises(NotAllowed, match="at most low priority"):
            await client.jobs.submit(NewJob(feature_name="story", priority="high"))
        with pytest.raises(NotAllowed, match="at most low priority"):
            await client.limits.acquire("gpu", priority="high")
        await client.limits.release(await client.limits.acquire("gpu"))
