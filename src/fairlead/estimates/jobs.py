"""When a job will be done."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from fairlead.estimates.histogram import Distribution
from fairlead.model.estimate import Estimate

HALF, MOST = 0.5, 0.9  # of the runs


@dataclass(frozen=True, slots=True)
class StepLeft:
    """A step that has not ended: what is left of its wait, or since when it runs; and how long it runs."""

    stage: int
    durations: Distribution
    wait: Estimate | None = None  #: None: nothing is known, unless it runs
    started: int | None = None  #: ms

    def ends_within(self, share: float, now: int) -> float | None:
        """In ms, by p50 or p90."""
        if self.started is not None:
            return self.durations.left(share, max(0, now - self.started))
        if self.wait is None:
            return None
        seconds = self.wait.p50_seconds if share == HALF else self.wait.p90_seconds
        return 1000 * seconds + self.durations.draw(share)


def done_within(steps: Iterable[StepLeft], now: int) -> Estimate | None:
    """The sum over the stages; of the steps of a stage, which run side by side, the longest counts.

    None if nothing is known of one of them. The sum of the p90 is more than the p90 of the sum.
    """
    stages = [list(together) for _, together in groupby(steps, attrgetter("stage"))]
    p50, p90 = (_sum_over(stages, share, now) for share in (HALF, MOST))
    return None if p50 is None or p90 is None else Estimate(round(p50) / 1000, round(p90) / 1000, now)


def _sum_over(stages: Iterable[Iterable[StepLeft]], share: float, now: int) -> float | None:
    total = 0.0
    for steps in stages:
        ends = [step.ends_within(share, now) for step in steps]
        if None in ends:
            return None
        total += max(end for end in ends if end is not None)
    return total
