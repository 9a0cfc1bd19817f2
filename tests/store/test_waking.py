"""Idle workers sleep until there is something for them: one is woken per task that can start."""

import asyncio
from typing import Any

import pytest

from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.task import NewTask
from fairlead.settings import Rate, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, key_names, new, raw, woken


async def idle(store: Store, *workers: str, **facts: Any) -> None:
    """Workers that asked, got nothing, and wait."""
    for worker in workers:
        await store.workers.register(worker, **facts)
        assert (await store.claim(worker, idle=True)).tasks == []


async def calls(store: Store, *workers: str) -> int:
    return sum((await woken(store, *workers)).values())


async def words(store: Store, *workers: str) -> list[str]:
    """What they are called for."""
    keys = [store.connection.keys.key("wake", worker) for worker in workers]
    return sorted([word.decode() for key in keys for word in await raw(store).lrange(key, 0, -1)])


# who watched the time is called for the task, so that the other one has to watch now
ONE_FOR_THE_TASK_AND_ONE_FOR_THE_TIME = ["1n:1", "alarm"]


async def fill(store: Store, limit: str, units: int = 1) -> NewTask:
    """A limit of so many units, all taken by a task of the worker `busy`."""
    await store.limits.set(limit, Slots(limit=units))
    await store.workers.register("busy", capacity=9)
    await store.submit_one(new(limits={limit: units}))
    return NewTask(task_type="echo", task_id=(await claim_one(store, "busy")).task_id)


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
    ("facts", "wishes"),
    [
        ({"capabilities": ["gpu"]}, {"required_capabilities": ("gpu",)}),
        ({"task_types": ["draw"]}, {"task_type": "draw"}),
        ({"task_types": ["draw", "echo"], "capabilities": ["a", "b"]}, {"required_capabilities": ("b",)}),
    ],
)
async def test_the_one_that_can_serve_it_is_woken(
    live_store: Store, facts: dict[str, Any], wishes: dict[str, Any]
) -> None:
    await idle(live_store, "plain1", "plain2", task_types=["echo"])
    await idle(live_store, "able", **facts)
    await live_store.submit_one(new(**wishes))
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
    """It stands in the line for high alone, and low waits already: no submit will tell it."""
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
    """Its poll came before the result that makes room for it: no submit will tell it."""
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


async def test_a_task_that_the_claimer_takes_itself_wakes_nobody_else(store: Store, clock: Clock) -> None:
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


# Who is not woken


async def test_nobody_is_woken_for_a_full_limit(live_store: Store) -> None:
    await fill(live_store, "gpu")
    await idle(live_store, "w1", "w2")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    assert await calls(live_store, "w1", "w2") == 0


async def test_nobody_is_woken_for_a_capability_nobody_has(live_store: Store) -> None:
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
    assert await calls(live_store, "w1", "w2") == 1, "who waits for the first looks for the next then"


async def test_nobody_is_called_for_what_is_far_away_and_one_learns_of_it_by_itself(
    store: Store, clock: Clock
) -> None:
    """Who waits claims every few seconds: of all of them one has to look when the time comes."""
    await idle(store, "w1", "w2")
    await store.submit_one(new(delay_seconds=60))
    assert await calls(store, "w1", "w2") == 0
    clock.pass_seconds(4)
    alarms = [(await store.claim(worker, idle=True)).next_alarm for worker in ("w2", "w1", "w2")]
    assert alarms == [None, clock.now + 56_000, None], "w1 was the first to wait"


@pytest.mark.parametrize("way", ["a task", "leave", "drain", "silence"])
async def test_when_the_one_that_watches_the_time_waits_no_more_another_learns_of_it(
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


async def test_a_claim_that_leaves_room_tells_nobody_else_of_the_time(live_store: Store) -> None:
    await live_store.limits.set("api", Rate(count=1, period_seconds=4, burst=1))
    await idle(live_store, "w1", "w2", capacity=3)
    await live_store.submit(new(limits={"api": 1}), new(limits={"api": 1}))
    assert await calls(live_store, "w1", "w2") == 1
    (first,) = [name for name, count in (await woken(live_store, "w1", "w2")).items() if count]
    assert len((await live_store.claim(first, 3, idle=True)).tasks) == 1
    assert await calls(live_store, "w1", "w2") == 1


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
async def test_a_unit_that_gets_free_wakes_one_of_those_who_can_use_it(live_store: Store, act: str) -> None:
    held = await fill(live_store, "gpu")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    await idle(live_store, "other", task_types=["draw"])
    await idle(live_store, "w1", "w2")
    await end(live_store, act, held)
    assert await calls(live_store, "other") == 0
    assert await calls(live_store, "w1", "w2") == 1


@pytest.mark.parametrize("act", ENDS)
async def test_it_wakes_also_for_a_task_that_nobody_has_looked_at_yet(live_store: Store, act: str) -> None:
    held = await fill(live_store, "gpu")
    await idle(live_store, "w1", "w2")
    await live_store.submit(new(limits={"gpu": 1}), new(limits={"gpu": 1}))
    await end(live_store, act, held)
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_task_given_back_wakes_one(live_store: Store) -> None:
    await live_store.workers.register("busy")
    await live_store.submit_one(new())
    held = await claim_one(live_store, "busy")
    await idle(live_store, "w1", "w2")
    await live_store.release("busy", Grant(held.task_id, held.fence))
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_lease_without_a_task_that_is_given_back_wakes_one(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    lease = await live_store.limits.acquire("gpu")
    await live_store.submit_one(new(limits={"gpu": 1}))
    await idle(live_store, "w1", "w2")
    await live_store.limits.release(lease)
    assert await calls(live_store, "w1", "w2") == 1


async def test_units_that_got_free_wake_one_though_its_task_also_needs_some_that_were_free(
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
async def test_a_limit_that_goes_on_wakes_one_per_task(live_store: Store, seen: bool) -> None:
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


async def test_a_type_that_goes_on_wakes_one_per_task(live_store: Store) -> None:
    await live_store.pause_type("echo")
    await live_store.submit_one(new())
    await idle(live_store, "w1", "w2", "w3")
    await live_store.pause_type("echo", False)
    assert await calls(live_store, "w1", "w2", "w3") == 1


async def test_a_call_for_what_is_paused_meanwhile_is_passed_on_to_one_who_can_start_something(
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


async def test_a_hold_that_ends_wakes_one_who_was_held_back(store: Store, clock: Clock) -> None:
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
    told_to_go = int(way.startswith("drain"))  # its wait is over
    assert await calls(live_store, "w") == told_to_go
    await live_store.submit_one(new())
    assert await calls(live_store, "w") == told_to_go


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


# Those who slept before the others came


async def two_came_and_one_started(store: Store, wishes: dict[str, Any]) -> str:
    """Two idle workers, two tasks, room for one: one worker is woken and starts it, the other sleeps on."""
    await idle(store, "w1", "w2")
    await store.submit(new(**wishes), new(**wishes))
    (busy,) = [worker for worker, count in (await woken(store, "w1", "w2")).items() if count]
    await claim_one(store, busy)
    await raw(store).delete(store.connection.keys.key("wake", busy))
    return busy


async def test_a_unit_that_gets_free_wakes_the_one_who_slept_on(live_store: Store) -> None:
    await live_store.limits.set("gpu", Slots(limit=1))
    busy = await two_came_and_one_started(live_store, {"limits": {"gpu": 1}})
    await live_store.workers.drain(busy)
    (held,) = (await live_store.workers.heartbeat(busy)).leases
    await live_store.complete(busy, Completed(held))
    assert await calls(live_store, "w1", "w2") == 1


async def test_a_rate_that_refills_wakes_the_one_who_slept_on(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=1))
    await two_came_and_one_started(store, {"limits": {"api": 1}})
    clock.pass_seconds(10)
    await store.promote()  # as upkeep does
    assert await calls(store, "w1", "w2") == 1


async def test_a_delay_that_ends_wakes_the_one_who_slept_before(store: Store, clock: Clock) -> None:
    await store.submit_one(new(delay_seconds=10))
    await idle(store, "w1", "w2")
    clock.pass_seconds(10)
    await store.promote()
    assert await words(store, "w1", "w2") == ONE_FOR_THE_TASK_AND_ONE_FOR_THE_TIME


async def test_a_lease_that_ends_wakes_the_one_who_slept_before(store: Store, clock: Clock) -> None:
    await fill(store, "gpu")
    await idle(store, "w1", "w2")
    await store.submit_one(new(limits={"gpu": 1}))
    for _ in range(2):
        clock.pass_seconds(20)
        for worker in ("w1", "w2"):
            await store.workers.heartbeat(worker)
    await store.expire()
    assert await words(store, "w1", "w2") == ONE_FOR_THE_TASK_AND_ONE_FOR_THE_TIME


# Whoever is called and leaves something behind that can start calls the next one


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


async def test_a_called_worker_that_leaves_nothing_behind_calls_nobody(store: Store) -> None:
    await idle(store, "w1", "w2")
    await store.submit_one(new())
    await claim_one(store, "w1")
    assert await woken(store, "w2") == {"w2": 0}
