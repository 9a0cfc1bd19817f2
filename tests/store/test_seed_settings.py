"""Settings by the names that other gateways use: a task is promoted and a worker reserved as they say."""

from pathlib import Path

import pytest

from fairlead.model.job import JobStatus, NewStep
from fairlead.model.priority import Priority
from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import ENHANCE, complete, job, later
from tests.store.namespace import claim_one, new

FILE = """
[services.enhance]
url = "http://enhance/"
wait_seconds = 120
[services.chat]
url = "http://chat/"
"""
MINUTE = 60
STEP, OTHER = NewStep("enhance", "service:enhance"), NewStep("chat", "service:chat")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    file = tmp_path / "some.toml"
    file.write_text(FILE)
    env = {"PROMOTE_LOW_TO_MEDIUM_AFTER": "1800", "PROMOTE_MEDIUM_TO_HIGH_AFTER": "3600"}
    return load_settings(file, env)


async def priority_of(store: Store, task_id: str) -> Priority:
    await store.promote()
    return (await store.get(task_id)).effective_priority


async def test_a_low_task_is_medium_after_30_minutes_and_high_60_minutes_after_the_submit(
    store: Store, clock: Clock
) -> None:
    low, medium = await store.submit_one(new(priority="low")), await store.submit_one(new(priority="medium"))
    seen = []
    for _ in range(7):
        seen.append([(await priority_of(store, one.task_id)).word for one in (low, medium)])
        clock.pass_seconds(10 * MINUTE)
    assert seen == [
        *[["low", "medium"]] * 3,
        *[["medium", "medium"]] * 3,
        ["high", "high"],
    ]


async def test_a_low_task_never_becomes_high_if_medium_ones_do_not(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "settings", load_settings(None, {"PROMOTE_MEDIUM_TO_HIGH_AFTER": "0"}))
    await store.open()
    low = await store.submit_one(new(priority="low"))
    clock.pass_seconds(24 * 60 * MINUTE)
    assert (await priority_of(store, low.task_id)).word == "medium"


async def test_a_worker_whose_whole_capacity_is_reserved_runs_only_high(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=2, reserve=2)
    tasks = [new(priority=priority) for priority in ("low", "medium", "high", "high", "high")]
    await store.submit(*tasks)
    claimed = (await store.claim("w", 5)).tasks
    assert [one.task_id for one in claimed] == [tasks[2].task_id, tasks[3].task_id]
    for task in claimed:
        await complete(store, task)
    clock.pass_seconds(61 * MINUTE)
    await store.workers.register("w", capacity=2, reserve=2)
    (last,) = (await store.claim("w", 5)).tasks  # those that became high by age stay in the queue
    assert last.task_id == tasks[4].task_id
    assert (await store.explain(tasks[0].task_id)).promoted


async def test_a_step_waits_for_its_service_at_most_as_long_as_the_service_says(
    store: Store, clock: Clock
) -> None:
    submitted = await store.jobs.submit(job(STEP))
    other = await store.jobs.submit(job(OTHER))
    longer = await store.jobs.submit(job(STEP, max_wait_seconds=500))
    clock.pass_seconds(119)
    await store.promote()
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.PENDING
    clock.pass_seconds(2)
    await store.promote()
    failed = await store.jobs.get(submitted.job_id)
    assert failed.error and (failed.error.code, failed.error.retryable) == ("RESOURCE_EXHAUSTED", True)
    for one in (other, longer):
        assert (await store.jobs.get(one.job_id)).status is JobStatus.PENDING


async def test_a_later_step_has_the_wait_of_its_own_service(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=10, task_types=["enhance"])
    submitted = await store.jobs.submit(job(ENHANCE, STEP))
    await later(store, clock, 1000)  # the first step is no service, and waits for as long as it takes
    await store.workers.register("w", capacity=10, task_types=["enhance"])
    await complete(store, await claim_one(store))
    clock.pass_seconds(121)
    await store.promote()
    failed = await store.jobs.get(submitted.job_id)
    assert failed.error and (failed.error.code, failed.error.step) == ("RESOURCE_EXHAUSTED", 1)
