"""Counts of what waits, runs and ended lately."""

from collections import Counter
from typing import Any, ClassVar, Self

from fairlead.model.estimate import EstimateQuality
from fairlead.model.stats import Depth, Stats
from fairlead.shapes.base import Answer, Shape

ENDS = ("completed", "failed", "cancelled")


class Queue(Shape[Depth]):
    depth: int
    oldest_age_seconds: float


class WorkerCounts(Answer):
    """For a tenant all but `used_capacity` are null, and that counts its own tasks."""

    active: int | None
    draining: int | None
    dead: int | None
    total_capacity: int | None
    used_capacity: int


class Throughput(Answer):
    completed_last_minute: int
    failed_last_minute: int
    cancelled_last_minute: int


class QualityAnswer(Shape[EstimateQuality]):
    """How estimates fitted the tasks that waited and started in the last hour."""

    coverage_p90: float | None  # the share that started within p90
    median_error_seconds: float | None
    count: int


class StatsAnswer(Shape[Stats]):
    extra: ClassVar = ("throughput",)

    queues: dict[str, Queue]
    delayed: int
    workers: WorkerCounts
    throughput: Throughput
    estimates: QualityAnswer
    lost_events: int
    history_lag_seconds: float | None = None
    unrecorded_events: int = 0

    @classmethod
    def from_value(cls, value: Stats, **given: Any) -> Self:
        ended = value.ended_last_minute
        throughput = Throughput(
            completed_last_minute=ended["completed"],
            failed_last_minute=ended["failed"] + ended["dead_letter"],
            cancelled_last_minute=ended["cancelled"],
        )
        return super().from_value(value, workers=_counts(value), throughput=throughput, **given)

    def to_value(self, **given: Any) -> Stats:
        """Dead letters are counted among the failed."""
        ended = {state: getattr(self.throughput, f"{state}_last_minute") for state in ENDS}
        held = self.workers.used_capacity if self.workers.active is None else None
        given.setdefault("workers", [])
        return super().to_value(ended_last_minute=Counter(ended), held=held, **given)


def _counts(stats: Stats) -> WorkerCounts:
    """A tenant does not see the workers, because all tenants share them."""
    if stats.held is not None:
        kinds: dict[str, int | None] = dict.fromkeys(("active", "draining", "dead", "total_capacity"))
    else:
        states = Counter(worker.state for worker in stats.workers)
        kinds = {kind: states[kind] for kind in ("active", "draining", "dead")}
        kinds["total_capacity"] = stats.total_capacity
    return WorkerCounts(**kinds, used_capacity=stats.used_capacity)
