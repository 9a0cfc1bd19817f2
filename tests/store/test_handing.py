"""A worker that waits, and says so, is handed a task in the call that wakes it."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fairlead.model.estimate import Estimate
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Submitted
from fairlead.settings import Slots
from fairlead.store.records import read_facts
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.handing import called, claimed, handed, status, waits
from tests.store.namespace import claim_one, events, everything, new, woken

# Which worker is handed a task


async def test_a_worker_that_waits_is_handed_the_task(store: Store, clock: Clock) -> None:
    await waits(store, "w")
    clock.pass_ms(7)
    task = new(parameters={"text": "hello"})
    submitted = await store.submit_one(task)
    call = await handed(store)
    assert (call.now, call.task.task_id, call.task.parameters) == (clock.now, task.task_id, {"text": "hello"})
    assert (submitted.status, submitted.queue_position) == (State.QUEUED, 1), "the client sees no difference"
    assert await store.get(task.task_id) == call.task
    assert await woken(store, "w") == {"w": 0}


async def test_a_worker_that_does_not_say_so_is_only_called(store: Store) -> None:
    await store.workers.register("w")
    await store.claim("w", idle=True)
    task = new()
    await store.submit_one(task)
    assert await called(store) == "1n:1", "the lane of all that its profile serves"
    assert await status(store, task) is State.QUEUED


async def test_the_last_claim_decides(store: Store) -> None:
    await waits(store, "w")
    await store.claim("w", idle=True)
    await store.submit_one(new())
    await called(store)


async def test_a_worker_that_claimed_and_does_not_wait_is_neither_handed_a_task_nor_called(
    store: Store,
) -> None:
    await waits(store, "w")
    await store.claim("w", acknowledged=())
    task = new()
    await store.submit_one(task)
    assert (await woken(store, "w"), await status(store, task)) == ({"w": 0}, State.QUEUED)


async def test_a_worker_that_was_handed_a_task_no_longer_waits(store: Store) -> None:
    await waits(store, "w", capacity=5)
    first, second = new(), new()
    await store.submit_one(first)
    await store.submit_one(second)
    assert (await handed(store)).task.task_id == first.task_id
    assert (await woken(store, "w"), await status(store, second)) == ({"w": 0}, State.QUEUED)


async def test_the_worker_that_waited_longest_is_handed_it(store: Store, clock: Clock) -> None:
    for worker in ("w2", "w1", "w3"):
        await waits(store, worker)
        clock.pass_ms(1)
    await store.submit_one(new())
    assert await woken(store, "w1", "w2", "w3") == {"w1": 0, "w2": 1, "w3": 0}
    assert (await handed(store, "w2")).task.assigned_worker_id == "w2"


@pytest.mark.parametrize("act", ["release", "replay", "complete a step", "raise the limit"])
async def test_only_a_submit_hands_over(store: Store, act: str) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("busy", capacity=2)
    await store.submit(new(limits={"gpu": 1}))
    held = await claim_one(store, "busy")
    waiting = new(limits={"gpu": 1})
    await store.submit(waiting)
    if act == "replay":
        await store.fail("busy", Failed(held.task_id, held.fence, retriable=False))
        assert await claim_one(store, "busy")
        await store.limits.set("gpu", Slots(limit=2))
    if act == "complete a step":
        stages = [[NewStep("first", "echo")], [NewStep("second", "echo")]]
        await store.jobs.submit(NewJob(feature_name="f", stages=stages))
        held = await claim_one(store, "busy")
    await waits(store, "w")
    match act:
        case "release":
            await store.release("busy", Grant(held.task_id, held.fence))
        case "replay":
            await store.replay(held.task_id)
        case "complete a step":
            await store.complete("busy", Completed(held.task_id, held.fence))
        case "raise the limit":
            await store.limits.set("gpu", Slots(limit=2))
    await called(store)
    assert len((await store.claim("w")).tasks) == 1, "it was there to be claimed"


@pytest.mark.parametrize(
    ("facts", "options"),
    [
        ({"capabilities": ["gpu"]}, {"required_capabilities": ("gpu",)}),
        ({"task_types": ["draw"]}, {"task_type": "draw"}),
        ({"task_types": ["draw", "echo"], "capabilities": ["a", "b"]}, {"required_capabilities": ("b",)}),
    ],
)
async def test_the_one_that_can_serve_it_is_handed_it(
    store: Store, facts: dict[str, Any], options: dict[str, Any]
) -> None:
    await waits(store, "plain", task_types=["echo"])
    await waits(store, "able", **facts)
    task = new(**options)
    await store.submit_one(task)
    assert (await handed(store, "able")).task.task_id == task.task_id
    assert await woken(store, "plain") == {"plain": 0}


async def test_each_worker_is_handed_a_task_of_the_batch_that_it_can_serve(store: Store) -> None:
    """The best task of the batch is not for the worker that is considered first."""
    await waits(store, "plain", task_types=["echo"])
    await waits(store, "able", task_types=["draw"])
    high, low = new("draw", priority="high"), new("echo", priority="low")
    await store.submit(low, high)
    assert (await handed(store, "plain")).task.task_id == low.task_id
    assert (await handed(store, "able")).task.task_id == high.task_id


async def test_a_paused_type_is_not_handed_over(store: Store) -> None:
    await store.pause_type("echo")
    await waits(store, "w")
    paused, other = new("echo", priority="high"), new("draw", priority="low")
    await store.submit(paused, other)
    assert (await handed(store)).task.task_id == other.task_id
    assert await status(store, paused) is State.QUEUED


async def test_a_worker_with_only_its_reserve_free_is_handed_high_alone(store: Store) -> None:
    await store.workers.register("w", capacity=2, reserve=1)
    await store.submit_one(new(priority="low"))
    await claim_one(store)
    assert (await store.claim("w", idle=True, acknowledged=())).tasks == []
    await store.submit_one(new(priority="medium"))
    assert await woken(store, "w") == {"w": 0}
    low, high = new(priority="low"), new(priority="high")
    await store.submit(low, high)
    assert (await handed(store)).task.task_id == high.task_id
    assert (await woken(store, "w"), await status(store, low)) == ({"w": 0}, State.QUEUED)


# Which task


async def test_the_best_of_a_batch_is_handed_over_and_the_next_claim_gets_the_other(store: Store) -> None:
    await waits(store, "w", capacity=5)
    low, high = new(priority="low"), new(priority="high")
    await store.submit(low, high)
    call = await handed(store)
    assert call.task.task_id == high.task_id
    assert (await woken(store, "w"), await status(store, low)) == ({"w": 0}, State.QUEUED)
    assert await claimed(store, want=5, acknowledged=[call.task.fence]) == [low.task_id]


async def test_a_better_one_that_waits_already_goes_first(store: Store, clock: Clock) -> None:
    """A worker was called for it and has not claimed yet."""
    await store.workers.register("busy")
    await store.submit_one(new(priority="high"))
    held = await claim_one(store, "busy")
    await waits(store, "slow")
    clock.pass_ms(1)
    await waits(store, "w")
    await store.release("busy", Grant(held.task_id, held.fence))
    await called(store, "slow")
    low = new(priority="low")
    await store.submit_one(low)
    assert (await handed(store)).task.task_id == held.task_id
    assert await claimed(store, "slow") == [low.task_id]


BATCHES: dict[str, list[dict[str, Any]]] = {
    "priorities": [{"priority": "low"}, {"priority": "medium"}, {"priority": "high"}],
    "the first of equals": [{}, {}, {}],
    "a limit without room": [{"priority": "high", "limits": {"none": 1}}, {"priority": "low"}],
    "types": [{"task_type": "other", "priority": "medium"}, {"task_type": "echo", "priority": "high"}],
    "not now": [{"priority": "high", "delay_seconds": 60}, {"priority": "low"}],
    "not for it": [{"priority": "high", "required_capabilities": ("gpu",)}, {"priority": "medium"}],
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
async def test_it_is_the_one_that_a_claim_would_get(
    store: Store, clock: Clock, open_store: Callable[..., Store], batch: list[dict[str, Any]]
) -> None:
    other = open_store(clock=clock)
    await other.open()
    got = []
    for one in (store, other):
        await one.limits.set("none", Slots(limit=0))
        tasks = [new(**{"task_type": "echo", **options}) for options in batch]
        if one is store:
            await waits(one, "w")
        answers = await one.submit(*tasks)
        assert all(isinstance(answer, Submitted) for answer in answers), answers
        await one.workers.register("w")
        task = (await handed(one)).task if one is store else await claim_one(one)
        got.append([new.task_id for new in tasks].index(task.task_id))
    assert got[0] == got[1]


@pytest.mark.parametrize("lanes", [({"priority": "low"}, {"priority": "high"}), ({"task_type": "draw"}, {})])
async def test_tasks_in_two_lanes_are_handed_to_two_workers(store: Store, lanes: Any) -> None:
    await waits(store, "w1", "w2")
    tasks = [new(**options) for options in lanes]
    await store.submit(*tasks)
    calls = [await handed(store, worker) for worker in ("w1", "w2")]
    assert {call.task.task_id for call in calls} == {task.task_id for task in tasks}
    assert [call.task.assigned_worker_id for call in calls] == ["w1", "w2"]


async def test_no_more_are_handed_over_than_the_limit_has_room_for(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await waits(store, "w1", "w2")
    tasks = [new(limits={"gpu": 1}), new(limits={"gpu": 1})]
    await store.submit(*tasks)
    assert (await handed(store, "w1")).task.task_id == tasks[0].task_id
    assert (await woken(store, "w2"), await status(store, tasks[1])) == ({"w2": 0}, State.QUEUED)
    assert (await store.limits.get("gpu")).active == 1


async def test_a_task_that_is_submitted_twice_is_handed_over_once(store: Store) -> None:
    await waits(store, "w1", "w2")
    first = await store.submit_one(new(idempotency_key="once"))
    again = await store.submit_one(new(idempotency_key="once"))
    assert (again.task_id, again.repeated) == (first.task_id, True)
    assert (await handed(store, "w1")).task.task_id == first.task_id
    assert await woken(store, "w2") == {"w2": 0}


# What is written


async def test_all_is_written_as_by_a_claim(
    store: Store, clock: Clock, open_store: Callable[..., Store]
) -> None:
    """Except which worker waits, what it has not acknowledged, and the estimate."""
    other = open_store(clock=clock)
    await other.open()
    task = new(parameters={"text": "hello"}, limits={"gpu": 2}, user_id="ann", max_wait_seconds=60)
    for one in (store, other):
        await one.limits.set("gpu", Slots(limit=5))
        await waits(one, "w")
        if one is other:
            await one.workers.register("w")  # it waits no more
        await one.submit_one(task)
    call, one_claimed = await handed(store), await claim_one(other)
    at_once = Estimate(0, 0.05, clock.now)
    assert (call.task, call.now) == (msgspec.structs.replace(one_claimed, estimate_given=at_once), clock.now)
    assert (one_claimed.assigned_worker_id, one_claimed.fence) == ("w", clock.now * 1000)
    here, there = await everything(store), await everything(other)
    for content in (here, there):
        # the first has two more fields, the second has one event for each of two acts
        for name in ("worker:w", "events"):
            assert content.pop(name)
        assert content["meta"][0].pop(b"audience_version")  # an instant
        assert content["meta"][0].pop(b"epoch")
        record = content[f"task:{task.task_id}"][0]
        record[b"facts"] = read_facts(record[b"facts"])
    assert here[f"task:{task.task_id}"][0][b"facts"].pop("estimate")
    assert here == there


async def test_its_events_are_those_of_a_submit_and_a_claim(store: Store, clock: Clock) -> None:
    await waits(store, "w")
    task = new()
    await store.submit_one(task)
    call = await handed(store)
    submitted, started = await events(store, task.task_id)
    assert (submitted["act"], submitted["to"]) == ("submit", "queued")
    expected = {
        "act": "claim",
        "from": "queued",
        "to": "executing",
        "at": clock.now,
        "fence": call.task.fence,
    }
    assert {name: started[name] for name in expected} == expected
    assert (started["detail"]["worker"], started["detail"]["waited"]) == ("w", 0)


async def test_its_lease_is_as_long_as_requested(store: Store, clock: Clock) -> None:
    await waits(store, "w", lease_ms=7_000)
    await waits(store, "w", lease_ms=9_000)
    clock.pass_ms(500)
    await store.submit_one(new(timeout_seconds=33))
    task = (await handed(store)).task
    assert (task.lease_until, task.deadline) == (clock.now + 9_000, clock.now + 33_000)
    clock.pass_ms(9_000 + 1_000)  # and its grace
    assert await store.expire() == 1


async def test_a_large_task_arrives_whole(store: Store) -> None:
    await waits(store, "w")
    parameters = {"text": "ä\n" * 50_000}
    await store.submit_one(new(parameters=parameters))
    assert (await handed(store)).task.parameters == parameters
