"""What is counted: the buckets of durations, and quantiles of what was counted in them."""

from collections.abc import Mapping

#: Seconds. A duration is counted in the bucket of the first bound that it does not exceed, or in the last
#: bucket, which has no bound. The acts have the same (`store/lua/lib/metrics.lua`).
BOUNDS = (
    *(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_200.0),
    *(1_800.0, 3_600.0, 7_200.0, 21_600.0, 86_400.0),
)


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
