"""An estimate that counts down with the clock has not moved."""

import pytest

from fairlead.model.estimate import Estimate, has_moved


def after(seconds: float, p50: float, p90: float) -> Estimate:
    return Estimate(p50, p90, round(seconds * 1000))


@pytest.mark.parametrize(
    ("told", "now", "moved"),
    [
        (None, after(0, 10, 20), True),
        (after(0, 10, 20), after(0, 10, 20), False),
        (after(0, 100, 200), after(30, 70, 170), False),
        (after(0, 100, 200), after(30, 100, 200), True),
        (after(0, 100, 200), after(30, 77, 170), False),
        (after(0, 100, 200), after(30, 77.1, 170), True),
        (after(0, 100, 200), after(30, 62.9, 170), True),
        (after(0, 100, 200), after(30, 70, 187.5), True),
        (after(0, 3600, 7200), after(60, 3800, 7800), False),
        (after(0, 10, 20), after(0, 12, 20), False),
        (after(0, 10, 20), after(0, 12.1, 20), True),
        (after(0, 5, 9), after(60, 0, 2), False),
        (after(0, 5, 9), after(60, 0.5, 2.1), True),
    ],
)
def test_it_has_moved_when_it_is_more_than_a_tenth_and_two_seconds_away(
    told: Estimate | None, now: Estimate, moved: bool
) -> None:
    assert has_moved(told, now) is moved
