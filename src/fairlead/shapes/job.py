"""Jobs, pipelines and services."""

from typing import Any, Literal

from msgspec import field

from fairlead.shapes.base import Answer, Body, Name, PriorityName, Short, SomeSeconds, Uuid

JobStatusName = Literal["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]


class JobBody(Body, frozen=True):
    """A job as a client asks for it."""

    feature_name: Name
    input_data: dict[str, Any] = field(default_factory=dict)
    user_id: Short | None = None
    priority: PriorityName | None = None
    max_wait_seconds: SomeSeconds | None = None
    idempotency_key: Short | None = None
    trace_id: Short | None = None
    job_id: Uuid | None = None  # sent again with the same one, it is one job


class SubmittedJobAnswer(Answer):
    job_id: str
    priority: PriorityName
    status: JobStatusName
    repeated: bool


class JobErrorAnswer(Answer):
    code: str
    message: str
    retryable: bool
    step: int


class JobStepAnswer(Answer):
    index: int
    name: str
    task_id: str
    stage: int


class JobAnswer(Answer):
    id: str
    feature_name: str
    status: JobStatusName
    current_step_index: int
    total_steps: int
    steps: list[JobStepAnswer]
    input_data: dict[str, Any]
    context: dict[str, Any]
    priority: PriorityName
    original_priority: PriorityName
    user_id: str | None
    queued_at: str
    promoted_at: str | None
    last_progress_at: str
    completed_at: str | None
    error: JobErrorAnswer | None


class ResumeAnswer(Answer):
    job_id: str
    status: JobStatusName
    skipped: list[str]  # steps of the stage that were done already


class CancelJobAnswer(Answer):
    job_id: str
    status: Literal["CANCELLED"]


class PipelineAnswer(Answer):
    name: str
    stages: list[list[str]]


class PipelinesAnswer(Answer):
    pipelines: list[PipelineAnswer]


class ServiceAnswer(Answer):
    name: str
    limit: int | None
    active: int
    waiting: int
    url: str | None
    timeout_seconds: float | None
    max_attempts: int | None


class ServicesAnswer(Answer):
    services: list[ServiceAnswer]
    next_cursor: str | None
