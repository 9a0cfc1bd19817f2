"""The life of a task, act by act."""

import pytest

from fairlead import errors
from fairlead.settings import Rate, Slots
from fairlead.states import State
from fairlead.store.reports import Completed, Failed, Grant
from fairlead.store.store import Store
from fairlead.task import NewTask
from tests.conftest import Clock


async def test_a_task_is_claimed_run_and_completed(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    submitted = await store.submit_one(NewTask(task_type="echo", parameters={"text": "hé"}))
    (task,) = (await store.claim("w")).tasks
    assert (task.task_id, task.parameters, task.attempt) == (submitted.task_id, {"text": "hé"}, 1)
    clock.pass_seconds(2)
    assert await store.complete("w", Completed(task.task_id, task.fence, {"ok": True})) == [State.COMPLETED]
    done = await store.get(task.task_id)
    assert (done.status, done.result, done.completed_at) == (State.COMPLETED, {"ok": True}, clock.now)


async def test_high_goes_before_medium_before_low_and_each_first_come_first_served(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    tasks = [NewTask(task_type="echo", priority=p) for p in ("low", "high", "medium", "low", "high")]
    await store.submit(*tasks)
    claimed = [task.task_id for task in (await store.claim("w", 9)).tasks]
    assert claimed == [tasks[i].task_id for i in (1, 4, 2, 0, 3)]


async def test_a_limit_is_never_exceeded_and_frees_with_the_lease(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=9)
    await store.submit(*[NewTask(task_type="draw", limits={"gpu": 1}) for _ in range(3)])
    (first,) = (await store.claim("w", 9)).tasks
    assert (await store.claim("w", 9)).tasks == []
    _, claimed = await store.report("w", [Completed(first.task_id, first.fence)], claim=9)
    assert len(claimed.tasks) == 1
    assert (await store.limits.get("gpu")).active == 1


async def test_a_rate_limit_says_when_it_is_worth_coming_back(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=1))
    await store.workers.register("w", capacity=9)
    await store.submit(*[NewTask(task_type="call", limits={"api": 1}) for _ in range(2)])
    assert len((await store.claim("w", 9)).tasks) == 1
    empty = await store.claim("w", 9)
    assert (empty.tasks, empty.next_alarm) == ([], clock.now + 10_000)
    clock.pass_seconds(10)
    assert len((await store.claim("w", 9)).tasks) == 1


async def test_a_stale_fence_is_refused_and_changes_nothing(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="echo"))
    (task,) = (await store.claim("w")).tasks
    clock.pass_seconds(32)
    assert await store.expire() == 1
    await store.workers.register("w")
    (again,) = (await store.claim("w")).tasks
    assert (again.task_id, again.crash_count) == (task.task_id, 1)
    assert again.fence > task.fence
    (refused,) = await store.complete("w", Completed(task.task_id, task.fence))
    assert isinstance(refused, errors.Fenced)
    assert (await store.get(task.task_id)).status is State.EXECUTING


async def test_three_crashes_put_a_task_into_quarantine(store: Store, clock: Clock) -> None:
    submitted = await store.submit_one(NewTask(task_type="poison", max_retries=5))
    for _ in range(3):
        await store.workers.register("w")
        assert (await store.claim("w")).tasks
        clock.pass_seconds(32)
        await store.expire()
    task = await store.get(submitted.task_id)
    assert (task.status, task.crash_count, task.retry_count) == (State.DEAD_LETTER, 3, 0)


async def test_a_cancelled_running_task_keeps_its_units_until_its_worker_confirms(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=2)
    await store.submit(
        NewTask(task_type="draw", limits={"gpu": 1}), NewTask(task_type="draw", limits={"gpu": 1})
    )
    (task,) = (await store.claim("w", 2)).tasks
    assert await store.cancel(task.task_id) == "w"
    assert (await store.claim("w", 2)).tasks == []
    assert (await store.workers.heartbeat("w")).cancelled == [task.task_id]
    (answer,) = await store.release("w", Grant(task.task_id, task.fence))
    assert isinstance(answer, errors.Fenced)
    assert len((await store.claim("w", 2)).tasks) == 1


async def test_retries_back_off_and_run_out_into_the_dead_letters(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    submitted = await store.submit_one(NewTask(task_type="flaky", max_retries=1))
    (task,) = (await store.claim("w")).tasks
    assert await store.fail("w", Failed(task.task_id, task.fence, jitter=1000)) == [State.DELAYED]
    assert (await store.claim("w")).next_alarm == clock.now + 1000
    clock.pass_seconds(1)
    (task,) = (await store.claim("w")).tasks
    assert await store.fail("w", Failed(task.task_id, task.fence)) == [State.DEAD_LETTER]
    await store.replay(submitted.task_id)
    assert (await store.get(submitted.task_id)).retry_count == 0


@pytest.mark.parametrize("word", ["draining", "leave"])
async def test_a_draining_worker_is_given_nothing_more(store: Store, word: str) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="echo"))
    await (store.workers.drain("w") if word == "draining" else store.workers.leave("w"))
    if word == "draining":
        assert (await store.claim("w")).draining
    else:
        with pytest.raises(errors.UnknownWorker):
            await store.claim("w")
