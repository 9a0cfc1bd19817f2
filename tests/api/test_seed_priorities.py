"""Priorities, ageing, capabilities, lost workers, timeouts and dead letters, by the numbers, over HTTP."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.store.store import Store
from tests.api.asking import TASKS, HttpWorker, good, ids, refused, submit, task
from tests.conftest import Clock
from tests.store.looking import claim_one, events, new
from tests.waiting import wait_until

LOW_TO_MEDIUM, MEDIUM_TO_HIGH = 1.0, 2.0  # at a six-hundredth of what is usual
HEARTBEAT, MISSED = 0.4, 3


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {
        "PROMOTE_LOW_TO_MEDIUM_AFTER": str(LOW_TO_MEDIUM),
        "PROMOTE_MEDIUM_TO_HIGH_AFTER": str(MEDIUM_TO_HIGH),
        "FAIRLEAD_WORKER__HEARTBEAT_SECONDS": str(HEARTBEAT),
        "FAIRLEAD_WORKER__MISSED_HEARTBEATS": str(MISSED),
        "FAIRLEAD_LEASE__GRACE_SECONDS": "0.2",
        "FAIRLEAD_RETRY__BASE_SECONDS": "0.05",
        "FAIRLEAD_PRIORITIES__LOW__MAX_RETRIES": "2",
    }


async def explained(api: httpx.AsyncClient, task_id: str) -> dict[str, Any]:
    return good(await api.get(f"{TASKS}/{task_id}/explain"))


class TestAgeing:
    @pytest.fixture
    async def store(self, open_store: Any, clock: Clock) -> Store:
        """With the usual settings, and a clock that stands until it is moved."""
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
    async def test_a_claim_at_that_instant_needs_nobody_who_promotes(
        self, store: Store, clock: Clock, waited_ms: int, place: str
    ) -> None:
        low = new(priority="low")
        await store.submit(low)
        clock.pass_ms(waited_ms)
        await store.workers.register("w")
        assert (await claim_one(store)).task_id == low.task_id
        assert (await events(store, low.task_id))[-1]["detail"]["place"] == place


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


async def test_the_instant_of_the_next_step_is_told_exactly(api: httpx.AsyncClient, store: Store) -> None:
    given = await submit(api, priority="medium")
    explanation = await store.explain(given["task_id"])
    known = await store.get(given["task_id"])
    assert explanation.promotes_at is not None
    assert explanation.promotes_at - known.created_at == MEDIUM_TO_HIGH * 1000


async def test_within_a_priority_it_is_first_come_first_served(api: httpx.AsyncClient) -> None:
    worker = await HttpWorker.register(api, capacity=300)
    tasks = [{"task_type": "echo", "priority": priority} for priority in ("low", "high", "medium") * 50]
    batch = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
    single = [await submit(api, priority=one["priority"]) for one in tasks[:30]]
    given: dict[str, list[str]] = {"high": [], "medium": [], "low": []}
    for wish, one in zip(tasks + tasks[:30], batch + single, strict=True):
        given[wish["priority"]].append(one["task_id"])
    polled: list[str] = []
    while some := await worker.poll(7):
        polled += ids(some)
    assert polled == given["high"] + given["medium"] + given["low"]


async def test_a_thousand_tasks_for_others_do_not_stand_in_the_way(api: httpx.AsyncClient) -> None:
    others = [{"task_type": "draw", "priority": "high", "required_capabilities": ["gpu"]}] * 1000
    good(await api.post(f"{TASKS}/batch", json={"tasks": others}), 201)
    mine = await submit(api, priority="low")
    worker = await HttpWorker.register(api, capabilities=["cpu"])
    assert ids(await worker.poll(5)) == [mine["task_id"]]  # by the first poll, without waiting
    assert await worker.poll(5) == []
    able = await HttpWorker.register(api, capabilities=["cpu", "gpu"], capacity=10)
    assert len(await able.poll(10)) == 10


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


async def test_after_the_configured_retries_it_is_a_dead_letter_and_a_replay_starts_anew(
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
