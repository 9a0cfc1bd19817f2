"""Simulations of past work under other limits."""

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, field

from fairlead.model.limit import Limit
from fairlead.model.measures import Bucket, Measures, Slowdown, Waits
from fairlead.shapes.base import Answer, Body, Moment, Shape, Units


class SizeBody(Body, frozen=True):
    """Slots (`limit`), or a `rate` such as `60/min` with its `burst`."""

    limit: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None
    rate: Annotated[str, Meta(max_length=40)] | None = None
    burst: Units | None = None


class SimulationBody(Body, frozen=True):
    #: How many seconds of the past are simulated.
    seconds: Annotated[float, Meta(ge=60, le=604_800)] = 86_400
    #: How many tasks the workers run at once; null: as many as now.
    slots: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    #: Other sizes of limits, by name (`tenant/name` of a tenant's own); the others are as now.
    limits: Annotated[dict[str, SizeBody], Meta(max_length=100)] = field(default_factory=dict)


class WaitsAnswer(Shape[Waits]):
    """In seconds, of the tasks that started."""

    p50: float
    p95: float
    p99: float
    max: float
    mean: float


class SlowdownAnswer(Shape[Slowdown]):
    mean: float
    p99: float


class MeasuresAnswer(Shape[Measures]):
    tasks: int
    unstarted: int
    makespan_seconds: float
    waits: dict[str, WaitsAnswer | None]  # `high`, `medium`, `low` and `all`
    slowdown: SlowdownAnswer | None
    utilisation: float
    jain: float | None
    promoted_share: float


class BucketAnswer(Shape[Bucket]):
    """The waits of the tasks that arrived in a part of the time: now, and with the changes."""

    at: Moment
    count: int
    p50: tuple[float | None, float | None]
    p95: tuple[float | None, float | None]


class SimulatedLimit(Shape[Limit]):
    """A limit that the work needed, as it is now."""

    extra: ClassVar = ("tasks", "most_needed")

    name: str  # `tenant/name` of a tenant's own
    kind: Literal["slots", "rate"]
    limit: int
    rate: str | None
    paused: bool  # the simulation gives out its units all the same
    tasks: int  # that needed it
    most_needed: int  # units of one task


class SimulationAnswer(Answer):
    tasks: int  # that were played
    since: Moment | None  # when the first of them arrived; null: there was no work
    until: Moment | None
    slots: int  # of the workers now
    limits: list[SimulatedLimit]  # those that most tasks need first
    before: MeasuresAnswer | None
    after: MeasuresAnswer | None
    series: list[BucketAnswer]
