"""Routes, each declared once beside its handler: for the server, the OpenAPI page and the tests of access."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Any, TypeVar, get_args

from fairlead.api.request import MOST_BODY, Request
from fairlead.errors import FairleadError
from fairlead.model.key import Scope
from fairlead.shapes.base import Body, NoQuery
from fairlead.shapes.live import TicketQuery

Handler = Callable[..., Awaitable[Any]]
H = TypeVar("H", bound=Handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The annotations of the handler are the types of the body, the query and the answer."""

    method: str
    path: str
    handler: Handler
    operation_id: str
    scope: Scope | None  # None: open to everybody
    forced_scope: Scope | None = None  # required instead by a request with `force=true`
    task_scope: Scope | None = None  # required instead by a request with a `task_id`
    for_all_tenants: bool = False  # touches what all tenants share: not for the key of one tenant
    body: type[Body] | None = None
    body_optional: bool = False
    most_body: int = MOST_BODY
    body_media: str | None = None  # of a body of any length that the handler reads, piece by piece
    query: type[Body] = NoQuery
    answer: Any
    status: int = 200
    media: str = "application/json"  # of the answer; a `str` is sent unchanged, anything else as JSON
    streams: bool = False  # the handler returns an ASGI application that sends the answer
    has_effect: bool = False  # a GET that does more than read: HEAD must not do it
    refusals: tuple[type[FairleadError], ...] = ()

    def scope_for(self, query: Any) -> Scope:
        """The scope that a request with this query needs."""
        needed = self.forced_scope if getattr(query, "force", False) else None
        if self.task_scope and query.task_id:
            needed = self.task_scope
        return needed or self.scope or "admin"

    @property
    def summary(self) -> str:
        return (self.handler.__doc__ or "").strip().partition("\n")[0].rstrip(".")

    @property
    def is_safe(self) -> bool:
        """Whether it only reads."""
        return self.method == "GET" and not self.has_effect


class Routes:
    """A family of routes with a common path prefix; `shared` are the defaults of their options.

    `@routes.get("/{name}", scope="read")` declares one. Its handler receives the request and, if it has
    parameters of these names, the decoded `body` and `query`. A body that may be None is optional.
    """

    def __init__(self, prefix: str = "", **shared: Any) -> None:
        self._prefix = prefix
        self._shared = shared
        self._routes: list[Route] = []

    def __iter__(self) -> Iterator[Route]:
        return iter(self._routes)

    def get(self, path: str = "", **options: Any) -> Callable[[H], H]:
        return self._declare("GET", path, options)

    def post(self, path: str = "", **options: Any) -> Callable[[H], H]:
        return self._declare("POST", path, options)

    def put(self, path: str = "", **options: Any) -> Callable[[H], H]:
        return self._declare("PUT", path, options)

    def delete(self, path: str = "", **options: Any) -> Callable[[H], H]:
        return self._declare("DELETE", path, options)

    def _declare(self, method: str, path: str, options: dict[str, Any]) -> Callable[[H], H]:
        def declare(handler: H) -> H:
            described = _described(handler) | self._shared | options
            self._routes.append(Route(method=method, path=self._prefix + path, handler=handler, **described))
            return handler

        return declare


def _described(handler: Handler) -> dict[str, Any]:
    """The options of a route that its handler shows."""
    hints = handler.__annotations__
    found: dict[str, Any] = {
        "operation_id": f"{handler.__module__.rpartition('.')[2]}_{handler.__name__}",
        "answer": hints["return"],
        "query": hints.get("query", NoQuery),
    }
    if body := hints.get("body"):
        kinds = get_args(body)
        found |= {"body": kinds[0] if kinds else body, "body_optional": NoneType in kinds}
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SocketRoute:
    """A WebSocket. The handler accepts it; an error before that is answered as for any other request."""

    path: str
    scopes: tuple[Scope, ...]  # all of them are required
    handler: Callable[[Request, Any, Any], Awaitable[None]]
    query: type[TicketQuery] = TicketQuery
