"""How estimates fitted, and how later ones are corrected by that."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from fairlead.estimates.histogram import Distribution, bucket_of
from fairlead.model.estimate import ERROR_BOUNDS, EstimateQuality

PRIORITIES = 3
BOUNDS_MS = (1_000, 60_000)  # of p50: moments, up to a minute, and longer waits are corrected apart
LENGTHS = len(BOUNDS_MS) + 1
RECENT = 300  # estimates that a correction is made from
HOUR_MS, MINUTE_MS = 3_600_000, 60_000
LEAST_MS = 50  # added before dividing: a few ms are nothing
TARGET = 0.9  # the share of tasks that start within p90
LEAST_LEVEL, MOST_LEVEL = 0.75, 0.99
LEARNING_RATE = 0.01
# A factor that was learnt from few is made smaller, as if as many others had fitted. p50 fits on average
# without one, and the waits of a busy hour, which are alike, do not show the contrary.
CAUTION_P50, CAUTION_P90 = 100, 10
MOST_FACTOR = 20.0
UNCORRECTED = 1000  # thousandths


@dataclass(frozen=True, slots=True)
class Fit:
    """An estimate and what came of it, in ms: as it was given, and before it was corrected."""

    priority: int
    at: int  #: of the start
    waited: int
    p50: int
    p90: int
    raw_p50: int
    raw_p90: int

    @property
    def within(self) -> bool:
        return self.waited <= self.p90

    @property
    def error(self) -> int:
        return abs(self.waited - self.p50)


@dataclass
class Correction:
    """Of waits of one priority and length: by which factors estimates would have fitted.

    Which of the recent factors is taken for p90 follows what came of it (adaptive conformal inference): every
    start after its p90 raises the level a little, every other one lowers it by a ninth of that.
    """

    factors: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=RECENT))
    level: float = TARGET
    seen: int = 0  #: also those that are not recent any more

    def learn(self, fit: Fit) -> None:
        self.seen += 1
        missed = LEARNING_RATE * (TARGET if not fit.within else TARGET - 1)
        self.level = min(MOST_LEVEL, max(LEAST_LEVEL, self.level + missed))
        waited = fit.waited + LEAST_MS
        self.factors.append((waited / (fit.raw_p50 + LEAST_MS), waited / (fit.raw_p90 + LEAST_MS)))

    def of_p50(self) -> float:
        factor = _quantile([half for half, _ in self.factors], 0.5)
        return float(factor ** (self.seen / (self.seen + CAUTION_P50)))

    def of_p90(self, usual: float = 1.0) -> float:
        """`usual`: that of a wider class of waits."""
        factor = _quantile([most for _, most in self.factors], self.level)
        return float(usual * (factor / usual) ** (self.seen / (self.seen + CAUTION_P90)))


def _quantile(factors: Sequence[float], level: float) -> float:
    if not factors:
        return 1.0
    rank = min(len(factors), math.ceil(level * (len(factors) + 1)))
    return min(MOST_FACTOR, max(1 / MOST_FACTOR, sorted(factors)[rank - 1]))


@dataclass
class Minute:
    """How many estimates fitted within one minute, and their errors by bucket."""

    within: int = 0
    beyond: int = 0
    errors: dict[int, int] = field(default_factory=dict)

    def learn(self, fit: Fit) -> None:
        self.within += fit.within
        self.beyond += not fit.within
        bucket = bucket_of(fit.error)
        self.errors[bucket] = self.errors.get(bucket, 0) + 1


@dataclass
class Total:
    """Since the namespace exists."""

    within: int = 0
    beyond: int = 0
    errors: list[int] = field(default_factory=lambda: [0] * len(ERROR_BOUNDS))
    error_ms: int = 0

    def learn(self, fit: Fit) -> None:
        self.within += fit.within
        self.beyond += not fit.within
        self.error_ms += fit.error
        for index, bound in enumerate(ERROR_BOUNDS):
            self.errors[index] += fit.error <= bound * 1000


class Calibration:
    def __init__(self) -> None:
        self.of_waits = [Correction() for _ in range(PRIORITIES * LENGTHS)]
        self.of_priorities = [Correction() for _ in range(PRIORITIES)]
        self.minutes: dict[int, Minute] = {}
        self.total = Total()

    def learn(self, fit: Fit) -> None:
        self.of_waits[fit.priority * LENGTHS + bisect_right(BOUNDS_MS, fit.raw_p50)].learn(fit)
        self.of_priorities[fit.priority].learn(fit)
        self.minutes.setdefault(fit.at // MINUTE_MS, Minute()).learn(fit)
        self.total.learn(fit)

    def corrections(self) -> list[list[list[int]]]:
        """By priority and length, of p50 and p90, in thousandths."""
        found = []
        for priority, all_of in enumerate(self.of_priorities):
            usual = all_of.of_p90()
            some = self.of_waits[priority * LENGTHS : (priority + 1) * LENGTHS]
            factors = [(one.of_p50(), one.of_p90(usual)) for one in some]
            found.append([[round(UNCORRECTED * factor) for factor in pair] for pair in factors])
        return found

    def quality(self, now: int) -> EstimateQuality:
        """Of the last hour."""
        first = (now - HOUR_MS) // MINUTE_MS
        self.minutes = {minute: count for minute, count in self.minutes.items() if minute > first}
        hour = list(self.minutes.values())
        within, count = sum(one.within for one in hour), sum(one.within + one.beyond for one in hour)
        error = round(_median(one.errors for one in hour) / 1000, 3) if count else None
        total = self.total
        return EstimateQuality(
            within / count if count else None,
            error,
            count,
            total.within,
            total.beyond,
            tuple(total.errors),
            total.error_ms / 1000,
        )

    def packed(self) -> list[Any]:
        return [
            [
                [one.level, one.seen, [[round(f, 4) for f in pair] for pair in one.factors]]
                for one in (*self.of_waits, *self.of_priorities)
            ],
            [[minute, _packed_minute(count)] for minute, count in self.minutes.items()],
            list(astuple(self.total)),
        ]

    @classmethod
    def unpacked(cls, packed: Sequence[Any]) -> Calibration:
        calibration = cls()
        corrections, minutes, total = packed
        all_of = (*calibration.of_waits, *calibration.of_priorities)
        for correction, (level, seen, factors) in zip(all_of, corrections, strict=True):
            correction.level, correction.seen = level, seen
            correction.factors.extend((half, most) for half, most in factors)
        calibration.minutes = {minute: _minute(*count) for minute, count in minutes}
        calibration.total = Total(*total)
        return calibration


def _packed_minute(minute: Minute) -> list[Any]:
    return [minute.within, minute.beyond, sorted(minute.errors.items())]


def _minute(within: int, beyond: int, errors: Sequence[tuple[int, int]]) -> Minute:
    return Minute(within, beyond, dict(errors))


def _median(counts: Iterable[Mapping[int, int]]) -> float:
    """Of errors by bucket; those below a millisecond or two are none."""
    together: dict[int, float] = {}
    for errors in counts:
        for bucket, count in errors.items():
            together[bucket] = together.get(bucket, 0) + count
    median = Distribution(together).draw(0.5)
    return 0.0 if median < 2 else median
