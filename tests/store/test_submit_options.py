"""The options of a submit: kept with the task, returned in the answer, compared when it is repeated."""

from typing import Any

import pytest

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.store.namespace import claim_one, new

# Limits without room


async def test_the_answer_names_the_limits_without_room(store: Store) -> None:
    limits = {"a": Slots(limit=0), "b": Slots(limit=1), "c": Slots(limit=0)}
    for name, limit in limits.items():
        await store.limits.set(name, limit)
    answer = await store.submit_one(new(limits=dict.fromkeys("cba", 1)))
    assert answer.blocked_by == ("a", "c")
    assert (await store.submit_one(new(limits={"b": 1}))).blocked_by == ()
    assert (await store.submit_one(new())).blocked_by == ()


async def test_a_limit_counts_with_its_value_at_the_submit(store: Store) -> None:
    await store.workers.register("w", capacity=9)
    await store.limits.set("gpu", Slots(limit=3))
    task = new(limits={"gpu": 2})
    assert (await store.submit_one(task)).blocked_by == ()
    await claim_one(store)
    assert (await store.submit_one(new(limits={"gpu": 2}))).blocked_by == ("gpu",)
    assert (await store.submit_one(new(limits={"gpu": 1}))).blocked_by == ()
    running = await store.get(task.task_id)
    await store.complete("w", Completed(task.task_id, running.fence))
    assert (await store.submit_one(new(limits={"gpu": 2}))).blocked_by == ()


async def test_a_rate_that_is_used_up_and_a_paused_limit_have_no_room(store: Store) -> None:
    await store.limits.set("api", Rate(count=1, period_seconds=60, burst=1))
    await store.limits.set("gpu", Slots(limit=5))
    await store.limits.acquire("api")
    await store.limits.pause("gpu")
    answer = await store.submit_one(new(limits={"api": 1, "gpu": 1}))
    assert answer.blocked_by == ("api", "gpu")


async def test_the_answer_of_a_delayed_or_repeated_submit_names_no_limits(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=0))
    task = new(limits={"gpu": 1})
    assert (await store.submit_one(task)).blocked_by == ("gpu",)
    assert (await store.submit_one(task)).blocked_by == ()
    assert (await store.submit_one(new(limits={"gpu": 1}, delay_seconds=5))).blocked_by == ()


# Kept as requested


async def test_options_that_are_stored_in_another_form_are_kept_too(store: Store) -> None:
    options: dict[str, Any] = {
        "concurrency_group": "g",
        "concurrency_limit": 1_000_000_000,
        "max_wait_seconds": 0.25,
        "delay_seconds": 315_360_000,
    }
    task = new(**options)
    await store.submit_one(task)
    kept = await store.get(task.task_id)
    assert {name: getattr(kept, name) for name in options} == options
    plain = new()
    await store.submit_one(plain)
    kept = await store.get(plain.task_id)
    assert all(getattr(kept, name) is None for name in options)


# The same again


async def test_equal_numbers_count_as_the_same_option(store: Store) -> None:
    first = await store.submit_one(new(delay_seconds=60, max_wait_seconds=5, idempotency_key="k"))
    again = await store.submit_one(new(delay_seconds=60.0, max_wait_seconds=5.0, idempotency_key="k"))
    assert (again.task_id, again.repeated) == (first.task_id, True)


async def test_a_default_priority_may_differ_between_repeated_submits(store: Store) -> None:
    first = await store.submit_one(new(priority="low", priority_asked=False, idempotency_key="k"))
    again = await store.submit_one(new(priority="high", priority_asked=False, idempotency_key="k"))
    assert (again.task_id, again.repeated) == (first.task_id, True)
    with pytest.raises(errors.IdempotencyConflict):
        await store.submit_one(new(priority="low", idempotency_key="k"))


# What a worker offers when it claims


async def test_the_capabilities_of_a_claim_count_from_that_claim_on(store: Store) -> None:
    await store.workers.register("w", capabilities=["gpu"])
    await store.submit_one(new(required_capabilities=("tpu",)))
    assert (await store.claim("w")).tasks == []
    assert (await store.claim("w", 0, capabilities=["tpu", "gpu"])).tasks == []
    (worker,) = (await store.stats()).workers
    assert worker.capabilities == ("gpu", "tpu")
    assert len((await store.claim("w")).tasks) == 1


async def test_a_worker_waits_for_what_it_offers_now(store: Store) -> None:
    await store.workers.register("w", capabilities=["gpu"])
    await store.claim("w", idle=True)
    await store.claim("w", idle=True, capabilities=[])
    await store.submit_one(new(required_capabilities=("gpu",)))
    assert await store.workers.wait("w", 0.01) is None
    await store.submit_one(new())
    assert await store.workers.wait("w", 20) is not None


async def test_capabilities_that_are_not_names_are_refused(store: Store) -> None:
    await store.workers.register("w")
    for wrong in ("gpu", ["a,b"], [""]):
        with pytest.raises(errors.InvalidInput) as refused:
            await store.claim("w", capabilities=wrong)
        assert refused.value.field == "capabilities"
