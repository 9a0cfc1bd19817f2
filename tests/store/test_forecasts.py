"""The forecast as people see it: who holds each limit, who is next, and one task or job followed."""

from collections.abc import Sequence

import pytest

from fairlead.errors import InvalidInput, UnknownJob, UnknownLimit
from fairlead.model.forecast import MOST_RUNS, ForecastRun, LimitForecast
from fairlead.model.job import NewJob, NewStep
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from fairlead.upkeep.estimator import Estimator
from tests.conftest import Clock
from tests.store.namespace import claim_one, new


@pytest.fixture
async def gpu(store: Store, clock: Clock) -> Store:
    """A limit of one slot, one worker, and drawings that take about 8 s."""
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=4)
    for _ in range(30):
        await store.submit_one(new("draw", limits={"gpu": 1}))
        task = await claim_one(store)
        clock.pass_seconds(8)
        await store.complete("w", Completed(task.task_id, task.fence))
    return store


async def foresee(store: Store) -> Estimator:
    await store.upkeep.elect("me", 60_000)
    estimator = Estimator(store, "me")
    await estimator.begin()
    await estimator.learn()
    assert await estimator.keep()
    assert await estimator.forecast()
    return estimator


async def submit_draws(store: Store, count: int, **options: object) -> list[str]:
    new_tasks = [new("draw", limits={"gpu": 1}, **options) for _ in range(count)]
    return [(await store.submit_one(task)).task_id for task in new_tasks]


def on_track(limit: LimitForecast, slot: int = 0) -> Sequence[ForecastRun]:
    return limit.tracks[slot].runs


async def test_a_limit_has_its_holder_and_who_is_expected_next(gpu: Store, clock: Clock) -> None:
    ids = await submit_draws(gpu, 3, user_id="ann", priority="high")
    await claim_one(gpu)
    started = clock.now
    clock.pass_seconds(2)
    await foresee(gpu)
    forecast = await gpu.forecast()
    (limit,) = forecast.limits
    assert (limit.name, limit.kind, limit.limit, limit.active, limit.waiting) == ("gpu", "slots", 1, 1, 2)
    assert [run.task_id for run in on_track(limit)] == ids
    running, first, second = on_track(limit)
    assert running.is_running
    assert running.start_p50 == running.start_p90 == started
    assert running.end_p50 - clock.now == pytest.approx(6_000, rel=0.2)
    assert running.end_p50 <= running.end_p90
    assert not first.is_running
    assert first.start_p50 - clock.now == pytest.approx(6_000, rel=0.25)
    assert first.start_p50 <= first.start_p90 <= first.end_p90
    assert second.start_p50 - first.start_p50 == pytest.approx(8_000, rel=0.25)
    assert (first.user_id, first.priority, first.task_type) == ("ann", Priority.HIGH, "draw")
    assert limit.last_start_p50 == second.start_p50
    assert limit.more == 0
    estimate = (await gpu.explain(ids[1])).estimate
    assert estimate
    assert first.start_p50 - clock.now == pytest.approx(1000 * estimate.p50_seconds, abs=2)
    assert forecast.workers
    assert (forecast.workers.limit, forecast.workers.active, forecast.workers.waiting) == (4, 1, 2)


async def test_starts_beyond_the_window_and_the_bound_are_counted(gpu: Store, clock: Clock) -> None:
    await submit_draws(gpu, MOST_RUNS + 10)
    await foresee(gpu)
    (limit,) = (await gpu.forecast(seconds=86_400)).limits
    assert (len(on_track(limit)), limit.more) == (MOST_RUNS, 10)
    (near,) = (await gpu.forecast(seconds=20)).limits
    assert len(on_track(near)) + near.more == MOST_RUNS + 10
    assert {run.start_p50 <= clock.now + 20_000 for run in on_track(near)} == {True}
    assert near.last_start_p50 == limit.last_start_p50


async def test_what_runs_stays_on_its_track(gpu: Store, clock: Clock) -> None:
    await gpu.limits.set("gpu", Slots(limit=2))
    one, two, three = await submit_draws(gpu, 3)
    first, _ = await claim_one(gpu), await claim_one(gpu)
    estimator = await foresee(gpu)
    await gpu.complete("w", Completed(first.task_id, first.fence))
    await claim_one(gpu)
    assert await estimator.forecast()
    (limit,) = (await gpu.forecast()).limits
    assert [[run.task_id for run in track.runs] for track in limit.tracks] == [[three], [two]]
    assert one == first.task_id


async def test_the_limit_with_the_longest_wait_is_first_and_an_idle_one_is_shown_when_named(
    gpu: Store, clock: Clock
) -> None:
    await gpu.limits.set("calls", Rate.of("60/min"))
    await gpu.limits.set("idle", Slots(limit=2))
    await gpu.submit_one(new("call", limits={"calls": 1}))
    await submit_draws(gpu, 3)
    await gpu.limits.acquire("idle", holder="me", lease_ms=9_000)
    await foresee(gpu)
    assert [limit.name for limit in (await gpu.forecast()).limits] == ["gpu", "calls", "idle"]
    named = (await gpu.forecast(["idle", "calls"])).limits
    assert [(limit.name, limit.kind) for limit in named] == [("idle", "slots"), ("calls", "rate")]
    (lease,) = on_track(named[0])
    assert (lease.task_id, lease.priority) == (None, None)
    assert lease.lease_id
    await gpu.limits.set("new", Slots(limit=2))
    (empty,) = (await gpu.forecast(["new"])).limits
    assert [len(track.runs) for track in empty.tracks] == [0, 0]


async def test_a_paused_limit_promises_nothing_and_is_the_most_urgent(gpu: Store) -> None:
    await gpu.limits.set("other", Slots(limit=1))
    await submit_draws(gpu, 2)
    await gpu.submit_one(new("draw", limits={"other": 1}))
    await gpu.limits.pause("gpu")
    await foresee(gpu)
    paused, _ = (await gpu.forecast()).limits
    assert (paused.name, paused.paused, paused.more, paused.last_start_p50) == ("gpu", True, 2, None)
    assert on_track(paused) == ()


async def test_without_a_forecast_nothing_is_known(gpu: Store) -> None:
    forecast = await gpu.forecast()
    assert (forecast.at, forecast.limits, forecast.workers) == (None, (), None)
    (limit,) = (await gpu.forecast(["gpu"])).limits
    assert (limit.name, limit.limit) == ("gpu", 1)


async def test_what_is_asked_for_is_checked(gpu: Store) -> None:
    with pytest.raises(UnknownLimit):
        await gpu.forecast(["nothing"])
    with pytest.raises(InvalidInput, match="at most 50"):
        await gpu.forecast([f"limit-{count}" for count in range(51)])
    with pytest.raises(InvalidInput, match="seconds"):
        await gpu.forecast(seconds=86_401)
    with pytest.raises(UnknownJob):
        await gpu.forecast(follow="01890000-0000-7000-8000-0000000000aa")


async def test_a_task_is_followed_from_its_wait_to_its_end(gpu: Store, clock: Clock) -> None:
    await submit_draws(gpu, 1)
    await claim_one(gpu)
    (task_id,) = await submit_draws(gpu, 1)
    await foresee(gpu)
    follow = (await gpu.forecast(follow=task_id)).follow
    assert follow
    (step,) = follow.steps
    assert follow.sentence.startswith("It waits for a unit of gpu")
    assert (step.status, step.limits, step.task_type) == ("queued", ("gpu",), "draw")
    assert step.start_p50
    assert step.end_p50
    assert step.end_p50 - step.start_p50 == pytest.approx(8_000, rel=0.2)


async def test_a_job_is_followed_through_its_steps(gpu: Store, clock: Clock) -> None:
    stages = [[NewStep("outline", "write")], [NewStep("picture", "draw")]]
    job_id = (await gpu.jobs.submit(NewJob(feature_name="story", stages=stages))).job_id
    task = await claim_one(gpu)
    clock.pass_seconds(3)
    await gpu.complete("w", Completed(task.task_id, task.fence))
    await foresee(gpu)
    follow = (await gpu.forecast(follow=job_id)).follow
    assert follow
    done, waiting = follow.steps
    assert (done.name, done.status, done.start_p50, done.end_p50) == (
        "outline",
        "completed",
        clock.now - 3_000,
        clock.now,
    )
    assert (waiting.name, waiting.status) == ("picture", "queued")
    assert waiting.start_p90
    assert waiting.end_p90
    assert clock.now <= waiting.start_p90 <= waiting.end_p90
