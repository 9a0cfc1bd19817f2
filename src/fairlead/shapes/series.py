"""The last hour as a series."""

from typing import Annotated

from msgspec import Meta

from fairlead.model.series import LONGEST_SECONDS, Point, Series, Waits
from fairlead.shapes.base import Body, Moment, Shape
from fairlead.shapes.stats import Queue


class SeriesQuery(Body, frozen=True):
    seconds: Annotated[int, Meta(ge=1, le=LONGEST_SECONDS)] = LONGEST_SECONDS


class WaitsAnswer(Shape[Waits]):
    """How long the tasks had waited that started, by their base priority."""

    count: int
    p50_seconds: float
    p95_seconds: float


class PointAnswer(Shape[Point]):
    """What waited at `at`, by effective priority, and what happened in the seconds before."""

    at: Moment
    seconds: float
    queues: dict[str, Queue]
    submitted: int
    started: int
    completed: int
    failed: int  # with dead letters
    cancelled: int
    waits: dict[str, WaitsAnswer | None]


class SeriesAnswer(Shape[Series]):
    every_seconds: int
    points: list[PointAnswer]  # the oldest first
