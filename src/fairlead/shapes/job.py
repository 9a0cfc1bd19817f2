"""Jobs, pipelines and services."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal, Self

from msgspec import Meta, field

from fairlead.model.job import (
    Job,
    JobError,
    JobExplanation,
    JobStatus,
    JobStep,
    StepExplanation,
    SubmittedJob,
)
from fairlead.model.limit import Limit
from fairlead.settings import ServiceSettings
from fairlead.settings.pipelines import SERVICE, Stages
from fairlead.shapes.base import (
    AcceptedQuery,
    Answer,
    Body,
    Moment,
    Name,
    PriorityName,
    Shape,
    Short,
    SomeSeconds,
    StatusName,
    Uuid,
)
from fairlead.shapes.estimate import EstimateAnswer
from fairlead.shapes.task import ExplainAnswer

JobStatusName = Literal["PENDING", "RUNNING", "COMPLETED", "FAILED", "CANCELLED"]
#: `pending`: not queued yet, because an earlier stage is not done.
StepStatusName = Literal["pending", StatusName]


class JobBody(Body, frozen=True):
    """A job to submit."""

    feature_name: Name
    input_data: dict[str, Any] = field(default_factory=dict)
    user_id: Short | None = None
    priority: PriorityName | None = None
    max_wait_seconds: SomeSeconds | None = None
    idempotency_key: Short | None = None
    trace_id: Short | None = None
    job_id: Uuid | None = None  # sent again with the same one, it is one job


class JobQuery(AcceptedQuery, frozen=True):
    status: JobStatusName | None = None
    user_id: Short | None = None
    feature_name: Name | None = None
    search: Short | None = None  # the beginning of an id, or a part of a feature_name or a user_id
    error: Short | None = None  # in the message of the error, in any case
    tenant: Short | None = None  # only with a key of no tenant
    needs: Name | None = None  # a limit that one of its steps has needed
    limit: Annotated[int, Meta(ge=1, le=1000)] = 50
    cursor: Annotated[str, Meta(max_length=100)] = ""


class SubmittedJobAnswer(Shape[SubmittedJob]):
    job_id: str
    priority: PriorityName
    status: JobStatusName
    repeated: bool
    warnings: list[str]  # for example, that no worker serves the type of a step yet


class JobErrorAnswer(Shape[JobError]):
    code: str
    message: str
    retryable: bool
    step: int


class JobStepAnswer(Shape[JobStep]):
    index: int
    name: str
    task_id: str
    stage: int
    status: StepStatusName
    attempts: int
    queued_at: Moment | None
    started_at: Moment | None  # the latest time
    completed_at: Moment | None  # in whatever state
    waited_seconds: float | None  # so far, in all attempts; with delays before retries


class JobAnswer(Shape[Job]):
    names: ClassVar = {"id": "job_id"}

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
    queued_at: Moment
    promoted_at: Moment | None
    last_progress_at: Moment
    completed_at: Moment | None
    error: JobErrorAnswer | None
    estimate: EstimateAnswer | None  # until it is done; in lists it is null

    def to_value(self, **given: Any) -> Job:
        """The results of its steps are in its context. The tenant is that of the key."""
        return super().to_value(steps=tuple(self._step(one) for one in self.steps), tenant=None, **given)

    def _step(self, answer: JobStepAnswer) -> JobStep:
        step = answer.to_value()
        return replace(step, result=self.context.get(step.key))


class JobsAnswer(Answer):
    jobs: list[JobAnswer]
    next_cursor: str | None
    warnings: tuple[str, ...] = ()  # as those of tasks


class StepExplainAnswer(ExplainAnswer):
    """Why a step waits."""

    extra: ClassVar = ("step", "name")

    step: int
    name: str

    @classmethod
    def of(cls, step: StepExplanation) -> Self:
        return cls.from_value(step.explanation, step=step.step, name=step.name)


class JobExplainAnswer(Answer):
    job_id: str
    status: JobStatusName
    sentence: str
    error: JobErrorAnswer | None
    steps: list[StepExplainAnswer]  # of the current stage

    @classmethod
    def of(cls, job: JobExplanation) -> Self:
        return cls(
            job_id=job.job_id,
            status=job.status.value,
            sentence=job.sentence,
            error=JobErrorAnswer.from_value(job.error) if job.error else None,
            steps=[StepExplainAnswer.of(step) for step in job.steps],
        )

    def to_value(self) -> JobExplanation:
        steps = (StepExplanation(one.step, one.name, one.to_value()) for one in self.steps)
        error = self.error.to_value() if self.error else None
        return JobExplanation(self.job_id, JobStatus(self.status), error, tuple(steps))


class ResumeQuery(Body, frozen=True):
    force: bool = False  # also after a permanent error


class ResumeAnswer(Answer):
    job_id: str
    status: JobStatusName
    skipped: list[str]  # steps of the stage that were already done


class CancelJobAnswer(Answer):
    job_id: str
    status: Literal["CANCELLED"]


class PipelineAnswer(Answer):
    name: str
    stages: list[list[str]]  # the steps of a stage run side by side


class PipelinesAnswer(Answer):
    pipelines: list[PipelineAnswer]
    next_cursor: str | None

    @classmethod
    def of(cls, pipelines: Mapping[str, Stages], next_cursor: str | None) -> Self:
        listed = [
            PipelineAnswer(name=name, stages=[*map(list, stages)])
            for name, stages in sorted(pipelines.items())
        ]
        return cls(pipelines=listed, next_cursor=next_cursor)


class ServiceAnswer(Answer):
    name: str
    limit: int | None
    active: int
    waiting: int
    url: str | None
    timeout_seconds: float | None
    max_attempts: int | None

    @classmethod
    def of(cls, limit: Limit, settings: Mapping[str, ServiceSettings], *, with_url: bool) -> Self:
        """With the settings of the service, if these settings have it."""
        name = limit.name.removeprefix(SERVICE)
        known = settings.get(name)
        return cls(
            name=name,
            limit=limit.limit,
            active=limit.active,
            waiting=limit.waiting,
            url=known.url if known and with_url else None,
            timeout_seconds=known.timeout_seconds if known else None,
            max_attempts=known.max_attempts if known else None,
        )


class ServicesAnswer(Answer):
    services: list[ServiceAnswer]
    next_cursor: str | None
