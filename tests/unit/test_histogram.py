"""Durations in buckets: what is drawn from them, and how old ones fade."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.estimates.histogram import HALF_COUNT, HALF_MS, WIDTH, Distribution, Histogram, bucket_of


def seen(*durations: float, at: int = 0) -> Histogram:
    histogram = Histogram()
    for ms in durations:
        histogram.add(ms, at)
    return histogram


def distribution(*durations: float) -> Distribution:
    return Distribution(seen(*durations).normal())


@given(st.floats(1, 1e9))
def test_a_bucket_is_a_few_percent_wide(ms: float) -> None:
    bucket = bucket_of(ms)
    assert WIDTH**bucket <= ms * 1.000001
    assert ms <= WIDTH ** (bucket + 1) * 1.000001


@given(st.lists(st.floats(1, 1e7), min_size=1, max_size=50), st.floats(0, 1))
def test_what_is_drawn_lies_between_the_shortest_and_the_longest(
    durations: list[float], share: float
) -> None:
    assert min(durations) / WIDTH <= distribution(*durations).draw(share) <= max(durations) * WIDTH


def test_half_of_what_is_drawn_is_shorter_than_the_median() -> None:
    assert distribution(*[1_000] * 45, *[100] * 50).draw(0.5) == pytest.approx(100, rel=WIDTH - 1)


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=30), st.floats(0.01, 0.99))
def test_the_share_that_is_shorter_is_the_share_that_was_drawn(durations: list[float], share: float) -> None:
    spread = distribution(*durations)
    assert spread.share_within(spread.draw(share)) == pytest.approx(share, abs=0.02)


def test_a_duration_counts_half_after_many_later_ones() -> None:
    histogram = seen(10, *[1_000] * HALF_COUNT)
    assert histogram.normal()[bucket_of(10)] == pytest.approx(0.5)


def test_a_duration_counts_half_after_a_while() -> None:
    histogram = seen(10)
    histogram.add(1_000, HALF_MS)
    assert histogram.normal()[bucket_of(10)] == pytest.approx(0.5, rel=0.01)


def test_weights_stay_numbers_however_many_durations_there_are() -> None:
    histogram = seen(*[10.0, 20.0] * 20_000)
    assert math.isfinite(histogram.unit)
    assert sum(histogram.normal().values()) == pytest.approx(1 / (1 - 0.5 ** (1 / HALF_COUNT)), rel=0.01)


def test_an_older_event_does_not_turn_time_back() -> None:
    histogram = seen(10, at=1_000)
    histogram.add(20, 500)
    assert histogram.at == 1_000


def test_a_histogram_is_unpacked_as_it_was_packed() -> None:
    histogram = seen(10, 200, 3_000, at=7)
    again = Histogram.unpacked(histogram.packed())
    assert again.packed() == histogram.packed()


def test_what_is_left_of_a_run_is_read_from_those_that_took_longer() -> None:
    spread = distribution(*[1_000] * 90, *[60_000] * 10)
    assert spread.left(0.5, 0) == pytest.approx(1_000, rel=WIDTH - 1)
    assert spread.left(0.5, 5_000) == pytest.approx(55_000, rel=2 * (WIDTH - 1))


@given(st.floats(0, 1e6), st.floats(0, 0.99))
def test_what_is_left_is_never_negative(elapsed: float, share: float) -> None:
    assert distribution(500, 1_000, 30_000).left(share, elapsed) >= 0


def test_a_run_that_takes_longer_than_all_takes_as_long_again() -> None:
    assert distribution(1_000).left(0.5, 20_000) == pytest.approx(20_000)
