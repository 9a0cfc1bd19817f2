"""Tiers in the store: nested limits that follow the settings and the workers."""

from collections.abc import Callable

import pytest

from fairlead import errors
from fairlead.model.job import NewJob, NewStep
from fairlead.model.reports import Completed, Failed
from fairlead.settings import Settings, Slots
from fairlead.settings.tiers import Tier
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import claim_one, new, reopened
from tests.store.tiered import MEDIUM, TIERS, claims_nothing, run, used


@pytest.fixture
def settings() -> Settings:
    return Settings(tiers={**TIERS})


@pytest.fixture
async def store(store: Store) -> Store:
    await store.workers.register("w", capacity=10)
    return store


async def test_a_task_of_a_tier_takes_a_unit_of_it_and_of_all_shorter_ones(store: Store) -> None:
    task = await run(store, "medium")
    assert await used(store) == {"fast": 1, "medium": 1, "slow": 0}
    assert (task.tier, task.bounded) == ("medium", True)
    assert (task.deadline or 0) - (task.started_at or 0) == MEDIUM
    await store.complete("w", Completed(task.task_id, task.fence))
    assert await used(store) == {"fast": 0, "medium": 0, "slow": 0}


async def test_a_shorter_timeout_than_the_tier_stays_an_ordinary_timeout(store: Store) -> None:
    await store.submit_one(new(duration="slow", timeout_seconds=5))
    task = await claim_one(store)
    assert (task.bounded, (task.deadline or 0) - (task.started_at or 0)) == (False, 5_000)


async def test_slow_tasks_wait_at_their_limit_and_hold_up_no_others(store: Store) -> None:
    await run(store, "slow")
    waiting = await store.submit_one(new(duration="slow"))
    assert waiting.blocked_by == ("tier:slow",)
    assert [(await run(store, duration)).duration for duration in ("medium", "fast")] == ["medium", "fast"]
    assert await claims_nothing(store)


async def test_an_elastic_task_gets_the_longest_tier_that_is_free(store: Store) -> None:
    assert [(await run(store)).tier for _ in range(4)] == ["slow", "medium", "fast", "fast"]
    assert await used(store) == {"fast": 4, "medium": 2, "slow": 1}


@pytest.mark.parametrize("duration", ["long", "Slow"])
async def test_an_unknown_tier_is_refused_with_those_there_are(store: Store, duration: str) -> None:
    with pytest.raises(errors.InvalidInput, match="fast, medium, slow, interactive"):
        await store.submit_one(new(duration=duration))


async def test_steps_of_services_have_no_tier(store: Store) -> None:
    await store.submit_one(new("service:paint"))
    task = await claim_one(store)
    assert (task.tier, task.limits, task.bounded) == (None, {}, False)


# Shares of the capacity


SHARES = {"fast": Tier(seconds=3), "medium": Tier(seconds=10, limit="50%"), "slow": Tier(seconds=30, limit=3)}


async def sizes(store: Store) -> list[int | None]:
    return [(await store.limits.get(f"tier:{name}")).limit for name in SHARES]


async def test_shares_follow_the_workers_that_come_leave_and_die(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    store = open_store(clock=clock, settings=Settings(tiers={**SHARES}))
    await store.open()
    assert await sizes(store) == [1, 1, 1]
    await store.workers.register("a", capacity=4)
    assert await sizes(store) == [4, 2, 2], "a longer tier never has more than a shorter one"
    await store.workers.register("b", capacity=5)
    await store.workers.register("services", capacity=50, task_types=["service:paint"])
    assert await sizes(store) == [9, 4, 3]
    await store.workers.register("b", capacity=2)
    assert await sizes(store) == [6, 3, 3]
    await store.workers.drain("a")
    assert await sizes(store) == [2, 1, 1]
    clock.pass_seconds(store.settings.worker_ttl_ms / 1000 + 1)
    await store.upkeep.bury()
    assert await sizes(store) == [1, 1, 1]


async def test_a_task_starts_when_a_new_worker_makes_the_shares_larger(
    open_store: Callable[..., Store], clock: Clock
) -> None:
    store = open_store(clock=clock, settings=Settings(tiers={**SHARES}))
    await store.open()
    await store.workers.register("w", capacity=2)
    await run(store, "medium")
    waiting = await store.submit_one(new(duration="medium"))
    await store.claim("w", 1, idle=True)
    await store.workers.register("other", capacity=2)
    assert (await claim_one(store, "other")).task_id == waiting.task_id


async def test_tiers_that_are_no_longer_configured_end(
    store: Store, open_store: Callable[..., Store], settings: Settings
) -> None:
    slow = await run(store, "slow")
    await reopened(store, open_store, Settings(tiers={"short": Tier(seconds=1)}))
    await store.stats()
    later = await run(store)
    assert later.tier == "short"
    assert {limit.name for limit in await store.limits.all()} == {
        "tier:short",
        *(f"tier:{name}" for name in ("fast", "medium", "slow")),
    }
    await store.complete("w", Completed(slow.task_id, slow.fence))
    assert {limit.name for limit in await store.limits.all()} == {"tier:short"}


async def test_what_was_accepted_before_tiers_changed_is_run_without_them(
    store: Store, open_store: Callable[..., Store]
) -> None:
    dead = await run(store, "slow")
    await store.fail("w", Failed(dead.task_id, dead.fence, retriable=False))
    job = await store.jobs.submit(
        NewJob(feature_name="two", stages=[[NewStep("a", "echo")], [NewStep("b", "echo")]])
    )
    first = await claim_one(store)
    await reopened(store, open_store, Settings())
    await store.complete("w", Completed(first.task_id, first.fence))
    assert (await claim_one(store)).job_id == job.job_id
    await store.replay(dead.task_id)
    assert ((await claim_one(store)).limits, (await store.get(dead.task_id)).bounded) == ({}, False)


async def test_the_limit_of_a_tier_is_changed_by_the_settings_alone(store: Store) -> None:
    with pytest.raises(errors.InvalidInput, match="is the limit of a tier"):
        await store.limits.set("tier:slow", Slots(limit=9))
    with pytest.raises(errors.LimitInUse):
        await store.limits.delete("tier:slow")
    await store.limits.pause("tier:slow")
    assert (await run(store)).tier == "medium"
