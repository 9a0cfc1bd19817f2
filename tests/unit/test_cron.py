"""When crons tick: expressions, time zones, and ticks that are made up after downtime."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.cron import MINUTE, MOST_MISSED, Cron, Missed, due, next_tick
from fairlead.errors import InvalidInput
from fairlead.times import time_text

BERLIN = "Europe/Berlin"
ZONES = ["UTC", BERLIN, "America/New_York", "America/Havana", "Asia/Kolkata", "Africa/Cairo"]
EXPRESSIONS = [
    *("* * * * *", "*/5 * * * *", "30 * * * *", "7,37 1-3 * * *", "30 2 * * *", "0 0 * * *", "15 */2 * * *"),
    *("0 3 1 * *", "0 0 L * *", "0 9 * * MON-FRI", "45 23 13 * 5", "0 0 29 2 *", "0 12 * * SUN#1"),
]
YEARS = {"min_value": 1_700_000_000_000, "max_value": 1_900_000_000_000}


def cron(
    expression: str = "*/5 * * * *", timezone: str = "UTC", missed: Missed = "last", **more: Any
) -> Cron:
    return Cron(name="c", expression=expression, task_type="echo", timezone=timezone, missed=missed, **more)


def ms(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp()) * 1000


def ticks(made: Cron, after: int, count: int) -> list[str]:
    """This number of next ticks, in UTC, to the minute."""
    found = []
    for _ in range(count):
        after = next_tick(made, after)
        found.append(time_text(after)[:16].replace("T", " "))
    return found


# Expressions


def test_an_expression_ticks(subtests: pytest.Subtests) -> None:
    for expression, after, expected in [
        ("*/20 * * * *", "2026-01-01 00:59", ["2026-01-01 01:00", "2026-01-01 01:20"]),
        ("0 0 31 * *", "2026-01-31", ["2026-03-31 00:00", "2026-05-31 00:00"]),
        ("0 0 L * *", "2026-01-31", ["2026-02-28 00:00", "2026-03-31 00:00"]),
        ("0 0 29 2 *", "2026-01-01", ["2028-02-29 00:00", "2032-02-29 00:00"]),
        ("59 23 31 12 *", "2026-12-31 23:59", ["2027-12-31 23:59"]),
        ("0 0 13 * 5", "2026-03-01", ["2026-03-06 00:00", "2026-03-13 00:00", "2026-03-20 00:00"]),
        ("0 9 * jan mon#1", "2026-01-01", ["2026-01-05 09:00", "2027-01-04 09:00"]),
        ("0 0 * 2 MON#5", "2026-01-01", ["2044-02-29 00:00"]),
    ]:
        with subtests.test(expression=expression, after=after, expected=expected):
            assert ticks(cron(expression), ms(after), len(expected)) == expected


def test_a_tick_is_after_the_given_instant_to_the_millisecond() -> None:
    noon = ms("2026-01-01 12:00")
    assert next_tick(cron("0 12 * * *"), noon - 1) == noon
    assert next_tick(cron("0 12 * * *"), noon) == noon + 86_400_000
    assert next_tick(cron("0 12 * * *"), noon + 1) == noon + 86_400_000


@given(after=st.integers(**YEARS), expression=st.sampled_from(EXPRESSIONS), zone=st.sampled_from(ZONES))
def test_ticks_only_grow_by_at_least_a_minute(after: int, expression: str, zone: str) -> None:
    made, found = cron(expression, zone), [after]
    for _ in range(5):
        found.append(next_tick(made, found[-1]))
    assert found[1] > after
    assert all(later - tick >= MINUTE for tick, later in pairwise(found[1:]))


# Time zones


def test_a_time_of_day_is_that_of_the_zone() -> None:
    made = cron("30 9 * * *", BERLIN)
    assert ticks(made, ms("2026-01-15"), 1) == ["2026-01-15 08:30"]
    assert ticks(made, ms("2026-07-15"), 1) == ["2026-07-15 07:30"]


def test_a_tick_in_the_skipped_hour_comes_at_its_end() -> None:
    # in Berlin, 02:00 to 03:00 is left out on 29 March 2026
    made = cron("30 2 * * *", BERLIN)
    expected = ["2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"]
    assert ticks(made, ms("2026-03-28", BERLIN), 3) == expected


def test_a_tick_in_the_repeated_hour_comes_once_in_its_first_pass() -> None:
    # in Berlin, 02:00 to 03:00 comes twice on 25 October 2026
    made = cron("30 2 * * *", BERLIN)
    assert ticks(made, ms("2026-10-25", BERLIN), 2) == ["2026-10-25 00:30", "2026-10-26 01:30"]


def test_a_cron_that_begins_in_the_second_pass_does_not_tick_in_it() -> None:
    made = cron("30 2 * * *", BERLIN)
    assert ticks(made, ms("2026-10-25 01:15"), 1) == ["2026-10-26 01:30"]
    assert due(made, ms("2026-10-25 01:15"), ms("2026-10-25 01:45")) == []


def test_ticks_missed_in_the_first_pass_are_made_up_in_the_second() -> None:
    last, now = ms("2026-10-24 00:30"), ms("2026-10-25 01:15")
    assert due(cron("30 2 * * *", BERLIN), last, now) == [ms("2026-10-25 00:30")]


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
@pytest.mark.parametrize(("expression", "every"), [("*/15 * * * *", 15), ("0 * * * *", 60)])
def test_intervals_of_minutes_follow_the_elapsed_time(day: str, expression: str, every: int) -> None:
    start, hours = ms(day, BERLIN), 6
    found = due(cron(expression, BERLIN, "all"), start, start + hours * 60 * MINUTE)
    assert found == [start + n * every * MINUTE for n in range(1, hours * 60 // every + 1)]


def test_with_a_star_the_ticks_of_a_chosen_hour_are_left_out_or_doubled_with_it() -> None:
    half_hours, even_hours = cron("*/30 2 * * *", BERLIN, "all"), cron("0 */2 * * *", BERLIN, "all")
    spring, autumn = ms("2026-03-29", BERLIN), ms("2026-10-25", BERLIN)

    def five_hours(made: Cron, day: int) -> list[str]:
        return [time_text(tick)[11:16] for tick in due(made, day, day + 5 * 60 * MINUTE)]

    assert five_hours(half_hours, spring) == []
    assert five_hours(half_hours, autumn) == ["00:00", "00:30", "01:00", "01:30"]
    assert five_hours(even_hours, spring) == ["02:00", "04:00"]
    assert five_hours(even_hours, autumn) == ["00:00", "01:00", "03:00"]


# Missed ticks

DAILY = "0 3 * * *"
LAST = ms("2026-05-01 03:00")
DAYS = [LAST + n * 86_400_000 for n in range(10)]


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_a_tick_is_due_from_its_very_millisecond(missed: Missed) -> None:
    made = cron(DAILY, missed=missed)
    assert due(made, LAST, DAYS[1] - 1) == []
    assert due(made, LAST, DAYS[1]) == [DAYS[1]]
    assert due(made, LAST, DAYS[1] + MINUTE - 1) == [DAYS[1]]
    assert due(made, DAYS[1], DAYS[1]) == []


def test_skip_drops_ticks_that_were_not_submitted_in_their_minute() -> None:
    made = cron(DAILY, missed="skip")
    assert due(made, LAST, DAYS[1] + MINUTE) == []
    assert due(made, LAST, DAYS[5] + 5 * MINUTE) == []
    assert due(made, LAST, DAYS[5]) == [DAYS[5]]


def test_last_makes_up_for_the_latest_only() -> None:
    made = cron(DAILY, missed="last")
    assert due(made, LAST, DAYS[5] + 5 * MINUTE) == [DAYS[5]]


def test_all_makes_up_for_each_in_order() -> None:
    made = cron(DAILY, missed="all")
    assert due(made, LAST, DAYS[5] + 5 * MINUTE) == DAYS[1:6]


@pytest.mark.parametrize("expression", ["* * * * *", "0 * * * *", "* * 1 * *"])
def test_all_makes_up_for_the_latest_thousand_at_most(expression: str) -> None:
    made, now = cron(expression, missed="all"), ms("2026-05-01 12:00:30")
    found = due(made, ms("2025-05-01"), now)
    assert len(found) == MOST_MISSED
    assert found[-1] <= now < next_tick(made, found[-1])
    assert all(next_tick(made, tick) == later for tick, later in pairwise(found))


@pytest.mark.parametrize("missed", ["skip", "last", "all"])
def test_a_clock_that_was_set_back_makes_nothing_due(missed: Missed) -> None:
    assert due(cron("* * * * *", missed=missed), LAST, LAST - 5 * MINUTE) == []


looks = st.lists(st.integers(0, 3 * 86_400_000), min_size=1, max_size=6)


@given(
    start=st.integers(**YEARS),
    steps=looks,
    expression=st.sampled_from(EXPRESSIONS),
    zone=st.sampled_from(ZONES),
)
def test_with_all_no_tick_comes_twice_and_none_is_left_out(
    start: int, steps: list[int], expression: str, zone: str
) -> None:
    made, last, now, found = cron(expression, zone, "all"), start, start, []
    expected = []
    for step in steps:
        now += min(step, 900 * MINUTE)  # no more missed than are made up for
        found += due(made, last, now)
        last = found[-1] if found else last
    tick = next_tick(made, start)
    while tick <= now:
        expected.append(tick)
        tick = next_tick(made, tick)
    assert found == expected


@given(start=st.integers(**YEARS), steps=looks, missed=st.sampled_from(["skip", "last"]))
def test_with_skip_and_last_no_tick_comes_twice(start: int, steps: list[int], missed: Missed) -> None:
    made, last, now = cron("*/7 * * * *", missed=missed), start, start
    for step in steps:
        now += step
        found = due(made, last, now)
        assert len(found) <= 1
        assert all(last < tick <= now for tick in found)
        last = found[-1] if found else last


@given(start=st.integers(**YEARS), minutes=st.integers(0, 3000))
def test_the_ticks_are_those_that_a_walk_through_all_minutes_finds(start: int, minutes: int) -> None:
    now = start + minutes * MINUTE
    first = datetime.fromtimestamp(start // MINUTE * 60, UTC)
    walked = [first + timedelta(minutes=n) for n in range(1, minutes + 2)]
    expected = [
        int(at.timestamp()) * 1000
        for at in walked
        if at.minute % 20 == 5 and at.hour in (0, 6, 7, 23) and at.weekday() < 5
    ]
    assert due(cron("5/20 0,6-7,23 * * MON-FRI", missed="all"), start, now) == [
        tick for tick in expected if tick <= now
    ]


# The task of a tick


def test_each_tick_makes_its_own_task() -> None:
    made = cron(wishes={"priority": "low", "parameters": {"a": 1}, "max_wait_seconds": 60})
    one, other = made.new_task(LAST), made.new_task(LAST)
    assert (one.task_type, one.priority, one.parameters, one.max_wait_seconds) == (
        "echo",
        "low",
        {"a": 1},
        60,
    )
    assert one.task_id != other.task_id


def test_a_task_can_receive_its_tick() -> None:
    made = cron(wishes={"parameters": {"a": 1}}, tick_parameter="at")
    assert made.new_task(LAST).parameters == {"a": 1, "at": "2026-05-01T03:00:00.000Z"}
    assert made.wishes == {"parameters": {"a": 1}}


# Bad input

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a name with a space": ({"name": "a b"}, "name"),
    "a type with a space": ({"task_type": "a b"}, "task_type"),
    "four fields": ({"expression": "* * * *"}, "expression"),
    "six fields": ({"expression": "0 * * * * *"}, "expression"),
    "no field": ({"expression": ""}, "expression"),
    "no text": ({"expression": 5}, "expression"),
    "a shorthand": ({"expression": "@daily"}, "expression"),
    "a minute that is not there": ({"expression": "60 * * * *"}, "expression"),
    "a word": ({"expression": "* * * * someday"}, "expression"),
    "a step of nothing": ({"expression": "*/0 * * * *"}, "expression"),
    "a range backwards": ({"expression": "* 5-3 * * *"}, "expression"),
    "a very long number": ({"expression": "9" * 5000 + " * * * *"}, "expression"),
    "30 February": ({"expression": "0 0 30 2 *"}, "expression"),
    "a last Monday that is never a 1st or 21st": ({"expression": "* * */20 * 1L"}, "expression"),
    "an unknown zone": ({"timezone": "Europe/Atlantis"}, "timezone"),
    "a folder of zones": ({"timezone": "Europe"}, "timezone"),
    "a path": ({"timezone": "../../etc/passwd"}, "timezone"),
    "an absolute path": ({"timezone": "/etc/passwd"}, "timezone"),
    "no zone": ({"timezone": ""}, "timezone"),
    "a zone with a zero byte": ({"timezone": "UTC\0"}, "timezone"),
    "a zone that is no text": ({"timezone": None}, "timezone"),
    "another policy": ({"missed": "none"}, "missed"),
    "a task id for all": ({"wishes": {"task_id": "1"}}, "wishes.task_id"),
    "an idempotency key for all": ({"wishes": {"idempotency_key": "k"}}, "wishes.idempotency_key"),
    "an unknown option": ({"wishes": {"colour": "red"}}, "wishes.colour"),
    "options that are not a table": ({"wishes": ["priority"]}, "wishes"),
    "an unknown priority": ({"wishes": {"priority": "urgent"}}, "priority"),
    "parameters that are no object": ({"wishes": {"parameters": [1]}, "tick_parameter": "at"}, "parameters"),
    "parameters that are no JSON": ({"wishes": {"parameters": {"a": {1}}}}, "parameters.a"),
    "a parameter without a name": ({"tick_parameter": ""}, "tick_parameter"),
}


def test_a_cron_that_could_never_work_is_refused_by_field(subtests: pytest.Subtests) -> None:
    for wrong, field in BAD.values():
        with subtests.test(wrong=wrong, field=field):
            right: dict[str, Any] = {"name": "c", "expression": "* * * * *", "task_type": "echo"}
            with pytest.raises(InvalidInput) as refused:
                Cron(**right | wrong)
            assert refused.value.field == field


def test_the_refusal_of_an_expression_says_what_is_wrong_and_what_to_do() -> None:
    with pytest.raises(InvalidInput, match=r"'61 \* \* \* \*' has a bad minute: give minute, hour"):
        cron("61 * * * *")
    with pytest.raises(InvalidInput, match=r"never comes"):
        cron("* * */20 * 1L")
