"""The ASGI application: all routes, with a directory and Starlette's router in front."""

import gc
from collections.abc import Mapping

from starlette.routing import BaseRoute, Router, WebSocketRoute
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from fairlead.api.dashboard import dashboard_files
from fairlead.api.endpoint import Endpoint, send_problem
from fairlead.api.gateway import Gateway
from fairlead.api.live.socket import SocketEndpoint, refuse
from fairlead.api.openapi import make_pages
from fairlead.api.problems import MethodNotAllowed, NotFound, problem_of
from fairlead.api.routes import (
    audit,
    blobs,
    crons,
    dead_letters,
    declarations,
    forecast,
    jobs,
    limits,
    live,
    metrics,
    series,
    session,
    settings,
    simple,
    simulations,
    task_types,
    tasks,
    worker_tasks,
    workers,
)
from fairlead.api.table import Route, SocketRoute

#: The busiest first: the router tries them in this order.
ROUTES: tuple[Route, ...] = (
    *tasks.routes,
    *live.routes,
    *worker_tasks.routes,
    *workers.routes,
    *workers.public,
    *limits.routes,
    *jobs.routes,
    *blobs.routes,
    *dead_letters.routes,
    *declarations.routes,
    *simple.routes,
    *forecast.routes,
    *series.routes,
    *settings.routes,
    *simulations.routes,
    *task_types.routes,
    *crons.routes,
    *audit.routes,
    *session.routes,
    *metrics.routes,
)

SOCKETS: tuple[SocketRoute, ...] = live.SOCKETS


def make_app(gateway: Gateway) -> ASGIApp:
    # Otherwise the collector would scan the whole program again and again while a large body is read.
    gc.collect()
    gc.freeze()
    addresses: dict[str, dict[str, ASGIApp]] = {}
    for route in ROUTES:
        methods = ("GET", "HEAD") if route.is_safe else (route.method,)  # the server leaves out the body
        addresses.setdefault(route.path, {}).update(dict.fromkeys(methods, Endpoint(route, gateway)))
    for path, page in (make_pages(ROUTES) | dashboard_files()).items():
        addresses[path] = {"GET": page, "HEAD": page}
    routes: list[BaseRoute] = [StarletteRoute(path, Address(known)) for path, known in addresses.items()]
    routes += [WebSocketRoute(socket.path, SocketEndpoint(socket, gateway)) for socket in SOCKETS]
    return Directory(addresses, Router(routes, redirect_slashes=False, default=nothing_here))


class Directory:
    """Looks up paths without parameters; a router has to try one pattern after the other."""

    def __init__(self, addresses: Mapping[str, Mapping[str, ASGIApp]], router: ASGIApp) -> None:
        self._router = router
        self._fixed: dict[tuple[str | None, str], ASGIApp] = {
            (method, path): app
            for path, known in addresses.items()
            for method, app in known.items()
            if "{" not in path
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._fixed.get((scope.get("method"), scope["path"]))  # a socket has no method
        if app:
            scope["path_params"] = {}
        await (app or self._router)(scope, receive, send)


class Address:
    """The methods of one path."""

    def __init__(self, known: Mapping[str, ASGIApp]) -> None:
        self._known = dict(known)
        self._refusal = problem_of(MethodNotAllowed(", ".join(sorted(self._known))))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._known.get(scope["method"])
        await (app(scope, receive, send) if app else send_problem(send, self._refusal))


async def nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await send_problem(send, problem_of(NotFound()))
    else:
        await refuse(send, problem_of(NotFound()))
