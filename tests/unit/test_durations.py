"""How long runs of a kind take: learnt, bounded, and known from the first task on."""

from typing import Any

import pytest

from fairlead.estimates.durations import MOST_KINDS, PRIOR_COUNT, USUAL_MS, Durations


def test_before_anything_has_ended_the_range_is_wide() -> None:
    spread = Durations().of("draw")
    assert spread.draw(0.5) == pytest.approx(USUAL_MS, rel=0.1)
    assert spread.draw(0.9) > 4 * spread.draw(0.5)


def test_a_type_that_was_never_seen_takes_as_long_as_others() -> None:
    durations = Durations()
    for _ in range(50):
        durations.learn("write", "", "", 300, at=0)
    assert durations.of("draw").draw(0.5) == pytest.approx(300, rel=0.1)


def test_a_type_takes_as_long_as_before() -> None:
    durations = Durations()
    for _ in range(50):
        durations.learn("write", "", "", 300, at=0)
        durations.learn("draw", "", "", 90_000, at=0)
    assert durations.of("draw").draw(0.5) == pytest.approx(90_000, rel=0.1)
    assert durations.of("write").draw(0.5) == pytest.approx(300, rel=0.1)


def test_tier_and_size_are_told_apart() -> None:
    durations = Durations()
    for _ in range(50):
        durations.learn("draw", "fast", "", 1_000, at=0)
        durations.learn("draw", "slow", "xl", 50_000, at=0)
    assert durations.of("draw", "fast").draw(0.5) == pytest.approx(1_000, rel=0.1)
    assert durations.of("draw", "slow", "xl").draw(0.5) == pytest.approx(50_000, rel=0.1)
    assert durations.of("draw", "slow", "never seen").draw(0.5) == pytest.approx(50_000, rel=0.1)


def test_a_single_run_does_not_say_much() -> None:
    durations = Durations()
    for _ in range(100):
        durations.learn("write", "", "", 300, at=0)
    durations.learn("draw", "", "", 90_000, at=0)
    assert durations.of("draw").share_within(1_000) == pytest.approx(
        PRIOR_COUNT / (PRIOR_COUNT + 1), abs=0.05
    )


def test_kinds_that_nobody_uses_make_room_for_others() -> None:
    durations = Durations()
    durations.learn("kept", "", "", 5_000, at=0)
    for count in range(3 * MOST_KINDS):
        durations.learn(f"hostile{count}", "", "", 100, at=count)
        if count % 100 == 0:
            durations.learn("kept", "", "", 5_000, at=count)
    assert len(durations) == MOST_KINDS
    assert durations.of("kept").draw(0.5) == pytest.approx(5_000, rel=0.1)


def test_another_process_continues_with_what_was_kept() -> None:
    durations = Durations()
    kept: dict[str, Any] = {}
    for count in range(2 * MOST_KINDS):
        durations.learn(f"type{count}", "", "", 100 + count, at=count)
        if count % 700 == 0:
            kept |= durations.packed_changes()
    kept |= durations.packed_changes()
    again = Durations.unpacked({kind: packed for kind, packed in kept.items() if packed})
    assert len(again) == MOST_KINDS
    for kind in (f"type{2 * MOST_KINDS - 1}", "new"):
        assert again.of(kind).draw(0.5) == pytest.approx(durations.of(kind).draw(0.5), rel=0.01)
    again.learn("one more", "", "", 100, at=0)
    assert f"type{MOST_KINDS + 1}" in again.changed, "the oldest goes first there too"


def test_what_has_not_changed_is_not_kept_again() -> None:
    durations = Durations()
    durations.learn("draw", "", "", 100, at=0)
    assert sorted(durations.packed_changes()) == ["", "draw"]
    durations.learn("write", "", "", 100, at=0)
    assert sorted(durations.packed_changes()) == ["", "write"]
