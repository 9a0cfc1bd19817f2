"""Task types, and which of them are paused."""

from typing import Self

from fairlead.shapes.base import Answer, Body, Moment
from fairlead.times import time_text


class PauseBody(Body, frozen=True):
    paused: bool


class TaskTypeAnswer(Answer):
    task_type: str
    paused: bool
    paused_at: Moment | None

    @classmethod
    def of(cls, task_type: str, paused_at: int | None) -> Self:
        at = None if paused_at is None else Moment(time_text(paused_at))
        return cls(task_type=task_type, paused=paused_at is not None, paused_at=at)


class TaskTypesAnswer(Answer):
    task_types: list[TaskTypeAnswer]
    next_cursor: str | None
