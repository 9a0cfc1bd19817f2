"""A task that would probably wait too long is refused when it is submitted, and leaves nothing behind."""

from collections.abc import Callable

import pytest

from fairlead import errors
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.settings import Admission, Settings, Slots
from fairlead.settings.scheduling import MostWait
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.forecasting import flat, forecast
from tests.store.namespace import claim_one, everything, new


@pytest.fixture
def settings() -> Settings:
    return Settings(admission=Admission(max_wait_seconds=MostWait(high=5, low=3600)))


@pytest.fixture
async def waits(store: Store, clock: Clock) -> Store:
    """One task runs and one waits; a new one of high or medium priority would wait 8 s by p50."""
    await store.workers.register("w", capacity=1)
    await store.submit(new())
    await claim_one(store)
    await store.submit(new())
    await forecast(store, clock.now, {place: flat(8_000, 20_000) for place in ("0n", "1n", "2n")})
    return store


async def test_what_would_wait_longer_than_its_priority_may_is_refused(waits: Store, clock: Clock) -> None:
    before = await everything(waits)
    refused = (await waits.submit(new(priority="high", user_id="ann", idempotency_key="k")))[0]
    assert isinstance(refused, errors.WaitTooLong)
    assert (refused.code, refused.http_status, refused.retry_after) == ("wait_too_long", 429, 3.0)
    assert (refused.p50_seconds, refused.p90_seconds, refused.at) == (8.0, 20.0, clock.now)
    assert refused.message == (
        "The task would wait about 8 s, and tasks of high priority may wait 5 s "
        "(admission.max_wait_seconds.high): come back in 3 s."
    )
    assert await everything(waits) == before, "it leaves nothing behind"


async def test_the_wait_is_over_when_it_says_so(waits: Store, clock: Clock) -> None:
    refused = (await waits.submit(new(priority="high")))[0]
    assert isinstance(refused, errors.WaitTooLong)
    assert refused.retry_after
    clock.pass_seconds(refused.retry_after)
    assert (await waits.submit_one(new(priority="high"))).status is State.QUEUED


async def test_other_priorities_have_their_own_bounds(waits: Store) -> None:
    for priority in ("medium", "low"):
        assert (await waits.submit_one(new(priority=priority))).estimate


async def test_each_task_of_a_batch_is_accepted_or_refused_by_itself(waits: Store, clock: Clock) -> None:
    await forecast(waits, clock.now, {"0n": flat(4_800, 9_000, each=500), "1n": flat(9_000, 9_000)})
    answers = await waits.submit(*(new(priority=word) for word in ("high", "high", "medium", "high")))
    assert [isinstance(one, errors.WaitTooLong) for one in answers] == [False, True, False, True]


async def test_a_task_that_starts_at_once_is_not_refused(waits: Store) -> None:
    await waits.workers.register("idle", capacity=2)
    await waits.claim("idle")
    await waits.claim("idle", idle=True)
    estimate = (await waits.submit_one(new(priority="high"))).estimate
    assert estimate
    assert estimate.p50_seconds == 0


async def test_a_task_of_which_nothing_is_known_is_not_refused(waits: Store) -> None:
    task = new(priority="high", deadline_seconds=1, required_capabilities=("none",))
    assert (await waits.submit_one(task)).estimate is None


async def test_a_task_that_no_worker_serves_has_no_estimate(waits: Store, clock: Clock) -> None:
    """Even if the forecast says how long new kinds of tasks wait."""
    await forecast(waits, clock.now, {"1n:*": flat(9_000, 9_000)})
    served = await waits.submit_one(new("another"))
    assert served.estimate
    unserved = new("another", required_capabilities=("none",), deadline_seconds=1)
    assert (await waits.submit_one(unserved)).estimate is None


async def test_a_limit_that_the_task_itself_defines_has_room(waits: Store, clock: Clock) -> None:
    curve = flat(1_000, 2_000)
    await forecast(waits, clock.now, {"0n": curve, "0n@fresh": flat(9_000, 9_000)})
    task = new(priority="high", concurrency_group="fresh", concurrency_limit=1)
    assert (await waits.submit_one(task)).status is State.QUEUED


async def test_a_task_that_is_delayed_is_not_refused(waits: Store) -> None:
    delayed = await waits.submit_one(new(priority="high", delay_seconds=60, deadline_seconds=1))
    assert delayed.status is State.DELAYED


async def test_a_request_that_was_accepted_is_answered_as_before(waits: Store, clock: Clock) -> None:
    await forecast(waits, clock.now, {"0n": flat(1_000, 2_000)})
    task = new(priority="high", deadline_seconds=4, idempotency_key="k")
    accepted = await waits.submit_one(task)
    await forecast(waits, clock.now, {"0n": flat(50_000, 60_000)})
    again = await waits.submit_one(new(priority="high", deadline_seconds=4, idempotency_key="k"))
    assert (again.task_id, again.repeated) == (accepted.task_id, True)


async def test_a_deadline_that_cannot_be_met_is_refused_at_once(waits: Store, clock: Clock) -> None:
    before = await everything(waits)
    refused = (await waits.submit(new(deadline_seconds=7.5)))[0]
    assert isinstance(refused, errors.DeadlineUnlikely)
    assert (refused.code, refused.http_status, refused.p50_seconds) == ("deadline_unlikely", 409, 8.0)
    assert refused.message == (
        "The task would start in about 8 s, after its deadline of 7.5 s: give it more time, or a better "
        "priority."
    )
    assert await everything(waits) == before


async def test_a_deadline_that_can_be_met_bounds_the_wait(waits: Store, clock: Clock) -> None:
    accepted = await waits.submit_one(new(deadline_seconds=8))
    assert (await waits.get(accepted.task_id)).max_wait_seconds == 8
    clock.pass_seconds(8)
    await waits.promote()
    ended = await waits.get(accepted.task_id)
    assert ended.error
    assert (ended.status, ended.error.code) == (State.FAILED, "RESOURCE_EXHAUSTED")


async def test_a_deadline_and_a_longest_wait_are_two_words_for_one_thing(waits: Store) -> None:
    refused = (await waits.submit(new(deadline_seconds=8, max_wait_seconds=8)))[0]
    assert isinstance(refused, errors.InvalidInput)
    assert refused.field == "deadline_seconds"


def job(priority: str) -> NewJob:
    stages = [[NewStep("fast", "echo")], [NewStep("slow", "echo")]]
    return NewJob(feature_name="story", stages=stages, priority=priority)


async def test_a_job_is_refused_by_the_wait_of_its_first_stage_only(waits: Store, clock: Clock) -> None:
    before = await everything(waits)
    with pytest.raises(errors.WaitTooLong):
        await waits.jobs.submit(job("high"))
    assert await everything(waits) == before
    await forecast(waits, clock.now, {"0n": flat(1_000, 2_000)})
    job_id = (await waits.jobs.submit(job("high"))).job_id
    await forecast(waits, clock.now, {"0n": flat(50_000, 60_000)})
    await waits.workers.register("another", capacity=1)
    first = await claim_one(waits, "another")
    await waits.complete("another", Completed(first.task_id, first.fence))
    assert [step.status for step in (await waits.jobs.get(job_id)).steps] == ["completed", "queued"]


async def test_a_full_queue_says_when_the_next_one_is_expected_to_start(
    open_store: Callable[..., Store], store: Store, clock: Clock
) -> None:
    await store.workers.register("w", capacity=1)
    await store.limits.set("gpu", Slots(limit=1))
    await store.submit(new())
    await claim_one(store)
    settings = Settings(admission=Admission(max_queued=1))
    other = open_store(namespace=store.connection.keys.namespace, clock=store.clock, settings=settings)
    await other.open()
    await store.submit(new())
    full = (await store.submit(new()))[0]
    assert isinstance(full, errors.QueueFull)
    assert full.retry_after is None, "nothing has ended, and there is no forecast"
    await forecast(store, clock.now, {"1n": flat(90_000, 100_000)})
    clock.pass_seconds(10)
    full = (await store.submit(new()))[0]
    assert isinstance(full, errors.QueueFull)
    assert full.retry_after == 80.0
    await other.close()
