"""Why a task waits, and how many wait, run and ended: what Fairlead reports is true."""

from collections.abc import Callable

import pytest

from fairlead import errors
from fairlead.model.explanation import Blocker
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed, Failed
from fairlead.model.states import State
from fairlead.model.stats import Depth
from fairlead.model.worker import WorkerStats
from fairlead.settings import LeaseSettings, Rate, Settings, Slots, WorkerSettings
from fairlead.store.store import Store
from fairlead.times import time_text
from tests.conftest import Clock
from tests.store.namespace import claim_one, new


@pytest.fixture
def settings() -> Settings:
    return Settings(lease=LeaseSettings(lease_seconds=60))


async def busy_worker(store: Store, name: str = "w") -> None:
    """A worker whose places are all taken."""
    await store.workers.register(name, capacity=1, task_types=["filler"])
    await store.submit_one(new("filler", priority="high"))
    await claim_one(store, name)
    await store.workers.register(name, capacity=1)


# Limits


async def test_a_full_limit_is_named_with_its_use(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=4))
    await store.workers.register("w", capacity=9)
    await store.submit(new(limits={"gpu": 3}))
    await claim_one(store)
    waiting = await store.submit_one(new(limits={"gpu": 2}))
    (blocker,) = (await store.explain(waiting.task_id)).blocked_by
    assert (blocker.limit, blocker.needs, blocker.used, blocker.of) == ("gpu", 2, 3, 4)


async def test_all_limits_without_room_are_named_and_no_others(store: Store) -> None:
    for name in ("a", "b", "c"):
        await store.limits.set(name, Slots(limit=1))
    await store.workers.register("w", capacity=9)
    await store.submit(new(limits={"a": 1}), new(limits={"c": 1}))
    await store.claim("w", 2)
    waiting = await store.submit_one(new(limits={"a": 1, "b": 1, "c": 1}))
    assert [blocker.limit for blocker in (await store.explain(waiting.task_id)).blocked_by] == ["a", "c"]


async def test_a_rate_is_named_with_the_time_at_which_it_has_room(store: Store, clock: Clock) -> None:
    await store.limits.set("api", Rate(count=2, period_seconds=10, burst=2))
    await store.workers.register("w", capacity=9)
    await store.submit(new(limits={"api": 2}))
    await claim_one(store)
    clock.pass_seconds(1)
    waiting = await store.submit_one(new(limits={"api": 1}))
    (blocker,) = (await store.explain(waiting.task_id)).blocked_by
    assert (blocker.limit, blocker.of, blocker.free_at) == ("api", 2, clock.now + 4_000)


async def test_a_paused_limit_is_named_as_paused(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=4))
    await store.limits.pause("gpu")
    await store.workers.register("w")
    waiting = await store.submit_one(new(limits={"gpu": 1}))
    explained = await store.explain(waiting.task_id)
    assert explained.blocked_by == (Blocker("gpu", needs=1, used=0, of=4, paused=True),)
    assert explained.sentence == "It waits for a unit of gpu, which is paused."


async def test_units_kept_back_for_another_task_are_explained_with_its_id(store: Store, clock: Clock) -> None:
    await store.limits.set("a", Slots(limit=1))
    await store.limits.set("b", Slots(limit=1))
    await store.workers.register("w", capacity=9)
    await store.submit(new(limits={"a": 1}), new(limits={"b": 1}))
    one, _ = (await store.claim("w", 2)).tasks
    both = await store.submit_one(new(limits={"a": 1, "b": 1}))
    clock.pass_seconds(30)
    await store.claim("w")  # makes the hold
    await store.complete("w", Completed(one.task_id, one.fence))
    waiting = await store.submit_one(new(limits={"a": 1}))
    explained = await store.explain(waiting.task_id)
    assert explained.held_for == both.task_id
    assert explained.blocked_by == (Blocker("a", needs=1, used=0, of=1, paused=False),)
    assert (await store.explain(both.task_id)).held_for is None


# Types and workers


async def test_a_paused_type_is_explained(store: Store) -> None:
    await store.workers.register("w")
    waiting = await store.submit_one(new())
    await store.pause_type("echo")
    explained = await store.explain(waiting.task_id)
    assert (explained.type_paused, explained.sentence) == (True, "Its task type is paused.")
    await store.pause_type("echo", False)
    assert (await store.explain(waiting.task_id)).sentence == "It is next."


async def test_a_capability_that_no_worker_has_is_explained(store: Store) -> None:
    await store.workers.register("w1", capabilities=["gpu"])
    await store.workers.register("w2", capabilities=["big"])
    waiting = await store.submit_one(new(required_capabilities=("gpu", "big")))
    explained = await store.explain(waiting.task_id)
    assert explained.no_capable_worker and not explained.missing_capabilities
    assert explained.sentence.endswith("none of them has all capabilities that the task needs.")
    await store.workers.register("w3", capabilities=["gpu", "big", "more"])
    assert not (await store.explain(waiting.task_id)).no_capable_worker


async def test_a_task_type_that_no_worker_runs_is_explained(store: Store) -> None:
    await store.workers.register("w", task_types=["other"])
    waiting = await store.submit_one(new("echo"))
    assert (await store.explain(waiting.task_id)).sentence == "No live worker serves the task type 'echo'."


@pytest.mark.parametrize("way", ["dead", "draining", "gone"])
async def test_a_worker_that_takes_nothing_more_does_not_count(store: Store, clock: Clock, way: str) -> None:
    await store.workers.register("w")
    waiting = await store.submit_one(new())
    match way:
        case "dead":
            clock.pass_ms(store.settings.worker_ttl_ms + 1)
        case "draining":
            await store.workers.drain("w")
        case "gone":
            await store.workers.leave("w")
    assert (await store.explain(waiting.task_id)).no_capable_worker


async def test_a_full_worker_keeps_nothing_for_high(store: Store) -> None:
    await store.workers.register("w", capacity=2, reserve=1)
    await store.submit(new(), new(priority="high"))
    assert len((await store.claim("w", 2)).tasks) == 2
    waiting = await store.submit_one(new())
    assert not (await store.explain(waiting.task_id)).reserve


async def test_the_reserve_is_explained_to_tasks_below_high(store: Store) -> None:
    await store.workers.register("w", capacity=2, reserve=1)
    await store.submit_one(new())
    await claim_one(store)
    waiting = await store.submit_one(new())
    explained = await store.explain(waiting.task_id)
    assert (explained.reserve, explained.sentence) == (True, "The free slots are reserved for high priority.")
    high = await store.submit_one(new(priority="high"))
    assert not (await store.explain(high.task_id)).reserve


# Order


async def test_the_next_task_is_reported_as_next(store: Store) -> None:
    await busy_worker(store)
    first = await store.submit_one(new())
    await store.submit(new(), new(priority="low"))
    explained = await store.explain(first.task_id)
    assert (explained.position, explained.ahead, explained.sentence) == (1, {}, "It is next.")


async def test_position_and_those_ahead_are_counted(store: Store) -> None:
    await busy_worker(store)
    await store.submit(*[new(priority=p) for p in ("high", "high", "medium", "low", "low")])
    await store.submit(new("other", priority="low"), new(priority="low", required_capabilities=("none",)))
    last = await store.submit_one(new(priority="low"))
    explained = await store.explain(last.task_id)
    assert explained.effective_priority is Priority.LOW
    assert (explained.position, explained.ahead) == (5, {"high": 2, "medium": 1})
    assert explained.sentence == (
        "It waits for a free worker; 7 tasks are ahead; it becomes medium at 13:56:40 UTC."
    )


async def test_the_position_follows_the_shares_of_users_not_the_time_of_arrival(store: Store) -> None:
    await busy_worker(store)
    ann = [await store.submit_one(new(user_id="ann")) for _ in range(3)]
    bob = await store.submit_one(new(user_id="bob"))
    positions = [(await store.explain(task.task_id)).position for task in (*ann, bob)]
    assert positions == [1, 3, 4, 2]


async def test_the_reported_positions_are_the_order_of_the_starts(store: Store) -> None:
    await busy_worker(store)
    tasks = [await store.submit_one(new(user_id=user)) for user in "aabacbbca"]
    explained = {(await store.explain(task.task_id)).position: task.task_id for task in tasks}
    await store.workers.register("free", capacity=9)
    started = [task.task_id for task in (await store.claim("free", 9)).tasks]
    assert [explained[position] for position in range(1, 10)] == started


async def test_a_promoted_task_is_not_called_next_while_native_ones_go_first(
    store: Store, clock: Clock
) -> None:
    old = await store.submit_one(new(priority="medium"))
    clock.pass_seconds(1200)
    await store.promote()
    await busy_worker(store)
    native = await store.submit_one(new(priority="high"))
    sentence = (await store.explain(old.task_id)).sentence
    await store.workers.register("free")
    assert (await claim_one(store, "free")).task_id == native.task_id
    assert sentence != "It is next."


# Time


async def test_the_time_of_the_next_promotion_is_exact(store: Store, clock: Clock) -> None:
    start = clock.now
    tasks = [await store.submit_one(new(priority=p)) for p in ("low", "medium", "high")]
    at = [(await store.explain(task.task_id)).promotes_at for task in tasks]
    assert at == [start + 600_000, start + 1_200_000, None]
    clock.pass_seconds(600)
    await store.promote()
    low = await store.explain(tasks[0].task_id)
    assert (low.effective_priority, low.promoted, low.promotes_at) == (1, True, start + 1_800_000)


async def test_the_time_of_a_promotion_counts_from_the_end_of_a_delay(store: Store, clock: Clock) -> None:
    delayed = await store.submit_one(new(priority="low", delay_seconds=100))
    clock.pass_seconds(150)
    await store.promote()
    assert (await store.explain(delayed.task_id)).promotes_at == clock.now - 50_000 + 600_000


async def test_a_delayed_task_is_explained_with_its_time(store: Store, clock: Clock) -> None:
    delayed = await store.submit_one(new(delay_seconds=5))
    explained = await store.explain(delayed.task_id)
    assert (explained.state, explained.run_at) == (State.DELAYED, clock.now + 5_000)
    assert explained.sentence == f"It is delayed until {time_text(clock.now + 5_000)}."


async def test_running_and_ended_tasks_are_explained_as_such(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(new(), new())
    one, two = (await store.claim("w", 2)).tasks
    await store.complete("w", Completed(two.task_id, two.fence))
    assert [(await store.explain(task.task_id)).state for task in (one, two)] == ["executing", "completed"]


async def test_a_task_that_is_not_there_cannot_be_explained(store: Store) -> None:
    with pytest.raises(errors.UnknownTask):
        await store.explain(new().task_id)


# Stats


async def test_depth_and_age_are_reported_by_effective_priority(store: Store, clock: Clock) -> None:
    await store.submit(new(priority="low"))
    clock.pass_seconds(600)
    await store.promote()
    await store.submit(new(priority="medium"), new(priority="low"), new(priority="low"))
    clock.pass_ms(2_500)
    assert (await store.stats()).queues == {
        "high": Depth(0, 0.0),
        "medium": Depth(2, 602.5),
        "low": Depth(2, 2.5),
    }


async def test_delayed_tasks_are_counted_apart(store: Store) -> None:
    await store.submit(new(delay_seconds=5), new(delay_seconds=50), new())
    stats = await store.stats()
    assert (stats.delayed, stats.queues["medium"].depth) == (2, 1)


async def test_workers_are_listed_with_what_they_run(store: Store, clock: Clock) -> None:
    start = clock.now
    await store.workers.register("dead", capacity=7)
    clock.pass_ms(store.settings.worker_ttl_ms + 1)
    await store.workers.register("active", capacity=3)
    await store.workers.register("draining", capacity=2)
    await store.submit(new(), new(), new())
    await store.claim("active", 2)
    await store.claim("draining")
    await store.workers.drain("draining")
    stats = await store.stats()
    assert sorted(stats.workers, key=lambda worker: worker.worker_id) == [
        WorkerStats("active", "active", 3, 2, clock.now),
        WorkerStats("dead", "dead", 7, 0, start),
        WorkerStats("draining", "draining", 2, 1, clock.now),
    ]
    assert (stats.total_capacity, stats.used_capacity) == (3, 3)


async def test_what_ended_in_the_last_minute_is_counted_by_its_end(store: Store, clock: Clock) -> None:
    clock.now -= clock.now % 10_000  # on the edge of a bucket
    await store.workers.register("w", capacity=9)
    await store.submit(*[new() for _ in range(5)])
    one, two, three, *_ = (await store.claim("w", 4)).tasks
    await store.complete("w", Completed(one.task_id, one.fence))
    clock.pass_seconds(30)
    await store.complete("w", Completed(two.task_id, two.fence))
    await store.fail("w", Failed(three.task_id, three.fence, retriable=False))
    assert (await store.stats()).ended_last_minute == {"completed": 2, "failed": 1}
    clock.pass_seconds(30)
    assert (await store.stats()).ended_last_minute == {"completed": 1, "failed": 1}
    clock.pass_seconds(60)
    assert (await store.stats()).ended_last_minute == {}


async def test_a_limit_is_listed_with_its_holders_and_the_number_of_waiting_tasks(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=4))
    await store.workers.register("w", capacity=9)
    await store.submit(*[new(limits={"gpu": 2}) for _ in range(3)])
    task = await claim_one(store)
    lease = await store.limits.acquire("gpu", units=1)
    gpu = await store.limits.get("gpu")
    assert (gpu.active, gpu.limit, gpu.room, gpu.waiting) == (3, 4, 1, 2)
    assert {(slot.lease_id, slot.units, slot.is_task) for slot in gpu.slots} == {
        (task.task_id, 2, True),
        (lease.lease_id, 1, False),
    }


async def test_one_limit_is_shown_with_its_holders_and_the_ends_of_their_leases(
    store: Store, clock: Clock
) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    await store.workers.register("w")
    await store.submit(new(limits={"gpu": 1}))
    task = await claim_one(store)
    lease = await store.limits.acquire("gpu", lease_ms=5_000, holder="ann")
    slots = {slot.lease_id: (slot.holder, slot.expires_at) for slot in (await store.limits.get("gpu")).slots}
    assert slots == {task.task_id: ("w", task.lease_until), lease.lease_id: ("ann", clock.now + 5_000)}


async def test_a_lease_is_released_by_force_only_with_the_name_of_its_limit(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.limits.set("disk", Slots(limit=1))
    lease = await store.limits.acquire("gpu")
    with pytest.raises(errors.Fenced):
        await store.limits.force_release("disk", lease.lease_id)
    assert (await store.limits.get("gpu")).active == 1
    await store.limits.force_release("gpu", lease.lease_id)
    assert (await store.limits.get("gpu")).active == 0
    with pytest.raises(errors.Fenced):
        await store.limits.force_release("gpu", lease.lease_id)


async def test_a_worker_is_dead_by_the_policy_of_the_namespace_and_not_of_the_caller(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    patient = Settings(worker=WorkerSettings(heartbeat_seconds=100))
    store = open_store(clock=clock, settings=patient)
    await store.open()
    await store.workers.register("w")
    clock.pass_seconds(200)
    looking = open_store(store.connection.keys.namespace, clock, Settings())
    assert [worker.state for worker in (await looking.stats()).workers] == ["active"]
    clock.pass_seconds(101)
    assert [worker.state for worker in (await looking.stats()).workers] == ["dead"]
    await looking.close()
