"""Live updates: tickets, queries, and events."""

from typing import Annotated, Any

from msgspec import Meta

from fairlead.model.event import Event
from fairlead.shapes.base import Answer, Body, Moment, Shape


class TicketQuery(Body, frozen=True):
    ticket: Annotated[str, Meta(max_length=100)] | None = None


class WatchQuery(TicketQuery, frozen=True):
    after: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None


class EventsQuery(Body, frozen=True):
    after: Annotated[int, Meta(ge=0, le=1_000_000_000)] | None = None


class EventAnswer(Answer):
    """One of a stream. `data` is JSON, `id` its `seq` and `event` its `type`."""

    id: str
    event: str
    data: str


class TicketAnswer(Answer):
    ticket: str
    expires_in: int


class EventLine(Shape[Event], rename={"before": "from", "after": "to"}):
    """One act on a task, as `fairlead task watch --output json` prints it."""

    task_id: str
    act: str
    before: str | None
    after: str
    at: Moment
    fence: int
    detail: dict[str, Any]
