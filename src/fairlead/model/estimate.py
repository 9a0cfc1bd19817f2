"""How long a task will probably wait before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.times import span_text

FAR_SECONDS, FAR_SHARE = 2.0, 0.1  # an estimate that is farther than both of these from the last has moved


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds from `at` until it starts: half of such tasks start by `p50_seconds`, 90 % by `p90_seconds`."""

    p50_seconds: float
    p90_seconds: float
    at: int  # ms by the store's clock

    @classmethod
    def of_row(cls, row: Sequence[int] | None) -> "Estimate | None":
        """From p50 and p90 in ms, and `at`; the store has none when nothing is known yet."""
        return cls.of_ms(*row[:3]) if row else None

    @classmethod
    def of_ms(cls, p50: int, p90: int, at: int) -> "Estimate":
        return cls(p50 / 1000, p90 / 1000, at)

    @property
    def words(self) -> str:
        return f"about {span_text(self.p50_seconds)} (90 %: within {span_text(self.p90_seconds)})"


def has_moved(last: Estimate | None, now: Estimate) -> bool:
    """Whether it is not what was to be expected: one that counts down with the clock has not moved."""
    if last is None:
        return True
    passed = (now.at - last.at) / 1000
    return _is_far(last.p50_seconds - passed, now.p50_seconds) or _is_far(
        last.p90_seconds - passed, now.p90_seconds
    )


def _is_far(expected: float, now: float) -> bool:
    expected = max(0.0, expected)
    return abs(now - expected) > max(FAR_SECONDS, FAR_SHARE * expected)


@dataclass(frozen=True, slots=True)
class EstimateQuality:
    """How estimates fitted the tasks that started in the last hour and were not started by their submit."""

    coverage_p90: float | None = None  # the share that started within p90; None: there were none
    median_error_seconds: float | None = None  # between p50 and the real wait
    count: int = 0
    # Since the namespace exists:
    within_total: int = 0
    beyond_total: int = 0
    errors: Sequence[int] = ()  # how many were not greater than each of ERROR_BOUNDS
    error_seconds: float = 0.0  # the sum


ERROR_BOUNDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0)  # seconds
