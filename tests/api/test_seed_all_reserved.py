"""`GET /task` with HIGH_PRIORITY_RESERVED = MAX_CONCURRENT_TASKS: the instance runs only `high`."""

from collections.abc import Mapping

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import HttpWorker, good


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"MAX_CONCURRENT_TASKS": "2", "HIGH_PRIORITY_RESERVED": "2"}


async def test_only_high_runs(api: httpx.AsyncClient, store: Store) -> None:
    worker = HttpWorker(api, good(await api.post("/internal/workers/register", json={}), 201))
    (known,) = (await store.workers.page()).workers
    assert (known.capacity, known.reserve) == (2, 2)
    for priority in ("low", "low", "high", "high", "high"):
        good(await api.get("/task", params={"priority": priority}))
    assert [one["priority"] for one in await worker.poll(2)] == ["high", "high"]


async def test_a_worker_with_another_capacity_keeps_a_slot_for_the_others(
    api: httpx.AsyncClient, store: Store
) -> None:
    good(await api.post("/internal/workers/register", json={"capacity": 1}), 201)
    (known,) = (await store.workers.page()).workers
    assert (known.capacity, known.reserve) == (1, 0)
