"""The forecast: who holds each limit until when, and who is expected to start next."""

from typing import Annotated, Any, Literal

from msgspec import Meta

from fairlead.model.forecast import (
    LONGEST_SECONDS,
    Followed,
    FollowedStep,
    Forecast,
    ForecastRun,
    LimitForecast,
    Track,
)
from fairlead.shapes.base import Body, Moment, PriorityName, Shape, Uuid
from fairlead.shapes.job import StepStatusName

LIMIT = "([^,/]{1,200}/)?[A-Za-z0-9_.:-]{1,200}"  # that of a tenant: `tenant/name`
Names = Annotated[
    str,
    Meta(
        max_length=10_000,
        pattern=f"^({LIMIT}(,{LIMIT})*)?$",
        description="names of limits, separated by commas",
    ),
]


class ForecastQuery(Body, frozen=True):
    limit: Names | None = None  # those with the longest waits, if none is named
    limits: Names | None = None  # the same
    seconds: Annotated[float, Meta(ge=0, le=LONGEST_SECONDS)] = 600  # later starts are only counted
    follow: Uuid | None = None  # a task or a job

    @property
    def names(self) -> list[str]:
        listed = f"{self.limit or ''},{self.limits or ''}".split(",")
        return [*dict.fromkeys(filter(None, listed))]


class RunAnswer(Shape[ForecastRun]):
    """Of another tenant without ids and names."""

    task_id: str | None
    lease_id: str | None  # of a lease without a task
    job_id: str | None
    user_id: str | None
    tenant: str | None
    priority: PriorityName | None
    task_type: str | None
    state: Literal["running", "expected"]
    units: int
    start_p50: Moment
    start_p90: Moment
    end_p50: Moment
    end_p90: Moment
    foreign: bool

    def to_value(self, **given: Any) -> ForecastRun:
        return super().to_value(is_running=self.state == "running", **given)


class TrackAnswer(Shape[Track]):
    slot: int
    runs: list[RunAnswer]


class LimitForecastAnswer(Shape[LimitForecast]):
    """Of a limit with more than 32 slots, and of a rate, a track is a line of runs and not one unit."""

    name: str
    kind: Literal["slots", "rate", "workers"]
    limit: int
    active: int
    waiting: int
    paused: bool
    tenant: str | None  # that owns it; null: the operator's
    tracks: list[TrackAnswer]
    more: int  # that wait, and are on no track
    last_start_p50: Moment | None  # of those that wait now


class FollowedStepAnswer(Shape[FollowedStep]):
    index: int
    name: str
    task_id: str
    task_type: str | None
    status: StepStatusName
    stage: int
    limits: list[str]
    queued_at: Moment | None
    start_p50: Moment | None  # what has been is known: p50 and p90 are equal
    start_p90: Moment | None
    end_p50: Moment | None
    end_p90: Moment | None


class FollowedAnswer(Shape[Followed]):
    sentence: str
    steps: list[FollowedStepAnswer]


class ForecastAnswer(Shape[Forecast]):
    at: Moment | None  # when it was made; null: nothing is known yet
    limits: list[LimitForecastAnswer]
    workers: LimitForecastAnswer | None  # all slots of the workers; null for a tenant
    follow: FollowedAnswer | None
