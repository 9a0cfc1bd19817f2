"""Jobs that failed through no fault of their steps go on where they were."""

import pytest

from fairlead import errors
from fairlead.model.job import JobStatus
from fairlead.settings import Slots, TaskSettings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, complete, fail, job, later
from tests.store.namespace import claim_one


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def test_a_job_that_nobody_started_in_time_can_be_resumed(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job(max_wait_seconds=10))
    await complete(store, await claim_one(store), "kept")
    clock.pass_seconds(11)
    await store.promote()
    failed = await store.jobs.get(submitted.job_id)
    assert failed.error and (failed.error.code, failed.error.retryable) == ("RESOURCE_EXHAUSTED", True)
    assert failed.error.step == 1

    assert await store.jobs.resume(submitted.job_id) == []
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.RUNNING
    second = await claim_one(store)
    assert second.parameters["context"]["step_0_enhance"]["data"] == "kept"
    await complete(store, second)
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.COMPLETED


async def test_a_resumed_job_is_as_patient_as_it_was_at_first(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job(max_wait_seconds=10))
    for _ in range(2):
        clock.pass_seconds(9)
        await store.promote()
        assert (await store.jobs.get(submitted.job_id)).status is JobStatus.PENDING
        clock.pass_seconds(1)
        await store.promote()
        failed = await store.jobs.get(submitted.job_id)
        assert failed.error and failed.error.code == "RESOURCE_EXHAUSTED"
        await store.jobs.resume(submitted.job_id)
    await claim_one(store)


async def test_a_resumed_step_keeps_the_attempts_it_has_used(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job())
    await fail(store, await claim_one(store), retriable=True)
    await later(store, clock, 300)
    for _ in range(3):
        await claim_one(store)
        await store.expire("w")
        await store.workers.register("w", capacity=10)
    failed = await store.jobs.get(submitted.job_id)
    assert failed.error and (failed.error.code, failed.error.retryable) == ("worker_lost", True)
    await store.jobs.resume(submitted.job_id)
    again = await claim_one(store)
    assert (again.retry_count, again.crash_count, again.attempt) == (1, 3, 5)
    assert (await store.jobs.get(submitted.job_id)).context == {"step_0_enhance__attempts": 5}


async def test_what_is_done_of_a_stage_is_not_done_again(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job((ENHANCE, CHAT), max_wait_seconds=10))
    await complete(store, await claim_one(store), "done")
    clock.pass_seconds(11)
    await store.promote()
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.FAILED
    assert await store.jobs.resume(submitted.job_id) == ["step_0_enhance"]
    assert (await claim_one(store)).task_type == "chat"
    assert not (await store.claim("w")).tasks


async def test_a_resumed_job_is_pending_only_if_no_step_of_it_has_started(store: Store, clock: Clock) -> None:
    await store.limits.set("enhance", Slots(limit=0))
    await store.declare("code", {"enhance": TaskSettings(limits={"enhance": 1})}, {})
    submitted = await store.jobs.submit(job((ENHANCE, CHAT), max_wait_seconds=10))
    await complete(store, await claim_one(store), "done")
    clock.pass_seconds(11)
    await store.promote()
    await store.jobs.resume(submitted.job_id)
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.RUNNING


async def test_a_limit_that_is_gone_leaves_the_job_resumable(store: Store) -> None:
    """Limits cannot be deleted, but a type may come to need one that has too few units."""
    await store.limits.set("gpu", Slots(limit=1))
    submitted = await store.jobs.submit(job())
    task = await claim_one(store)
    await store.limits.set("gpu", Slots(limit=5))
    await store.declare("code", {"chat": TaskSettings(limits={"gpu": 5})}, {})
    await store.limits.set("gpu", Slots(limit=1))
    await complete(store, task, "kept")
    failed = await store.jobs.get(submitted.job_id)
    assert failed.error and (failed.error.code, failed.error.retryable) == ("too_many_units", True)
    with pytest.raises(errors.InvalidInput, match="gpu"):
        await store.jobs.resume(submitted.job_id)
    await store.limits.set("gpu", Slots(limit=5))
    await store.jobs.resume(submitted.job_id)
    assert (await claim_one(store)).parameters["context"]["step_0_enhance"]["data"] == "kept"
