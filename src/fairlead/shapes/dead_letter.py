"""Dead letters: requests and answers."""

from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta
from msgspec.structs import fields

from fairlead.model.dead_letter import DeadFilter
from fairlead.shapes.base import Answer, Body, Name, Short, Time
from fairlead.shapes.task import TaskAnswer
from fairlead.times import read_time


class DeadChoice(Body, frozen=True):
    """Which dead letters."""

    status: Literal["dead_letter", "failed"] | None = None
    task_type: Name | None = None
    user_id: Short | None = None
    tenant: Short | None = None  # only with a key of no tenant
    code: Short | None = None  # of the error
    text: Short | None = None  # in the message of the error, in any case
    since: Time | None = None  # of when they ended
    until: Time | None = None

    @property
    def wanted(self) -> DeadFilter:
        given = {field.name: getattr(self, field.name) for field in fields(DeadFilter)}
        times = {name: read_time(name, given[name]) for name in ("since", "until") if given[name]}
        return DeadFilter(**(given | times))


class DeadQuery(DeadChoice, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(max_length=100)] = ""


class ManyBody(DeadChoice, frozen=True):
    """Which dead letters, at most `limit`: all, or those that fit every field that is given."""

    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class ReplayBody(Body, frozen=True):
    parameters: dict[str, Any] | None = None  # instead of those that it has


class DeadLetterAnswer(TaskAnswer):
    extra: ClassVar[tuple[str, ...]] = (*TaskAnswer.extra, "why")

    why: str  # in one sentence; the error has the traceback of the last run


class ReplayAnswer(Answer):
    task_id: str
    status: Literal["queued"]
    replayed: list[str]  # with a step of a job, all its failed steps


class ReplaysAnswer(Answer):
    replayed: list[str]


class PurgeAnswer(Answer):
    task_id: str
    purged: Literal[True]


class PurgesAnswer(Answer):
    purged: list[str]
