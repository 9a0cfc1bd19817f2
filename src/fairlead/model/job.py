"""A job: one run of a pipeline, as a client asks for it and as the store knows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

import msgspec
import uuid_utils

from fairlead.checks import MOST_STEPS, UUID
from fairlead.errors import InvalidInput, UnknownJob
from fairlead.model.estimate import Estimate
from fairlead.model.explanation import Explanation
from fairlead.model.priority import PRIORITIES, Priority
from fairlead.model.states import TERMINAL, State
from fairlead.model.task_filter import PastFilter


class JobStatus(StrEnum):
    PENDING = "PENDING"  #: no step has started yet
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


ENDED = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED})

#: Of a step: that of its task, or this one before it is queued.
PENDING = "pending"


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step by the name it has in the pipeline, and the type of the task that does it."""

    name: str
    task_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job as a client asks for it. The steps of a stage run side by side, the stages one after another."""

    feature_name: str
    stages: Sequence[Sequence[NewStep]] = ()  # none: those of its pipeline, which are looked up
    input_data: Mapping[str, Any] = field(default_factory=dict)
    priority: str = "medium"
    priority_asked: bool = True  # False: found for the client, and maybe another one when it asks again
    user_id: str | None = None
    tenant: str | None = None
    weight: float | None = None  # of its user's share; found for the client, which cannot choose it
    max_wait_seconds: float | None = None  # that a step may wait before it starts
    idempotency_key: str | None = None
    trace_id: str | None = None
    traceparent: str | None = None  # of W3C: the span to which those of its steps belong
    job_id: str = field(default_factory=lambda: str(uuid_utils.uuid7()))


@dataclass(frozen=True, slots=True)
class SubmittedJob:
    job_id: str
    status: JobStatus
    repeated: bool = False  # the same id or idempotency key was accepted before
    priority: Priority | None = None  # of a job that was accepted before and is remembered by its key alone
    warnings: tuple[str, ...] = ()  # for example, that no worker serves the type of a step yet


@dataclass(frozen=True, slots=True, kw_only=True)
class JobError:
    code: str
    message: str
    retryable: bool  # the job can be resumed
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStep:
    index: int
    name: str
    task_id: str
    stage: int
    status: str = PENDING  # the state of its task, also when the record of that has expired
    attempts: int = 0
    queued_at: int | None = None
    started_at: int | None = None  # the latest time
    completed_at: int | None = None  # in whatever state
    waited_seconds: float | None = None  # so far, in all attempts; with delays before retries
    result: dict[str, Any] | None = None  # {status, data, metrics}
    seq: int = 0  # of the live message with its result

    @property
    def key(self) -> str:
        """Under which its result is found in the job's context."""
        return f"step_{self.index}_{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job as the store knows it. Times are ms of the store's clock."""

    job_id: str
    feature_name: str
    status: JobStatus
    input_data: dict[str, Any]
    steps: tuple[JobStep, ...]
    # The first step of the current stage; after the last stage, the number of steps.
    current_step_index: int
    priority: Priority  # by age too
    original_priority: Priority
    user_id: str | None
    tenant: str | None
    queued_at: int
    last_progress_at: int
    promoted_at: int | None = None
    completed_at: int | None = None
    error: JobError | None = None
    estimate: Estimate | None = None  # until it is done; None: not asked for, or nothing is known
    seq: int = 0  # of its last live message

    @property
    def total_steps(self) -> int:
        return len(self.steps)

    @property
    def context(self) -> dict[str, Any]:
        """The result of every step that has one, and how often each was tried."""
        known: dict[str, Any] = {}
        for step in self.steps:
            if step.result is not None:
                known[step.key] = step.result
            if step.attempts:
                known[f"{step.key}__attempts"] = step.attempts
        return known

    @property
    def current_steps(self) -> list[JobStep]:
        """Those of its current stage that have not ended; none when the job has."""
        if self.status in ENDED:
            return []
        stage = self.steps[self.current_step_index].stage
        return [step for step in self.steps if step.stage == stage and step.status not in TERMINAL]

    @classmethod
    def from_record(cls, job_id: str, record: Mapping[str, Any], now: int) -> "Job":
        """`now`: until when steps that wait have waited."""

        def number(name: str) -> int | None:
            return int(record[name]) if name in record else None

        error = record.get("error")
        return cls(
            job_id=job_id,
            feature_name=record["feature"],
            status=JobStatus(record["status"]),
            input_data=msgspec.json.decode(record["input"]),
            steps=tuple(_steps(record, now)),
            current_step_index=int(record["step"]),
            priority=PRIORITIES[str(record["effective"])],
            original_priority=PRIORITIES[str(record["priority"])],
            user_id=record.get("user_id"),
            tenant=record.get("tenant"),
            queued_at=int(record["created"]),
            last_progress_at=int(record["progressed"]),
            promoted_at=number("promoted"),
            completed_at=number("finished"),
            error=JobError(**msgspec.json.decode(error)) if error else None,
            seq=number("told") or 0,
        )


@dataclass(frozen=True, slots=True)
class JobPage:
    """`next_cursor` leads to the next page; empty: this was the last. An empty page need not be the last."""

    jobs: list[Job]
    next_cursor: str = ""
    warnings: tuple[str, ...] = ()  # as those of a page of tasks


class JobFilter(PastFilter, total=False):
    """Which jobs a page lists, and where it begins; what is left out or None may be anything."""

    status: str | None
    user_id: str | None
    feature_name: str | None
    search: str | None
    limit: int
    cursor: str


@dataclass(frozen=True, slots=True)
class StepExplanation:
    """Why a step of the current stage waits."""

    step: int
    name: str
    explanation: Explanation


@dataclass(frozen=True, slots=True)
class JobExplanation:
    """What a job waits for, or how it ended. `sentence` says it in words."""

    job_id: str
    status: JobStatus
    error: JobError | None = None
    steps: tuple[StepExplanation, ...] = ()

    def seen_by(self, tenant: str) -> "JobExplanation":
        """Without what is another tenant's."""
        steps = (replace(one, explanation=one.explanation.seen_by(tenant)) for one in self.steps)
        return replace(self, steps=tuple(steps))

    @property
    def sentences(self) -> list[str]:
        """One for each step that waits or runs."""
        if self.steps:
            return [f"{one.name}: {one.explanation.sentence}" for one in self.steps]
        if self.error:
            return [f"It failed at step {self.error.step} ({self.error.code}): {self.error.message}"]
        return [f"It is {self.status}."]

    @property
    def sentence(self) -> str:
        return " ".join(self.sentences)


def _steps(record: Mapping[str, Any], now: int) -> list[JobStep]:
    steps: list[JobStep] = []
    for stage, specs in enumerate(msgspec.msgpack.decode(record["plan"])):
        for spec in specs:
            index = len(steps)
            result = record.get(f"result:{index}")
            kept = record.get(f"step:{index}")
            steps.append(
                JobStep(
                    index=index,
                    name=spec["step_name"],
                    task_id=spec["id"],
                    stage=stage,
                    attempts=int(record.get(f"attempts:{index}", 0)),
                    seq=int(record.get(f"done:{index}", 0)),
                    result=None if result is None else msgspec.json.decode(result),
                    **(_times(kept, now) if kept else {"status": _unkept_status(record, index)}),
                )
            )
    return steps


def _times(packed: bytes, now: int) -> dict[str, Any]:
    """What the job keeps of a step."""
    kept = msgspec.msgpack.decode(packed, type=dict[str, Any])
    return {
        "status": kept["state"],
        "queued_at": kept["queued"],
        "started_at": kept.get("started"),
        "completed_at": kept.get("finished"),
        "waited_seconds": (kept["waited"] + max(0, now - kept.get("since", now))) / 1000,
    }


def _unkept_status(record: Mapping[str, Any], index: int) -> str:
    """Of a step that is not queued yet, or could not be, or ended under a version that kept less."""
    if f"result:{index}" in record:
        return State.COMPLETED
    error = record.get("error")
    return State.FAILED if error and msgspec.json.decode(error)["step"] == index else PENDING


def check_job_id(job_id: str) -> str:
    """What cannot be an id is the id of no job."""
    if not UUID.fullmatch(job_id):
        raise UnknownJob()
    return job_id


def check_stages(stages: Sequence[Sequence[NewStep]]) -> None:
    count = sum(map(len, stages))
    if not count or not all(stages):
        raise InvalidInput("stages", "a pipeline and each of its stages has at least one step")
    if count > MOST_STEPS:
        raise InvalidInput("stages", f"are {count} steps, at most {MOST_STEPS} are accepted")
