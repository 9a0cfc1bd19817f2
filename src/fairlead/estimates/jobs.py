"""When a job will be done."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from fairlead.estimates.histogram import Distribution
from fairlead.model.estimate import Estimate

HALF, MOST = 0.5, 0.9  # of the runs


class Times(NamedTuple):
    start_p50: int  # ms
    start_p90: int
    end_p50: int
    end_p90: int


@dataclass(frozen=True, slots=True)
class StepLeft:
    """A step that has not ended: what is left of its wait, or since when it runs; and how long it runs."""

    stage: int
    durations: Distribution
    wait: Estimate | None = None  #: None: nothing is known, unless it runs
    started: int | None = None  #: ms
    step: int = 0  #: its index in the job
    limits: tuple[str, ...] = ()

    def times(self, share: float, now: int, base: float) -> tuple[float, float]:
        """When it starts and ends, in ms from now, if it is queued after `base`."""
        end = self.ends_within(share, now) or 0.0
        if self.started is not None:
            return self.started - now, end
        return base + end - self.durations.draw(share), base + end

    def ends_within(self, share: float, now: int) -> float | None:
        """In ms, by p50 or p90."""
        if self.started is not None:
            return self.durations.left(share, max(0, now - self.started))
        if self.wait is None:
            return None
        seconds = self.wait.p50_seconds if share == HALF else self.wait.p90_seconds
        return 1000 * seconds + self.durations.draw(share)


def times_of(steps: Iterable[StepLeft], now: int) -> dict[int, Times]:
    """When each step starts and ends, by its index, as far as it is known."""
    found: dict[int, Times] = {}
    base = {HALF: 0.0, MOST: 0.0}  # ms until the stage before is done
    for _, together in groupby(steps, attrgetter("stage")):
        ends: dict[float, list[float]] = {HALF: [], MOST: []}
        for step in together:
            if step.started is None and step.wait is None:
                return found
            times = {share: step.times(share, now, base[share]) for share in (HALF, MOST)}
            for share, (_, end) in times.items():
                ends[share].append(end)
            (p50, end_p50), (p90, end_p90) = times[HALF], times[MOST]
            found[step.step] = Times(*(now + round(ms) for ms in (p50, p90, end_p50, max(end_p50, end_p90))))
        base = {share: max(base[share], *ends[share]) for share in (HALF, MOST)}
    return found


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
