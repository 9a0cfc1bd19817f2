"""Curves: few points that show when tasks start, and which tasks are read for them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.estimates.curve import GONE_AT, Point, curve
from fairlead.estimates.picture import FINENESS, ranks_to_read
from fairlead.store.estimates import MS, SEQ, TAG, text_of_curve


def points(*starts: float) -> list[Point]:
    """One after the other, the same in each replica."""
    return [Point(100 * count, count, count, 1, [start] * 4) for count, start in enumerate(starts)]


HEADER = 4 + len(GONE_AT)
NONE_GONE = [0.0] * len(GONE_AT)


def p50s(packed: list[int]) -> list[int]:
    return packed[HEADER:][3::5]


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=200), st.integers(4, 40))
def test_a_curve_has_few_points_and_the_first_and_the_last(starts: list[int], most: int) -> None:
    packed = curve(points(*starts), 0, 500, NONE_GONE, most)
    assert (len(packed) - HEADER) % 5 == 0
    tags = packed[HEADER:][0::5]
    assert len(tags) <= most
    assert tags == sorted(set(tags))
    assert (tags[0], tags[-1]) == (0, 100 * (len(starts) - 1))


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=30))
def test_whoever_is_further_back_does_not_start_earlier(starts: list[int]) -> None:
    found = p50s(curve(points(*starts), 0, 500, NONE_GONE, 40))
    assert found == sorted(found)


def test_a_task_that_waits_for_something_else_does_not_hold_up_those_behind_it() -> None:
    assert p50s(curve(points(9_000, 1_000, 2_000), 0, 500, NONE_GONE, 40)) == [1_000, 1_000, 2_000]


def test_half_and_nine_of_ten_of_the_replicas() -> None:
    packed = curve([Point(0, 1, 0, 1, [1_000 * count for count in range(1, 17)])], 0, 500, NONE_GONE, 40)
    assert packed[-2:] == [8_000, 15_000]


def test_what_can_never_start_has_no_points() -> None:
    assert curve(points(math.inf, math.inf), 0, 500, NONE_GONE, 40) == []


def test_beyond_what_was_simulated_the_line_continues() -> None:
    assert p50s(curve(points(1_000, 2_000, math.inf, math.inf), 0, 500, NONE_GONE, 40)) == [
        1_000,
        2_000,
        4_000,
    ]


def test_each_further_task_takes_as_long_as_those_ahead() -> None:
    assert curve(points(*range(0, 50_000, 1_000)), 49, 7, NONE_GONE, 40)[:2] == [49, 1_000]
    assert curve(points(5_000), 1, 7, NONE_GONE, 40)[:2] == [1, 7], "too few to see it"


def test_of_a_short_queue_every_task_is_read() -> None:
    assert ranks_to_read([(30, 30, 0)], slots=10) == [[(rank, 1) for rank in range(30)]]


@given(
    st.lists(st.tuples(st.integers(1, 5_000), st.integers(0, 5_000)), min_size=1, max_size=20),
    st.integers(0, 100),
)
def test_every_task_stands_for_itself_and_those_behind_it(extras: list[tuple[int, int]], slots: int) -> None:
    sizes = [(size, size + more, more) for size, more in extras]
    for (size, _, _), ranks in zip(sizes, ranks_to_read(sizes, slots), strict=True):
        assert [rank for rank, _ in ranks] == [sum(c for _, c in ranks[:i]) for i in range(len(ranks))]
        assert sum(count for _, count in ranks) == size


def test_of_a_long_queue_few_tasks_are_read_and_those_in_front_all() -> None:
    (ranks,) = ranks_to_read([(100_000, 100_000, 0)], slots=10)
    assert len(ranks) < 1_000
    assert ranks[:100] == [(rank, 1) for rank in range(100)]
    assert all(count <= max(1, FINENESS * rank / 10) for rank, count in ranks)


def test_many_sub_queues_are_read_more_coarsely() -> None:
    read = ranks_to_read([(1_000, 1_000_000, 0)] * 1_000, slots=10, most=4_000)
    assert sum(map(len, read)) <= 4_000


@pytest.mark.parametrize("count", [1, 3])
def test_a_curve_is_a_text_of_equal_parts(count: int) -> None:
    text = text_of_curve([*range(HEADER), *[9] * 5 * count])
    assert len(text) == HEADER * MS + count * (TAG + SEQ + 3 * MS)
    assert text_of_curve([]) == ""


def test_a_number_that_is_too_great_does_not_move_the_others() -> None:
    assert text_of_curve([10**20, 2, 3, 4]) == "9" * MS + "000000000002" + "000000000003" + "000000000004"
