"""Which tasks are expected: as many in the next hour as came in the last one."""

from collections.abc import Sequence
from itertools import takewhile

import pytest

from fairlead.estimates.arrivals import MOST, SHORTEST_MS, Arrival, Arrivals, expected
from fairlead.estimates.durations import RunKind

HOUR = 3_600_000
NOW = 100 * HOUR


def seen(instants: Sequence[int], task_type: str = "draw", since: int = 1) -> Arrivals:
    arrivals = Arrivals(since)
    for at in instants:
        arrivals.learn(Arrival(at, RunKind(task_type), "", 1, False))
    return arrivals


def count_within(arrivals: Arrivals, ms: int) -> float:
    """The mean of some draws."""
    windows, draws = list(arrivals.windows(NOW)), 40
    found = [expected(windows, NOW, seed) for seed in range(draws)]
    return sum(len(list(takewhile(lambda one: one[0] <= NOW + ms, one))) for one in found) / draws


def test_a_burst_goes_on_for_minutes_and_not_for_days() -> None:
    burst = seen([NOW - 1_000 * count for count in range(99, -1, -1)])
    assert 80 < count_within(burst, SHORTEST_MS) < 120
    assert count_within(burst, 24 * HOUR) < 100 * 11, "each of about ten times as long has as many"


def test_what_comes_once_an_hour_is_expected_although_none_came_in_the_last_minutes() -> None:
    rare = seen([NOW - HOUR * count - HOUR // 2 for count in range(49, -1, -1)], since=NOW - 50 * HOUR)
    assert 20 < count_within(rare, 24 * HOUR) < 28
    assert count_within(rare, HOUR // 4) < 1


def test_nothing_is_expected_before_anything_came() -> None:
    assert not list(expected(list(Arrivals().windows(NOW)), NOW, seed=1))


def test_of_many_the_latest_are_remembered() -> None:
    many = seen([NOW - 10 * count for count in range(5 * MOST, -1, -1)])
    (last,) = list(many.windows(NOW))
    assert len(last.kinds) == MOST
    assert last.every == pytest.approx(10, rel=0.01)
