"""When a worker is only called, and what it is told again because it may not have heard of it."""

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

HALF_A_LIFE = 15_000  # ms: who was silent for longer may be dead


async def handed_one(store: Store, **facts: Any) -> Task:
    """The worker `w` was handed this one, and the call is gone, read or not."""
    await waits(store, "w", **facts)
    await store.submit_one(new())
    return (await handed(store)).task


# When it is only called


async def test_what_time_alone_has_to_do_comes_first(store: Store, clock: Clock) -> None:
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


async def test_whoever_may_ask_for_a_hold_comes_first(store: Store, clock: Clock) -> None:
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
async def test_a_worker_that_was_heard_of_in_time_is_handed_it(
    store: Store, clock: Clock, beats: int
) -> None:
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


# What it has not heard of


async def test_what_it_has_heard_of_is_not_told_again(store: Store) -> None:
    task = await handed_one(store, capacity=2)
    assert await claimed(store, idle=True, heard=[task.fence]) == []
    assert await claimed(store, idle=True, heard=()) == [], "the store remembers it no longer"
    assert (await store.get(task.task_id)).fence == task.fence


async def test_what_it_has_not_heard_of_is_told_again_and_first(store: Store) -> None:
    task = await handed_one(store, capacity=5)
    better = new(priority="high")
    await store.submit_one(better)
    again = (await store.claim("w", 5, heard=())).tasks
    assert [one.task_id for one in again] == [task.task_id, better.task_id]
    assert again[0] == task, "as it was handed over"


@pytest.mark.parametrize("drains", [False, True])
async def test_what_is_told_again_has_its_lease_from_then_on(
    store: Store, clock: Clock, drains: bool
) -> None:
    """Who is told counts the lease from when it asked."""
    task = await handed_one(store, lease_ms=5_000)
    clock.pass_ms(4_000)
    if drains:
        await store.workers.drain("w")
    (again,) = (await store.claim("w", lease_ms=7_000, heard=())).tasks
    assert (again.fence, again.lease_until) == (task.fence, clock.now + 7_000)
    clock.pass_ms(7_999)
    assert await store.expire() == 0, "not before its grace is over"
    clock.pass_ms(1)
    assert await store.expire() == 1


async def test_it_is_told_again_besides_as_many_as_it_wants(store: Store) -> None:
    task = await handed_one(store, capacity=3)
    others = [new(), new(), new()]
    await store.submit(*others)
    assert await claimed(store, want=1, heard=()) == [task.task_id, others[0].task_id]
    assert await claimed(store, want=5) == [others[1].task_id], "it has room for three"


async def test_a_full_worker_is_told_again(store: Store) -> None:
    task = await handed_one(store, capacity=1)
    await store.submit_one(new())
    assert await claimed(store, heard=()) == [task.task_id]


@pytest.mark.parametrize("heard", [None, (), (0,), (999, 10**15)])
async def test_other_fences_do_no_harm(store: Store, heard: tuple[int, ...] | None) -> None:
    task = await handed_one(store)
    assert await claimed(store, heard=heard) == [task.task_id]


async def test_of_what_was_never_handed_it_may_say_that_it_heard(store: Store) -> None:
    await store.workers.register("w")
    task = new()
    await store.submit_one(task)
    assert await claimed(store, heard=[1, 2, 3]) == [task.task_id]


async def test_a_call_that_nobody_reads_is_told_again(store: Store) -> None:
    await waits(store, "w")
    task = new()
    await store.submit_one(task)
    await raw(store).delete(store.connection.keys.key("wake", "w"))  # it was there too long, or got lost
    assert await claimed(store, idle=True, heard=()) == [task.task_id]


async def test_it_is_told_again_to_one_that_registers_again(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.register("w")
    assert await claimed(store, heard=()) == [task.task_id]


@pytest.mark.parametrize("end", ["complete", "fail", "release", "cancel"])
async def test_what_it_holds_no_longer_is_not_told_again(store: Store, end: str) -> None:
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
    assert await claimed(store, heard=()) == []


async def test_what_another_has_meanwhile_is_not_told_again(store: Store) -> None:
    task = await handed_one(store)
    await store.release("w", Grant(task.task_id, task.fence))
    await store.workers.register("other")
    assert await claimed(store, "other") == [task.task_id]
    assert await claimed(store, heard=()) == []


async def test_a_lease_that_ran_out_is_not_told_again(store: Store, clock: Clock) -> None:
    """Not even by the claim that ends it: that may start the task anew."""
    task = await handed_one(store, lease_ms=5_000)
    clock.pass_ms(6_000)
    (anew,) = (await store.claim("w", heard=())).tasks
    assert (anew.task_id, anew.crash_count, anew.loss_count) == (task.task_id, 0, 1)
    assert anew.fence > task.fence


async def test_a_repeated_request_gets_the_same_answer(store: Store) -> None:
    task = await handed_one(store, capacity=2)
    assert await claimed(store, request="a1", heard=()) == [task.task_id]
    assert await claimed(store, request="a1", heard=()) == [task.task_id]
    assert await claimed(store, request="a2", heard=()) == [], "now its answer was heard"


# A worker that drains


async def test_a_worker_that_drains_is_told_again(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.drain("w")
    answer = await store.claim("w", heard=())
    assert (answer.draining, answer.tasks) == (True, [task])
    assert await claimed(store, heard=()) == []


async def test_a_worker_that_drains_and_has_heard_of_it_is_not_told_again(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.drain("w")
    assert await claimed(store, heard=[task.fence]) == []


async def test_a_repeated_request_of_one_that_drains_gets_the_same_answer(store: Store) -> None:
    task = await handed_one(store)
    await store.workers.drain("w")
    for _ in range(2):
        answer = await store.claim("w", request="a1", heard=())
        assert (answer.draining, answer.tasks) == (True, [task])
