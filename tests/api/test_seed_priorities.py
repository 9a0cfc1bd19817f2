"""Priorities, ageing, capabilities and dead letters, by the numbers, over HTTP."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.requests import TASKS, HttpWorker, good, ids, submit, task
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, new


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_RETRY__BASE_SECONDS": "0.05", "FAIRLEAD_PRIORITIES__LOW__MAX_RETRIES": "2"}


class TestAgeing:
    @pytest.fixture
    async def store(self, open_store: Any, clock: Clock) -> Store:
        """With the default settings, and a clock that only moves on request."""
        made: Store = open_store(clock=clock)
        await made.open()
        return made

    async def test_low_is_medium_at_exactly_600_s_and_medium_high_at_exactly_1200_s(
        self, store: Store, clock: Clock
    ) -> None:
        low, medium = new(priority="low"), new(priority="medium")
        await store.submit(low, medium)

        async def words() -> tuple[str, ...]:
            seen = [await store.get(one.task_id) for one in (low, medium)]
            return tuple(one.effective_priority.word for one in seen)

        for at_ms, expected in (
            (0, ("low", "medium")),
            (599_999, ("low", "medium")),
            (600_000, ("medium", "medium")),
            (1_199_999, ("medium", "medium")),
            (1_200_000, ("medium", "high")),
            (1_799_999, ("medium", "high")),
            (1_800_000, ("high", "high")),  # nobody waits for more than half an hour
        ):
            clock.now = Clock().now + at_ms
            await store.promote()
            assert await words() == expected, at_ms

    @pytest.mark.parametrize(("waited_ms", "place"), [(599_999, "2n"), (600_000, "1p"), (1_800_000, "0p")])
    async def test_a_claim_at_that_instant_needs_no_promoter(
        self, store: Store, clock: Clock, waited_ms: int, place: str
    ) -> None:
        low = new(priority="low")
        await store.submit(low)
        clock.pass_ms(waited_ms)
        await store.workers.register("w")
        assert (await claim_one(store)).task_id == low.task_id
        assert (await events(store, low.task_id))[-1]["detail"]["place"] == place


async def test_within_a_priority_it_is_first_come_first_served(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, capacity=300)
    tasks = [{"task_type": "echo", "priority": priority} for priority in ("low", "high", "medium") * 50]
    batch = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
    single = [await submit(api, priority=one["priority"]) for one in tasks[:30]]
    given: dict[str, list[str]] = {"high": [], "medium": [], "low": []}
    for sent, one in zip(tasks + tasks[:30], batch + single, strict=True):
        given[sent["priority"]].append(one["task_id"])
    polled: list[str] = []
    while some := await worker.poll(7):
        polled += ids(some)
    assert polled == given["high"] + given["medium"] + given["low"]


async def test_a_thousand_tasks_for_other_workers_block_nothing(api: httpx.AsyncClient) -> None:
    others = [{"task_type": "draw", "priority": "high", "required_capabilities": ["gpu"]}] * 1000
    good(await api.post(f"{TASKS}/batch", json={"tasks": others}), 201)
    mine = await submit(api, priority="low")
    worker = await HttpWorker.register(api, capabilities=["cpu"])
    assert ids(await worker.poll(5)) == [mine["task_id"]]  # by the first poll, without waiting
    assert await worker.poll(5) == []
    able = await HttpWorker.register(api, capabilities=["cpu", "gpu"], capacity=10)
    assert len(await able.poll(10)) == 10


async def test_after_the_configured_retries_it_is_a_dead_letter_and_a_replay_starts_over(
    api: httpx.AsyncClient,
) -> None:
    worker = await HttpWorker.register(api)
    given = await submit(api, priority="low")  # two retries, as the settings say
    for attempt in (1, 2, 3):
        (polled,) = await worker.poll(1, wait_seconds=20)
        assert polled["attempt"] == attempt
        good(await worker.fail(polled, message="no", retriable=True))
    seen = await task(api, given["task_id"])
    assert (seen["status"], seen["retry_count"]) == ("dead_letter", 2)
    assert ids(good(await api.get("/api/v1/dlq"))["tasks"]) == [given["task_id"]]
    good(await api.post(f"/api/v1/dlq/{given['task_id']}/replay"))
    (polled,) = await worker.poll(1, wait_seconds=20)
    assert (polled["task_id"], (await task(api, given["task_id"]))["retry_count"]) == (given["task_id"], 0)
    good(await worker.complete(polled))
    assert good(await api.get("/api/v1/dlq"))["tasks"] == []
