"""What workers are answered, as types: for the OpenAPI page and for the tests that hold the answers to it."""

from typing import Any, Literal

import msgspec

from fairlead.api.answers import Answer, BatchItem, PriorityName, ProblemAnswer, StatusName


class RegisterAnswer(Answer):
    worker_id: str
    poll_interval_ms: int
    heartbeat_seconds: float
    lease_seconds: float


class PolledTask(Answer):
    task_id: str
    task_type: str
    parameters: dict[str, Any]
    timeout_seconds: float
    trace_id: str | None
    fence: int
    attempt: int
    deadline: str | None
    priority: PriorityName
    job_id: str | None
    effective_priority: PriorityName
    user_id: str | None
    tenant: str | None
    created_at: str
    started_at: str | None
    max_retries: int
    retry_count: int
    crash_count: int
    loss_count: int
    step: int | None


class PollAnswer(Answer):
    tasks: list[PolledTask]
    draining: bool = False
    again: bool = False
    now: str | None = None
    next_alarm: str | None = None


class Accepted(Answer):
    task_id: str
    accepted: bool
    status: StatusName | None = None
    code: str | None = None
    error: ProblemAnswer | None = None


class ResultAnswer(Answer):
    accepted: bool
    results: list[Accepted] = msgspec.field(default_factory=list)
    polled: PollAnswer | None = None


class SayAnswer(Answer):
    results: list[Accepted]


class ExtendAnswer(Answer):
    task_id: str
    deadline: str


class WaitAnswer(Answer):
    called: str | None


class ReleasedTask(Answer):
    task_id: str
    fence: int


class StallAnswer(Answer):
    released: list[ReleasedTask]


class ExpireAnswer(Answer):
    expired: int


class LeaveAnswer(Answer):
    worker_id: str
    left: Literal[True]


class HeartbeatAnswer(Answer):
    acknowledged: bool
    status: Literal["active", "draining"]
    cancel: list[str]
    deadlines: dict[str, str]
    now: str
    leases: dict[str, str]
    stopping: dict[str, str]
    lost: list[str]


class DeclareAnswer(Answer):
    """How a worker here shows that it is alive, and for how long it has a task."""

    heartbeat_seconds: float
    lease_seconds: float


class CronAnswer(Answer):
    name: str
    last: str
    now: str


class TickAnswer(Answer):
    submitted: BatchItem | None


class ReleaseAnswer(Answer):
    results: list[Accepted]


class WorkerAnswer(Answer):
    worker_id: str
    name: str
    status: Literal["active", "draining", "dead"]
    capacity: int
    reserve: int
    current_load: int
    capabilities: list[str]
    task_types: list[str] | None
    version: str
    seen_at: str


class WorkersAnswer(Answer):
    workers: list[WorkerAnswer]


class DrainAnswer(Answer):
    worker_id: str
    status: Literal["draining"]
