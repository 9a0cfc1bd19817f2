"""The last hour as a series: what waited at the end of each ten seconds, and what happened in them."""

import pytest

from fairlead.errors import InvalidInput
from fairlead.model.metrics import BOUNDS, quantile
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed, Failed
from fairlead.model.series import Waits
from fairlead.model.stats import Depth
from fairlead.store.store import Store
from tests.conftest import Clock
from tests.store.namespace import new, raw

TEN_SECONDS = 10_000


async def test_a_point_says_what_waited_and_what_happened_since_the_one_before(
    store: Store, clock: Clock
) -> None:
    await store.workers.register("w", capacity=10)
    await store.series.sample()
    high, low = new(priority="high"), new(priority="low", max_retries=0)
    await store.submit(high, low, new(priority="medium"))
    clock.pass_ms(1_500)
    first, second = (await store.claim("w", 2)).tasks
    assert [first.priority, second.priority] == [Priority.HIGH, Priority.MEDIUM]
    await store.complete("w", Completed(first.task_id, first.fence))
    await store.fail("w", Failed(second.task_id, second.fence, "no", retriable=False))
    await store.cancel(low.task_id)
    await store.submit(new(priority="low"))
    clock.pass_ms(TEN_SECONDS)
    assert await store.series.sample() == 1
    (point,) = (await store.series.last()).points
    assert (point.at, point.seconds) == (clock.now, 11.5)
    assert point.queues == {"high": Depth(0, 0.0), "medium": Depth(0, 0.0), "low": Depth(1, 10.0)}
    assert (point.submitted, point.started) == (4, 2)
    assert (point.completed, point.failed, point.cancelled) == (1, 1, 1)
    between = Waits(1, 1.5, 1.95)  # of one task that waited more than one second and at most two
    assert point.waits == {"high": between, "medium": between, "low": None}


async def test_several_caretakers_note_one_sample_in_ten_seconds(store: Store, clock: Clock) -> None:
    assert [await store.series.sample() for _ in range(3)] == [1, 0, 0]
    clock.pass_ms(TEN_SECONDS)
    assert [await store.series.sample() for _ in range(3)] == [1, 0, 0]


async def test_nothing_is_lost_while_nobody_notes_samples(store: Store, clock: Clock) -> None:
    await store.series.sample()
    await store.submit(new(), new())
    clock.pass_ms(20 * 60_000)
    await store.series.sample()
    clock.pass_ms(TEN_SECONDS)
    await store.series.sample()
    points = (await store.series.last()).points
    assert [(point.submitted, point.seconds) for point in points] == [(2, 1_200.0), (0, 10.0)]
    assert [point.seconds for point in (await store.series.last(10)).points] == [10.0]


async def test_samples_of_an_hour_are_kept(store: Store, clock: Clock) -> None:
    for _ in range(364):
        await store.series.sample()
        clock.pass_ms(TEN_SECONDS)
    assert await raw(store).xlen(store.connection.keys.key("samples")) == 361
    points = (await store.series.last()).points
    assert (points[0].at, len(points)) == (clock.now - 3_600_000, 360)


async def test_samples_continue_when_the_clock_went_back(store: Store, clock: Clock) -> None:
    await store.series.sample()
    clock.pass_ms(-30_000)
    assert await store.series.sample() == 0
    clock.pass_ms(-3_600_000)
    assert await store.series.sample() == 1


@pytest.mark.parametrize("seconds", [-1, 3601, 1.5])
async def test_no_more_than_an_hour_is_returned(store: Store, seconds: int) -> None:
    with pytest.raises(InvalidInput, match="seconds"):
        await store.series.last(seconds)


def test_a_quantile_lies_in_its_bucket() -> None:
    assert quantile({}, 0.5) is None
    assert quantile({1: 4}, 0.5) == BOUNDS[0] / 2
    assert quantile({7: 50, 8: 50}, 0.95) == pytest.approx(1.9)
    assert quantile({len(BOUNDS) + 1: 1}, 0.5) == BOUNDS[-1]
