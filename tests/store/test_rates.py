"""A rate that is changed takes effect at once, and a clock that is set back blocks nobody."""

from fairlead.settings import Rate
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import new, raw, woken

HOUR, TEN_MINUTES = 3600, 600


async def use_up(store: Store, rate: Rate, *, then_wait: int = 1) -> None:
    """All of its burst is taken by worker `w`, and so many tasks more wait for it."""
    await store.limits.set("api", rate)
    await store.workers.register("w", capacity=10_000)
    await store.submit(*[new(limits={"api": 1}) for _ in range(rate.burst + then_wait)])
    assert len((await store.claim("w", rate.burst + 1, lease_ms=HOUR * 1000)).tasks) == rate.burst


async def started(store: Store) -> int:
    await store.workers.register("w", capacity=10_000)  # it may have been silent for long
    return len((await store.claim("w", 1000, lease_ms=HOUR * 1000)).tasks)


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


async def test_a_rate_set_again_as_it_is_changes_nothing(store: Store, clock: Clock) -> None:
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


async def test_what_comes_after_the_clock_was_set_back_waits_no_longer_than_its_rate(
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
    assert await examine(store.connection, now_ms=clock.now) == [], "the next claim mends it"
