"""What wakes idle workers besides a submit, and what happens to a call that is not answered."""

from typing import Any

import pytest

from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.task import NewTask
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.idle_workers import ONE_FOR_THE_TASK_AND_ONE_FOR_THE_TIME, calls, fill, idle, words
from tests.store.namespace import claim_one, key_names, new, raw, woken

# What wakes besides a submit


async def end(store: Store, act: str, held: NewTask) -> None:
    match act:
        case "complete":
            await store.complete("busy", Completed(held.task_id))
        case "fail":
            await store.fail("busy", Failed(held.task_id, retriable=False))
        case "cancel and confirm":
            await store.cancel(held.task_id)
            await store.release("busy", Grant(held.task_id))
        case "raise the limit":
            await store.limits.set("gpu", Slots(limit=2))


ENDS = ["complete", "fail", "cancel and confirm", "raise the limit"]


@pytest.mark.parametrize("act", ENDS)
async def test_a_freed_unit_wakes_one_worker_that_can_use_it(live_store: Store, act: str) -> None:
    held = await fill(live_store, "gpu")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    await idle(live_store, "other", task_types=["draw"])
    await idle(live_store, "w1", "w2")
    await end(live_store, act, held)
    assert await calls(live_store, "other") == 0
    assert await calls(live_store, "w1", "w2") == 1


@pytest.mark.parametrize("act", ENDS)
async def test_it_wakes_a_worker_also_for_a_task_that_no_claim_has_looked_at(
    live_store: Store, act: str
) -> None:
    held = await fill(live_store, "gpu")
    await idle(live_store, "w1", "w2")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    await end(live_store, act, held)
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_released_task_wakes_one_worker(live_store: Store) -> None:
    await live_store.workers.register("busy")
    await live_store.submit_one(new())
    held = await claim_one(live_store, "busy")
    await idle(live_store, "w1", "w2")
    await live_store.release("busy", Grant(held.task_id, held.fence))
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_released_lease_without_a_task_wakes_one_worker(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    lease = await live_store.limits.acquire("gpu")
    await live_store.submit_one(new(limits={"gpu": 1}))
    await idle(live_store, "w1", "w2")
    await live_store.limits.release(lease)
    assert await calls(live_store, "w1", "w2") == 1


async def test_freed_units_wake_one_worker_although_its_task_also_needs_some_that_were_free(
    live_store: Store,
) -> None:
    await live_store.limits.set("gpu", Slots(limit=3))
    leases = [await live_store.limits.acquire("gpu") for _ in range(2)]
    await live_store.submit_one(new(limits={"gpu": 2}))
    await idle(live_store, "w1", "w2")
    await live_store.limits.release(leases[0])
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_replayed_task_wakes_one(live_store: Store) -> None:
    await live_store.workers.register("busy")
    await live_store.submit_one(new())
    held = await claim_one(live_store, "busy")
    await live_store.fail("busy", Failed(held.task_id, held.fence, retriable=False))
    await idle(live_store, "w1", "w2")
    await live_store.replay(held.task_id)
    assert await calls(live_store, "w1", "w2") == 1


async def test_the_next_step_of_a_job_wakes_one(live_store: Store) -> None:
    await live_store.workers.register("busy")
    stages = [[NewStep("first", "echo")], [NewStep("second", "echo")]]
    await live_store.jobs.submit(NewJob(feature_name="f", stages=stages))
    held = await claim_one(live_store, "busy")
    await idle(live_store, "w1", "w2")
    await live_store.complete("busy", Completed(held.task_id, held.fence))
    assert await calls(live_store, "w1", "w2") == 1


@pytest.mark.parametrize("seen", [True, False], ids=["looked at", "not looked at"])
async def test_a_resumed_limit_wakes_one_worker_per_task(live_store: Store, seen: bool) -> None:
    await live_store.limits.set("gpu", Slots(limit=5))
    await live_store.limits.pause("gpu")
    if not seen:
        await idle(live_store, "w1", "w2", "w3")
    await live_store.submit_one(new(limits={"gpu": 1}))
    if seen:
        await idle(live_store, "w1", "w2", "w3")
    await live_store.limits.pause("gpu", False)
    assert await calls(live_store, "w1", "w2", "w3") == 1


async def test_a_raised_limit_wakes_one_per_task(live_store: Store) -> None:
    await fill(live_store, "gpu")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    await idle(live_store, "w1", "w2", "w3", "w4")
    await live_store.limits.set("gpu", Slots(limit=9))
    assert await calls(live_store, "w1", "w2", "w3", "w4") == 2


async def test_a_resumed_type_wakes_one_worker_per_task(live_store: Store) -> None:
    await live_store.pause_type("echo")
    await live_store.submit_one(new())
    await idle(live_store, "w1", "w2", "w3")
    await live_store.pause_type("echo", False)
    assert await calls(live_store, "w1", "w2", "w3") == 1


async def test_a_call_for_a_task_paused_meanwhile_is_passed_on_to_a_worker_that_can_start_one(
    live_store: Store,
) -> None:
    """Both wait for the same limit; whichever lot the freed unit is promised to, `chat` starts."""
    await live_store.limits.set("gpu", Slots(limit=0))
    await idle(live_store, "renders", task_types=["render"])
    await idle(live_store, "chats", task_types=["chat"])
    for kind in ("render", "chat"):
        await live_store.submit(*(new(task_type=kind, limits={"gpu": 1}) for _ in range(2)))
    await live_store.pause_type("render", True)
    await live_store.limits.set("gpu", Slots(limit=1))
    if await calls(live_store, "renders"):
        assert (await live_store.claim("renders", idle=True)).tasks == []
    assert await calls(live_store, "chats")


async def test_a_hold_that_ends_wakes_a_worker_that_was_held_back(store: Store, clock: Clock) -> None:
    await store.limits.set("a", Slots(limit=1))
    await store.limits.set("b", Slots(limit=1))
    await store.workers.register("busy", capacity=9)
    await store.submit(new(limits={"a": 1}), new(limits={"b": 1}))
    one, _ = (await store.claim("busy", 9, lease_ms=600_000)).tasks  # no lease ends soon: that wakes one too
    both = await store.submit_one(new(limits={"a": 1, "b": 1}))
    clock.pass_seconds(30)
    await store.workers.register("busy", capacity=9)
    assert (await store.claim("busy")).tasks == []  # the hold is made
    await store.complete("busy", Completed(one.task_id))
    await store.submit_one(new(limits={"a": 1}))
    await idle(store, "w1", "w2")
    await store.cancel(both.task_id)
    assert await calls(store, "w1", "w2") == 1


# Workers that are gone


async def test_a_woken_worker_is_no_longer_idle(live_store: Store) -> None:
    await idle(live_store, "w")
    await live_store.submit(new())
    assert [key for key in await key_names(live_store) if key.startswith("idle")] == []


@pytest.mark.parametrize("way", ["leave", "drain", "drain by heartbeat", "claim"])
async def test_an_idle_worker_that_goes_is_not_woken(live_store: Store, way: str) -> None:
    await idle(live_store, "w")
    match way:
        case "leave":
            await live_store.workers.leave("w")
        case "drain":
            await live_store.workers.drain("w")
        case "drain by heartbeat":
            await live_store.workers.heartbeat("w", draining=True)
        case "claim":
            await live_store.claim("w")
    assert [key for key in await key_names(live_store) if key.startswith("idle")] == []
    drained = int(way.startswith("drain"))  # its wait is over
    assert await calls(live_store, "w") == drained
    await live_store.submit_one(new())
    assert await calls(live_store, "w") == drained


async def test_an_idle_worker_whose_record_has_run_out_does_not_stop_a_submit(
    store: Store, clock: Clock
) -> None:
    await idle(store, "w")
    await raw(store).delete(store.connection.keys.key("worker", "w"))
    await store.submit_one(new())
    clock.pass_seconds(3_700)  # as long as a record is kept, nobody has looked
    await store.submit_one(new())
    await store.upkeep.bury()
    assert [key for key in await key_names(store) if key in ("listed", "idle", "idlers:1o")] == []


async def test_a_dead_idle_worker_is_not_woken_in_place_of_a_live_one(store: Store, clock: Clock) -> None:
    await idle(store, "dead")
    clock.pass_seconds(60)
    await idle(store, "live")
    await store.submit_one(new())
    assert await calls(store, "live") == 1


# Workers that slept before the others came


async def two_came_and_one_started(store: Store, options: dict[str, Any]) -> str:
    """Two idle workers, two tasks, room for one: one worker is woken and starts it, the other sleeps on."""
    await idle(store, "w1", "w2")
    await store.submit(new(**options), new(**options))
    (busy,) = [worker for worker, count in (await woken(store, "w1", "w2")).items() if count]
    await claim_one(store, busy)
    await raw(store).delete(store.connection.keys.key("wake", busy))
    return busy


async def test_a_freed_unit_wakes_the_worker_that_slept_on(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    busy = await two_came_and_one_started(live_store, {"limits": {"gpu": 1}})
    await live_store.workers.drain(busy)
    (held,) = (await live_store.workers.heartbeat(busy)).leases
    await live_store.complete(busy, Completed(held))
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_rate_that_refills_wakes_the_worker_that_slept_on(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=1))
    await two_came_and_one_started(store, {"limits": {"api": 1}})
    clock.pass_seconds(10)
    await store.promote()  # as upkeep does
    assert await calls(store, "w1", "w2") == 1


async def test_a_delay_that_ends_wakes_the_worker_that_slept_before(store: Store, clock: Clock) -> None:
    await store.submit_one(new(delay_seconds=10))
    await idle(store, "w1", "w2")
    clock.pass_seconds(10)
    await store.promote()
    assert await words(store, "w1", "w2") == ONE_FOR_THE_TASK_AND_ONE_FOR_THE_TIME


async def test_a_lease_that_ends_wakes_the_worker_that_slept_before(store: Store, clock: Clock) -> None:
    await fill(store, "gpu")
    await idle(store, "w1", "w2")
    await store.submit_one(new(limits={"gpu": 1}))
    for _ in range(2):
        clock.pass_seconds(20)
        for worker in ("w1", "w2"):
            await store.workers.heartbeat(worker)
    await store.expire()
    assert await words(store, "w1", "w2") == ONE_FOR_THE_TASK_AND_ONE_FOR_THE_TIME


# A called worker that leaves behind a task that can start calls the next one


async def test_a_called_worker_that_does_something_better_calls_the_next_one(store: Store) -> None:
    await idle(store, "w1", task_types=["echo", "only1"])
    await idle(store, "w2", task_types=["echo", "only2"])
    await store.submit_one(new())
    (called,) = [worker for worker, count in (await woken(store, "w1", "w2")).items() if count]
    other = {"w1": "w2", "w2": "w1"}[called]
    better = new(called.replace("w", "only"), priority="high")
    await store.submit_one(better)
    assert await woken(store, other) == {other: 0}
    assert (await claim_one(store, called)).task_id == better.task_id
    assert await woken(store, other) == {other: 1}


@pytest.mark.parametrize("way", ["drain", "die", "be silent"])
async def test_a_called_worker_that_goes_calls_the_next_one(store: Store, clock: Clock, way: str) -> None:
    await idle(store, "w1", "w2")
    await store.submit_one(new())
    assert await woken(store, "w1", "w2") == {"w1": 1, "w2": 0}
    match way:
        case "drain":
            await store.workers.drain("w1")
        case "die":
            await store.expire("w1")
        case "be silent":
            clock.pass_seconds(20)
            await store.workers.heartbeat("w2")
            clock.pass_seconds(20)
            await store.upkeep.bury()
    assert await woken(store, "w2") == {"w2": 1}


async def test_a_called_worker_that_leaves_calls_the_next_one(live_store: Store) -> None:
    await idle(live_store, "w1", "w2")
    await live_store.submit_one(new())
    (called,) = [worker for worker, count in (await woken(live_store, "w1", "w2")).items() if count]
    await live_store.workers.leave(called)
    assert await calls(live_store, "w1", "w2") == 2


async def test_a_called_worker_that_leaves_nothing_behind_calls_no_other(store: Store) -> None:
    await idle(store, "w1", "w2")
    await store.submit_one(new())
    await claim_one(store, "w1")
    assert await woken(store, "w2") == {"w2": 0}
