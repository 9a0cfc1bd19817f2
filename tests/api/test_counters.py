"""What has happened is counted exactly, by whichever process it happened, also when processes end."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from fairlead.store.store import Store
from tests.api.requests import TASKS, HttpWorker, good, refused, submit
from tests.api.serving import Gateway, serving
from tests.servers import Server
from tests.waiting import wait_until

LEASES = "/api/v1/limits/gpu/leases"

#: After the run below: every counter that is not 0, and of histograms how much was counted.
EXPECTED = {
    "tasks_submitted_total": {"high": 4, "medium": 1, "low": 3},
    "tasks_started_total": {"high": 3, "medium": 2, "low": 1},
    "tasks_ended_total": {
        **{"high,completed": 3, "high,cancelled": 1, "medium,dead_letter": 1, "low,failed": 1},
        **{"low,cancelled": 1},
    },
    "tasks_failed_total": {"bad": 1, "error": 1},
    "tasks_dlq_total": {"": 2},
    "task_retries_total": {"medium,error": 1},
    "tasks_promoted_total": {"low,medium": 1},
    "task_wait_seconds_count": {"high": 3, "medium": 2, "low": 1},
    "task_duration_seconds_count": {"high,completed": 3, "medium,dead_letter": 1, "low,failed": 1},
    "concurrency_acquisition_total": {"gpu,acquired": 4, "gpu,rejected": 1},
    "concurrency_wait_seconds_count": {"gpu": 4},
    "worker_heartbeat_failures_total": {"": 2},
    "http_requests_total": {"/api/v1/tasks,201": 8, f"{LEASES.replace('gpu', '{name}')},409": 1},
    "http_request_seconds_count": {"/api/v1/tasks": 8},
    "store_call_seconds_count": {"cancel": 2, "fail": 3},
    "dead_letters": {"": 2},
}
SERVED = ("http_", "store_call_")  # how many calls there are beside these depends on how often the test looks

RETRIES = {"FAIRLEAD_RETRY__BASE_SECONDS": "0.01"}
#: So that what waits is promoted, and workers that say nothing are given up, soon.
SOON = {
    "FAIRLEAD_PROMOTION__LOW_TO_MEDIUM_SECONDS": "0.1",
    "FAIRLEAD_WORKER__HEARTBEAT_SECONDS": "0.1",
    "FAIRLEAD_WORKER__MISSED_HEARTBEATS": "2",
}


@pytest.fixture
def where(live_store: Store, server: Server, tmp_path: Path) -> tuple[str, str, Path]:
    return server.url, live_store.connection.keys.namespace, tmp_path


def client(gateway: Gateway) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=gateway.url, timeout=40)


async def counted(api: httpx.AsyncClient) -> dict[str, dict[str, float]]:
    """All that is shown of what is expected; of calls, only those."""
    page = (await api.get("/metrics")).text
    found: dict[str, dict[str, float]] = {name: {} for name in EXPECTED}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            name, labels = sample.name.removeprefix("fairlead_"), ",".join(sample.labels.values())
            if labels in EXPECTED.get(name, {}) or (
                name in EXPECTED and sample.value and not name.startswith(SERVED)
            ):
                found[name][labels] = sample.value
    return found


async def until_counted(api: httpx.AsyncClient, expected: dict[str, Any]) -> None:
    seen: dict[str, Any] = {}

    async def is_counted() -> bool:
        nonlocal seen
        seen = await counted(api)
        return seen == expected

    try:
        await wait_until(is_counted, timeout=20)
    except AssertionError:
        assert seen == expected


async def test_counters_are_exact_with_two_servers_and_a_restart(where: tuple[str, str, Path]) -> None:
    with serving(*where, env=RETRIES) as staying:
        async with client(staying) as api:
            with serving(*where, env=RETRIES) as leaving:
                async with client(leaving) as other:
                    await run_first_half(api, other)
            with serving(*where, env=RETRIES) as restarted:
                async with client(restarted) as other:
                    await run_second_half(api, other)
            with serving(*where, "--govern", env=RETRIES | SOON) as governing:
                async with client(governing) as other:
                    await submit(other, "nobody", priority="low")
                    await until_counted(api, EXPECTED)
                    await until_counted(other, EXPECTED)


async def run_first_half(api: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    good(await api.put("/api/v1/limits/gpu", json={"limit": 1}))
    worker = await HttpWorker.register(other)
    await submit(other, priority="high", limits={"gpu": 1})
    await submit(api, priority="medium", max_retries=1)
    await submit(other, priority="low", max_retries=3)
    by_priority = {task["priority"]: task for task in await worker.poll()}
    refused(await api.post(LEASES, json={"lease_seconds": 1}), 409, "limit_full")
    good(await worker.complete(by_priority["high"]))
    worker.api = api
    good(await worker.fail(by_priority["medium"], message="no", code="error", retriable=True))
    good(await worker.fail(by_priority["low"], message="no", code="bad", retriable=False))
    again = await worker.poll_one(wait_seconds=10)
    good(await worker.fail(again, message="no", code="error", retriable=True))


async def run_second_half(api: httpx.AsyncClient, other: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(other)
    for _ in range(2):
        await submit(api, priority="high", limits={"gpu": 1})
        good(await worker.complete(await worker.poll_one()))
    lease = good(await other.post(LEASES, json={"lease_seconds": 60}), 201)
    waiting = await submit(other, priority="high", limits={"gpu": 1})
    later = await submit(other, priority="low", delay_seconds=60)
    for task in (waiting, later):
        good(await api.delete(f"{TASKS}/{task['task_id']}"))
    assert (await other.delete(f"{LEASES}/{lease['lease_id']}")).status_code in (200, 204)
