"""One act on one task, as watchers are notified of it."""

from dataclasses import dataclass
from typing import Any

from fairlead.model.job import JobStatus
from fairlead.model.priority import Priority
from fairlead.model.states import State


@dataclass(frozen=True, slots=True)
class StepOf:
    """What an act on a step means to its job, with the state of the job at that time."""

    job_id: str
    seq: int  # numbers the messages about the job, from 1
    step: int
    status: JobStatus
    priority: Priority  # by age too


@dataclass(frozen=True, slots=True)
class Event:
    """One act on one task. `progress` and `output` leave the state as it is."""

    task_id: str
    act: str
    before: State | None
    after: State
    at: int  # ms
    fence: int
    detail: dict[str, Any]
    seq: int = 0  # numbers the messages about the task, from 1
    job: StepOf | None = None
