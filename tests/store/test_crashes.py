"""The process that ran a task died: the crash is counted and the task retried at once, whoever notices it."""

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task, TaskError
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, events, everything, key_names, new, raw, run_for, woken


@pytest.fixture
async def running(store: Store) -> Task:
    await store.limits.set("gpu", Slots(limit=2))
    await store.workers.register("w", capacity=5)
    await store.submit_one(new(limits={"gpu": 1}, max_retries=0))
    return await claim_one(store)


def crash(task: Task, **facts: object) -> Failed:
    return Failed(task.task_id, task.fence, "oom", "killed by the system", crashed=True, **facts)  # type: ignore[arg-type]


# The process of the handler


async def test_a_crash_is_tried_again_at_once_and_uses_up_no_retry(store: Store, running: Task) -> None:
    assert await store.fail("w", crash(running)) == [State.QUEUED]
    task = await store.get(running.task_id)
    assert (task.crash_count, task.retry_count) == (1, 0)
    assert task.error == TaskError(code="oom", message="killed by the system", retriable=True)
    assert (await store.limits.get("gpu")).active == 0
    last = (await events(store))[-1]
    assert (last["act"], last["detail"]) == ("fail", {"code": "oom", "crashes": 1, "worker": "w"})


async def test_the_third_crash_is_the_last(store: Store, running: Task) -> None:
    await store.fail("w", crash(running))
    assert await store.fail("w", crash(await claim_one(store))) == [State.QUEUED]
    assert await store.fail("w", crash(await claim_one(store))) == [State.DEAD_LETTER]
    assert (await store.get(running.task_id)).crash_count == 3


async def test_crashes_of_both_kinds_count_together(store: Store, running: Task) -> None:
    await store.fail("w", crash(running))
    await claim_one(store)
    await store.expire("w")
    await store.workers.register("w")
    assert await store.fail("w", crash(await claim_one(store))) == [State.DEAD_LETTER]


async def test_a_crash_ignores_retry_after_and_whether_it_is_retriable(store: Store, running: Task) -> None:
    report = crash(running, retriable=False, retry_after_ms=60_000)
    assert await store.fail("w", report) == [State.QUEUED]


async def test_a_crash_reported_twice_is_one(store: Store, running: Task) -> None:
    first = await store.fail("w", crash(running))
    before = await everything(store)
    assert (await store.fail("w", crash(running)), await everything(store)) == (first, before)


async def test_the_time_until_the_crash_is_learnt(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=20)
    await run_for(store, clock, "bob", 1)
    await store.submit_one(new(user_id="ann"))
    task = await claim_one(store)
    clock.pass_seconds(20)
    await store.fail("w", crash(task))
    await store.cancel(task.task_id)
    await store.submit(*[new(user_id=user) for user in ["ann"] * 3 + ["bob"] * 20])
    first = [task.user_id for task in (await store.claim("w", 10)).tasks]
    assert first.count("ann") == 1  # its starts cost several times those of bob


async def test_a_task_that_lost_its_worker_keeps_its_place_and_its_age(store: Store, clock: Clock) -> None:
    first = await store.submit_one(new(priority="low"))
    clock.pass_seconds(400)
    await store.workers.register("w")
    await claim_one(store)
    await store.submit(*[new(priority="low") for _ in range(3)])
    await store.expire("w")
    await store.workers.register("w")
    assert (await claim_one(store)).task_id == first.task_id
    await store.expire("w")
    clock.pass_seconds(200)
    await store.promote()
    assert (await store.get(first.task_id)).effective_priority.word == "medium", "after 600 s in all"


# The worker


async def test_the_tasks_of_a_dead_worker_are_queued_again_and_the_worker_is_forgotten(
    store: Store, running: Task
) -> None:
    assert await store.expire("w") == 1
    task = await store.get(running.task_id)
    assert (task.status, task.crash_count, task.retry_count) == (State.QUEUED, 1, 0)
    assert task.error and task.error.code == "worker_lost"
    assert (await store.limits.get("gpu")).active == 0
    assert [name for name in await key_names(store) if "worker" in name or name.startswith("running")] == []
    with pytest.raises(errors.UnknownWorker):
        await store.claim("w")


async def test_a_cancelled_task_of_a_dead_worker_is_just_freed(store: Store, running: Task) -> None:
    await store.cancel(running.task_id)
    assert await store.expire("w") == 1
    task = await store.get(running.task_id)
    assert (task.status, task.crash_count) == (State.CANCELLED, 0)
    assert (await store.limits.get("gpu")).active == 0


async def test_other_workers_keep_their_tasks(store: Store, running: Task) -> None:
    await store.workers.register("other")
    await store.submit_one(new(limits={"gpu": 1}))
    task = await claim_one(store, "other")
    await store.expire("w")
    assert await store.complete("other", Completed(task.task_id, task.fence)) == [State.COMPLETED]


async def test_one_that_was_not_dead_after_all_is_refused(store: Store, running: Task) -> None:
    await store.expire("w")
    before = await everything(store)
    (answer,) = await store.complete("w", Completed(running.task_id, running.fence))
    assert isinstance(answer, errors.Fenced)
    (answer,) = await store.release("w", Grant(running.task_id, running.fence))
    assert isinstance(answer, errors.Fenced)
    assert await everything(store) == before


async def test_an_idle_worker_is_woken_for_it_and_never_the_dead_one(store: Store, running: Task) -> None:
    assert (await store.claim("w", idle=True)).tasks == []
    await store.workers.register("other")
    assert (await store.claim("other", idle=True)).tasks == []
    await store.expire("w")
    assert await woken(store, "w", "other") == {"w": 0, "other": 1}


async def test_ending_an_unknown_worker_does_nothing(store: Store, running: Task) -> None:
    before = await everything(store)
    assert await store.expire("nobody") == 0
    assert await everything(store) == before
    with pytest.raises(errors.InvalidInput):
        await store.expire("no name")


async def test_a_dead_worker_is_ended_once(store: Store, running: Task) -> None:
    await store.expire("w")
    before = await everything(store)
    assert await store.expire("w") == 0
    assert await everything(store) == before


async def test_the_leases_of_a_worker_whose_record_has_run_out_are_ended_too(
    store: Store, running: Task, clock: Clock
) -> None:
    await raw(store).delete(store.connection.keys.key("worker", "w"))
    assert await store.expire("w") == 1
    assert (await store.get(running.task_id)).status is State.QUEUED


async def test_a_task_past_its_deadline_is_a_timeout_when_its_worker_is_ended(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("w")
    await store.submit_one(new(timeout_seconds=10))
    task = await claim_one(store, "w")
    clock.pass_seconds(11)
    assert await store.expire("w") == 1
    ended = await store.get(task.task_id)
    assert (ended.crash_count, ended.retry_count, ended.error and ended.error.code) == (0, 1, "timeout")
