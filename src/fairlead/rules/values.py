"""The values of the rules: priorities, places, tasks, workers, leases, and the policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from fairlead.model.priority import Priority
from fairlead.model.states import State


class Place(StrEnum):
    """The place of a queued task: its effective priority, native or promoted."""

    HIGH = "0n"
    HIGH_BY_AGE = "0p"
    MEDIUM = "1n"
    MEDIUM_BY_AGE = "1p"
    LOW = "2n"

    @classmethod
    def native(cls, priority: Priority) -> Place:
        return cls(f"{priority:d}n")

    @property
    def priority(self) -> Priority:
        return Priority(int(self.value[0]))

    @property
    def promoted(self) -> bool:
        return self.value[1] == "p"


@dataclass(frozen=True)
class Tier:
    """How long its tasks run, and how many of it and of longer ones: a number, or a share."""

    name: str
    ms: int
    slots: int | None = None
    share: int = 100


@dataclass(frozen=True)
class Policy:
    """Times in milliseconds. A promotion threshold of 0 means never."""

    budget: int = 5  #: native starts in a row before a promoted one goes first; 0: one order
    low_to_medium: int = 600_000
    low_to_high: int = 1_800_000
    medium_to_high: int = 1_200_000
    hold_after: int = 30_000
    hold_for: int = 300_000  #: a hold without a start ends then
    grace: int = 1_000  #: a lease ends this long after it ran out
    retry_base: int = 1_000
    retry_max: int = 30_000
    crash_limit: int = 3
    worker_ttl: int = 30_000
    timed_work: int = 64  #: most that time alone does in one act; a task counts 1, each of its limits 1
    witnesses: int = 16  #: most workers asked whether they outlived a lost one
    hold_looks: int = 8  #: most sub-queues considered for a hold at once
    most_holds: int = 64
    tiers: tuple[Tier, ...] = ()  #: the shortest first


@dataclass(frozen=True)
class NewTask:
    id: str
    type: str
    base: int = Priority.MEDIUM
    fair: str = ""
    weight: float = 1.0
    capabilities: frozenset[str] = frozenset()
    limits: Mapping[str, int] = field(default_factory=dict)
    timeout: int = 600_000
    lease: int = 0  #: of each run, if a worker asks for less
    max_retries: int = 8
    run_at: int | None = None
    max_wait: int | None = None
    arrival: int | None = None  #: of a later step: when its job was submitted
    job: str | None = None
    step: int = 0  #: of its job
    duration: str | None = None  #: a tier, or `interactive`


@dataclass
class Task:
    id: str
    type: str
    base: Priority
    fair: str
    weight: float
    capabilities: frozenset[str]
    limits: Mapping[str, int]
    timeout: int
    timeout_given: int
    lease: int
    max_retries: int
    place: Place
    state: State
    arrival: int  #: when it became eligible
    run_at: int | None = None  #: until then it is delayed
    wait_until: int | None = None  #: not started by then: failed; None once it was started
    factor: int = 1000  #: of its account, or its job, when it was submitted
    tag: int = 0
    seq: int = 0
    job: str | None = None
    step: int = 0
    fence: int = 0  #: of the newest lease, which alone may report
    worker: str | None = None
    started: int = 0
    deadline: int = 0
    lease_until: int = 0
    retries: int = 0
    crashes: int = 0
    losses: int = 0  #: workers that were lost with it, probably not because of it
    stopping: int | None = None  #: fence of a lease whose task was cancelled, until the worker confirms
    reported: int | None = None  #: fence of the last report that was accepted
    error_code: str | None = None  #: of the last failure
    duration: str | None = None
    elastic: bool = False  #: it takes longer tiers as long as they are free
    tier: str | None = None  #: how long its run may take
    bounded: bool = False  #: its deadline is that of the tier
    optional: dict[str, int] = field(default_factory=dict)  #: units that can be taken back
    revoked: dict[str, int] = field(default_factory=dict)  #: taken back, but its worker has not confirmed
    relieves: str | None = None  #: the waiting task that they were taken back for
    relieves_in: Priority = Priority.HIGH  #: its effective priority then
    active_at: int = 0  #: of a session: its last frame

    @classmethod
    def of(cls, new: NewTask, now: int) -> Task:
        eligible = max(now, new.run_at or now)
        return cls(
            id=new.id,
            type=new.type,
            base=Priority(new.base),
            fair=new.fair,
            weight=new.weight,
            capabilities=new.capabilities,
            limits=dict(new.limits),
            timeout=new.timeout,
            timeout_given=new.timeout,
            lease=new.lease,
            max_retries=new.max_retries,
            place=Place.native(Priority(new.base)),
            state=State.DELAYED if eligible > now else State.QUEUED,
            arrival=eligible if new.arrival is None else new.arrival,
            job=new.job,
            step=new.step,
            run_at=eligible if eligible > now else None,
            duration=new.duration,
            wait_until=None if new.max_wait is None else eligible + new.max_wait,
        )

    @cached_property
    def signature(self) -> str:
        capabilities = ",".join(sorted(self.capabilities))
        limits = ",".join(f"{name}={units}" for name, units in sorted(self.limits.items()))
        return f"{self.type};{capabilities}|{limits}"

    def lease_of(self, asked: int) -> int:
        """How long its lease lasts on a worker that asks for this one."""
        return max(asked, self.lease)

    @property
    def interactive(self) -> bool:
        return self.duration == "interactive"

    @property
    def sub_queue(self) -> str:
        return f"{self.place}:{self.signature}"

    @property
    def lease_fence(self) -> int:
        """The fence of its lease; a cancelled task itself has a newer one."""
        return self.fence if self.stopping is None else self.stopping


@dataclass
class Worker:
    id: str
    capabilities: frozenset[str] = frozenset()
    types: frozenset[str] | None = None  #: None: any
    capacity: int = 1
    reserve: int = 0  #: of the capacity, for tasks whose base is high
    draining: bool = False
    listed: bool = True  #: it may be given tasks; not when it drains or was found dead
    registered: int = 0
    seen: int = 0
    lost_in_company: bool | None = None  #: None: none of its leases was lost since it was last seen

    def mark_seen(self, now: int) -> None:
        self.seen, self.lost_in_company = now, None


@dataclass
class Lease:
    """Units of a limit without a task."""

    id: str
    limits: Mapping[str, int]
    fence: int
    lease_until: int
