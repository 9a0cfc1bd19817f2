"""A namespace at a glance."""

from typing import Annotated, Any, Literal, Self

from msgspec import Meta

from fairlead.model.overview import Counts, Overview
from fairlead.shapes.base import Answer, Body, Moment, Shape
from fairlead.shapes.stats import StatsAnswer
from fairlead.times import time_text


class CountsAnswer(Shape[Counts]):
    """Null: unknown to a tenant."""

    limits: int | None
    jobs: int | None  # that have not ended
    dead_letters: int
    crons: int | None


class OverviewQuery(Body, frozen=True):
    #: after which the stream ends; by default it lasts as long as the connection
    messages: Annotated[int, Meta(ge=1, le=1000)] = 0


class OverviewAnswer(Answer):
    type: Literal["OVERVIEW"]
    at: Moment
    stats: StatsAnswer
    counts: CountsAnswer

    @classmethod
    def from_value(cls, value: Overview, **given: Any) -> Self:
        return cls(
            type="OVERVIEW",
            at=Moment(time_text(value.at)),
            stats=StatsAnswer.from_value(value.stats),
            counts=CountsAnswer.from_value(value.counts),
        )
