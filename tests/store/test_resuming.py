"""Failed jobs resume where they were: with all results, and all attempts of the step that failed."""

import itertools

import pytest

from fairlead import errors
from fairlead.model.job import JobStatus
from fairlead.model.reports import Failed
from fairlead.model.states import State
from fairlead.settings import Slots, TaskSettings
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, IMAGE, complete, fail, job, later
from tests.store.namespace import claim_one, raw


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def test_a_job_that_was_not_started_in_time_can_be_resumed(store: Store, clock: Clock) -> None:
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


async def test_a_resumed_job_has_its_full_maximum_wait_again(store: Store, clock: Clock) -> None:
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


async def use_up_attempts(store: Store, clock: Clock) -> int:
    """By retriable errors, as in an outage; how many there were."""
    for attempt in itertools.count(1):
        task = await claim_one(store)
        assert task.attempt == attempt
        state = await fail(store, task, retriable=True)
        if state is State.DEAD_LETTER:
            return attempt
        await later(store, clock, 300)
    raise AssertionError


async def test_after_an_outage_a_job_continues_at_its_step_with_all_attempts(
    store: Store, clock: Clock
) -> None:
    submitted = await store.jobs.submit(job())
    await complete(store, await claim_one(store), "kept")
    attempts = await use_up_attempts(store, clock)
    failed = await store.jobs.get(submitted.job_id)
    assert failed.error and (failed.error.code, failed.error.retryable, failed.error.step) == (
        "oops",
        True,
        1,
    )
    assert failed.context["step_1_chat__attempts"] == attempts
    assert [task.task_id for task in (await store.dead_letters.page(10)).tasks] == [failed.steps[1].task_id]

    await store.jobs.resume(submitted.job_id)
    assert not (await store.dead_letters.page(10)).tasks
    assert await use_up_attempts(store, clock) == attempts
    await store.jobs.resume(submitted.job_id)
    again = await claim_one(store)
    assert again.parameters["context"]["step_0_enhance"]["data"] == "kept"
    await complete(store, again)
    done = await store.jobs.get(submitted.job_id)
    assert (done.status, done.error, done.context["step_1_chat__attempts"]) == (JobStatus.COMPLETED, None, 1)


async def test_after_a_permanent_error_a_job_is_resumed_by_force_only(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job())
    await complete(store, await claim_one(store), "kept")
    await fail(store, await claim_one(store), retriable=True)
    await later(store, clock, 300)
    await fail(store, await claim_one(store))
    refusal = rf"step 1 failed for good \(oops: it broke\).*`fairlead job resume --force {submitted.job_id}`"
    with pytest.raises(errors.NotResumable, match=refusal):
        await store.jobs.resume(submitted.job_id)
    assert await store.jobs.resume(submitted.job_id, force=True) == []
    assert not (await store.dead_letters.page(10)).tasks
    again = await claim_one(store)
    assert (again.attempt, again.parameters["context"]["step_0_enhance"]["data"]) == (1, "kept")
    await complete(store, again)
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.COMPLETED


async def test_force_resumes_nothing_but_a_failed_job(store: Store) -> None:
    submitted = await store.jobs.submit(job())
    with pytest.raises(errors.NotResumable, match="PENDING: only a failed one"):
        await store.jobs.resume(submitted.job_id, force=True)
    await store.jobs.cancel(submitted.job_id)
    with pytest.raises(errors.NotResumable, match="CANCELLED: only a failed one"):
        await store.jobs.resume(submitted.job_id, force=True)


async def test_a_timeout_grows_to_three_times_what_it_was(store: Store, clock: Clock) -> None:
    await store.jobs.submit(job())
    factors = []
    for _ in range(5):
        task = await claim_one(store)
        factors.append(task.timeout_ms / 600_000)
        await store.fail("w", Failed(task.task_id, task.fence, "timeout", "too slow", retriable=True))
        await later(store, clock, 300)
    assert factors == [1, 1.5, 2.25, 3, 3]


async def test_a_resumed_step_has_its_first_timeout_again(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job())
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, "timeout", "too slow", retriable=True))
    await later(store, clock, 300)
    longer = await claim_one(store)
    assert longer.timeout_ms > task.timeout_ms
    await fail(store, longer)
    await store.jobs.resume(submitted.job_id, force=True)
    assert (await claim_one(store)).timeout_ms == task.timeout_ms


@pytest.mark.parametrize("retriable", [True, False])
async def test_the_replay_of_a_step_resumes_its_job(store: Store, clock: Clock, retriable: bool) -> None:
    submitted = await store.jobs.submit(job(ENHANCE, (CHAT, IMAGE), max_wait_seconds=10_000))
    await complete(store, await claim_one(store), "kept")
    steps = (await store.claim("w", 2)).tasks
    states = [await fail(store, step, retriable=retriable) for step in steps]
    while State.DELAYED in states:
        await later(store, clock, 300)
        steps = (await store.claim("w", 2)).tasks
        states = [await fail(store, step, retriable=retriable) for step in steps]
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.FAILED

    assert sorted(await store.replay(steps[1].task_id)) == sorted(step.task_id for step in steps)
    assert not (await store.dead_letters.page(10)).tasks
    resumed = await store.jobs.get(submitted.job_id)
    assert (resumed.status, resumed.error) == (JobStatus.RUNNING, None)
    with pytest.raises(errors.NotReplayable):
        await store.replay(steps[0].task_id)
    again = (await store.claim("w", 2)).tasks
    assert [task.attempt for task in again] == [1, 1]
    for task in again:
        await complete(store, task)
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.COMPLETED


async def test_a_step_of_a_job_that_has_not_failed_is_not_replayed(store: Store) -> None:
    submitted = await store.jobs.submit(job((ENHANCE, CHAT)))
    one, other = (await store.claim("w", 2)).tasks
    await fail(store, one)
    running = f"step of job {submitted.job_id}, which is RUNNING: replay it when the job has failed"
    with pytest.raises(errors.StepOfJob, match=running):
        await store.replay(one.task_id)
    await store.cancel(other.task_id)
    with pytest.raises(errors.StepOfJob, match="which is CANCELLED: submit a new job"):
        await store.replay(one.task_id)
    await raw(store).delete(store.connection.keys.key("job", submitted.job_id))
    with pytest.raises(errors.StepOfJob, match="whose record is gone: submit a new job"):
        await store.replay(one.task_id)


async def test_lost_workers_are_not_counted_again_after_a_resume(store: Store, clock: Clock) -> None:
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
    assert (again.retry_count, again.crash_count, again.attempt) == (0, 0, 1)
    assert (await store.jobs.get(submitted.job_id)).context == {"step_0_enhance__attempts": 1}


async def test_completed_steps_of_a_stage_are_not_run_again(store: Store, clock: Clock) -> None:
    submitted = await store.jobs.submit(job((ENHANCE, CHAT), max_wait_seconds=10))
    await complete(store, await claim_one(store), "done")
    clock.pass_seconds(11)
    await store.promote()
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.FAILED
    assert await store.jobs.resume(submitted.job_id) == ["step_0_enhance"]
    assert (await claim_one(store)).task_type == "chat"
    assert not (await store.claim("w")).tasks


async def test_a_resumed_job_is_pending_only_if_none_of_its_steps_has_started(
    store: Store, clock: Clock
) -> None:
    await store.limits.set("enhance", Slots(limit=0))
    await store.declare("code", {"enhance": TaskSettings(limits={"enhance": 1})}, {})
    submitted = await store.jobs.submit(job((ENHANCE, CHAT), max_wait_seconds=10))
    await complete(store, await claim_one(store), "done")
    clock.pass_seconds(11)
    await store.promote()
    await store.jobs.resume(submitted.job_id)
    assert (await store.jobs.get(submitted.job_id)).status is JobStatus.RUNNING


async def test_a_limit_that_is_gone_leaves_the_job_resumable(store: Store) -> None:
    """Limits cannot be deleted, but a type may later need one that has too few units."""
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
