"""The tour ends one layer below: the store, act by act. Time is `clock`, which only moves on request."""

import pytest

from fairlead import errors
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.conftest import Clock


async def test_a_task_is_submitted_claimed_and_completed(store: Store, clock: Clock) -> None:
    submitted = await store.submit_one(NewTask(task_type="greet", parameters={"name": "Zoë"}))
    await store.workers.register("w")
    (task,) = (await store.claim("w")).tasks
    assert (task.task_id, task.parameters, task.attempt) == (submitted.task_id, {"name": "Zoë"}, 1)

    clock.pass_seconds(2)
    assert await store.complete("w", Completed(task.task_id, task.fence, {"said": "hello"})) == [
        State.COMPLETED
    ]
    done = await store.get(task.task_id)
    assert (done.status, done.result, done.completed_at) == (State.COMPLETED, {"said": "hello"}, clock.now)


async def test_high_goes_before_medium_before_low_and_each_first_come_first_served(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    tasks = [NewTask(task_type="greet", priority=p) for p in ("low", "high", "medium", "low", "high")]
    await store.submit(*tasks)
    claimed = [task.task_id for task in (await store.claim("w", 9)).tasks]
    assert claimed == [tasks[i].task_id for i in (1, 4, 2, 0, 3)]


async def test_part_of_a_worker_can_be_kept_for_high(store: Store) -> None:
    await store.workers.register("w", capacity=3, reserve=1)
    await store.submit(*[NewTask(task_type="greet", priority="low") for _ in range(3)])
    assert len((await store.claim("w", 3)).tasks) == 2
    await store.submit(NewTask(task_type="greet", priority="high"))
    (task,) = (await store.claim("w", 3)).tasks
    assert task.priority.word == "high"


async def test_a_task_that_waits_long_enough_moves_up_a_priority(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    old = await store.submit_one(NewTask(task_type="greet", priority="low"))
    clock.pass_seconds(600)
    await store.submit_one(NewTask(task_type="greet", priority="low"))
    await store.promote()
    explained = await store.explain(old.task_id)
    assert (explained.effective_priority, explained.promoted) == (1, True)
    assert explained.promotes_at == clock.now + 1_200_000


async def test_users_of_one_priority_take_turns(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(*[NewTask(task_type="greet", user_id="ann") for _ in range(3)])
    await store.submit(*[NewTask(task_type="greet", user_id="bob") for _ in range(2)])
    users = [task.user_id for task in (await store.claim("w", 9)).tasks]
    assert users == ["ann", "bob", "ann", "bob", "ann"]


async def test_a_limit_holds_over_all_workers(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.submit(*[NewTask(task_type="draw", limits={"gpu": 1}) for _ in range(2)])
    await store.workers.register("one")
    await store.workers.register("two")
    (first,) = (await store.claim("one")).tasks
    assert (await store.claim("two")).tasks == []
    waiting = await store.limits.get("gpu")
    assert (waiting.active, waiting.waiting) == (1, 1)

    await store.complete("one", Completed(first.task_id, first.fence))
    assert len((await store.claim("two")).tasks) == 1


async def test_a_task_takes_all_its_limits_or_none(store: Store) -> None:
    await store.limits.set("gpu_memory_gb", Slots(limit=80))
    await store.limits.set("licence", Slots(limit=1))
    await store.workers.register("w", capacity=9)
    await store.submit(NewTask(task_type="solve", limits={"licence": 1, "gpu_memory_gb": 24}))
    assert len((await store.claim("w", 9)).tasks) == 1
    await store.submit(NewTask(task_type="solve", limits={"licence": 1, "gpu_memory_gb": 24}))
    assert (await store.claim("w", 9)).tasks == []
    assert (await store.limits.get("gpu_memory_gb")).active == 24


async def test_a_rate_limit_says_when_to_claim_again(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=6, period_seconds=60, burst=1))
    await store.workers.register("w", capacity=9)
    await store.submit(*[NewTask(task_type="call", limits={"api": 1}) for _ in range(2)])
    assert len((await store.claim("w", 9)).tasks) == 1
    empty = await store.claim("w", 9)
    assert (empty.tasks, empty.next_alarm) == ([], clock.now + 10_000)
    clock.pass_seconds(10)
    assert len((await store.claim("w", 9)).tasks) == 1


async def test_explain_says_why_a_task_waits(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=9)
    await store.submit(NewTask(task_type="draw", limits={"gpu": 1}))
    await store.claim("w")
    waiting = await store.submit_one(NewTask(task_type="draw", limits={"gpu": 1}))
    explained = await store.explain(waiting.task_id)
    assert explained.sentence == (
        "It waits for a unit of gpu, which w holds until 13:56:40 UTC at the latest."
    )


async def test_a_failure_is_retried_after_a_while_until_retries_run_out(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    submitted = await store.submit_one(NewTask(task_type="flaky", max_retries=1))
    (task,) = (await store.claim("w")).tasks
    assert await store.fail("w", Failed(task.task_id, task.fence, message="no", jitter=1000)) == [
        State.DELAYED
    ]
    assert (await store.claim("w")).next_alarm == clock.now + 1000

    clock.pass_seconds(1)
    (task,) = (await store.claim("w")).tasks
    assert await store.fail("w", Failed(task.task_id, task.fence)) == [State.DEAD_LETTER]
    assert [dead.task_id for dead in (await store.dead_letters.page()).tasks] == [submitted.task_id]
    await store.replay(submitted.task_id)
    assert (await store.dead_letters.page()).tasks == []
    assert (await store.get(submitted.task_id)).retry_count == 0


async def test_a_worker_that_returns_from_the_dead_is_refused(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="greet"))
    (task,) = (await store.claim("w")).tasks
    clock.pass_seconds(32)  # lease and grace have ended: its worker is declared dead
    await store.workers.register("other")
    (again,) = (await store.claim("other")).tasks
    assert (again.task_id, again.attempt) == (task.task_id, 2)
    assert again.fence > task.fence

    (refused,) = await store.complete("w", Completed(task.task_id, task.fence))
    assert isinstance(refused, errors.Fenced)
    assert (await store.get(task.task_id)).status is State.EXECUTING


async def test_a_task_that_kills_its_workers_is_put_into_quarantine(store: Store, clock: Clock) -> None:
    submitted = await store.submit_one(NewTask(task_type="poison", max_retries=5))
    for _ in range(3):
        await store.workers.register("w")
        assert (await store.claim("w")).tasks
        await store.expire("w")  # its supervisor saw it die
    task = await store.get(submitted.task_id)
    assert (task.status, task.crash_count, task.retry_count) == (State.DEAD_LETTER, 3, 0)


async def test_an_outage_of_all_workers_is_not_a_crash_of_their_tasks(store: Store, clock: Clock) -> None:
    submitted = await store.submit_one(NewTask(task_type="innocent"))
    for _ in range(3):
        await store.workers.register("w")
        assert (await store.claim("w")).tasks
        clock.pass_seconds(32)  # no worker reported
        await store.expire()
    task = await store.get(submitted.task_id)
    assert (task.status, task.crash_count, task.loss_count) == (State.QUEUED, 0, 3)


async def test_a_cancelled_running_task_keeps_its_units_until_its_worker_stops(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=2)
    await store.submit(*[NewTask(task_type="draw", limits={"gpu": 1}) for _ in range(2)])
    (task,) = (await store.claim("w", 2)).tasks
    assert await store.cancel(task.task_id) == "w"
    assert (await store.claim("w", 2)).tasks == []

    assert (await store.workers.heartbeat("w")).cancelled == [task.task_id]
    (answer,) = await store.release("w", Grant(task.task_id, task.fence))
    assert isinstance(answer, errors.Fenced)
    assert len((await store.claim("w", 2)).tasks) == 1


async def test_a_limit_can_be_used_without_a_task(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    lease = await store.limits.acquire("gpu", holder="notebook")
    with pytest.raises(errors.LimitFull):
        await store.limits.acquire("gpu")
    await store.limits.release(lease)
    assert (await store.limits.get("gpu")).active == 0


async def test_asking_twice_with_one_key_makes_one_task(store: Store) -> None:
    first = await store.submit_one(NewTask(task_type="pay", parameters={"eur": 5}, idempotency_key="order-7"))
    again = await store.submit_one(NewTask(task_type="pay", parameters={"eur": 5}, idempotency_key="order-7"))
    assert (again.task_id, again.repeated) == (first.task_id, True)
    traced = NewTask(
        task_type="pay", parameters={"eur": 5}, idempotency_key="order-7", trace_id="another-try"
    )
    assert (await store.submit_one(traced)).task_id == first.task_id
    with pytest.raises(errors.IdempotencyConflict):
        await store.submit_one(NewTask(task_type="pay", parameters={"eur": 6}, idempotency_key="order-7"))


async def test_a_draining_worker_is_given_nothing_more(store: Store) -> None:
    await store.workers.register("w")
    await store.submit_one(NewTask(task_type="greet"))
    await store.workers.drain("w")
    assert (await store.claim("w")).draining
    await store.workers.leave("w")
    with pytest.raises(errors.UnknownWorker):
        await store.claim("w")
