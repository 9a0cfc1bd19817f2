"""Idle workers sleep until there is something for them: one is woken per task that can start."""

import asyncio
from typing import Any

import pytest

from fairlead.model.reports import Completed, Failed, Grant
from fairlead.settings import Rate, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.idle_workers import calls, fill, idle
from tests.store.namespace import claim_one, new, raw, woken

# A sleeping worker


async def test_a_sleeping_worker_is_woken_by_a_submit(live_store: Store) -> None:
    await idle(live_store, "w")
    sleeping = asyncio.create_task(live_store.workers.wait("w", 30))
    await live_store.submit_one(new())
    assert await sleeping
    assert len((await live_store.claim("w")).tasks) == 1


async def test_a_call_that_came_before_the_sleep_is_not_lost(live_store: Store) -> None:
    await idle(live_store, "w")
    await live_store.submit_one(new())
    assert await live_store.workers.wait("w", 30)


async def test_a_sleep_without_a_call_ends_by_itself(live_store: Store) -> None:
    await idle(live_store, "w")
    assert not await live_store.workers.wait("w", 0.01)


async def test_a_wake_up_call_runs_out(live_store: Store) -> None:
    await idle(live_store, "w")
    await live_store.submit_one(new())
    assert 0 < await raw(live_store).pttl(live_store.connection.keys.key("wake", "w")) <= 30_000


async def test_a_worker_that_did_not_ask_for_it_is_not_woken(live_store: Store) -> None:
    await live_store.workers.register("w")
    await live_store.claim("w")
    await live_store.submit_one(new())
    assert await calls(live_store, "w") == 0


# How many are woken


async def test_one_worker_is_woken_per_task_that_can_start(live_store: Store) -> None:
    workers = ["w1", "w2", "w3", "w4"]
    await idle(live_store, *workers)
    await live_store.submit_one(new())
    assert await calls(live_store, *workers) == 1
    await live_store.submit(new(), new())
    assert sorted((await woken(live_store, *workers)).values()) == [0, 1, 1, 1]


async def test_the_worker_that_waited_longest_is_woken_first(store: Store, clock: Clock) -> None:
    for worker in ("w2", "w1", "w3"):
        await idle(store, worker)
        clock.pass_ms(1)
    await store.submit_one(new())
    assert await woken(store, "w1", "w2", "w3") == {"w1": 0, "w2": 1, "w3": 0}


async def test_more_tasks_than_idle_workers_wake_them_all_once(live_store: Store) -> None:
    await idle(live_store, "w1", "w2")
    await live_store.submit(*[new() for _ in range(9)])
    assert await woken(live_store, "w1", "w2") == {"w1": 1, "w2": 1}


async def test_no_more_workers_are_woken_than_the_limit_has_room(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=5))
    await idle(live_store, "w1", "w2", "w3", "w4")
    await live_store.submit(*[new(limits={"gpu": 2}) for _ in range(4)])
    assert await calls(live_store, "w1", "w2", "w3", "w4") == 2


@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ({"capabilities": ["gpu"]}, {"required_capabilities": ("gpu",)}),
        ({"task_types": ["draw"]}, {"task_type": "draw"}),
        ({"task_types": ["draw", "echo"], "capabilities": ["a", "b"]}, {"required_capabilities": ("b",)}),
    ],
)
async def test_the_one_that_can_serve_it_is_woken(
    live_store: Store, facts: dict[str, Any], options: dict[str, Any]
) -> None:
    await idle(live_store, "plain1", "plain2", task_types=["echo"])
    await idle(live_store, "able", **facts)
    await live_store.submit_one(new(**options))
    assert await woken(live_store, "plain1", "plain2", "able") == {"plain1": 0, "plain2": 0, "able": 1}


async def test_a_worker_with_only_its_reserve_free_is_woken_for_high_alone(live_store: Store) -> None:
    await live_store.workers.register("w", capacity=2, reserve=1)
    await live_store.submit_one(new(priority="low"))
    await claim_one(live_store)
    assert (await live_store.claim("w", idle=True)).tasks == []
    await live_store.submit_one(new(priority="medium"))
    assert await calls(live_store, "w") == 0
    await live_store.submit_one(new(priority="high"))
    assert await calls(live_store, "w") == 1


@pytest.mark.parametrize("end", ["complete", "fail", "release", "cancel"])
async def test_a_worker_with_only_its_reserve_free_is_woken_when_another_place_is(
    live_store: Store, end: str
) -> None:
    """It is in the queue for high alone, and low waits already: no submit will wake it."""
    await live_store.workers.register("w", capacity=2, reserve=1)
    await live_store.submit(new(priority="low"), new(priority="low"))
    task = await claim_one(live_store)
    assert (await live_store.claim("w", idle=True)).tasks == []
    assert await woken(live_store, "w") == {"w": 0}
    match end:
        case "complete":
            await live_store.complete("w", Completed(task.task_id, task.fence))
        case "fail":
            await live_store.fail("w", Failed(task.task_id, task.fence, retriable=False))
        case "release":
            await live_store.release("w", Grant(task.task_id, task.fence))
        case "cancel":
            await live_store.cancel(task.task_id)
            await live_store.release("w", Grant(task.task_id, task.fence))
    assert await live_store.workers.wait("w", 5)
    assert len((await live_store.claim("w", idle=True)).tasks) == 1


async def test_a_worker_with_room_for_all_is_not_woken_by_its_own_end(live_store: Store) -> None:
    await live_store.workers.register("w", capacity=3, reserve=1)
    await live_store.submit(new(priority="low"))
    task = await claim_one(live_store)
    assert (await live_store.claim("w", idle=True)).tasks == []
    await live_store.complete("w", Completed(task.task_id, task.fence))
    assert await woken(live_store, "w") == {"w": 0}


async def test_a_full_worker_that_waits_is_woken_by_the_end_of_what_it_runs(live_store: Store) -> None:
    """Its poll came before the result that makes room for it: no submit will wake it."""
    await live_store.workers.register("w", capacity=1)
    await live_store.submit(new(), new())
    task = await claim_one(live_store)
    assert (await live_store.claim("w", idle=True)).tasks == []
    await live_store.complete("w", Completed(task.task_id, task.fence))
    assert await live_store.workers.wait("w", 5)
    await live_store.complete("w", Completed((await claim_one(live_store)).task_id))
    assert await woken(live_store, "w") == {"w": 0}


async def test_a_full_worker_is_not_woken(live_store: Store) -> None:
    await live_store.workers.register("w", capacity=1)
    await live_store.submit_one(new())
    await claim_one(live_store)
    await live_store.claim("w", idle=True)
    await live_store.submit_one(new())
    assert await calls(live_store, "w") == 0


async def test_a_task_that_the_claimer_takes_itself_wakes_no_other_worker(store: Store, clock: Clock) -> None:
    await store.submit_one(new(delay_seconds=10))
    await idle(store, "w1", "w2")
    clock.pass_seconds(10)
    assert len((await store.claim("w1")).tasks) == 1
    assert await calls(store, "w2") == 0


async def test_the_doctor_waits_for_idle_workers_to_claim_by_themselves(store: Store, clock: Clock) -> None:
    await idle(store, "w1", "w2", "w3")
    await store.submit(new(), new())
    assert await calls(store, "w1", "w2", "w3") == 2
    clock.pass_seconds(10)
    assert await examine(store.connection, now_ms=clock.now, twice=False) == []


# Which workers are not woken


async def test_nobody_is_woken_for_a_full_limit(live_store: Store) -> None:
    await fill(live_store, "gpu")
    await idle(live_store, "w1", "w2")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    assert await calls(live_store, "w1", "w2") == 0


async def test_no_worker_is_woken_for_a_capability_that_none_has(live_store: Store) -> None:
    await idle(live_store, "w1", "w2", capabilities=["a"])
    await live_store.submit_one(new(required_capabilities=("a", "b")))
    assert await calls(live_store, "w1", "w2") == 0


async def test_nobody_is_woken_for_a_paused_limit(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=5))
    await live_store.limits.pause("gpu")
    await idle(live_store, "w")
    await live_store.submit_one(new(limits={"gpu": 1}))
    assert await calls(live_store, "w") == 0


async def test_nobody_is_woken_for_a_paused_type(live_store: Store) -> None:
    await live_store.pause_type("echo")
    await idle(live_store, "w")
    await live_store.submit_one(new())
    assert await calls(live_store, "w") == 0


# What will be able to start later: one has to know when


async def test_one_learns_of_a_delay_that_ends_before_anything_else_does(live_store: Store) -> None:
    await idle(live_store, "w1", "w2")
    await live_store.submit_one(new(delay_seconds=4))
    assert await calls(live_store, "w1", "w2") == 1
    await live_store.submit_one(new(delay_seconds=4.5))
    assert await calls(live_store, "w1", "w2") == 1, (
        "the worker that waits for the first then looks for the next"
    )


async def test_no_worker_is_called_for_the_far_future_and_one_watches_the_time(
    store: Store, clock: Clock
) -> None:
    """Waiting workers claim every few seconds: one of them has to look when the time comes."""
    await idle(store, "w1", "w2")
    await store.submit_one(new(delay_seconds=60))
    assert await calls(store, "w1", "w2") == 0
    clock.pass_seconds(4)
    alarms = [(await store.claim(worker, idle=True)).next_alarm for worker in ("w2", "w1", "w2")]
    assert alarms == [None, clock.now + 56_000, None], "w1 was the first to wait"


@pytest.mark.parametrize("way", ["a task", "leave", "drain", "silence"])
async def test_when_the_worker_that_watches_the_time_stops_waiting_another_takes_over(
    store: Store, clock: Clock, way: str
) -> None:
    await store.submit_one(new(delay_seconds=60))
    await idle(store, "w1", "w2")
    match way:
        case "a task":
            await store.submit_one(new())
            await claim_one(store, "w1")
        case "leave":
            await store.workers.leave("w1")
        case "drain":
            await store.workers.drain("w1")
        case "silence":
            clock.pass_seconds(16)
    assert (await store.claim("w2", idle=True)).next_alarm is not None


async def test_one_learns_of_a_retry(live_store: Store) -> None:
    held = await fill(live_store, "gpu")
    await idle(live_store, "w1", "w2")
    await live_store.fail("busy", Failed(held.task_id, code="timeout"))
    assert await calls(live_store, "w1", "w2") == 1


async def test_one_learns_when_a_rate_refills(live_store: Store) -> None:
    await live_store.limits.set("api", Rate(count=1, period_seconds=4, burst=1))
    await live_store.limits.acquire("api")
    await idle(live_store, "w1", "w2")
    await live_store.submit_one(new(limits={"api": 1}))
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_claim_that_leaves_room_gives_the_time_to_no_other_worker(live_store: Store) -> None:
    await live_store.limits.set("api", Rate(count=1, period_seconds=4, burst=1))
    await idle(live_store, "w1", "w2", capacity=3)
    await live_store.submit(new(limits={"api": 1}), new(limits={"api": 1}))
    assert await calls(live_store, "w1", "w2") == 1
    (first,) = [name for name, count in (await woken(live_store, "w1", "w2")).items() if count]
    assert len((await live_store.claim(first, 3, idle=True)).tasks) == 1
    assert await calls(live_store, "w1", "w2") == 1
