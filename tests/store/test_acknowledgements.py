"""When a worker is only called, and which tasks are repeated because it has not acknowledged them."""

from typing import Any

import pytest

from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import NewTask, Task
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.handing import called, claimed, handed, status, waits
from tests.store.namespace import new, raw, woken

HALF_A_LIFE = 15_000  # ms: a worker that was silent for longer may be dead


async def handed_one(store: Store, **facts: Any) -> Task:
    """The worker `w` was handed this one, and the call is gone, read or not."""
    await waits(store, "w", **facts)
    await store.submit_one(new())
    return (await handed(store)).task


# When it is only called


async def test_changes_by_time_alone_come_first(store: Store, clock: Clock) -> None:
    delayed = new(priority="high", delay_seconds=10)
    await store.submit_one(delayed)
    await waits(store, "w")
    clock.pass_seconds(10)
    low = new(priority="low")
    await store.submit_one(low)
    await called(store)
    assert await status(store, low) is State.QUEUED
    assert await claimed(store, want=2) == [delayed.task_id]


async def test_before_that_time_it_is_handed_over(store: Store, clock: Clock) -> None:
    await store.submit_one(new(priority="high", delay_seconds=10))
    await waits(store, "w")
    clock.pass_ms(9_999)
    low = new(priority="low")
    await store.submit_one(low)
    assert (await handed(store)).task.task_id == low.task_id


async def wide_one_waits(store: Store, clock: Clock) -> NewTask:
    """It needs two limits that others hold, and may ask for a hold when it has waited for 30 s."""
    for limit in ("a", "b"):
        await store.limits.set(limit, Slots(limit=1))
    await store.workers.register("busy", capacity=2)
    await store.submit(new(limits={"a": 1}), new(limits={"b": 1}))
    assert len((await store.claim("busy", 2, lease_ms=10_000_000)).tasks) == 2
    wide = new(limits={"a": 1, "b": 1})
    await store.submit_one(wide)
    clock.pass_seconds(20)
    await waits(store, "w")
    return wide


async def test_a_task_that_may_ask_for_a_hold_comes_first(store: Store, clock: Clock) -> None:
    await wide_one_waits(store, clock)
    clock.pass_seconds(10)
    await store.submit_one(new())
    await called(store)
    assert len(await claimed(store)) == 1
    assert (await store.limits.get("a")).hold, "that claim made it"


async def test_before_it_may_ask_for_a_hold_it_is_handed_over(store: Store, clock: Clock) -> None:
    wide = await wide_one_waits(store, clock)
    clock.pass_ms(9_999)
    task = new()
    await store.submit_one(task)
    assert (await handed(store)).task.task_id == task.task_id
    assert await status(store, wide) is State.QUEUED


async def test_a_worker_that_was_silent_for_long_is_called(store: Store, clock: Clock) -> None:
    await waits(store, "w")
    clock.pass_ms(HALF_A_LIFE + 1)
    task = new()
    await store.submit_one(task)
    await called(store)
    assert await status(store, task) is State.QUEUED
    assert await claimed(store) == [task.task_id]


@pytest.mark.parametrize("beats", [0, 3])
async def test_a_worker_that_reported_recently_is_handed_it(store: Store, clock: Clock, beats: int) -> None:
    await waits(store, "w")
    for _ in range(beats):
        clock.pass_ms(HALF_A_LIFE)
        await store.workers.heartbeat("w")
    clock.pass_ms(HALF_A_LIFE)
    await store.submit_one(new())
    await handed(store)


async def test_a_worker_that_drains_is_handed_nothing(store: Store) -> None:
    await waits(store, "w")
    await store.workers.drain("w")
    task = new()
    await store.submit_one(task)
    assert await called(store) == "drain"
    assert (await woken(store, "w"), await status(store, task)) == ({"w": 0}, State.QUEUED)


# What it has not acknowledged


async def test_an_acknowledged_task_is_not_repeated(store: Store) -> None:
    task = await handed_one(store, capacity=2)
    assert await claimed(store, idle=True, acknowledged=[task.fence]) == []
    assert await claimed(store, idle=True, acknowledged=()) == [], "the store no longer remembers it"
    assert (await store.get(task.task_id)).fence == task.fence


async def test_an_unacknowledged_task_is_repeated_first(store: Store) -> None:
    task = await handed_one(store, capacity=5)
    better = new(priority="high")
    await store.submit_one(better)
    again = (await store.claim("w", 5, acknowledged=())).tasks
    assert [one.task_id for one in again] == [task.task_id, better.task_id]
    assert again[0] == task, "as it was handed over"


@pytest.mark.parametrize("drains", [False, True])
async def test_the_lease_of_a_repeated_task_starts_at_the_repetition(
    store: Store, clock: Clock, drains: bool
) -> None:
    """The worker counts the lease from its claim."""
    task = await handed_one(store, lease_ms=5_000)
    clock.pass_ms(4_000)
    if drains:
        await store.workers.drain("w")
    (again,) = (await store.claim("w", lease_ms=7_000, acknowledged=())).tasks
    assert (again.fence, again.lease_until) == (task.fence, clock.now + 7_000)
    clock.pass_ms(7_999)
    assert await store.expire() == 0, "not before its grace is over"
    clock.pass_ms(1)
    assert await store.expire() == 1


async def test_a_repeated_task_does_not_count_against_the_number_claimed(store: Store) -> None:
    task = await handed_one(store, capacity=3)
    others = [new(), new(), new()]
    await store.submit(*others)
    assert await claimed(store, want=1, acknowledged=()) == [task.task_id, others[0].task_id]
    assert await claimed(store, want=5) == [others[1].task_id], "it has room for three"


async def test_a_task_is_repeated_to_a_full_worker(store: Store) -> None:
    task = await handed_one(store, capacity=1)
    await store.submit_one(new())
    assert await claimed(store, acknowledged=()) == [task.task_id]


@pytest.mark.parametrize("acknowledged", [None, (), (0,), (999, 10**15)])
async def test_other_fences_do_no_harm(store: Store, acknowledged: tuple[int, ...] | None) -> None:
    task = await handed_one(store)
    assert await claimed(store, acknowledged=acknowledged) == [task.task_id]


async def test_it_may_acknowledge_what_was_never_handed_over(store: Store) -> None:
    await store.workers.register("w")
    task = new()
    await store.submit_one(task)
    assert await claimed(store, acknowledged=[1, 2, 3]) == [task.task_id]


async def test_a_task_in_a_call_that_nobody_reads_is_repeated(store: Store) -> None:
    await waits(store, "w")
    task = new()
    await store.submit_one(task)
    await raw(store).delete(store.connection.keys.key("wake", "w"))  # it was there too long, or got lost
    assert await claimed(store, idle=True, acknowledged=()) == [task.task_id]


async def test_a_task_is_repeated_to_a_worker_that_registers_again(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.register("w")
    assert await claimed(store, acknowledged=()) == [task.task_id]


@pytest.mark.parametrize("end", ["complete", "fail", "release", "cancel"])
async def test_a_task_that_it_no_longer_holds_is_not_repeated(store: Store, end: str) -> None:
    task = await handed_one(store)
    match end:
        case "complete":
            await store.complete("w", Completed(task.task_id, task.fence))
        case "fail":
            await store.fail("w", Failed(task.task_id, task.fence, retriable=False))
        case "release":
            await store.release("w", Grant(task.task_id, task.fence))
            await store.pause_type("echo")
        case "cancel":
            await store.cancel(task.task_id)
    assert await claimed(store, acknowledged=()) == []


async def test_a_task_that_another_worker_holds_by_now_is_not_repeated(store: Store) -> None:
    task = await handed_one(store)
    await store.release("w", Grant(task.task_id, task.fence))
    await store.workers.register("other")
    assert await claimed(store, "other") == [task.task_id]
    assert await claimed(store, acknowledged=()) == []


async def test_a_task_whose_lease_ran_out_is_not_repeated(store: Store, clock: Clock) -> None:
    """Not even by the claim that ends it, which may start the task again."""
    task = await handed_one(store, lease_ms=5_000)
    clock.pass_ms(6_000)
    (again,) = (await store.claim("w", acknowledged=())).tasks
    assert (again.task_id, again.crash_count, again.loss_count) == (task.task_id, 0, 1)
    assert again.fence > task.fence


async def test_a_repeated_request_gets_the_same_answer(store: Store) -> None:
    task = await handed_one(store, capacity=2)
    assert await claimed(store, request="a1", acknowledged=()) == [task.task_id]
    assert await claimed(store, request="a1", acknowledged=()) == [task.task_id]
    assert await claimed(store, request="a2", acknowledged=()) == [], "now its answer has arrived"


# A worker that drains


async def test_a_task_is_repeated_to_a_draining_worker(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.drain("w")
    answer = await store.claim("w", acknowledged=())
    assert (answer.draining, answer.tasks) == (True, [task])
    assert await claimed(store, acknowledged=()) == []


async def test_an_acknowledged_task_is_not_repeated_to_a_draining_worker(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.drain("w")
    assert await claimed(store, acknowledged=[task.fence]) == []


async def test_a_repeated_request_of_one_that_drains_gets_the_same_answer(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.drain("w")
    for _ in range(2):
        answer = await store.claim("w", request="a1", acknowledged=())
        assert (answer.draining, answer.tasks) == (True, [task])
