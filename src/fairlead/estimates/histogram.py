"""Durations that were seen, in logarithmic buckets; the older they are, the less they count."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

WIDTH = 1.08  # of a bucket: its upper end divided by its lower end
STEP = math.log(WIDTH)
HALF_COUNT = 200  # a duration counts half after this many later ones,
HALF_MS = 24 * 3600 * 1000  # and after this time
GREATEST_UNIT = 1e12
LEAST_WEIGHT = 0.001
RARE = 0.005  # the share of runs that are still under way, below which they say nothing any more


def bucket_of(ms: float) -> int:
    return math.floor(math.log(max(1.0, ms)) / STEP)


@dataclass
class Histogram:
    """Weights by bucket, in units of the latest duration when divided by `unit`."""

    weights: dict[int, float] = field(default_factory=dict)
    unit: float = 1.0
    at: int = 0  #: ms of the latest

    def add(self, ms: float, at: int) -> None:
        """Instead of making all weights smaller, the new one is larger."""
        passed = max(0, at - self.at) if self.weights else 0
        self.unit *= 2 ** min(40.0, 1 / HALF_COUNT + passed / HALF_MS)
        self.at = max(at, self.at)
        if self.unit > GREATEST_UNIT:
            self.weights, self.unit = self.normal(), 1.0
        bucket = bucket_of(ms)
        self.weights[bucket] = self.weights.get(bucket, 0.0) + self.unit

    def normal(self) -> dict[int, float]:
        """Without weights that do not count any more."""
        scaled = ((bucket, weight / self.unit) for bucket, weight in self.weights.items())
        return {bucket: weight for bucket, weight in scaled if weight >= LEAST_WEIGHT}

    def packed(self) -> list[object]:
        weights = sorted(self.normal().items())
        return [self.at, [[bucket, round(1000 * weight)] for bucket, weight in weights]]

    @classmethod
    def unpacked(cls, packed: Sequence[object]) -> Histogram:
        at, weights = packed
        assert isinstance(at, int)
        assert isinstance(weights, list)
        return cls({bucket: weight / 1000 for bucket, weight in weights}, 1.0, at)


class Distribution:
    """How durations are spread, drawn by a number between 0 and 1: the share of those that are shorter."""

    __slots__ = ("_buckets", "_shares", "mean")

    def __init__(self, weights: Mapping[int, float]) -> None:
        self._buckets = sorted(weights)
        total = sum(weights.values())
        self._shares = list(accumulate(weights[bucket] / total for bucket in self._buckets))
        middles = (WIDTH ** (bucket + 0.5) * weights[bucket] for bucket in self._buckets)
        self.mean: float = sum(middles) / total

    @classmethod
    def blend(cls, own: Mapping[int, float], prior: Distribution, count: float) -> Distribution:
        """As if the prior had been seen this many times too."""
        weights = dict(own)
        for bucket, share in prior.shares():
            weights[bucket] = weights.get(bucket, 0.0) + share * count
        return cls(weights)

    def shares(self) -> Iterable[tuple[int, float]]:
        before = 0.0
        for bucket, share in zip(self._buckets, self._shares, strict=True):
            yield bucket, share - before
            before = share

    def draw(self, share: float) -> float:
        index = min(bisect_left(self._shares, share), len(self._buckets) - 1)
        before = self._shares[index - 1] if index else 0.0
        part = (share - before) / max(1e-12, self._shares[index] - before)
        return float(WIDTH ** (self._buckets[index] + min(1.0, part)))

    def share_within(self, ms: float) -> float:
        """The share of durations that are not longer."""
        position = math.log(max(1.0, ms)) / STEP
        index = bisect_right(self._buckets, math.floor(position)) - 1
        if index < 0:
            return 0.0
        before = self._shares[index - 1] if index else 0.0
        part = min(1.0, position - self._buckets[index])
        return before + part * (self._shares[index] - before)

    def left(self, share: float, elapsed: float) -> float:
        """What is left of a run that has taken `elapsed` already.

        If hardly any run took so long, the others say nothing about it: half of such runs take twice as long.
        """
        over = self.share_within(elapsed)
        if over > 1 - RARE:
            return elapsed * share / max(0.05, 1 - share)
        return max(0.0, self.draw(over + share * (1 - over)) - elapsed)
