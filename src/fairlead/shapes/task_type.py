"""Task types, and which of them are paused."""

from typing import Self

from fairlead.model.forecast import TypeLoad
from fairlead.shapes.base import Answer, Body, Moment
from fairlead.times import time_text


class PauseBody(Body, frozen=True):
    paused: bool


class TaskTypeAnswer(Answer, omit_defaults=True):
    task_type: str
    paused: bool
    paused_at: Moment | None
    #: by effective priority, by the latest forecast; `all`: those of a tenant; null: not known now
    waiting: dict[str, int] | None = None
    running: int | None = None  # by the latest forecast; not of a tenant

    @classmethod
    def of(cls, task_type: str, paused_at: int | None, load: TypeLoad | None = None) -> Self:
        at = None if paused_at is None else Moment(time_text(paused_at))
        return cls(
            task_type=task_type,
            paused=paused_at is not None,
            paused_at=at,
            waiting=load.waiting if load else None,
            running=load.running if load else None,
        )


class TaskTypesAnswer(Answer):
    task_types: list[TaskTypeAnswer]
    next_cursor: str | None
