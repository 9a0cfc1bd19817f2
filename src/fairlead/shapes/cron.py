"""Periodic tasks: their schedules and ticks."""

from typing import Annotated

from msgspec import Meta

from fairlead.model.cron import CronStatus
from fairlead.shapes.base import Answer, Body, Moment, Shape, Time
from fairlead.shapes.task import BatchItem, SubmitBody


class CronBody(Body, frozen=True):
    """The schedule by which the caller ticks the cron, to be shown to people."""

    schedule: Annotated[str, Meta(min_length=1, max_length=200, pattern=r"^[A-Za-z0-9*,/#? -]+$")]
    timezone: Annotated[str, Meta(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9_+/-]+$")] = "UTC"


class CronAnswer(Shape[CronStatus]):
    name: str
    schedule: str | None
    timezone: str | None
    last_tick: Moment  # or when it was first seen
    next_tick: Moment | None


class CronsAnswer(Answer):
    crons: list[CronAnswer]
    next_cursor: str | None


class TickBody(Body, frozen=True):
    previous: Time
    tick: Time
    task: SubmitBody


class LastTickAnswer(Answer):
    name: str
    last: Moment
    now: Moment


class TickAnswer(Answer):
    submitted: BatchItem | None
