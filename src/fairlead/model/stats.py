"""What people ask about a queue: how much waits, and why one task does."""

from collections import Counter
from dataclasses import dataclass, field

from fairlead.model.estimate import Estimate, EstimateQuality
from fairlead.model.priority import Priority
from fairlead.model.states import State
from fairlead.model.unserved import sentence_of
from fairlead.model.worker import WorkerStats
from fairlead.times import time_text


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
    estimates: EstimateQuality = field(default_factory=EstimateQuality)  # of the last hour

    @property
    def total_capacity(self) -> int:
        return sum(worker.capacity for worker in self.workers if worker.state == "active")

    @property
    def used_capacity(self) -> int:
        return sum(worker.running for worker in self.workers) if self.held is None else self.held


@dataclass(frozen=True, slots=True)
class Blocker:
    limit: str
    needs: int
    used: int
    of: int
    paused: bool
    free_at: int | None = None  # ms, of a rate limit
    tenant: str | None = None  # whose own limit it is; None: the operator's


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a task waits. `sentence` says it in words."""

    task_id: str
    state: State
    effective_priority: Priority | None = None
    promoted: bool = False
    position: int | None = None  # among those of the same place
    ahead: dict[str, int] = field(default_factory=dict)  # by better priority
    promotes_at: int | None = None
    blocked_by: tuple[Blocker, ...] = ()
    held_for: str | None = None  # the task whose hold keeps the units back
    type_paused: bool = False
    no_capable_worker: bool = False
    task_type: str | None = None  # of a queued task
    type_unserved: bool = False  # no live worker serves it
    missing_capabilities: tuple[str, ...] = ()  # that none of the live workers of its type has
    similar_type: str | None = None  # a known type that may have been meant
    reserve: bool = False  # the only free slots are reserved for base priority high
    run_at: int | None = None
    estimate: Estimate | None = None  # of the wait that is left

    @property
    def queue_position(self) -> int | None:
        """With those of better priorities; None when it is not queued."""
        return None if self.position is None else self.position + sum(self.ahead.values())

    @property
    def sentence(self) -> str:
        if self.state is State.DELAYED and self.run_at is not None:
            return f"It is delayed until {time_text(self.run_at)}."
        if self.state is not State.QUEUED:
            return f"It is {self.state}."
        if self.type_paused:
            return "Its task type is paused."
        if self.no_capable_worker:
            return sentence_of(
                self.task_type or "",
                self.missing_capabilities,
                self.similar_type,
                serves_type=not self.type_unserved,
            )
        if self.blocked_by:
            return "It waits for " + ", ".join(_blocker_words(blocker) for blocker in self.blocked_by) + "."
        if self.reserve:
            return "The free slots are reserved for high priority."
        before = (self.queue_position or 1) - 1
        return f"It waits for a free worker; {before} go first." if before else "It is next."


def _blocker_words(blocker: Blocker) -> str:
    if blocker.paused:
        return f"limit {blocker.limit} (paused)"
    return f"limit {blocker.limit} (needs {blocker.needs}, {blocker.used} of {blocker.of} used)"
