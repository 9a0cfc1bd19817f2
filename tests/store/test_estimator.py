"""What the estimator reads of the store, learns and keeps, whoever is elected to do it."""

import asyncio
from typing import Any

import pytest

from fairlead.estimates import durations
from fairlead.estimates.durations import RunKind
from fairlead.estimates.knowledge import Knowledge
from fairlead.model.reports import Completed
from fairlead.settings import Rate, Slots
from fairlead.store import picture as reading
from fairlead.store.store import Store
from fairlead.upkeep.estimator import Estimator
from tests.conftest import Clock
from tests.store.namespace import claim_one, new

LEASE_MS = 5_000


async def estimator(store: Store, who: str = "me") -> Estimator:
    await store.upkeep.elect(who, LEASE_MS)
    made = Estimator(store, who)
    await made.begin()
    return made


async def run_one(store: Store, clock: Clock, task_type: str, seconds: float) -> None:
    submitted = await store.submit_one(new(task_type))
    task = await claim_one(store)
    assert task.task_id == submitted.task_id
    clock.pass_seconds(seconds)
    await store.complete("w", Completed(task.task_id, task.fence))


def median(knowledge: Knowledge, task_type: str) -> float:
    return knowledge.durations.of(RunKind(task_type)).draw(0.5) / 1000


async def test_durations_are_learnt_from_runs_that_ended(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    for _ in range(20):
        await run_one(store, clock, "draw", 8)
        await run_one(store, clock, "write", 0.5)
    me = await estimator(store)
    assert not await me.learn()
    assert median(me.knowledge, "draw") == pytest.approx(8, rel=0.1)
    assert median(me.knowledge, "write") == pytest.approx(0.5, rel=0.1)


async def test_another_process_continues_where_one_was_killed(store: Store, clock: Clock) -> None:
    """What the first has learnt but not kept is learnt by the second, and nothing is learnt twice."""
    await store.workers.register("w")
    one = await estimator(store, "one")
    for seconds in (8, 2, 4):
        await run_one(store, clock, "draw", seconds)
    await one.learn()
    assert await one.keep()
    for seconds in (9, 3, 7):
        await run_one(store, clock, "draw", seconds)
    await one.learn()  # and is killed before it has kept this
    await store.upkeep.resign("one")
    other = await estimator(store, "other")
    await other.learn()
    known = [
        one.knowledge.durations.of(RunKind("draw")).shares(),
        other.knowledge.durations.of(RunKind("draw")).shares(),
    ]
    (first, second) = (dict(shares) for shares in known)
    assert second == pytest.approx(first, abs=0.01)
    assert other.knowledge.position == one.knowledge.position


async def test_what_a_replaced_estimator_knows_is_not_kept(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await run_one(store, clock, "draw", 1)
    me = await estimator(store)
    await me.learn()
    await store.upkeep.resign("me")
    await store.upkeep.elect("another", LEASE_MS)
    assert not await me.keep()
    assert not await me.forecast()
    assert await store.estimates.learnt() == {}


async def test_hostile_types_do_not_fill_the_store(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durations, "MOST_KINDS", 20)
    await store.workers.register("w")
    me = await estimator(store)
    for count in range(50):
        await run_one(store, clock, f"hostile{count}", 1)
        if count % 7 == 0:
            await me.learn()
            await me.keep()
    await me.learn()
    await me.keep()
    kinds = [name for name in await store.estimates.learnt() if name.startswith("kind:")]
    assert len(kinds) == 20


async def test_a_forecast_is_read_by_those_who_submit(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=1)
    for _ in range(50):
        await run_one(store, clock, "echo", 10)
    clock.pass_seconds(600)  # these come no more
    await store.workers.register("w", capacity=1)
    await store.submit(new(), new(), new())
    await claim_one(store)
    clock.pass_seconds(5)
    me = await estimator(store)
    await me.learn()
    assert await me.forecast()
    estimate = (await store.submit_one(new(priority="low"))).estimate
    assert estimate is not None
    assert estimate.p50_seconds == pytest.approx(25, rel=0.15)
    assert estimate.p90_seconds >= estimate.p50_seconds
    urgent = (await store.submit_one(new(priority="high"))).estimate
    assert urgent is not None
    assert urgent.p50_seconds == pytest.approx(5, rel=0.15)


async def test_the_quality_of_estimates_is_in_the_stats(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=1)
    for _ in range(20):
        await run_one(store, clock, "echo", 10)
    me = await estimator(store)
    for seconds in (9, 60):
        await store.submit_one(new())
        running = await claim_one(store)
        await me.learn()
        await me.forecast()
        await store.submit_one(new())
        clock.pass_seconds(seconds)
        await store.workers.register("w", capacity=1)
        await store.complete("w", Completed(running.task_id, running.fence))
        waited = await claim_one(store)
        await store.complete("w", Completed(waited.task_id, waited.fence))
    await me.learn()
    await me.keep()
    quality = (await store.stats()).estimates
    assert (quality.count, quality.coverage_p90) == (2, 0.5)
    assert quality.median_error_seconds is not None
    assert (quality.within_total, quality.beyond_total) == (1, 1)


async def test_a_picture_has_what_waits_and_what_runs(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.limits.set("calls", Rate(count=60, period_seconds=60, burst=2))
    await store.workers.register("w", capacity=2, capabilities=["x"])
    first, *others = [
        await store.submit_one(new(limits={"gpu": 1}, user_id="ann")),
        await store.submit_one(new(limits={"gpu": 1})),
        await store.submit_one(new(limits={"calls": 1}, priority="high", required_capabilities=["y"])),
    ]
    task = await claim_one(store)
    assert task.task_id == first.task_id
    lease = await store.limits.acquire("calls", lease_id="l")
    seen = await store.estimates.picture()
    assert seen.at == clock.now
    assert [run.holder for run in seen.running if run.worker] == [first.task_id]
    assert {one.task_id for one in seen.waiting} == {one.task_id for one in others}
    assert {limit["kind"] for limit in seen.limits.values()} == {"slots", "rate"}
    (worker,) = seen.workers
    assert (worker.worker_id, worker.profile, worker.capacity) == ("w", "*;,x,", 2)
    assert seen.queued("0n") == seen.queued("1n") == 1
    await store.limits.release(lease)


async def test_tasks_that_will_come_are_expected_at_limits_that_nobody_waits_for_now(
    store: Store, clock: Clock
) -> None:
    await store.limits.set("gpu", Slots(limit=5))
    await store.workers.register("w", capacity=1)
    for _ in range(40):
        await store.submit_one(new(priority="high", limits={"gpu": 1}))
        task = await claim_one(store)
        clock.pass_seconds(5)
        await store.complete("w", Completed(task.task_id, task.fence))
        clock.pass_seconds(2)
        await store.workers.register("w", capacity=1)
    me = await estimator(store)
    await me.learn()
    await store.submit(*[new(priority="low") for _ in range(10)])
    assert await me.forecast()
    estimate = (await store.submit_one(new(priority="low"))).estimate
    assert estimate is not None
    assert estimate.p50_seconds > 2 * 50, "most of the time goes to better tasks"


async def test_of_a_long_queue_only_a_part_is_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PIECE", 7)
    await store.workers.register("w", capacity=2)
    for _ in range(3):
        await store.submit(*[new() for _ in range(200)])
    seen = await store.estimates.picture()
    assert 50 < len(seen.waiting) < 200
    assert sum(one.stands_for for one in seen.waiting) == 600
    assert [one.stands_for for one in seen.waiting[:10]] == [1] * 10, "the first are all read"
    assert sorted(seen.waiting, key=lambda one: (one.tag, one.seq)) == list(seen.waiting)


async def test_whoever_waits_is_estimated_while_others_start_and_end(store: Store, clock: Clock) -> None:
    """A picture is read in pieces, and what it shows has changed meanwhile."""
    await store.workers.register("w", capacity=3)
    me = await estimator(store)

    async def work() -> None:
        for _ in range(60):
            await store.submit(new(), new(priority="high"))
            for task in (await store.claim("w", want=3)).tasks:
                await store.complete("w", Completed(task.task_id, task.fence))

    working: Any = asyncio.ensure_future(work())
    while not working.done():
        await me.learn()
        assert await me.forecast()
    await working
