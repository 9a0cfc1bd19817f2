"""What time does to tasks and workers, over HTTP: they rise, fall silent, and take too long."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import TASKS, HttpWorker, good, refused, submit, task
from tests.waiting import wait_until

#: A fraction of the default, but longer than a busy machine hangs.
LOW_TO_MEDIUM, MEDIUM_TO_HIGH = 3.0, 4.0
HEARTBEAT, MISSED = 1.0, 3


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {
        "PROMOTE_LOW_TO_MEDIUM_AFTER": str(LOW_TO_MEDIUM),
        "PROMOTE_MEDIUM_TO_HIGH_AFTER": str(MEDIUM_TO_HIGH),
        "FAIRLEAD_WORKER__HEARTBEAT_SECONDS": str(HEARTBEAT),
        "FAIRLEAD_WORKER__MISSED_HEARTBEATS": str(MISSED),
        "FAIRLEAD_LEASE__GRACE_SECONDS": "0.2",
        "FAIRLEAD_RETRY__BASE_SECONDS": "0.05",
    }


async def explained(api: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
    return good(await api.get(f"{TASKS}/{task_id}/explain"))


async def test_low_rises_step_by_step_while_it_waits(api: httpx.AsyncClient) -> None:
    given = await submit(api, priority="low")
    seen: list[str] = []

    async def has_risen() -> bool:
        word = (await explained(api, given["task_id"]))["effective_priority"]
        if word not in seen:
            seen.append(word)
        return bool(word == "high")

    await wait_until(has_risen)
    assert seen == ["low", "medium", "high"]
    assert (await task(api, given["task_id"]))["priority"] == "low"


async def test_the_instant_of_the_next_step_is_reported_exactly(api: httpx.AsyncClient, store: Store) -> None:
    given = await submit(api, priority="medium")
    explanation = await store.explain(given["task_id"])
    known = await store.get(given["task_id"])
    assert explanation.promotes_at is not None
    assert explanation.promotes_at - known.created_at == MEDIUM_TO_HIGH * 1000


async def test_a_worker_that_misses_three_heartbeats_is_dead_and_its_task_runs_elsewhere(
    api: httpx.AsyncClient,
) -> None:
    silent, other = [await HttpWorker.register(api) for _ in range(2)]
    assert silent.registered["heartbeat_seconds"] == HEARTBEAT
    given = await submit(api)
    polled = await silent.poll_one()

    async def is_dead() -> bool:
        await other.heartbeat()
        workers = good(await api.get("/api/v1/workers"))["workers"]
        states = {one["worker_id"]: one["status"] for one in workers}
        assert states[other.id] == "active"
        return states.get(silent.id) in ("dead", None)

    await wait_until(is_dead)
    again: list[dict[str, Any]] = []

    async def runs_elsewhere() -> bool:
        again.extend(await other.poll(1))
        return bool(again)

    await wait_until(runs_elsewhere)
    assert (again[0]["task_id"], again[0]["fence"] > polled["fence"]) == (given["task_id"], True)
    refused(await silent.complete(polled), 409, "fenced")
    seen = await task(api, given["task_id"])
    assert (seen["assigned_worker_id"], seen["crash_count"], seen["retry_count"]) == (other.id, 1, 0)


async def test_a_timeout_is_a_retry_with_half_as_much_time_again(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api)
    given = await submit(api, priority="high", timeout_seconds=0.4, max_retries=2)
    waited = []
    for _ in range(3):
        polled: list[dict[str, Any]] = []

        async def is_polled(found: list[dict[str, Any]] = polled) -> bool:
            await worker.heartbeat()  # it lives, and does not end the task
            found.extend(await worker.poll(1))
            return bool(found)

        await wait_until(is_polled)
        waited.append(polled[0]["timeout_seconds"])
    assert waited == [0.4, 0.6, 0.9]

    async def is_dead_letter() -> bool:
        await worker.heartbeat()
        return bool((await task(api, given["task_id"]))["status"] == "dead_letter")

    await wait_until(is_dead_letter)
    seen = await task(api, given["task_id"])
    assert (seen["retry_count"], seen["crash_count"], seen["error"]["code"]) == (2, 0, "timeout")
