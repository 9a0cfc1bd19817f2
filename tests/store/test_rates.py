"""What a rate lets through, a rate that is changed takes effect at once, and a clock that is set back
blocks no task."""

import pytest

from fairlead.errors import InvalidInput
from fairlead.settings import Rate
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import new, raw, woken

HOUR, TEN_MINUTES = 3600, 600


async def use_up(store: Store, rate: Rate, *, then_wait: int = 1) -> None:
    """Worker `w` has taken the whole burst, and this number of tasks waits for more."""
    await store.limits.set("api", rate)
    await store.workers.register("w", capacity=10_000)
    await store.submit(*[new(limits={"api": 1}) for _ in range(rate.burst + then_wait)])
    assert len((await store.claim("w", rate.burst + 1, lease_ms=HOUR * 1000)).tasks) == rate.burst


async def started(store: Store) -> int:
    await store.workers.register("w", capacity=10_000)  # it may have been silent for long
    return len((await store.claim("w", 1000, lease_ms=HOUR * 1000)).tasks)


@pytest.mark.parametrize(("rate", "most"), [("10/s", 10), ("3/s", 3), ("50/s", 54)])
async def test_no_second_lets_more_through_than_the_rate_and_its_burst(
    store: Store, clock: Clock, rate: str, most: int
) -> None:
    """Without a burst of its own: a tenth of the rate. The first second is like any other."""
    await store.limits.set("api", Rate.of(rate))
    await store.workers.register("w", capacity=10_000)
    await store.submit(*[new(limits={"api": 1}) for _ in range(4 * most)])
    starts: list[int] = []
    for now in range(0, 3000, 10):
        starts += [now] * await started(store)
        clock.pass_ms(10)
    in_any_second = [sum(first <= start < first + 1000 for start in starts) for first in starts]
    assert max(in_any_second) == in_any_second[0] == most
    count = int(rate.removesuffix("/s"))
    assert len(starts) >= 2.5 * count, "and it keeps up the rate"


async def test_a_rate_that_was_used_up_and_is_raised_starts_tasks_at_once(store: Store) -> None:
    await use_up(store, Rate(count=60, period_seconds=HOUR, burst=60))
    assert await started(store) == 0
    await store.limits.set("api", Rate(count=100, period_seconds=1, burst=100))
    assert await started(store) == 1


async def test_the_units_owed_stay_the_same_and_grow_back_at_the_new_pace(store: Store, clock: Clock) -> None:
    await use_up(store, Rate(count=60, period_seconds=HOUR, burst=4), then_wait=9)
    clock.pass_seconds(90)  # one and a half of four units have grown back
    assert await started(store) == 1
    await store.limits.set("api", Rate(count=1, period_seconds=1, burst=4))
    clock.pass_ms(499)
    assert await started(store) == 0
    clock.pass_ms(1)
    assert await started(store) == 1
    clock.pass_seconds(3)
    assert await started(store) == 3


async def test_a_rate_that_is_lowered_owes_no_more_than_its_new_burst(store: Store, clock: Clock) -> None:
    await use_up(store, Rate(count=100, period_seconds=1, burst=100))
    await store.limits.set("api", Rate(count=1, period_seconds=10, burst=2))
    clock.pass_ms(9_999)
    assert await started(store) == 0
    clock.pass_ms(1)
    assert await started(store) == 1


async def test_setting_the_same_rate_again_changes_nothing(store: Store, clock: Clock) -> None:
    rate = Rate(count=60, period_seconds=HOUR, burst=60)
    await use_up(store, rate)
    for _ in range(59):
        clock.pass_seconds(1)
        await store.limits.set("api", rate)
        assert await started(store) == 0
    clock.pass_seconds(1)
    assert await started(store) == 1


async def test_a_worker_that_waits_is_called_when_a_changed_rate_has_room(store: Store) -> None:
    await use_up(store, Rate(count=60, period_seconds=HOUR, burst=60))
    await store.workers.register("idle")
    assert (await store.claim("idle", idle=True)).tasks == []
    await store.limits.set("api", Rate(count=100, period_seconds=1, burst=100))
    assert await woken(store, "idle") == {"idle": 1}


async def test_a_clock_that_is_set_back_delays_what_waits_by_no_more_than_its_rate(
    store: Store, clock: Clock
) -> None:
    await use_up(store, Rate(count=1, period_seconds=1, burst=1), then_wait=2)
    clock.pass_seconds(-TEN_MINUTES)
    waits = await store.claim("w", lease_ms=HOUR * 1000)
    assert (waits.tasks, waits.next_alarm) == ([], clock.now + 1_000)
    clock.pass_ms(999)
    assert await started(store) == 0
    clock.pass_ms(1)
    assert await started(store) == 1
    assert await started(store) == 0
    clock.pass_seconds(1)
    assert await started(store) == 1


async def test_a_task_after_the_clock_was_set_back_waits_no_longer_than_its_rate(
    store: Store, clock: Clock
) -> None:
    await use_up(store, Rate(count=1, period_seconds=1, burst=1), then_wait=0)
    clock.pass_seconds(-TEN_MINUTES)
    await store.submit_one(new(limits={"api": 1}))
    clock.pass_seconds(1)
    assert await started(store) == 1


async def test_the_doctor_sees_a_lot_that_waits_longer_than_its_rate_can_take(
    store: Store, clock: Clock
) -> None:
    await use_up(store, Rate(count=1, period_seconds=1, burst=1))
    key = store.connection.keys.key("refills")
    ((lot, instant),) = await raw(store).zrange(key, 0, -1, withscores=True)
    limit = store.connection.keys.key("limit", "api")
    tat = int(await raw(store).hget(limit, "tat"))
    await raw(store).zadd(key, {lot: instant + 1_001})
    await raw(store).hset(limit, "tat", tat + 1_001_000)
    found = await examine(store.connection, now_ms=clock.now)
    await raw(store).zadd(key, {lot: instant})
    await raw(store).hset(limit, "tat", tat)
    assert [breach.invariant for breach in found] == ["S4"]
    clock.pass_seconds(-TEN_MINUTES)
    assert await examine(store.connection, now_ms=clock.now) == [], "the next claim repairs it"


async def test_a_task_that_needs_more_than_the_burst_is_refused_with_the_burst_it_needs(store: Store) -> None:
    await store.limits.set("api", Rate.of("10/min"))
    (refused,) = await store.submit(new(limits={"api": 5}))
    assert str(refused) == (
        "limits.api: the rate has a burst of 1: 5 can never be taken at once; give it a burst of at least 5"
    )
    with pytest.raises(InvalidInput, match=r"units: the rate has a burst of 1: .* a burst of at least 5"):
        await store.limits.acquire("api", units=5)
    await store.limits.set("api", Rate.of("10/min", 5))
    await store.submit_one(new(limits={"api": 5}))
