"""When a job will be done: by the waits of its steps, and by how long their runs take."""

from collections.abc import Mapping

import msgspec
import pytest

from fairlead.estimates.durations import Durations, RunKind
from fairlead.estimates.knowledge import KIND
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.forecasting import flat, forecast
from tests.store.namespace import claim_one, new

STORY = [[NewStep("outline", "echo")], [NewStep("draw", "draw"), NewStep("narrate", "echo")]]


async def learn(store: Store, at: int, seconds: Mapping[str, float]) -> None:
    """Runs of these types have always taken about so long."""
    durations = Durations()
    for task_type, each in seconds.items():
        for _ in range(1_000):
            durations.learn(RunKind(task_type), 1000 * each, at)
    kinds = {KIND + kind: packed(value) for kind, value in durations.packed_changes().items()}
    await store.estimates.learn("me", kinds)


def packed(value: object) -> str:
    return msgspec.json.encode(value).decode()


@pytest.fixture
async def busy(store: Store, clock: Clock) -> Store:
    """Whatever comes waits 10 s by p50 and 15 s by p90; an echo runs for 4 s, a drawing for 20."""
    await store.workers.register("w", capacity=1)
    await store.submit(new())
    await claim_one(store)
    await store.submit(new())
    await forecast(store, clock.now, {"1n": flat(10_000, 15_000)})
    await learn(store, clock.now, {"echo": 4, "draw": 20})
    return store


async def seconds_of(store: Store, job_id: str) -> tuple[float, float] | None:
    job = await store.jobs.estimates.of(await store.jobs.get(job_id))
    return (job.estimate.p50_seconds, job.estimate.p90_seconds) if job.estimate else None


def near(*seconds: float) -> object:
    return pytest.approx(seconds, rel=0.12)


async def test_the_waits_and_runs_of_all_stages_are_added(busy: Store, clock: Clock) -> None:
    job_id = (await busy.jobs.submit(NewJob(feature_name="story", stages=STORY))).job_id
    assert await seconds_of(busy, job_id) == near(10 + 4 + 10 + 20, 15 + 4 + 15 + 20)
    clock.pass_seconds(5)
    assert await seconds_of(busy, job_id) == near(5 + 4 + 5 + 20, 10 + 4 + 10 + 20)


async def test_of_a_step_that_runs_the_rest_is_counted(busy: Store, clock: Clock) -> None:
    job_id = (await busy.jobs.submit(NewJob(feature_name="story", stages=STORY, priority="high"))).job_id
    await forecast(busy, clock.now, {"0n": flat(10_000, 15_000), "1n": flat(10_000, 15_000)})
    await busy.workers.register("another")
    task = await claim_one(busy, "another")
    clock.pass_seconds(3)
    await forecast(busy, clock.now, {"0n": flat(10_000, 15_000), "1n": flat(10_000, 15_000)})
    assert await seconds_of(busy, job_id) == near(1 + 10 + 20, 1 + 15 + 20)
    await busy.complete("another", Completed(task.task_id, task.fence))
    assert await seconds_of(busy, job_id) == near(10 + 20, 15 + 20)


async def test_nothing_is_said_of_a_job_that_has_ended_or_of_which_too_little_is_known(
    busy: Store, clock: Clock
) -> None:
    stages = [[NewStep("one", "echo")]]
    job_id = (await busy.jobs.submit(NewJob(feature_name="short", stages=stages))).job_id
    assert await seconds_of(busy, job_id) == near(14, 19)
    await busy.estimates.learn("me", {f"{KIND}": ""})
    assert await seconds_of(busy, job_id) is None, "no run has ended yet"
    await busy.jobs.cancel(job_id)
    assert await seconds_of(busy, job_id) is None


async def test_the_runs_that_hold_a_limit_are_expected_to_end(busy: Store, clock: Clock) -> None:
    await busy.limits.set("gpu", Slots(limit=1))
    await busy.submit(new(priority="high", limits={"gpu": 1}))
    await busy.workers.register("another")
    await claim_one(busy, "another")
    clock.pass_seconds(1)
    waiting = await busy.submit_one(new(limits={"gpu": 1}))
    (held,) = (await busy.explain(waiting.task_id)).blocked_by[0].holders
    assert held.expected_end
    assert (held.expected_end - clock.now) / 1000 == pytest.approx(3, rel=0.2)
