"""How much waits, runs and has ended."""

from collections import Counter
from dataclasses import dataclass, field

from fairlead.model.estimate import EstimateQuality
from fairlead.model.worker import WorkerStats


@dataclass(frozen=True, slots=True)
class Depth:
    depth: int
    oldest_age_seconds: float


@dataclass(frozen=True, slots=True)
class Stats:
    queues: dict[str, Depth]
    workers: list[WorkerStats]
    delayed: int
    ended_last_minute: Counter[str]
    lost_events: int
    missing_records: int = 0  # queued tasks whose records were deleted by something else
    # For one tenant: how many of its tasks workers hold. The workers themselves belong to no tenant.
    held: int | None = None
    history_lag_seconds: float | None = None  # None: nothing is recorded
    unrecorded_events: int = 0
    estimates: EstimateQuality = field(default_factory=EstimateQuality)  # of the last hour

    @property
    def total_capacity(self) -> int:
        return sum(worker.capacity for worker in self.workers if worker.state == "active")

    @property
    def used_capacity(self) -> int:
        return sum(worker.running for worker in self.workers) if self.held is None else self.held
