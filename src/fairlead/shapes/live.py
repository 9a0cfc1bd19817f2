"""Live updates: tickets, queries, and the events of a stream."""

from typing import Annotated

from msgspec import Meta

from fairlead.shapes.base import Answer, Body


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
