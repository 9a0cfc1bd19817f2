"""Tasks: requests and answers."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Raw, Struct, field

from fairlead.model.explanation import Blocker, Chosen, Explanation, Holder
from fairlead.model.reports import Output
from fairlead.model.task import Submitted, Task, TaskError, TaskProgress, TierChange
from fairlead.shapes.base import (
    AcceptedQuery,
    Answer,
    Body,
    Moment,
    Name,
    PriorityName,
    Seconds,
    Shape,
    Short,
    SomeSeconds,
    StatusName,
    Time,
    Units,
    Uuid,
)
from fairlead.shapes.estimate import EstimateAnswer
from fairlead.shapes.problem import ProblemAnswer


class SubmitBody(Body, frozen=True):
    """A task to submit."""

    task_type: Name
    parameters: dict[str, Any] = field(default_factory=dict)
    priority: PriorityName | None = None
    user_id: Short | None = None
    required_capabilities: Annotated[list[Name], Meta(max_length=16)] = field(default_factory=list)
    limits: Annotated[dict[Name, Units], Meta(max_length=8)] = field(default_factory=dict)
    concurrency_group: Name | None = None
    concurrency_limit: Units | None = None
    duration: Short | None = None
    timeout_seconds: SomeSeconds | None = None
    max_retries: Annotated[int, Meta(ge=0, le=1000)] | None = None
    max_wait_seconds: SomeSeconds | None = None
    deadline_seconds: SomeSeconds | None = None  # within which it must start; refused if that is unlikely
    delay_seconds: Seconds | None = None
    run_at: Time | None = None
    size_hint: Short | None = None  # tasks of its type with the same one run about as long
    idempotency_key: Short | None = None
    trace_id: Short | None = None
    task_id: Uuid | None = None  # sent again with the same one, it is one task


class ItsUser(Struct):
    """The user of a task, without its other fields."""

    user_id: str | None = None


class BatchBody(Body, frozen=True):
    """Each task is checked on its own: an invalid one does not affect the others."""

    tasks: Annotated[list[Raw], Meta(max_length=1000)]  # SubmitBody, each read when its turn comes


class TaskQuery(AcceptedQuery, frozen=True):
    status: StatusName | None = None
    priority: PriorityName | None = None
    task_type: Name | None = None
    user_id: Short | None = None
    search: Short | None = None  # the beginning of an id, or a part of a type or a user_id, in any case
    error: Short | None = None  # in the message of the error, in any case
    tenant: Short | None = None  # only with a key of no tenant
    needs: Name | None = None  # a limit
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    cursor: Annotated[str, Meta(max_length=100)] = ""


class CancelMessage(Body, frozen=True):
    cancel: str


class SimpleQuery(Body, frozen=True):
    priority: Literal["low", "high"] = "low"


class SubmitAnswer(Shape[Submitted]):
    task_id: str
    status: StatusName
    priority: PriorityName
    effective_priority: PriorityName
    queue_position: int | None
    estimate: EstimateAnswer | None
    blocked_by: list[str]
    warnings: list[str]  # for example, that no worker serves its type yet


class ErrorAnswer(Shape[TaskError]):
    code: str
    message: str
    retriable: bool
    traceback: str | None = None  # of the handler, up to 4 KiB; in lists it is null


class BatchItem(Shape[Submitted]):
    task_id: str | None = None
    status: StatusName | None = None
    queue_position: int | None = None
    blocked_by: list[str] = field(default_factory=list)
    estimate: EstimateAnswer | None = None
    warnings: list[str] = field(default_factory=list)
    repeated: bool = False
    error: ProblemAnswer | None = None


class BatchAnswer(Answer):
    tasks: list[BatchItem]


class Progress(Shape[TaskProgress]):
    fraction: float | None
    message: str


class TierAnswer(Shape[TierChange]):
    tier: str
    at: Moment
    reason: str


class FrameBody(Body, frozen=True):
    frame: Any


class FrameAnswer(Answer):
    seq: int


class TaskAnswer(Shape[Task]):
    extra: ClassVar[tuple[str, ...]] = ("queue_position", "estimate")

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
    run_at: Moment | None
    size_hint: str | None
    idempotency_key: str | None
    trace_id: str | None
    job_id: str | None
    step: int | None  # which step of its job it is
    created_at: Moment
    started_at: Moment | None
    completed_at: Moment | None
    deadline: Moment | None
    tier: str | None  # which its run was given, or was shortened to
    tiers: list[TierAnswer]  # all of its run, in order
    truncated: bool  # the handler returned after the deadline of its tier
    attempt: int
    retry_count: int
    crash_count: int
    loss_count: int  # how often its worker was lost, hardly because of this task
    assigned_worker_id: str | None
    fence: int
    queue_position: int | None
    estimate: EstimateAnswer | None  # of the wait that is left
    estimate_given: EstimateAnswer | None  # when it was queued
    waited_seconds: float | None  # until its first start
    progress: Progress | None
    result: Any
    error: ErrorAnswer | None

    def to_value(self, **given: Any) -> Task:
        waited = None if self.waited_seconds is None else round(self.waited_seconds * 1000)
        return super().to_value(timeout_ms=round(self.timeout_seconds * 1000), waited_ms=waited, **given)


class TasksAnswer(Answer):
    tasks: list[TaskAnswer]
    next_cursor: str | None
    warnings: tuple[str, ...] = ()  # what is missing, while the history does not answer


class CancelAnswer(Answer):
    task_id: str
    status: Literal["cancelled"]
    worker_id: str | None


class OutputAnswer(Shape[Output]):
    seq: int
    fence: int
    chunk: Any


class OutputsAnswer(Answer):
    outputs: list[OutputAnswer]
    next_after: int | None  # null: there is no more


class BlockerAnswer(Shape[Blocker]):
    limit: str
    needs: int
    used: int
    of: int
    paused: bool
    free_at: Moment | None  # when it is expected to have room
    next_free_seconds: float | None  # until then
    by_deadline: bool  # that is when its holders must have ended: more is not known
    tenant: str | None  # that owns the limit; null: the operator's
    is_rate: bool


class HolderAnswer(Shape[Holder]):
    """A run that holds units, or a lease without one; of another tenant without ids and names."""

    units: int
    task_id: str | None
    lease_id: str | None
    worker: str | None  # that runs the task, or the holder that the acquire named
    since: Moment | None
    expires_at: Moment | None  # when its lease ends, unless it is renewed
    expected_end: Moment | None  # of a run, by how long such runs take
    ends_at: Moment | None  # at the latest, unless it is extended
    tenant: str | None
    foreign: bool


class HeldBlockerAnswer(BlockerAnswer):
    holders: list[HolderAnswer]  # up to 8, those that end first


class ChosenAnswer(Shape[Chosen]):
    """How a task was chosen for its last run: it was the first that could start."""

    worker_id: str
    at: Moment
    waited_seconds: float | None  # until its first start
    effective_priority: PriorityName
    promoted: bool
    tag: int  # of tasks with equal priorities the least goes first
    better_waiting: dict[str, int]  # how many had a better priority and could not start, by that
    skipped_for: list[str]  # limits without room, for which tasks that went before it were skipped


class ExplainAnswer(Shape[Explanation]):
    names: ClassVar = {"status": "state", "position_in_priority": "position", "ahead_by_priority": "ahead"}

    task_id: str
    status: StatusName
    sentence: str
    queue_position: int | None
    effective_priority: PriorityName | None
    promoted: bool
    promotes_at: Moment | None
    position_in_priority: int | None
    ahead_by_priority: dict[str, int]
    blocked_by: list[HeldBlockerAnswer]
    held_for: str | None
    type_paused: bool
    no_capable_worker: bool
    task_type: str | None
    type_unserved: bool  # no live worker serves it
    missing_capabilities: list[str]  # that none of the live workers of its type has
    similar_type: str | None  # a known type that may have been meant
    reserve: bool
    run_at: Moment | None
    estimate: EstimateAnswer | None  # of the wait that is left
    at: Moment  # when this was so
    chosen_because: ChosenAnswer | None  # of a task that has started


class SimpleAnswer(Shape[Task]):
    """A task, in the two smallest routes."""

    task_id: str
    status: StatusName
    priority: PriorityName
    result: Any = None
