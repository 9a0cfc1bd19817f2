"""Delayed tasks whose time has come: queued best priority first, also when one act cannot queue them all."""

from typing import Any

import pytest

from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, key_names, new, raw

MOVED = 32  # of a single kind, in one act, when they name no limits


async def submit_delayed(store: Store, count: int, **options: Any) -> list[str]:
    tasks = [new(delay_seconds=60, **options) for _ in range(count)]
    for start in range(0, count, 200):
        await store.submit(*tasks[start : start + 200])
    return [task.task_id for task in tasks]


async def test_high_starts_first_although_thousands_of_low_tasks_fall_due_before_it(
    store: Store, clock: Clock
) -> None:
    await submit_delayed(store, 1_000, priority="low")
    (high,) = await submit_delayed(store, 1, priority="high")
    clock.pass_seconds(61)
    await store.workers.register("w", capacity=10)
    assert (await claim_one(store)).task_id == high


async def test_within_a_priority_they_start_in_the_order_of_their_times_then_of_their_submits(
    store: Store, clock: Clock
) -> None:
    later = [new(delay_seconds=2, task_id=f"{i}0000000-0000-7000-8000-000000000000") for i in (9, 1)]
    sooner = [new(delay_seconds=1, task_id=f"{i}0000000-0000-7000-8000-000000000000") for i in (8, 2)]
    await store.submit(*later, *sooner)
    clock.pass_seconds(3)
    await store.workers.register("w", capacity=9)
    started = [task.task_id for task in (await store.claim("w", 9)).tasks]
    assert started == [task.task_id for task in (*sooner, *later)]


async def test_nothing_worse_starts_before_all_that_is_better_and_due_is_queued(
    store: Store, clock: Clock
) -> None:
    low = new(priority="low")
    await store.submit_one(low)
    await submit_delayed(store, MOVED + 2, priority="medium", limits={}, required_capabilities=("gpu",))
    (medium,) = await submit_delayed(store, 1, priority="medium")
    clock.pass_seconds(61)
    await store.workers.register("w", capacity=10)
    first = await store.claim("w", 10, idle=True)
    assert (first.tasks, first.again) == ([], True), "the medium task of this worker is not queued yet"
    assert not await raw(store).hexists(store.connection.keys.key("worker", "w"), "idle")
    second = await store.claim("w", 10, idle=True)
    assert [task.task_id for task in second.tasks] == [medium, low.task_id]
    assert not second.again


async def test_a_task_as_good_as_the_best_due_one_may_start(store: Store, clock: Clock) -> None:
    waiting = new(priority="medium")
    await store.submit_one(waiting)
    await submit_delayed(store, MOVED + 1, priority="medium", required_capabilities=("gpu",))
    clock.pass_seconds(61)
    await store.workers.register("w", capacity=10)
    claimed = await store.claim("w", 2)
    assert [task.task_id for task in claimed.tasks] == [waiting.task_id]
    assert claimed.again


async def test_all_priorities_together_are_one_kind(store: Store, clock: Clock) -> None:
    for priority in ("low", "medium", "high"):
        await submit_delayed(store, 12, priority=priority)
    clock.pass_seconds(61)
    assert await store.run("promote") == {"answer": "ok", "moved": MOVED, "more": True}
    stats = await store.stats()
    assert {word: queue.depth for word, queue in stats.queues.items()} == {"high": 12, "medium": 12, "low": 8}
    assert stats.delayed == 4


@pytest.mark.parametrize("priority", ["high", "medium", "low"])
async def test_a_delayed_task_can_be_cancelled_in_every_queue(store: Store, priority: str) -> None:
    (task,) = await submit_delayed(store, 1, priority=priority)
    await store.cancel(task)
    assert [name for name in await key_names(store) if name.startswith("delayed")] == []


async def test_retries_wait_in_the_order_of_their_failures(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(*[new() for _ in range(3)])
    tasks = (await store.claim("w", 3)).tasks
    for task in reversed(tasks):
        assert await store.fail("w", Failed(task.task_id, task.fence, jitter=0)) == [State.DELAYED]
    clock.pass_seconds(10)
    again = (await store.claim("w", 3)).tasks
    assert [task.task_id for task in again] == [task.task_id for task in reversed(tasks)]
    await store.complete("w", *(Completed(task.task_id, task.fence) for task in again))


async def test_the_maximum_wait_of_queued_tasks_ends_although_many_are_not_queued_yet(
    store: Store, clock: Clock
) -> None:
    """Those that do not fit into the act must not hide a task that has waited too long."""
    await submit_delayed(store, 2 * MOVED, priority="low", max_wait_seconds=2)
    (high,) = await submit_delayed(store, 1, priority="high", max_wait_seconds=1)
    clock.pass_seconds(63)
    await store.workers.register("w", capacity=10)
    await store.claim("w")
    assert (await store.get(high)).status is State.FAILED
