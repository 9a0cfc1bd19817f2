"""Clients that fail too often are refused for a while, per address, in a table of bounded size."""

import pytest

from fairlead.api import failed_keys
from fairlead.api.failed_keys import FailedKeys, neighbourhood
from fairlead.api.problems import TooManyFailures, problem_of
from tests.unit.now import Now


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    now = Now()
    monkeypatch.setattr(failed_keys, "monotonic", now)
    return now


def allowed(failures: FailedKeys, address: str, tries: int) -> int:
    """How many of these tries are not refused."""
    count = 0
    for _ in range(tries):
        try:
            failures.note(address)
            count += 1
        except TooManyFailures:
            pass
    return count


@pytest.mark.parametrize("per_minute", [1, 7, 30, 1000])
def test_a_number_at_once_and_then_one_at_a_time(now: Now, per_minute: int) -> None:
    failures = FailedKeys(per_minute)
    assert allowed(failures, "10.0.0.1", per_minute * 2) == per_minute
    now.seconds += 60 / per_minute
    assert allowed(failures, "10.0.0.1", per_minute * 2) == 1
    now.seconds += 3600
    assert allowed(failures, "10.0.0.1", per_minute * 2) == per_minute


def test_the_refusal_says_when_to_retry(now: Now) -> None:
    failures = FailedKeys(2)
    assert allowed(failures, "10.0.0.1", 2) == 2
    now.seconds += 4.5
    with pytest.raises(TooManyFailures) as refusal:
        failures.note("10.0.0.1")
    problem = problem_of(refusal.value)
    assert (problem.status, problem.headers) == (429, {"retry-after": "26"})
    now.seconds += 26
    failures.note("10.0.0.1")


def test_addresses_are_put_off_each_for_itself(now: Now) -> None:
    failures = FailedKeys(3)
    assert allowed(failures, "10.0.0.1", 9) == allowed(failures, "10.0.0.2", 9) == 3


def test_0_refuses_no_address(now: Now) -> None:
    assert allowed(FailedKeys(0), "10.0.0.1", 100) == 100


def test_the_table_drops_the_addresses_that_failed_longest_ago(
    now: Now, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_keys, "MOST_ADDRESSES", 10)
    failures = FailedKeys(1)
    assert allowed(failures, "10.0.0.1", 2) == 1
    for n in range(9):
        failures.note(f"10.1.0.{n}")
    assert allowed(failures, "10.0.0.1", 1) == 0  # which puts it last
    for n in range(9):
        failures.note(f"10.2.0.{n}")
    assert allowed(failures, "10.0.0.1", 1) == 0
    for n in range(10):
        failures.note(f"10.3.0.{n}")
    assert len(failures._until) == 10
    assert allowed(failures, "10.0.0.1", 1) == 1


def test_many_addresses_of_one_network_count_as_one() -> None:
    assert neighbourhood("2001:db8:1:2::1") == neighbourhood("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert neighbourhood("2001:db8:1:3::1") != neighbourhood("2001:db8:1:2::1")
    assert [neighbourhood(one) for one in ("10.0.0.1", "::ffff:10.0.0.1", "", "a socket")] == [
        "10.0.0.1",
        "::ffff:10.0.0.1",
        "",
        "a socket",
    ]
