"""Who holds what a task waits for, until when, and why a task was chosen that has started."""

from typing import Any

from fairlead.model.explanation import Chosen, Explanation, Holder
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed
from fairlead.settings import Rate, Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.forecasting import flat, forecast
from tests.store.namespace import claim_one, events, new


async def blocked(store: Store, *, brief: bool = False, **options: Any) -> Explanation:
    waiting = await store.submit_one(new(limits={"gpu": 1}, **options))
    return await store.explain(waiting.task_id, brief=brief)


async def test_the_holders_of_a_full_limit_are_named(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    await store.workers.register("w")
    await store.submit(new(limits={"gpu": 1}, tenant="acme", timeout_seconds=90))
    task = await claim_one(store)
    clock.pass_seconds(5)
    lease = await store.limits.acquire("gpu", holder="ann", lease_ms=30_000)
    explained = await blocked(store)
    (blocker,) = explained.blocked_by
    assert blocker.holders == (
        Holder(
            units=1,
            lease_id=lease.lease_id,
            worker="ann",
            since=clock.now,
            expires_at=clock.now + 30_000,
            ends_at=clock.now + 30_000,
        ),
        Holder(
            units=1,
            task_id=task.task_id,
            worker="w",
            since=clock.now - 5_000,
            expires_at=task.lease_until,
            ends_at=clock.now + 85_000,
            tenant="acme",
        ),
    )
    assert (blocker.free_at, blocker.next_free_seconds, blocker.by_deadline) == (
        clock.now + 30_000,
        30.0,
        True,
    )
    assert explained.sentence == (
        "It waits for a unit of gpu, which ann and 1 other hold and which has room at 13:47:15 UTC at the "
        "latest."
    )


async def test_at_most_eight_holders_are_named_those_that_end_first(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=30))
    for seconds in range(30, 0, -1):
        await store.limits.acquire("gpu", holder=f"h{seconds}", lease_ms=1_000 * seconds)
    waiting = await store.submit_one(new(limits={"gpu": 9}))
    (blocker,) = (await store.explain(waiting.task_id)).blocked_by
    assert [holder.worker for holder in blocker.holders] == [f"h{second}" for second in range(1, 9)]
    assert blocker.next_free_seconds == 9.0, "then nine of them have ended"


async def test_room_is_expected_when_the_forecast_says_so(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.workers.register("w")
    await store.submit(new(limits={"gpu": 1}))
    await claim_one(store)
    await forecast(store, clock.now, {"1n": flat(9_000, 9_000), "1n@gpu": flat(7_000, 9_000)})
    clock.pass_seconds(2)
    for brief in (False, True):
        (blocker,) = (await blocked(store, brief=brief)).blocked_by
        assert (blocker.next_free_seconds, blocker.by_deadline) == (5.0, False)
        assert len(blocker.holders) == (0 if brief else 1)


async def test_a_rate_has_room_when_it_refills(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Rate(count=1, period_seconds=10, burst=1))
    await store.workers.register("w")
    await store.submit(new(limits={"gpu": 1}))
    await claim_one(store)
    explained = await blocked(store)
    (blocker,) = explained.blocked_by
    assert (blocker.next_free_seconds, blocker.is_rate, blocker.holders) == (10.0, True, ())
    assert explained.sentence == "It waits for a unit of gpu, which has room at about 13:46:50 UTC."


async def test_a_task_that_was_first_says_so(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    submitted = await store.submit_one(new())
    clock.pass_ms(1_500)
    task = await claim_one(store)
    chosen = (await store.explain(task.task_id)).chosen_because
    assert chosen == Chosen(
        worker_id="w",
        at=clock.now,
        waited_seconds=1.5,
        effective_priority=Priority.MEDIUM,
        promoted=False,
        tag=0,
    )
    await store.complete("w", Completed(task.task_id, task.fence))
    assert (await store.explain(submitted.task_id)).chosen_because == chosen, "as long as it is kept"


async def test_a_task_that_passed_others_says_which_limits_they_lacked(store: Store) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await store.limits.set("disk", Slots(limit=5))
    await store.workers.register("w")
    lease = await store.limits.acquire("gpu")
    await store.limits.acquire("disk", units=5)
    await store.submit(new(limits={"gpu": 1, "disk": 1}, priority="high"), new())
    await store.limits.release(lease)  # the first one is looked at again, and lacks the other limit
    task = await claim_one(store)
    chosen = (await store.explain(task.task_id)).chosen_because
    assert chosen
    assert (chosen.skipped_for, chosen.better_waiting) == (("disk",), {"high": 1})
    (claim,) = [event for event in await events(store, task.task_id) if event["act"] == "claim"]
    assert claim["detail"]["chosen"] == {"better": {"0": 1}, "lacked": ["disk"]}, "history has it as well"


async def test_a_second_run_says_how_it_was_chosen_itself(store: Store, clock: Clock) -> None:
    await store.workers.register("w")
    waits = await store.submit_one(new(priority="high", required_capabilities=("none",)))
    task = await store.submit_one(new())
    await claim_one(store)
    first = (await store.explain(task.task_id)).chosen_because
    await store.cancel(waits.task_id)
    await store.expire("w")
    await store.workers.register("w")
    await claim_one(store)
    chosen = (await store.explain(task.task_id)).chosen_because
    assert first
    assert chosen
    assert (first.better_waiting, chosen.better_waiting) == ({"high": 1}, {})


async def test_a_task_that_never_started_was_not_chosen(store: Store) -> None:
    waiting = await store.submit_one(new())
    await store.cancel(waiting.task_id)
    assert (await store.explain(waiting.task_id)).chosen_because is None
