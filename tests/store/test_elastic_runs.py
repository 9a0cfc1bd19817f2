"""Elastic runs in the store: a waiting task shortens one that has more time than it needs."""

from collections.abc import Callable

import pytest

from fairlead.model.reports import Completed, Grant
from fairlead.model.states import State
from fairlead.settings import Settings
from fairlead.settings.tiers import Tier
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new
from tests.store.tiered import MEDIUM, TIERS, claims_nothing, confirm, full, run, tier_of, used


@pytest.fixture
def settings() -> Settings:
    return Settings(tiers={**TIERS})


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def test_a_slow_task_shortens_an_elastic_one_to_medium(store: Store) -> None:
    elastic = await run(store)
    slow = await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    shortened = await store.get(elastic.task_id)
    assert (shortened.tier, shortened.bounded) == ("medium", True)
    assert (shortened.deadline or 0) - (shortened.started_at or 0) == MEDIUM
    assert [change.tier for change in shortened.tiers] == ["slow", "medium"]
    assert await claims_nothing(store), "the unit was given away before the worker knew"
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == slow.task_id


async def test_a_slow_task_that_lacks_medium_too_shortens_it_to_fast(store: Store) -> None:
    elastic = await run(store)
    await run(store, "medium")
    slow = await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "fast"
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == slow.task_id
    assert await used(store) == {"fast": 3, "medium": 2, "slow": 1}


async def test_a_medium_task_shortens_an_elastic_one_to_fast(store: Store) -> None:
    await run(store, "slow")
    elastic = await run(store)
    assert elastic.tier == "medium"
    medium = await store.submit_one(new(duration="medium"))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "fast"
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == medium.task_id


async def test_the_youngest_is_shortened_and_nobody_in_vain(store: Store, clock: Clock) -> None:
    older = await run(store)
    younger = await run(store)
    assert (older.tier, younger.tier) == ("slow", "medium")
    await store.submit_one(new(duration="medium"))
    assert await claims_nothing(store)
    assert [await tier_of(store, task) for task in (older, younger)] == ["slow", "fast"]


async def test_a_random_victim_is_any_of_those_that_can_be_shortened(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    tiers = {"fast": Tier(seconds=3, limit=5), "slow": Tier(seconds=30, limit=3)}
    victims = set[int]()
    for _ in range(8):
        store = open_store(clock=clock, settings=Settings(tiers={**tiers, "victim": "random"}))
        await store.open()
        await store.workers.register("w", capacity=10)
        runs = [await run(store) for _ in range(3)]
        await store.submit_one(new(duration="slow"))
        clock.pass_ms(1)
        assert await claims_nothing(store)
        victims |= {index for index, task in enumerate(runs) if await tier_of(store, task) == "fast"}
    assert victims == {0, 1, 2}


async def test_a_full_shortest_tier_shortens_nobody(store: Store) -> None:
    """It would help nobody: the slot stays taken."""
    elastic = [await run(store) for _ in range(4)]
    for duration in ("fast", "medium", "slow", None):
        await store.submit_one(new(duration=duration))
    assert await claims_nothing(store)
    assert [await tier_of(store, task) for task in elastic] == ["slow", "medium", "fast", "fast"]


async def test_a_task_that_lacks_something_else_shortens_nobody(store: Store) -> None:
    async with full(store, "gpu"):
        elastic = await run(store)
        await store.submit_one(new(duration="slow", limits={"gpu": 1}))
        assert await claims_nothing(store)
        assert await tier_of(store, elastic) == "slow"


async def test_a_slot_is_kept_for_the_task_that_a_run_is_shortened_for(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=2)
    elastic = await run(store)
    slow = await store.submit_one(new(duration="slow", priority="high"))
    behind = await store.submit_one(new(duration="fast"))
    assert (await store.claim("w", 2, idle=True)).tasks == [], "the task behind would take the slot"
    assert not await examine(store.connection, now_ms=clock.now, twice=False)
    await confirm(store, elastic)
    assert (await claim_one(store)).task_id == slow.task_id
    await store.complete("w", Completed(elastic.task_id, elastic.fence))
    assert (await claim_one(store)).task_id == behind.task_id


async def test_one_run_is_shortened_for_one_waiting_task(store: Store) -> None:
    first, second = await run(store), await run(store)
    await store.submit(new(duration="medium"))
    assert await claims_nothing(store)
    assert await claims_nothing(store)
    assert [await tier_of(store, task) for task in (first, second)] == ["slow", "fast"]
    await confirm(store, second)
    await confirm(store, second)  # repeated, because its answer was lost
    assert (await claim_one(store)).duration == "medium"


async def test_a_call_that_was_lost_is_repeated_with_a_later_heartbeat(store: Store, clock: Clock) -> None:
    elastic = await run(store)
    await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    call = f"deadline:{elastic.task_id}:{elastic.fence}:"
    assert await store.workers.wait("w", 0.1) == f"{call}{MEDIUM}"
    for later, repeated in ((1, None), (2, f"{call}{MEDIUM - 3_000}")):
        clock.pass_seconds(later)
        await store.workers.heartbeat("w")
        assert await store.workers.wait("w", 0.1) == repeated
    await confirm(store, elastic)
    clock.pass_seconds(3)
    await store.workers.heartbeat("w")
    assert await store.workers.wait("w", 0.1) is None


async def test_what_was_shortened_never_becomes_longer_again(store: Store) -> None:
    elastic = await run(store)
    await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    await confirm(store, elastic)
    slow = await claim_one(store)
    await store.complete("w", Completed(slow.task_id, slow.fence))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "medium"
    await store.extend("w", Grant(elastic.task_id, elastic.fence), 60_000)
    longest = await store.get(elastic.task_id)
    assert (longest.deadline or 0) - (longest.started_at or 0) == MEDIUM


async def test_units_that_nobody_confirms_are_free_when_the_lease_ends(store: Store, clock: Clock) -> None:
    elastic = await run(store)
    slow = await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    clock.pass_seconds(store.settings.lease_ms / 1000 + 2)
    await store.expire()
    assert (await store.get(elastic.task_id)).error is not None
    await store.workers.register("w", capacity=10)
    assert slow.task_id in {task.task_id for task in (await store.claim("w", 5)).tasks}


async def test_past_its_tier_a_run_fails_for_good(store: Store, clock: Clock) -> None:
    task = await run(store, "fast")
    clock.pass_seconds(60)
    await store.expire()
    ended = await store.get(task.task_id)
    assert ended.error is not None
    assert (ended.status, ended.error.code, ended.retry_count) == (State.FAILED, "DEADLINE", 0)


async def test_a_result_after_the_deadline_is_kept_as_truncated(store: Store) -> None:
    task = await run(store, "fast")
    await store.complete("w", Completed(task.task_id, task.fence, {"lines": 3}, truncated=True))
    ended = await store.get(task.task_id)
    assert (ended.status, ended.truncated, ended.result) == (State.COMPLETED, True, {"lines": 3})


async def test_a_cancelled_run_is_not_shortened(store: Store) -> None:
    elastic = await run(store)
    await store.cancel(elastic.task_id)
    await store.submit_one(new(duration="slow"))
    assert await claims_nothing(store)
    assert await tier_of(store, elastic) == "slow"
    await store.release("w", Grant(elastic.task_id, elastic.fence))
    assert (await claim_one(store)).duration == "slow"


async def test_a_slot_that_is_kept_is_hidden_from_what_nobody_idle_serves(store: Store, clock: Clock) -> None:
    for name in "x", "y":
        await store.workers.register(name, task_types=[name], capacity=10)
    await store.submit(new("x"))
    (elastic,) = (await store.claim("x")).tasks
    await store.submit(*(new(name, duration="fast") for name in "xxy"))
    (last,) = (await store.claim("y", 3)).tasks
    await store.claim("x", 3)  # the shortest tier is full
    await store.submit(new("y", duration="fast"), new("x", duration="slow"))
    assert (await store.claim("x", idle=True)).tasks == []
    await store.complete("y", Completed(last.task_id, last.fence))
    assert (await store.get(elastic.task_id)).tier == "medium", "shortened for the worker that waits"
    assert await examine(store.connection, clock.now) == []
