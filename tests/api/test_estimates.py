"""Estimates of waiting times in answers and live messages, and what is refused because of them."""

from collections.abc import Mapping
from typing import Any

import httpx
import pytest

from fairlead.clock import now_ms
from fairlead.model.job import NewJob, NewStep
from fairlead.model.task import NewTask
from fairlead.settings import Slots
from fairlead.store.store import Store
from fairlead.times import read_time
from tests.api.listening import claim, numbers, receive, socket, stream, types
from tests.api.requests import TASKS, good, refused, submit, task
from tests.api.serving import Gateway
from tests.store.forecasting import flat, forecast


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {"FAIRLEAD_ADMISSION__MAX_WAIT_SECONDS__HIGH": "50", "FAIRLEAD_ESTIMATES__ENABLED": "true"}


async def expect(store: Store, p50: int, p90: int) -> None:
    """What a task of any priority waits now, in ms."""
    await forecast(store, now_ms(), {place: flat(p50, p90) for place in ("0n", "1n", "2n")})


@pytest.fixture
async def busy(store: Store) -> Store:
    """Its only worker is busy: a new task waits 60 s by p50, and 90 s by p90."""
    await store.submit_one(NewTask(task_type="echo"))
    await claim(store)
    await store.workers.register("w", capacity=1)
    await expect(store, 60_000, 90_000)
    return store


def check(estimate: dict[str, Any], p50: float = 60, p90: float = 90) -> None:
    """It was made within the last seconds."""
    assert p50 - 20 < estimate["p50_seconds"] <= p50
    assert estimate["p90_seconds"] - estimate["p50_seconds"] == pytest.approx(p90 - p50)
    assert abs(read_time("at", estimate["at"]) - now_ms()) < 20_000


async def test_every_answer_about_a_waiting_task_has_its_estimate(
    busy: Store, api: httpx.AsyncClient
) -> None:
    submitted = await submit(api, user_id="ann")
    check(submitted["estimate"])
    batch = {"tasks": [{"task_type": "echo"}]}
    (in_batch,) = good(await api.post(f"{TASKS}/batch", json=batch), 201)["tasks"]
    check(in_batch["estimate"])
    found = await task(api, submitted["task_id"])
    check(found["estimate"])
    assert found["estimate_given"] == submitted["estimate"]
    check(good(await api.get(f"{TASKS}/{submitted['task_id']}/explain"))["estimate"])
    listed = good(await api.get(TASKS))["tasks"]
    assert [one["status"] for one in listed] == ["queued", "queued", "executing"]
    check(listed[0]["estimate"])
    check(listed[1]["estimate"])
    assert listed[2]["estimate"] is None


async def test_a_repeated_submit_is_answered_with_the_estimate_of_now(
    busy: Store, api: httpx.AsyncClient
) -> None:
    first = await submit(api, idempotency_key="k")
    await expect(busy, 30_000, 40_000)
    again = good(await api.post(TASKS, json={"task_type": "echo", "idempotency_key": "k"}))
    assert again["task_id"] == first["task_id"]
    check(again["estimate"], 30, 40)


async def test_what_would_wait_too_long_is_refused_with_an_honest_retry_after(
    busy: Store, api: httpx.AsyncClient
) -> None:
    answer = await api.post(TASKS, json={"task_type": "echo", "priority": "high"})
    problem = refused(answer, 429, "wait_too_long")
    check(problem["estimate"])
    left = problem["estimate"]["p50_seconds"] - 50
    assert problem["retry_after_seconds"] == pytest.approx(left)
    assert left <= int(answer.headers["retry-after"]) < left + 1
    assert len(good(await api.get(TASKS))["tasks"]) == 1, "it left nothing behind"
    batch = {"tasks": [{"task_type": "echo", "priority": word} for word in ("high", "low")]}
    high, low = good(await api.post(f"{TASKS}/batch", json=batch), 201)["tasks"]
    assert (high["error"]["code"], low["status"]) == ("wait_too_long", "queued")


async def test_a_deadline_is_refused_when_it_is_unlikely_to_be_met(
    busy: Store, api: httpx.AsyncClient
) -> None:
    answer = await api.post(TASKS, json={"task_type": "echo", "deadline_seconds": 20})
    check(refused(answer, 409, "deadline_unlikely")["estimate"])
    accepted = await submit(api, deadline_seconds=80)
    assert (await task(api, accepted["task_id"]))["max_wait_seconds"] == 80


async def test_watchers_first_get_the_estimate_and_then_whenever_it_moves(
    gateway: Gateway, busy: Store
) -> None:
    task_id = (await busy.submit_one(NewTask(task_type="echo"))).task_id
    async with (
        socket(gateway, f"/ws/{task_id}") as opened,
        stream(gateway, task_id, estimates=True) as events,
    ):
        received = [await receive(opened, 2, estimates=True), [await anext(events), await anext(events)]]
        await expect(busy, 20_000, 30_000)
        received[0] += await receive(opened, estimates=True)
        received[1].append(await anext(events))
        await busy.cancel(task_id)
        received[0] += await receive(opened, estimates=True)
        received[1].append(await anext(events))
    for messages in received:
        assert types(messages) == ["QUEUED", "ESTIMATE", "ESTIMATE", "CANCELLED"]
        assert numbers(messages) == [1, 1, 1, 2], "an estimate is no event of the task"
        check(messages[1]["estimate"])
        check(messages[2]["estimate"], 20, 30)
        assert messages[1]["at"] == messages[1]["estimate"]["at"]


async def test_watchers_of_a_job_get_the_estimates_of_its_steps(gateway: Gateway, busy: Store) -> None:
    job = NewJob(feature_name="story", stages=[[NewStep("one", "echo")], [NewStep("two", "echo")]])
    job_id = (await busy.jobs.submit(job)).job_id
    async with socket(gateway, f"/ws/{job_id}") as opened:
        _, first = await receive(opened, 2, estimates=True)
        await expect(busy, 20_000, 30_000)
        (moved,) = await receive(opened, estimates=True)
    check(first["estimate"])
    check(moved["estimate"], 20, 30)
    facts = {"type": "ESTIMATE", "job_id": job_id, "step_index": 0, "service_name": "one", "total_steps": 2}
    for message in (first, moved):
        assert facts.items() <= message.items()


async def test_a_started_task_says_why_it_was_chosen(busy: Store, api: httpx.AsyncClient) -> None:
    (started,) = good(await api.get(TASKS))["tasks"]
    explained = good(await api.get(f"{TASKS}/{started['task_id']}/explain"))
    chosen = explained["chosen_because"]
    assert (chosen["worker_id"], chosen["effective_priority"], chosen["promoted"]) == ("w", "medium", False)
    assert (chosen["better_waiting"], chosen["skipped_for"]) == ({}, [])
    assert explained["sentence"].startswith("It is executing; it started on w at ")


async def test_the_holders_of_a_limit_are_named(api: httpx.AsyncClient, store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    holder = await submit(api, limits={"gpu": 1}, timeout_seconds=100)
    await claim(store)
    waiting = await submit(api, limits={"gpu": 1})
    (blocker,) = good(await api.get(f"{TASKS}/{waiting['task_id']}/explain"))["blocked_by"]
    (held,) = blocker["holders"]
    assert (held["task_id"], held["worker"], held["foreign"]) == (holder["task_id"], "w", False)
    assert held["since"] < held["expires_at"] < held["ends_at"] == blocker["free_at"]
    assert 60 < blocker["next_free_seconds"] <= 100
    assert blocker["by_deadline"]
