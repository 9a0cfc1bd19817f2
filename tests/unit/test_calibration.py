"""How estimates fitted corrects later ones."""

import random

import pytest

from fairlead.estimates.calibration import BOUNDS_MS, HOUR_MS, UNCORRECTED, Calibration, Fit
from fairlead.model.estimate import ERROR_BOUNDS


def fit(waited: int, p50: int, p90: int, *, at: int = 0, priority: int = 1) -> Fit:
    return Fit(priority, at, waited, p50, p90, p50, p90)


def corrected(calibration: Calibration, p50: int, p90: int, priority: int = 1) -> tuple[int, int]:
    """As the store does it (lua/lib/forecasts.lua)."""
    length = sum(p50 >= bound for bound in BOUNDS_MS)
    half, most = calibration.corrections()[priority][length]
    return (p50 + 50) * half // 1000 - 50, (p90 + 50) * most // 1000 - 50


def played(calibration: Calibration, waits: list[int], p50: int, p90: int) -> float:
    """The share within p90 if each is corrected by those before it."""
    within = 0
    for waited in waits:
        half, most = corrected(calibration, p50, p90)
        one = Fit(1, 0, waited, half, most, p50, p90)
        within += one.within
        calibration.learn(one)
    return within / len(waits)


def test_nothing_is_corrected_before_anything_was_seen() -> None:
    assert Calibration().corrections() == [[[UNCORRECTED, UNCORRECTED]] * (len(BOUNDS_MS) + 1)] * 3


@pytest.mark.parametrize("factor", [0.2, 1.0, 5.0])
def test_the_range_becomes_as_wide_as_waits_need(factor: float) -> None:
    chance, calibration = random.Random(1), Calibration()
    waits = [round(factor * 10_000 * chance.lognormvariate(0, 0.7)) for _ in range(3_000)]
    assert played(calibration, waits, 10_000, 15_000) == pytest.approx(0.9, abs=0.03)
    assert corrected(calibration, 10_000, 15_000)[0] == pytest.approx(factor * 10_000, rel=0.2)


def test_the_range_follows_waits_that_grow() -> None:
    chance, calibration = random.Random(1), Calibration()
    waits = [round((10_000 + 20 * count) * chance.lognormvariate(0, 0.3)) for count in range(2_000)]
    assert played(calibration, waits, 10_000, 12_000) >= 0.85


def test_priorities_and_lengths_are_corrected_apart() -> None:
    calibration = Calibration()
    for _ in range(100):
        calibration.learn(fit(20_000, 10_000, 15_000, priority=2))
    high, medium, low = calibration.corrections()
    assert high == medium == Calibration().corrections()[0]
    assert [half != UNCORRECTED for half, _ in low] == [False, True, False]


def test_what_is_known_of_a_priority_widens_ranges_of_every_length() -> None:
    calibration = Calibration()
    for _ in range(200):
        calibration.learn(fit(40_000, 10_000, 15_000))
    _, medium, _ = calibration.corrections()
    assert all(most > 2 * UNCORRECTED for _, most in medium)


def test_p50_is_corrected_later_than_the_range() -> None:
    calibration = Calibration()
    for _ in range(10):
        calibration.learn(fit(40_000, 10_000, 10_000))
    half, most = corrected(calibration, 10_000, 10_000)
    assert half < 13_000 < 20_000 < most


def test_one_strange_wait_does_not_change_much() -> None:
    calibration = Calibration()
    calibration.learn(fit(900_000, 1_000, 2_000))
    assert corrected(calibration, 1_000, 2_000)[1] < 3_500


def test_the_quality_is_that_of_the_last_hour() -> None:
    calibration = Calibration()
    calibration.learn(fit(99_000, 10_000, 20_000, at=1_000))
    for waited in (9_000, 12_000, 30_000):
        calibration.learn(fit(waited, 10_000, 20_000, at=HOUR_MS))
    quality = calibration.quality(now=HOUR_MS + 90_000)
    assert quality.count == 3
    assert quality.coverage_p90 == pytest.approx(2 / 3)
    assert quality.median_error_seconds == pytest.approx(2, rel=0.1)
    assert (quality.within_total, quality.beyond_total) == (2, 2)


def test_without_waits_there_is_no_quality() -> None:
    quality = Calibration().quality(now=0)
    assert (quality.coverage_p90, quality.median_error_seconds, quality.count) == (None, None, 0)


def test_errors_are_counted_up_to_each_bound() -> None:
    calibration = Calibration()
    for waited in (10_000, 10_400, 99_000):
        calibration.learn(fit(waited, 10_000, 20_000))
    quality = calibration.quality(now=0)
    counts = dict(zip(ERROR_BOUNDS, quality.errors, strict=True))
    assert (counts[0.1], counts[0.5], counts[60.0], counts[300.0]) == (1, 2, 2, 3)
    assert quality.error_seconds == pytest.approx(89.4)


def test_another_process_continues_with_what_was_kept() -> None:
    calibration = Calibration()
    for waited in (9_000, 12_000, 30_000):
        calibration.learn(fit(waited, 10_000, 20_000, at=60_000))
    again = Calibration.unpacked(calibration.packed())
    assert again.corrections() == calibration.corrections()
    assert again.quality(now=60_000) == calibration.quality(now=60_000)
