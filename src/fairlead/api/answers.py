"""What is answered, as types: for the OpenAPI page and for the tests that hold the answers to it."""

from typing import Any, Literal

from msgspec import Struct

PriorityName = Literal["high", "medium", "low"]
StatusName = Literal["delayed", "queued", "executing", "completed", "failed", "cancelled", "dead_letter"]


class Answer(Struct, kw_only=True):
    pass


class Estimate(Answer):
    p50_seconds: float
    p90_seconds: float


class SubmitAnswer(Answer):
    task_id: str
    status: StatusName
    priority: PriorityName
    effective_priority: PriorityName
    queue_position: int | None
    estimate: Estimate | None
    blocked_by: list[str]


class ErrorAnswer(Answer):
    code: str
    message: str
    retriable: bool
    traceback: str | None = None  # of the handler, up to 4 KiB; in lists it is null


class FieldProblem(Answer):
    field: str
    message: str


class NotReadyReason(Answer):
    code: str
    message: str


class ProblemAnswer(Answer):
    """RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldProblem] = []
    request_id: str = ""  # of a 500: the line in the log of the server that has it says more
    waiting: int = 0
    reasons: list[NotReadyReason] = []


class BatchItem(Answer):
    task_id: str | None = None
    status: StatusName | None = None
    queue_position: int | None = None
    blocked_by: list[str] = []
    repeated: bool = False
    error: ProblemAnswer | None = None


class BatchAnswer(Answer):
    tasks: list[BatchItem]


class Progress(Answer):
    fraction: float | None
    message: str


class TaskAnswer(Answer):
    task_id: str
    task_type: str
    status: StatusName
    priority: PriorityName
    effective_priority: PriorityName
    parameters: dict[str, Any]
    user_id: str | None
    tenant: str | None
    required_capabilities: list[str]
    limits: dict[str, int]
    concurrency_group: str | None
    concurrency_limit: int | None
    duration: str | None
    timeout_seconds: float
    max_retries: int
    max_wait_seconds: float | None
    delay_seconds: float | None
    run_at: str | None
    idempotency_key: str | None
    trace_id: str | None
    job_id: str | None
    step: int | None  # which step of its job it is
    created_at: str
    started_at: str | None
    completed_at: str | None
    deadline: str | None
    attempt: int
    retry_count: int
    crash_count: int
    loss_count: int  # workers that were lost with it, hardly by its doing
    assigned_worker_id: str | None
    fence: int
    queue_position: int | None
    estimate: Estimate | None
    progress: Progress | None
    result: Any
    error: ErrorAnswer | None


class TasksAnswer(Answer):
    tasks: list[TaskAnswer]
    next_cursor: str | None


class CancelAnswer(Answer):
    task_id: str
    status: Literal["cancelled"]
    worker_id: str | None


class OutputAnswer(Answer):
    seq: int
    fence: int
    chunk: Any


class OutputsAnswer(Answer):
    outputs: list[OutputAnswer]
    next_after: int | None  # there are more after it


class EventAnswer(Answer):
    """One of a stream. `data` is JSON, `id` its `seq` and `event` its `type`."""

    id: str
    event: str
    data: str


class TicketAnswer(Answer):
    ticket: str
    expires_in: int


class BlockerAnswer(Answer):
    limit: str
    needs: int
    used: int
    of: int
    paused: bool
    free_at: str | None
    tenant: str | None  # whose own limit it is; null: the operator's


class ExplainAnswer(Answer):
    task_id: str
    status: StatusName
    sentence: str
    queue_position: int | None
    effective_priority: PriorityName | None
    promoted: bool
    promotes_at: str | None
    position_in_priority: int | None
    ahead_by_priority: dict[str, int]
    blocked_by: list[BlockerAnswer]
    held_for: str | None
    type_paused: bool
    no_capable_worker: bool
    reserve: bool
    run_at: str | None


class Queue(Answer):
    depth: int
    oldest_age_seconds: float


class WorkerCounts(Answer):
    """All null but `used_capacity` for a tenant, which counts its own tasks there."""

    active: int | None
    draining: int | None
    dead: int | None
    total_capacity: int | None
    used_capacity: int


class Throughput(Answer):
    completed_last_minute: int
    failed_last_minute: int
    cancelled_last_minute: int


class StatsAnswer(Answer):
    queues: dict[str, Queue]
    delayed: int
    workers: WorkerCounts
    throughput: Throughput
    lost_events: int


class LimitAnswer(Answer):
    name: str
    kind: Literal["slots", "rate"]
    limit: int
    active: int
    waiting: int
    room: int
    paused: bool
    held_back: bool
    shared: bool  # with all tenants, which may name it
    tenant: str | None  # whose own it is; null: the operator's
    rate: str | None = None
    burst: int | None = None


class LimitsAnswer(Answer):
    limits: list[LimitAnswer]
    next_cursor: str | None


class SlotAnswer(Answer):
    slot_id: str
    task_id: str | None
    worker_id: str | None
    expires_at: str | None
    units: int
    tenant: str | None  # that acquired the lease


class LimitAndSlots(LimitAnswer, kw_only=True):
    group: str
    slots: list[SlotAnswer]
    has_more_slots: bool


class LeaseAnswer(Answer):
    lease_id: str
    fence: int
    expires_at: str


class ReleasedLease(Answer):
    lease_id: str
    released: Literal[True]


class ReplayAnswer(Answer):
    task_id: str
    status: Literal["queued"]


class ReplaysAnswer(Answer):
    replayed: list[str]


class PurgeAnswer(Answer):
    task_id: str
    purged: Literal[True]


class SimpleAnswer(Answer):
    """The two routes of the smallest queue."""

    task_id: str
    status: StatusName
    priority: PriorityName
    result: Any = None


class HealthAnswer(Answer):
    status: Literal["ok"]
    version: str


class ReadyAnswer(Answer):
    status: Literal["ready"]
