"""Which task is next, through the store: shares, ageing, reserve, capabilities, limits, holds and retries."""

from collections.abc import Awaitable, Callable

import pytest

from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.settings import Fairness, Promotion, Rate, Settings, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new, run_for


@pytest.fixture
def settings() -> Settings:
    return Settings(fairness=Fairness(weights={"double": 2.0, "half": 0.5}))


async def started(store: Store, worker: str = "w", want: int = 100) -> list[Task]:
    await store.workers.heartbeat(worker)
    return (await store.claim(worker, want)).tasks


async def big_worker(store: Store) -> None:
    await store.workers.register("w", capacity=1000)


# Shares


async def test_a_user_with_a_double_weight_gets_two_of_three_starts(store: Store) -> None:
    await big_worker(store)
    await store.submit(*[new(user_id=user) for user in ["double"] * 20 + ["plain"] * 20])
    first = [task.user_id for task in await started(store, want=15)]
    assert (first.count("double"), first.count("plain")) == (10, 5)


async def test_a_user_with_half_a_weight_gets_one_of_three_starts(store: Store) -> None:
    await big_worker(store)
    await store.submit(*[new(user_id=user) for user in ["half"] * 20 + ["plain"] * 20])
    first = [task.user_id for task in await started(store, want=15)]
    assert (first.count("half"), first.count("plain")) == (5, 10)


@pytest.mark.parametrize(("user", "of_a_task"), [("plain", 2.0), ("half", 2), ("double", 2.0)])
async def test_the_weight_of_a_task_goes_before_that_of_the_settings(
    store: Store, user: str, of_a_task: float
) -> None:
    await big_worker(store)
    await store.submit(*[new(user_id=user, weight=of_a_task) for _ in range(20)])
    await store.submit(*[new(user_id="other") for _ in range(20)])
    first = [task.user_id for task in await started(store, want=15)]
    assert (first.count(user), first.count("other")) == (10, 5)


async def test_a_usual_weight_is_one_too(store: Store) -> None:
    await big_worker(store)
    await store.submit(*[new(user_id=user, weight=1) for user in ["double"] * 20 + ["plain"] * 20])
    first = [task.user_id for task in await started(store, want=10)]
    assert (first.count("double"), first.count("plain")) == (5, 5)


async def test_a_late_user_takes_turns_and_does_not_catch_up(store: Store) -> None:
    await big_worker(store)
    await store.submit(*[new(user_id="early") for _ in range(20)])
    await started(store, want=10)
    await store.submit(*[new(user_id="late") for _ in range(10)])
    users = [task.user_id for task in await started(store, want=8)]
    assert users.count("late") == 4


async def test_long_runs_cost_their_user_more(store: Store, clock: Clock) -> None:
    await big_worker(store)
    for user, seconds in (("ann", 9), ("bob", 1)):
        for _ in range(3):
            await run_for(store, clock, user, seconds)
    await store.submit(*[new(user_id=user) for user in ["ann"] * 20 + ["bob"] * 20])
    first = [task.user_id for task in await started(store, want=10)]
    assert (first.count("ann"), first.count("bob")) == (1, 9)


class TestSharesOfTenants:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(fairness=Fairness(by="tenant"))

    async def test_tenants_take_turns_however_many_users_they_have(self, store: Store) -> None:
        await big_worker(store)
        await store.submit(*[new(tenant="big", user_id=f"u{i}") for i in range(10)])
        await store.submit(*[new(tenant="small", user_id="u") for _ in range(10)])
        first = [task.tenant for task in await started(store, want=8)]
        assert (first.count("big"), first.count("small")) == (4, 4)


# Ageing and the budget


async def promoted_and_native(store: Store, clock: Clock, native: int) -> None:
    await store.submit(*[new("old", priority="medium") for _ in range(3)])
    clock.pass_seconds(1200)
    await store.promote()
    await big_worker(store)
    await store.submit(*[new("young", priority="high") for _ in range(native)])


async def test_one_promoted_task_starts_after_five_native_ones(store: Store, clock: Clock) -> None:
    await promoted_and_native(store, clock, native=12)
    kinds = "".join(task.task_type[0] for task in await started(store))
    assert kinds == "yyyyyoyyyyyoyyo"


async def test_the_budget_is_kept_over_claims_of_one(store: Store, clock: Clock) -> None:
    await promoted_and_native(store, clock, native=7)
    kinds = "".join([(await claim_one(store)).task_type[0] for _ in range(10)])
    assert kinds == "yyyyyoyyoo"


class TestWithoutABudget:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(promotion=Promotion(budget=0))

    async def test_low_which_has_no_promoted_ones_runs_dry_too(self, store: Store) -> None:
        await big_worker(store)
        await store.submit(new(priority="low"))
        assert len(await started(store)) == 1

    async def test_promoted_and_native_tasks_are_one_line(self, store: Store, clock: Clock) -> None:
        await promoted_and_native(store, clock, native=3)
        kinds = "".join(task.task_type[0] for task in await started(store))
        assert kinds == "oooyyy"


async def test_a_low_task_climbs_twice_and_then_goes_before_medium(store: Store, clock: Clock) -> None:
    low = await store.submit_one(new(priority="low"))
    for seconds in (600, 1200):
        clock.pass_seconds(seconds)
        await store.promote()
    await big_worker(store)
    await store.submit(new(priority="medium"))
    assert (await claim_one(store)).task_id == low.task_id


async def test_the_arrival_of_a_delayed_task_is_its_time_not_its_submit(store: Store, clock: Clock) -> None:
    delayed = await store.submit_one(new(priority="low", delay_seconds=500))
    at_once = await store.submit_one(new(priority="low"))
    clock.pass_seconds(600)
    await store.promote()
    assert (await store.explain(at_once.task_id)).promoted
    assert not (await store.explain(delayed.task_id)).promoted
    clock.pass_seconds(500)
    await store.promote()
    assert (await store.explain(delayed.task_id)).promoted


# Workers


async def test_the_reserve_is_for_tasks_submitted_as_high_not_for_promoted_ones(
    store: Store, clock: Clock
) -> None:
    await store.submit(*[new(priority="medium") for _ in range(3)])
    clock.pass_seconds(1200)
    await store.workers.register("w", capacity=3, reserve=2)
    assert len(await started(store)) == 1
    await store.submit(*[new(priority="high") for _ in range(3)])
    assert [task.priority.word for task in await started(store)] == ["high", "high"]


async def test_high_may_take_every_place_of_a_worker(store: Store) -> None:
    await store.workers.register("w", capacity=3, reserve=1)
    await store.submit(*[new(priority="high") for _ in range(4)], new())
    assert [task.priority.word for task in await started(store)] == ["high"] * 3


async def test_a_worker_gets_only_what_its_capabilities_and_types_allow(store: Store) -> None:
    await store.workers.register("w", capacity=9, capabilities=["gpu", "big"], task_types=["draw", "echo"])
    specs: list[tuple[str, tuple[str, ...]]] = [
        *[("draw", ()), ("draw", ("gpu",)), ("echo", ("big", "gpu"))],
        *[("sum", ()), ("draw", ("gp",)), ("draw", ("gpu", "other"))],
    ]
    tasks = [new(kind, required_capabilities=needs) for kind, needs in specs]
    await store.submit(*tasks)
    assert [task.task_id for task in await started(store)] == [task.task_id for task in tasks[:3]]


async def test_a_task_that_no_worker_can_run_blocks_no_other(store: Store) -> None:
    await big_worker(store)
    await store.submit(*[new(priority="high", required_capabilities=("none",)) for _ in range(200)])
    behind = await store.submit_one(new(priority="low"))
    assert [task.task_id for task in await started(store)] == [behind.task_id]


async def test_many_tasks_that_wait_for_a_full_limit_block_no_other(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await big_worker(store)
    await store.submit(*[new(f"t{i}", priority="high", limits={"gpu": 1}) for i in range(80)])
    behind = await store.submit_one(new(priority="low"))
    # each claim looks at some of them
    found = [task.task_id for _ in range(3) for task in await started(store, want=4)]
    assert found[1:] == [behind.task_id]


# Limits


async def test_a_lowered_limit_gives_nothing_until_it_is_below(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=4))
    await big_worker(store)
    await store.submit(*[new(limits={"gpu": 1}) for _ in range(9)])
    tasks = await started(store)
    await store.limits.set("gpu", Slots(limit=2))
    counts = []
    for task in tasks:
        await store.complete("w", Completed(task.task_id, task.fence))
        counts.append(len(await started(store)))
    assert counts == [0, 0, 1, 1]


async def test_a_raised_limit_gives_at_once(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await big_worker(store)
    await store.submit(*[new(limits={"gpu": 1}) for _ in range(9)])
    await started(store)
    await store.limits.set("gpu", Slots(limit=4))
    assert len(await started(store)) == 3


async def test_a_limit_of_0_is_a_pause_that_lets_tasks_in(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=0))
    await big_worker(store)
    await store.submit_one(new(limits={"gpu": 2}))
    assert await started(store) == []
    await store.limits.set("gpu", Slots(limit=2))
    assert len(await started(store)) == 1


async def test_a_small_task_may_pass_a_big_one_that_does_not_fit(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=3))
    await big_worker(store)
    await store.submit(*[new(f"needs{units}", limits={"gpu": units}) for units in (2, 2, 1)])
    assert [task.task_type for task in await started(store)] == ["needs2", "needs1"]


async def test_a_big_task_on_a_single_limit_is_never_given_a_hold(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    await big_worker(store)
    await store.submit(new("small", limits={"gpu": 1}), new("big", limits={"gpu": 2}))
    (running,) = await started(store)
    for _ in range(9):
        clock.pass_seconds(20)
        await store.submit_one(new("small", limits={"gpu": 1}))
        (passing,) = await started(store)
        await store.complete("w", Completed(running.task_id, running.fence))
        assert (await started(store), (await store.limits.get("gpu")).hold) == ([], None)
        running = passing


async def test_units_of_a_rate_return_by_time_alone(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=2, period_seconds=1, burst=4))
    await big_worker(store)
    await store.submit(*[new(limits={"api": 2}) for _ in range(4)])
    counts = []
    for _ in range(4):
        for task in (tasks := await started(store)):
            await store.complete("w", Completed(task.task_id, task.fence))
        counts.append(len(tasks))
        clock.pass_ms(500)
    assert counts == [2, 0, 1, 0]


# Limits a task brings along


async def test_a_task_defines_its_group_and_the_first_definition_is_kept(store: Store) -> None:
    await big_worker(store)
    tasks = [new(concurrency_group="g", concurrency_limit=n) for n in (2, 5, 1)]
    await store.submit(*tasks[:2])
    await store.submit(*tasks[2:])
    assert (await store.limits.get("g")).limit == 2
    assert len(await started(store)) == 2


async def test_without_a_name_the_group_of_a_task_is_its_type(store: Store) -> None:
    await big_worker(store)
    await store.submit(*[new("draw", concurrency_limit=1) for _ in range(2)])
    assert (await store.limits.get("draw")).limit == 1
    assert len(await started(store)) == 1


async def test_a_group_that_is_there_may_be_named_without_a_number(store: Store) -> None:
    await store.limits.set("g", Slots(limit=1))
    await big_worker(store)
    await store.submit(*[new(concurrency_group="g") for _ in range(2)])
    assert len(await started(store)) == 1


# Patience and time


async def test_a_task_that_was_not_started_in_time_fails_as_resource_exhausted(
    store: Store, clock: Clock
) -> None:
    impatient = await store.submit_one(new(max_wait_seconds=10))
    clock.pass_ms(9_999)
    await store.promote()
    assert (await store.get(impatient.task_id)).status is State.QUEUED
    clock.pass_ms(1)
    await big_worker(store)
    assert (await store.claim("w")).tasks == []
    task = await store.get(impatient.task_id)
    assert task.error is not None
    assert (task.status, task.error.code) == (State.FAILED, "RESOURCE_EXHAUSTED")


async def test_the_patience_of_a_delayed_task_begins_with_its_time(store: Store, clock: Clock) -> None:
    await store.submit_one(new(max_wait_seconds=10, delay_seconds=60))
    clock.pass_seconds(69)
    await big_worker(store)
    assert len(await started(store)) == 1


WAYS_BACK: dict[str, Callable[[Store, Task], Awaitable[object]]] = {
    "given back": lambda store, t: store.release("w", Grant(t.task_id, t.fence)),
    "retried": lambda store, t: store.fail("w", Failed(t.task_id, t.fence, retry_after_ms=30_000)),
    "its process died": lambda store, t: store.fail("w", Failed(t.task_id, t.fence, crashed=True)),
    "its worker died": lambda store, t: store.expire("w"),
    "its worker was lost": lambda store, t: store.expire(),
}


@pytest.mark.parametrize("way", WAYS_BACK)
async def test_the_maximum_wait_does_not_apply_to_a_task_that_was_started_once(
    store: Store, clock: Clock, way: str
) -> None:
    await big_worker(store)
    await store.submit_one(new(max_wait_seconds=60))
    task = await claim_one(store)
    clock.pass_seconds(31)  # so that the lease of a lost worker is over
    await WAYS_BACK[way](store, task)
    assert (await store.get(task.task_id)).status in (State.QUEUED, State.DELAYED)
    clock.pass_seconds(100)
    await store.promote()
    await big_worker(store)
    assert (await claim_one(store)).task_id == task.task_id


async def test_a_released_task_keeps_its_place(store: Store, clock: Clock) -> None:
    await big_worker(store)
    first, second = [await store.submit_one(new(max_wait_seconds=10)) for _ in range(2)]
    task = await claim_one(store)
    await store.release("w", Grant(task.task_id, task.fence))
    assert (await claim_one(store)).task_id == first.task_id
    clock.pass_seconds(10)
    await store.promote()
    assert (await store.get(second.task_id)).status is State.FAILED


# Second tries


async def test_a_timeout_gives_the_next_try_half_as_much_time_again(store: Store, clock: Clock) -> None:
    await big_worker(store)
    await store.submit_one(new(timeout_seconds=10.001, max_retries=5))
    timeouts = []
    for code in ("timeout", "timeout", "error"):
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, code=code, jitter=0))
        clock.pass_seconds(10)
        timeouts.append((await store.get(task.task_id)).timeout_ms)
    assert timeouts == [15_001, 22_501, 22_501]


async def test_the_back_off_doubles_and_half_of_it_is_chance(store: Store, clock: Clock) -> None:
    await big_worker(store)
    await store.submit_one(new(max_retries=5))
    delays = []
    for jitter in (0, 0, 1000, 500):
        task = await claim_one(store)
        await store.fail("w", Failed(task.task_id, task.fence, jitter=jitter))
        delays.append(((await store.get(task.task_id)).run_at or 0) - clock.now)
        clock.pass_seconds(8)
    assert delays == [500, 1_000, 4_000, 6_000]


@pytest.mark.parametrize(("requested", "given"), [(200, 500), (7_000, 7_000)])
async def test_a_longer_requested_pause_is_honoured(
    store: Store, clock: Clock, requested: int, given: int
) -> None:
    await big_worker(store)
    await store.submit_one(new())
    task = await claim_one(store)
    await store.fail("w", Failed(task.task_id, task.fence, retry_after_ms=requested, jitter=0))
    assert (await store.get(task.task_id)).run_at == clock.now + given


async def test_a_worker_that_renews_beyond_the_deadline_loses_the_task_as_a_timeout(
    store: Store, clock: Clock
) -> None:
    await big_worker(store)
    await store.submit_one(new(timeout_seconds=60))
    start = clock.now
    task = await claim_one(store)
    ends = list[int]()
    for _ in range(5):
        clock.pass_seconds(15)
        ends += (await store.workers.heartbeat("w", lease_ms=20_000)).leases.values()
    assert [end - start for end in ends] == [35_000, 50_000, 65_000, 80_000, 80_000]
    clock.pass_ms(5_999)
    assert await store.expire() == 0
    clock.pass_ms(1)
    assert await store.expire() == 1
    ended = await store.get(task.task_id)
    assert ended.error is not None
    assert (ended.status, ended.error.code, ended.timeout_ms) == (State.DELAYED, "timeout", 90_000)


async def test_a_worker_learns_from_its_heartbeat_by_when_it_must_end(store: Store, clock: Clock) -> None:
    await big_worker(store)
    await store.submit_one(new(timeout_seconds=60))
    task = await claim_one(store)
    beat = await store.workers.heartbeat("w", lease_ms=100_000)
    assert beat.deadlines == {task.task_id: clock.now + 60_000}
    assert beat.leases == {task.task_id: clock.now + 100_000}
