"""Workers: registration, polls, results, progress, heartbeats."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, Raw, field

from fairlead.model.reports import MOST_FRAMES, Claimed, Frame, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.model.worker import Beat, WorkerStats
from fairlead.shapes.base import (
    Answer,
    Body,
    Fence,
    Moment,
    Name,
    PriorityName,
    Seconds,
    Shape,
    Short,
    SomeSeconds,
    StatusName,
    Units,
)
from fairlead.shapes.problem import ProblemAnswer


class RegisterBody(Body, frozen=True):
    capabilities: Annotated[list[Name], Meta(max_length=100)] = field(default_factory=list)
    capacity: Annotated[int, Meta(ge=1, le=100_000)] | None = None  # None: from the settings
    reserve: Annotated[int, Meta(ge=0, le=100_000)] | None = None
    task_types: Annotated[list[Name], Meta(max_length=1000)] | None = None
    name: Short | None = None
    version: Short | None = None
    worker_id: Name | None = None  # a worker that registers again keeps its id


class PollBody(Body, frozen=True):
    available_capacity: Annotated[int, Meta(ge=0, le=100_000)]
    capabilities: Annotated[list[Name], Meta(max_length=100)] | None = None
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] = 0
    request_id: Name | None = None  # the same again when the answer was lost: the same tasks
    idle: bool = False  # wake this worker when there is more; it then waits at /wait


class ErrorBody(Body, frozen=True):
    message: Annotated[str, Meta(max_length=100_000)] = ""
    retriable: bool = True
    code: Short = "error"
    retry_after_seconds: Seconds = 0
    crashed: bool = False  # the process that ran it died: counted as a crash
    traceback: Annotated[str, Meta(max_length=100_000)] = ""  # 4 KiB are kept


class OneResult(Body, frozen=True):
    task_id: str
    status: Literal["completed", "failed"]
    result: Any = None
    error: ErrorBody | None = None
    fence: Fence | None = None
    truncated: bool = False  # returned after the deadline of its tier: the result may be a part


EACH_ONE_RESULT = {"items": {"$ref": "#/components/schemas/OneResult"}}  # read when its turn comes


class ResultBody(Body, frozen=True):
    """One result, or many under `results`."""

    task_id: str | None = None
    status: Literal["completed", "failed"] | None = None
    result: Raw = field(default_factory=lambda: Raw(b"null"))
    error: ErrorBody | None = None
    fence: Fence | None = None
    truncated: bool = False
    results: Annotated[list[Raw], Meta(max_length=1000, extra_json_schema=EACH_ONE_RESULT)] | None = None
    poll: PollBody | None = None  # and then the next tasks


class ProgressBody(Body, frozen=True):
    fraction: Annotated[float, Meta(ge=0, le=1)] | None = None
    message: Annotated[str, Meta(max_length=4000)] = ""
    output: Annotated[list[Any], Meta(max_length=1000)] = field(default_factory=list)


class HeartbeatBody(Body, frozen=True):
    current_load: Annotated[int, Meta(ge=0)] = 0
    status: Literal["active", "draining"] = "active"
    #: renew the leases of these tasks only; None: of all that the worker holds
    task_ids: Annotated[list[str], Meta(max_length=5000)] | None = None
    progress: Annotated[dict[str, ProgressBody], Meta(max_length=1000)] = field(default_factory=dict)


class TaskProgressBody(ProgressBody, frozen=True, kw_only=True):
    task_id: str
    #: each chunk is read when its turn comes
    output: Annotated[list[Raw], Meta(max_length=1000)] = field(default_factory=list)
    fence: Fence | None = None
    first: Units | None = None  # the number of the first chunk in this run: repeated, it is kept once


class SayBody(Body, frozen=True):
    reports: Annotated[list[TaskProgressBody], Meta(min_length=1, max_length=1000)]


class ExtendBody(Body, frozen=True):
    task_id: str
    seconds: SomeSeconds
    fence: Fence | None = None


class StallBody(Body, frozen=True, kw_only=True):
    request_id: Name  # the same again when the answer was lost: the same answer
    #: tasks that it runs or has yet to report
    begun: Annotated[list[Fence], Meta(max_length=200_000)] = field(default_factory=list)


class WaitBody(Body, frozen=True):
    wait_seconds: Annotated[float, Meta(ge=0, le=30)] = 0


class ReleaseBody(Body, frozen=True):
    task_ids: Annotated[list[str], Meta(min_length=1, max_length=1000)]
    #: by task: release it only if its fence is this one
    fences: Annotated[dict[str, Fence], Meta(max_length=1000)] = field(default_factory=dict)


class ShortenedBody(Body, frozen=True):
    #: by task, the fence of the run whose new deadline applies
    fences: Annotated[dict[str, Fence], Meta(min_length=1, max_length=1000)]


class FramesBody(Body, frozen=True):
    task_id: str
    fence: Fence | None = None
    after: Annotated[int, Meta(ge=0, le=MOST_FRAMES)] = 0  # the last frame that the handler has


class RegisterAnswer(Answer):
    worker_id: str
    poll_interval_ms: int
    heartbeat_seconds: float
    lease_seconds: float


class PolledTask(Shape[Task]):
    task_id: str
    task_type: str
    parameters: dict[str, Any]
    timeout_seconds: float
    trace_id: str | None
    traceparent: str | None  # of W3C: the span to which those of the run belong
    fence: int
    reported_fence: int | None  # of the latest run whose worker reported its end
    attempt: int
    deadline: Moment | None
    tier: str | None
    bounded: bool  # the deadline is that of the tier: the task is not retried after it
    interactive: bool
    priority: PriorityName
    job_id: str | None
    effective_priority: PriorityName
    user_id: str | None
    tenant: str | None
    created_at: Moment
    queued_at: Moment | None  # from when its wait counts
    started_at: Moment | None
    max_retries: int
    retry_count: int
    crash_count: int
    loss_count: int
    step: int | None

    def to_value(self, **given: Any) -> Task:
        milliseconds = round(self.timeout_seconds * 1000)
        return super().to_value(status=State.EXECUTING, timeout_ms=milliseconds, **given)


class PollAnswer(Shape[Claimed]):
    tasks: list[PolledTask]
    draining: bool = False
    again: bool = False
    now: Moment | None = None
    next_alarm: Moment | None = None


class Accepted(Answer):
    task_id: str
    accepted: bool
    status: StatusName | None = None
    code: str | None = None
    error: ProblemAnswer | None = None


class ResultAnswer(Answer):
    accepted: bool
    results: list[Accepted] = field(default_factory=list)
    polled: PollAnswer | None = None


class SayAnswer(Answer):
    results: list[Accepted]


class ExtendAnswer(Answer):
    task_id: str
    deadline: Moment


class WaitAnswer(Answer):
    called: str | None


class ReleasedTask(Shape[Grant]):
    names: ClassVar = {"task_id": "id"}

    task_id: str
    fence: int


class FrameOfClient(Shape[Frame]):
    seq: int
    frame: Any


class FramesAnswer(Answer):
    frames: list[FrameOfClient]


class StallAnswer(Answer):
    released: list[ReleasedTask]


class ExpireAnswer(Answer):
    expired: int


class LeaveAnswer(Answer):
    worker_id: str
    left: Literal[True]


class HeartbeatAnswer(Shape[Beat]):
    names: ClassVar = {"status": "state"}
    extra: ClassVar = ("acknowledged", "cancel")

    acknowledged: bool
    status: Literal["active", "draining"]
    cancel: list[str]
    deadlines: dict[str, Moment]
    now: Moment
    leases: dict[str, Moment]
    stopping: dict[str, Moment]
    lost: list[str]


class ReleaseAnswer(Answer):
    results: list[Accepted]


class WorkerAnswer(Shape[WorkerStats]):
    names: ClassVar = {"status": "state", "current_load": "running", "seen_at": "seen"}

    worker_id: str
    name: str
    status: Literal["active", "draining", "dead"]
    capacity: int
    reserve: int
    current_load: int
    capabilities: list[str]
    task_types: list[str] | None
    version: str
    seen_at: Moment


class WorkersAnswer(Answer):
    workers: list[WorkerAnswer]
    next_cursor: str | None


class DrainAnswer(Answer):
    worker_id: str
    status: Literal["draining"]
