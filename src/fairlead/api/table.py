"""A route as it is declared once: for the server, the OpenAPI page, and the test of who may do what."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from fairlead.api.gateway import Scope
from fairlead.api.request import MOST_BODY, Request
from fairlead.errors import FairleadError
from fairlead.shapes.base import Body, NoQuery
from fairlead.shapes.live import TicketQuery

Handler = Callable[[Request], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    method: str
    path: str
    scope: Scope | None  # None: open to everybody
    forced_scope: Scope | None = None  # needed in its place by a request with `force=true`
    handler: Handler
    answer: Any  # the type of what is answered
    status: int = 200
    streams: bool = False  # the handler answers with what sends the answer, piece by piece
    media: str = "application/json"  # of the answer; a text is sent as it is, anything else as JSON
    body: type[Body] | None = None
    query: type[Body] = NoQuery
    refusals: tuple[type[FairleadError], ...] = ()
    most_body: int = MOST_BODY
    body_optional: bool = False
    has_effect: bool = False  # a GET that does more than to read: HEAD must not do it
    for_all_tenants: bool = False  # touches what all tenants share: not for the key of one of them

    def scope_for(self, query: Any) -> Scope:
        """What a request with this query needs."""
        needed = self.forced_scope if getattr(query, "force", False) else None
        return needed or self.scope or "admin"

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").strip().partition("\n")[0].rstrip(".")

    @property
    def answers_head(self) -> bool:
        return self.method == "GET" and not self.has_effect

    def make_decoder(self) -> msgspec.json.Decoder[Any] | None:
        return msgspec.json.Decoder(self.body) if self.body else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRoute:
    """A WebSocket. The handler accepts it; what it raises before is answered as to any other request."""

    path: str
    scopes: tuple[Scope, ...]  # all of them are needed
    handler: Callable[[Request, Any], Awaitable[None]]
    query: type[TicketQuery] = TicketQuery
