"""How long a task will probably wait, read from a forecast."""

from collections.abc import Sequence
from typing import Any

from fairlead.model.estimate import Estimate
from fairlead.model.task import Submitted
from fairlead.settings import Slots
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.forecasting import NONE_GONE
from tests.store.namespace import claim_one, events, new, raw

UNCORRECTED = [[1_000, 1_000], [1_000, 1_000]]
STRIDE = 100_000  # between the tags of an account


async def forecast(store: Store, clock: Clock, curves: dict[str, list[Any]], **head: Any) -> None:
    """Saves curves by place, or by place and limit: `1n`, `1n@gpu`."""
    await store.upkeep.elect("me", 5_000)
    audience = await raw(store).hget(store.connection.keys.key("routes"), "echo;")
    fields = {name if "@" in name else f"{name}:{audience.decode()}": curve for name, curve in curves.items()}
    head = {"at": clock.now, "run": 0, "lengths": [1_500], "corrections": [UNCORRECTED] * 3} | head
    assert await store.estimates.save_forecast("me", {"head": head, **fields}, 60_000)


def curve(
    ahead: int,
    each: int,
    *points: tuple[int, int, int, int, int],
    soon: int = 0,
    gone: Sequence[int] = NONE_GONE,
) -> list[int]:
    """`points` are (tag, seq, rank, p50, p90); `gone` in hundredths."""
    return [ahead, each, 2 * each, soon, *gone, *(value for point in points for value in point)]


async def tag_of(store: Store, submitted: Submitted) -> int:
    return int(await raw(store).hget(store.connection.keys.key("task", submitted.task_id), "tag"))


async def one_runs(store: Store) -> None:
    await store.workers.register("w", capacity=1)
    await store.submit(new())
    await claim_one(store)


async def test_without_a_forecast_nothing_is_said(store: Store) -> None:
    await one_runs(store)
    assert (await store.submit_one(new())).estimate is None


async def test_a_task_for_which_a_worker_waits_starts_at_once(store: Store, clock: Clock) -> None:
    await store.workers.register("w", capacity=2)
    await store.claim("w", idle=True)
    submitted = await store.submit_one(new())
    assert submitted.estimate == Estimate(0, 0.05, clock.now)
    assert (await store.get(submitted.task_id)).estimate_given == submitted.estimate


async def test_a_newcomer_waits_longer_for_each_task_that_the_forecast_did_not_know(
    store: Store, clock: Clock
) -> None:
    await one_runs(store)
    await store.submit(new(), new())
    await forecast(
        store, clock, {"1n": curve(2, 500, (0, 0, 0, 1_000, 2_000), (STRIDE, 99, 2, 4_000, 8_000))}
    )
    clock.pass_ms(400)
    third = await store.submit_one(new())
    assert third.estimate == Estimate(3.6, 7.6, clock.now)
    fourth = await store.submit_one(new())
    assert fourth.estimate == Estimate(3.6 + 0.5, 7.6 + 1, clock.now), "one more than the forecast knew"
    task = await store.get(fourth.task_id)
    assert (task.estimate_given, task.waited_seconds) == (fourth.estimate, None)


async def test_a_newcomer_waits_shorter_for_each_task_that_has_left(store: Store, clock: Clock) -> None:
    await one_runs(store)
    first, _ = await store.submit(new(), new())
    await forecast(
        store, clock, {"1n": curve(2, 500, (0, 0, 0, 1_000, 2_000), (STRIDE, 99, 2, 4_000, 8_000))}
    )
    assert isinstance(first, Submitted)
    await store.cancel(first.task_id)
    assert (await store.submit_one(new())).estimate == Estimate(3.5, 7, clock.now)


async def test_what_should_have_started_by_now_and_still_waits_is_waited_for(
    store: Store, clock: Clock
) -> None:
    await one_runs(store)
    await store.submit(new(), new())
    points = (0, 0, 0, 1_000, 2_000), (STRIDE, 99, 2, 4_000, 8_000)
    await forecast(store, clock, {"1n": curve(2, 500, *points, gone=[50, 100, 200, *NONE_GONE[3:]])})
    clock.pass_ms(1_500)
    late = await store.submit_one(new())
    assert late.estimate == Estimate(4 - 1.5 + 1.5 * 0.5, 8 - 1.5 + 1.5, clock.now), "1.5 of them too many"


async def test_a_forecast_that_has_run_out_counts_who_is_ahead(store: Store, clock: Clock) -> None:
    await one_runs(store)
    points = (0, 0, 0, 300, 400), (0, 1, 0, 300, 400)
    await forecast(store, clock, {"1n": curve(0, 500, *points, soon=1_000)})
    clock.pass_ms(5_000)
    waits = [(await store.submit_one(new())).estimate for _ in range(3)]
    assert waits == [Estimate(0.693 + n * 0.5, 2.303 + n, clock.now) for n in range(3)]


async def test_a_task_that_goes_before_others_does_not_wait_for_them(store: Store, clock: Clock) -> None:
    await one_runs(store)
    await store.submit(*(new(user_id="greedy") for _ in range(4)))
    points = (0, 0, 0, 1_000, 2_000), (9 * STRIDE, 99, 4, 9_000, 9_000)
    await forecast(store, clock, {"1n": curve(4, 500, *points)})
    await store.submit(*(new(user_id="greedy") for _ in range(6)))
    modest = await store.submit_one(new(user_id="modest"))
    assert modest.estimate and modest.estimate.p50_seconds < 4, "of ten that wait one is ahead of it"


async def test_slots_that_were_taken_since_the_forecast_are_waited_for(store: Store, clock: Clock) -> None:
    await one_runs(store)
    await forecast(store, clock, {"1n": curve(0, 500, (0, 0, 0, 0, 0), soon=10_000)})
    busy = (await store.submit_one(new())).estimate
    assert busy == Estimate(6.93, 23.03, clock.now), "by then half and nine of ten of such runs have ended"


async def test_a_limit_that_has_filled_since_the_forecast_is_waited_for(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=2))
    await store.workers.register("w", capacity=9)
    held = await store.limits.acquire("gpu", units=2, lease_id="l")
    await store.submit_one(new())
    await forecast(store, clock, {"1n": curve(1, 500, (0, 0, 1, 0, 0))}, run=10_000)
    first, second = [(await store.submit_one(new(limits={"gpu": 1}))).estimate for _ in range(2)]
    assert first == Estimate(3.465, 11.515, clock.now), "one of two units gets free after half of a run"
    assert second == Estimate(8.465, 16.515, clock.now)
    await store.limits.release(held)


async def test_what_is_left_of_the_wait_is_read_by_the_position(store: Store, clock: Clock) -> None:
    await one_runs(store)
    first, second, third = [await store.submit_one(new()) for _ in range(3)]
    begin = await tag_of(store, first)
    points = (begin, 0, 0, 1_000, 2_000), (begin + 2 * STRIDE, 99, 2, 3_000, 6_000)
    await forecast(store, clock, {"1n": curve(3, 500, *points)})
    clock.pass_ms(500)
    left = [(await store.explain(one.task_id)).estimate for one in (first, second, third)]
    assert left == [
        Estimate(p50 - 0.5, p90 - 0.5, clock.now) for p50, p90 in ((1.0, 2.0), (2.0, 4.0), (3.0, 6.0))
    ]


async def test_equal_tags_are_told_apart_by_their_seq(store: Store, clock: Clock) -> None:
    await one_runs(store)
    mine, yours = [await store.submit_one(new(user_id=user)) for user in ("me", "you")]
    tag = await tag_of(store, mine)
    seq = int(await raw(store).hget(store.connection.keys.key("task", mine.task_id), "seq"))
    points = (tag, seq - 2, 0, 1_000, 2_000), (tag, seq + 2, 0, 5_000, 6_000)
    await forecast(store, clock, {"1n": curve(2, 0, *points)})
    left = [(await store.explain(one.task_id)).estimate for one in (mine, yours)]
    assert left == [Estimate(3, 4, clock.now), Estimate(4, 5, clock.now)]


async def test_a_task_waits_for_the_latest_of_its_limits(store: Store, clock: Clock) -> None:
    await store.limits.set("gpu", Slots(limit=1))
    await one_runs(store)
    held = await store.limits.acquire("gpu", lease_id="l")
    waiting = await store.submit_one(new(limits={"gpu": 1}))
    curves = {
        "1n": curve(1, 500, (0, 0, 0, 1_000, 9_000), (9 * STRIDE, 0, 0, 1_000, 9_000)),
        "1n@gpu": curve(1, 1_000, (0, 0, 0, 7_000, 8_000), (9 * STRIDE, 0, 0, 7_000, 8_000)),
    }
    await forecast(store, clock, curves)
    assert (await store.explain(waiting.task_id)).estimate == Estimate(7, 9, clock.now)
    await store.limits.release(held)


async def test_estimates_are_corrected_by_how_they_fitted(store: Store, clock: Clock) -> None:
    await one_runs(store)
    await store.submit(new())
    await forecast(
        store,
        clock,
        {"1n": curve(1, 500, (0, 0, 1, 1_000, 2_000))},
        corrections=[UNCORRECTED, [[500, 3_000], [1, 1]]],
    )
    submitted = await store.submit_one(new())
    assert submitted.estimate == Estimate(0.475, 6.1, clock.now), (
        "after 50 ms were added, and before they were removed"
    )
    await store.upkeep.resign("me")


async def test_the_first_start_says_what_was_estimated_and_how_long_it_waited(
    store: Store, clock: Clock
) -> None:
    await one_runs(store)
    await forecast(
        store,
        clock,
        {"1n": curve(0, 500, (0, 0, 0, 1_000, 2_000))},
        corrections=[UNCORRECTED, [[900, 2_000], [1, 1]]],
    )
    submitted = await store.submit_one(new())
    clock.pass_ms(1_300)
    await store.workers.register("w", capacity=2)
    await claim_one(store)
    started = (await events(store, submitted.task_id))[-1]["detail"]
    assert (started["waited"], started["estimate"]) == (1_300, [895, 4_050, 1_000_000_000, 1_000, 2_000, 1])
    task = await store.get(submitted.task_id)
    assert (task.waited_seconds, task.estimate_given) == (1.3, submitted.estimate)


async def test_a_delayed_task_waits_from_its_time_on(store: Store, clock: Clock) -> None:
    await one_runs(store)
    await forecast(store, clock, {"1n": curve(0, 500, (0, 0, 0, 1_000, 2_000))})
    submitted = await store.submit_one(new(delay_seconds=60))
    assert submitted.estimate == Estimate(61, 62, clock.now)
    clock.pass_seconds(20)
    assert (await store.explain(submitted.task_id)).estimate == Estimate(40, 40.05, clock.now)
    clock.pass_seconds(40)
    await store.workers.register("w2", capacity=2)
    assert submitted.task_id in [task.task_id for task in (await store.claim("w2", want=2)).tasks]
    started = (await events(store, submitted.task_id))[-1]["detail"]
    assert started["estimate"] == [61_000, 62_000, 1_000_000_000], "not to be learnt from"


async def test_a_forecast_of_a_replaced_caretaker_is_not_kept(store: Store, clock: Clock) -> None:
    await store.upkeep.elect("another", 5_000)
    assert not await store.estimates.save_forecast("me", {"head": {}}, 60_000)
    assert not await store.estimates.learn("me", {"durations": "x"})
    assert not await raw(store).exists(
        store.connection.keys.key("curves"), store.connection.keys.key("learnt")
    )
