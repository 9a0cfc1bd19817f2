"""How long runs of a kind take: learnt, bounded, and known from the first task on."""

from typing import Any

import pytest

from fairlead.estimates.durations import (
    MOST_KINDS,
    MOST_NARROW_KINDS,
    PRIOR_COUNT,
    USUAL_MS,
    Durations,
    RunKind,
)


def test_before_anything_has_ended_the_range_is_wide() -> None:
    spread = Durations().of(RunKind("draw"))
    assert spread.draw(0.5) == pytest.approx(USUAL_MS, rel=0.1)
    assert spread.draw(0.9) > 4 * spread.draw(0.5)


def test_a_type_that_was_never_seen_takes_as_long_as_others() -> None:
    durations = Durations()
    for _ in range(50):
        durations.learn(RunKind("write"), 300, at=0)
    assert durations.of(RunKind("draw")).draw(0.5) == pytest.approx(300, rel=0.1)


def test_a_type_takes_as_long_as_before() -> None:
    durations = Durations()
    for _ in range(50):
        durations.learn(RunKind("write"), 300, at=0)
        durations.learn(RunKind("draw"), 90_000, at=0)
    assert durations.of(RunKind("draw")).draw(0.5) == pytest.approx(90_000, rel=0.1)
    assert durations.of(RunKind("write")).draw(0.5) == pytest.approx(300, rel=0.1)


def test_tier_and_size_are_told_apart() -> None:
    durations = Durations()
    for _ in range(50):
        durations.learn(RunKind("draw", "fast", ""), 1_000, at=0)
        durations.learn(RunKind("draw", "slow", "xl"), 50_000, at=0)
    assert durations.of(RunKind("draw", "fast")).draw(0.5) == pytest.approx(1_000, rel=0.1)
    assert durations.of(RunKind("draw", "slow", "xl")).draw(0.5) == pytest.approx(50_000, rel=0.1)
    assert durations.of(RunKind("draw", "slow", "never seen")).draw(0.5) == pytest.approx(50_000, rel=0.1)


def test_a_single_run_does_not_say_much() -> None:
    durations = Durations()
    for _ in range(100):
        durations.learn(RunKind("write"), 300, at=0)
    durations.learn(RunKind("draw"), 90_000, at=0)
    assert durations.of(RunKind("draw")).share_within(1_000) == pytest.approx(
        PRIOR_COUNT / (PRIOR_COUNT + 1), abs=0.05
    )


def test_kinds_that_nobody_uses_make_room_for_others() -> None:
    durations = Durations()
    durations.learn(RunKind("kept"), 5_000, at=0)
    for count in range(3 * MOST_KINDS):
        durations.learn(RunKind(f"hostile{count}"), 100, at=count)
        if count % 100 == 0:
            durations.learn(RunKind("kept"), 5_000, at=count)
    assert len(durations) == MOST_KINDS
    assert durations.of(RunKind("kept")).draw(0.5) == pytest.approx(5_000, rel=0.1)


def test_another_process_continues_with_what_was_kept() -> None:
    durations = Durations()
    kept: dict[str, Any] = {}
    for count in range(2 * MOST_KINDS):
        durations.learn(RunKind(f"type{count}"), 100 + count, at=count)
        if count % 700 == 0:
            kept |= durations.packed_changes()
    kept |= durations.packed_changes()
    again = Durations.unpacked({kind: packed for kind, packed in kept.items() if packed})
    assert len(again) == MOST_KINDS
    for kind in (f"type{2 * MOST_KINDS - 1}", "new"):
        before = durations.of(RunKind(kind)).draw(0.5)
        assert again.of(RunKind(kind)).draw(0.5) == pytest.approx(before, rel=0.01)
    again.learn(RunKind("one more"), 100, at=0)
    assert f"type{MOST_KINDS + 1}" in again.changed, "the oldest goes first there too"


def test_what_has_not_changed_is_not_kept_again() -> None:
    durations = Durations()
    durations.learn(RunKind("draw"), 100, at=0)
    assert sorted(durations.packed_changes()) == ["", "draw"]
    durations.learn(RunKind("write"), 100, at=0)
    assert sorted(durations.packed_changes()) == ["", "write"]


def test_needs_and_account_say_more_than_the_type() -> None:
    durations = Durations()
    for _ in range(50):
        durations.learn(RunKind("draw", needs="small=1", account="ada"), 1_000, at=0)
        durations.learn(RunKind("draw", needs="large=1", account="ada"), 20_000, at=0)
        durations.learn(RunKind("draw", needs="large=1", account="bob"), 60_000, at=0)
    expected = (("small=1", "new", 1_000), ("large=1", "ada", 20_000), ("large=1", "bob", 60_000))
    for needs, account, ms in expected:
        kind = RunKind("draw", needs=needs, account=account)
        assert durations.of(kind).draw(0.5) == pytest.approx(ms, rel=0.15)


def test_accounts_make_room_for_accounts_and_not_for_types() -> None:
    durations = Durations()
    for _ in range(20):
        durations.learn(RunKind("rare"), 5_000, at=0)
    for count in range(2 * MOST_NARROW_KINDS):
        durations.learn(RunKind("draw", account=f"hostile{count}"), 100, at=count)
    assert durations.of(RunKind("rare")).draw(0.5) == pytest.approx(5_000, rel=0.1)
    assert len(durations) == 3 + MOST_NARROW_KINDS
    kept = {kind: packed for kind, packed in durations.packed_changes().items() if packed}
    assert len(Durations.unpacked(kept)) == len(durations)
