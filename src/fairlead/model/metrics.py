"""What is counted: counters and histograms by their labels, and quantiles of durations."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, repeat

#: Seconds. A duration is counted in the bucket of the first bound that it does not exceed, or in the last
#: bucket, which has no bound. The acts have the same (`store/lua/lib/metrics.lua`).
BOUNDS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0),
    *(1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0),
)
#: The same for requests and calls of the store, which server processes count.
SERVED_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

Labels = tuple[str, ...]


@dataclass(slots=True)
class Histogram:
    buckets: Counter[int] = field(default_factory=Counter)  # by number, from 1
    sum_ms: int = 0

    def up_to(self, bounds: Sequence[float]) -> list[int]:
        """How many did not exceed each bound, and at last how many there are."""
        numbers = range(1, len(bounds) + 2)
        # not by `[]`, which is slow for a bucket that has none
        return list(accumulate(map(self.buckets.get, numbers, repeat(0))))


@dataclass(frozen=True, slots=True)
class LimitUse:
    """What is shown of a limit, or of several together."""

    name: str
    is_slots: bool = True
    limit: int = 0  # slots, or the burst of a rate
    active: int = 0
    waiting: int = 0


@dataclass(slots=True)
class Metrics:
    """Since the namespace exists, by name and labels (`store/lua/lib/metrics.lua`); and gauges of now."""

    counters: defaultdict[str, Counter[Labels]] = field(default_factory=lambda: defaultdict(Counter))
    histograms: defaultdict[str, defaultdict[Labels, Histogram]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(Histogram))
    )
    #: Seconds that this share of the queued tasks has not waited longer, by effective priority and share.
    ages: dict[str, dict[float, float]] = field(default_factory=dict)
    dead_letters: int = 0
    lag_seconds: float = 0.0  # of the event loop that was late most, of all server processes


def quantile(buckets: Mapping[int, int], share: float) -> float | None:
    """Seconds that this share of the durations did not exceed, if they are spread evenly in their bucket.

    `buckets` are counts by the number of the bucket, from 1. None: there are none.
    """
    rank = share * sum(buckets.values())
    for bucket in sorted(buckets):
        count = buckets[bucket]
        if count and rank <= count:
            lower = BOUNDS[bucket - 2] if bucket > 1 else 0.0
            upper = BOUNDS[min(bucket, len(BOUNDS)) - 1]
            return lower + (upper - lower) * rank / count
        rank -= count
    return None
