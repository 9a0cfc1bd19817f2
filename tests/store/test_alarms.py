"""An empty claim says when to claim again: changes by time alone need no wake-up call."""

import pytest

from fairlead.model.reports import Completed
from fairlead.settings import LeaseSettings, Promotion, Rate, Settings, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new


@pytest.fixture
def settings() -> Settings:
    return Settings(
        promotion=Promotion(low_to_medium_seconds=60, medium_to_high_seconds=90),
        lease=LeaseSettings(lease_seconds=20, grace_seconds=2),
    )


async def test_an_empty_claim_says_when_a_delay_ends(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.submit(new(delay_seconds=50), new(run_at=clock.now + 7_000))
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 7_000
    clock.pass_ms(6_999)
    assert (await store.claim("w", idle=True)).tasks == []
    clock.pass_ms(1)
    assert len((await store.claim("w", idle=True)).tasks) == 1


async def test_an_empty_claim_says_when_a_rate_refills(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=4, period_seconds=10, burst=2))
    await store.workers.register("w", capacity=9)
    await store.submit(new(limits={"api": 2}), new(limits={"api": 2}))
    assert len((await store.claim("w", 2, lease_ms=60_000)).tasks) == 1
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 5_000
    clock.pass_ms(5_000)
    assert len((await store.claim("w", idle=True)).tasks) == 1


async def test_an_empty_claim_says_when_a_lease_ends(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w", capacity=2)
    await store.submit(*[new(priority="high", limits={"gpu": 1}) for _ in range(2)])
    await claim_one(store)
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 22_000


async def test_an_empty_claim_says_when_a_task_is_promoted(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.submit_one(new(priority="low", required_capabilities=("gpu",)))
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 60_000


async def test_an_empty_claim_says_when_the_maximum_wait_of_a_task_ends(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    await store.submit_one(new(required_capabilities=("gpu",), max_wait_seconds=3))
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 3_000


async def test_an_empty_claim_of_an_empty_store_names_no_time(store: Store) -> None:
    await store.workers.register("w")
    assert (await store.claim("w", idle=True)).next_alarm is None


async def test_an_alarm_for_what_has_ended_since_is_forgotten_when_it_rings(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("w")
    gone = await store.submit_one(new(priority="high", delay_seconds=3))
    await store.submit_one(new(priority="high", delay_seconds=30))
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 3_000
    await store.cancel(gone.task_id)
    clock.pass_seconds(3)
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 27_000


async def test_a_claim_processes_due_tasks_in_steps_and_says_that_more_are_due(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("w")
    await store.submit(*[new(delay_seconds=3, required_capabilities=("gpu",)) for _ in range(80)])
    clock.pass_seconds(3)
    depths = []
    for _ in range(3):
        assert (await store.claim("w", idle=True)).tasks == []
        depths.append((await store.stats()).queues["medium"].depth)
    assert depths == [32, 64, 80]
    assert (await store.claim("w", idle=True)).next_alarm == clock.now + 90_000


async def test_a_rate_that_becomes_slots_leaves_no_alarm_behind(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=1))
    await store.workers.register("w", capacity=9)
    await store.submit(*[new(priority="high", limits={"api": 1}) for _ in range(2)])
    (first,) = (await store.claim("w", 2)).tasks
    await store.complete("w", Completed(first.task_id, first.fence))
    await store.limits.set("api", Slots(limit=1))
    second = await claim_one(store)
    await store.complete("w", Completed(second.task_id, second.fence))
    clock.pass_seconds(25)
    assert (await store.claim("w")).next_alarm is None


async def test_a_need_that_a_lowered_rate_can_never_meet_sets_no_alarm(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=2))
    await store.workers.register("w", capacity=9)
    await store.submit(*[new(priority="high", limits={"api": 2}) for _ in range(2)])
    (first,) = (await store.claim("w", 2)).tasks
    await store.complete("w", Completed(first.task_id, first.fence))
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=1))
    clock.pass_seconds(25)
    empty = await store.claim("w")
    assert (empty.tasks, empty.next_alarm) == ([], None)
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=2))
    assert len((await store.claim("w")).tasks) == 1


async def test_the_doctor_accepts_a_rate_lowered_below_a_need(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=2))
    await store.workers.register("w", capacity=9)
    tasks = [new(priority="high", limits={"api": 2}) for _ in range(2)]
    await store.submit(*tasks)
    await store.claim("w", 2)
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=1))
    found = await examine(store.connection, now_ms=clock.now)
    await store.cancel(tasks[1].task_id)
    assert found == []
