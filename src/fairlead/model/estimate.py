"""How long a task will probably wait before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class EstimateQuality:
    """How estimates fitted the tasks that started in the last hour and were not started by their submit."""

    coverage_p90: float | None = None  # the share that started within p90; None: there were none
    median_error_seconds: float | None = None  # between p50 and the real wait
    count: int = 0
