"""A job knows the state, times, wait and attempts of each step, also when the task is forgotten."""

import pytest

from fairlead.model.job import PENDING, JobStatus, JobStep
from fairlead.model.reports import Grant
from fairlead.model.states import State
from fairlead.settings import RetrySettings, Settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.job_steps import CHAT, ENHANCE, IMAGE, complete, fail, job, later
from tests.store.namespace import claim_one, raw


@pytest.fixture
def settings() -> Settings:
    return Settings(retry=RetrySettings(base_seconds=10, max_seconds=10))


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def step(store: Store, job_id: str, index: int = 0) -> JobStep:
    return (await store.jobs.get(job_id)).steps[index]


def facts(step: JobStep) -> tuple[object, ...]:
    return step.status, step.queued_at, step.started_at, step.completed_at, step.waited_seconds, step.attempts


async def test_a_step_is_pending_then_queued_then_runs_then_is_completed(store: Store, clock: Clock) -> None:
    began = clock.now
    job_id = (await store.jobs.submit(job())).job_id
    assert facts(await step(store, job_id)) == (State.QUEUED, began, None, None, 0, 0)
    assert facts(await step(store, job_id, 1)) == (PENDING, None, None, None, None, 0)
    await later(store, clock, 3)
    assert (await step(store, job_id)).waited_seconds == 3
    task = await claim_one(store)
    started = clock.now
    await later(store, clock, 2)
    assert facts(await step(store, job_id)) == (State.EXECUTING, began, started, None, 3, 1)
    await complete(store, task)
    ended = clock.now
    await later(store, clock, 1)
    assert facts(await step(store, job_id)) == (State.COMPLETED, began, started, ended, 3, 1)
    assert facts(await step(store, job_id, 1)) == (State.QUEUED, ended, None, None, 1, 0)


async def test_the_task_of_a_later_step_has_waited_since_the_step_before_it(
    store: Store, clock: Clock
) -> None:
    job_id = (await store.jobs.submit(job())).job_id
    first = await claim_one(store)
    await later(store, clock, 60)
    await complete(store, first)
    await later(store, clock, 2)
    await claim_one(store)
    assert (await store.get((await step(store, job_id, 1)).task_id)).waited_seconds == 2


async def test_the_waits_of_all_attempts_are_added_with_the_delays_between_them(
    store: Store, clock: Clock
) -> None:
    job_id = (await store.jobs.submit(job())).job_id
    await later(store, clock, 3)
    await fail(store, await claim_one(store), retriable=True)
    failed = clock.now
    await later(store, clock, 2)
    assert facts(await step(store, job_id))[:1] == (State.DELAYED,)
    assert (await step(store, job_id)).waited_seconds == 5
    task = await store.get((await step(store, job_id)).task_id)
    assert task.run_at is not None
    clock.now = task.run_at
    await later(store, clock, 4)
    await claim_one(store)
    again = await step(store, job_id)
    assert (again.status, again.attempts, again.started_at) == (State.EXECUTING, 2, clock.now)
    assert again.waited_seconds == (3_000 + clock.now - failed) / 1000


async def test_a_step_that_is_given_back_waits_again(store: Store, clock: Clock) -> None:
    job_id = (await store.jobs.submit(job())).job_id
    task = await claim_one(store)
    await later(store, clock, 5)
    await store.release("w", Grant(task.task_id, task.fence))
    await later(store, clock, 1)
    given_back = await step(store, job_id)
    assert (given_back.status, given_back.waited_seconds, given_back.completed_at) == (State.QUEUED, 1, None)


async def test_a_job_knows_its_steps_after_their_records_have_expired(store: Store, clock: Clock) -> None:
    job_id = (await store.jobs.submit(job(ENHANCE, CHAT))).job_id
    await complete(store, await claim_one(store))
    before = facts(await step(store, job_id))
    await raw(store).unlink(store.connection.keys.key("task", (await step(store, job_id)).task_id))
    await later(store, clock, 60)
    assert facts(await step(store, job_id)) == before
    assert before[0] is not None and before[0] == State.COMPLETED


async def test_a_cancelled_job_has_ended_its_steps_and_leaves_the_others_pending(
    store: Store, clock: Clock
) -> None:
    job_id = (await store.jobs.submit(job((ENHANCE, CHAT), IMAGE))).job_id
    running = await claim_one(store)
    await later(store, clock, 2)
    await store.jobs.cancel(job_id)
    ended = await store.jobs.get(job_id)
    assert [one.status for one in ended.steps] == [State.CANCELLED, State.CANCELLED, PENDING]
    assert [one.completed_at for one in ended.steps] == [clock.now, clock.now, None]
    assert [one.waited_seconds for one in ended.steps] == [0, 2, None]
    await store.release("w", Grant(running.task_id, running.fence))


async def test_a_resumed_step_begins_to_wait_again(store: Store, clock: Clock) -> None:
    job_id = (await store.jobs.submit(job(max_wait_seconds=5))).job_id
    await later(store, clock, 6)
    await store.promote()
    failed = await store.jobs.get(job_id)
    assert (failed.status, failed.steps[0].status) == (JobStatus.FAILED, State.FAILED)
    assert (failed.steps[0].waited_seconds, failed.steps[0].completed_at) == (6, clock.now)
    await later(store, clock, 10)
    await store.jobs.resume(job_id)
    resumed = clock.now
    await later(store, clock, 1)
    assert facts(await step(store, job_id)) == (State.QUEUED, resumed, None, None, 1, 0)


async def test_the_steps_of_an_older_version_are_known_once_the_namespace_is_opened(
    store: Store, clock: Clock
) -> None:
    began = clock.now
    job_id = (await store.jobs.submit(job((ENHANCE, CHAT), IMAGE))).job_id
    await later(store, clock, 1)
    first = await claim_one(store)
    await later(store, clock, 1)
    await complete(store, first)
    await later(store, clock, 1)
    before = [facts(one) for one in (await store.jobs.get(job_id)).steps]
    assert [one[0] for one in before] == [State.COMPLETED, State.QUEUED, PENDING]
    await raw(store).hdel(store.connection.keys.key("job", job_id), "step:0", "step:1")
    kept_less = [facts(one) for one in (await store.jobs.get(job_id)).steps]
    assert [one[:2] for one in kept_less] == [(State.COMPLETED, None), (PENDING, None), (PENDING, None)]
    await raw(store).hset(store.connection.keys.meta, "schema", 4)
    await store.open()
    assert [facts(one) for one in (await store.jobs.get(job_id)).steps] == before
    assert before[1][:2] == (State.QUEUED, began)
    await claim_one(store)
    assert facts(await step(store, job_id, 1)) == (State.EXECUTING, began, clock.now, None, 3, 1)


async def test_the_doctor_says_when_a_job_has_another_state_of_a_step(store: Store, clock: Clock) -> None:
    job_id = (await store.jobs.submit(job())).job_id
    key = store.connection.keys.key("job", job_id)
    right = await raw(store).hget(key, "step:0")
    for wrong in (right.replace(b"queued", b"failed"), b"\xc1", b"\x80"):
        await raw(store).hset(key, "step:0", wrong)
        breaches = await examine(store.connection, now_ms=clock.now)
        assert [breach.invariant for breach in breaches] == ["J3"]
    await raw(store).hset(key, "step:0", right)


# Explaining


async def test_the_current_steps_of_a_job_are_explained(store: Store) -> None:
    job_id = (await store.jobs.submit(job(ENHANCE, (CHAT, IMAGE)))).job_id
    explained = await store.jobs.explain(job_id)
    assert (explained.job_id, explained.status) == (job_id, JobStatus.PENDING)
    assert explained.sentence == "enhance: It is next."
    await complete(store, await claim_one(store))
    chat, _ = (await store.claim("w", 2)).tasks
    executing = (await store.jobs.explain(job_id)).sentences
    assert [sentence.partition(";")[0] for sentence in executing] == [
        "chat: It is executing",
        "image: It is executing",
    ]
    await complete(store, chat)
    explained = await store.jobs.explain(job_id)
    assert [(one.step, one.name) for one in explained.steps] == [(2, "image")]


async def test_of_a_job_that_has_ended_it_is_said_how(store: Store) -> None:
    ids = [(await store.jobs.submit(job(ENHANCE))).job_id for _ in range(3)]
    await fail(store, await claim_one(store))
    await complete(store, await claim_one(store))
    await store.jobs.cancel(ids[2])
    assert [(await store.jobs.explain(job_id)).sentence for job_id in ids] == [
        "It failed at step 0 (oops): it broke",
        "It is COMPLETED.",
        "It is CANCELLED.",
    ]
