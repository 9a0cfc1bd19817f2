"""One route at work: reads and checks a request, calls its handler, and sends the answer as JSON."""

from collections.abc import Callable
from typing import Any

import msgspec
from starlette.types import Message, Receive, Scope, Send

from fairlead.api.gateway import NOBODY, Gateway, check_all_tenants, check_scope
from fairlead.api.problems import Problem, logged_problem
from fairlead.api.request import (
    ClientGone,
    Request,
    address_of,
    decoded,
    expected_size,
    headers_of,
    read_body,
    read_query,
)
from fairlead.api.table import Route
from fairlead.clock import monotonic
from fairlead.log.events import EventLog
from fairlead.shapes.base import NoQuery

access = EventLog("fairlead.access")

encode = msgspec.json.Encoder().encode

CLIENT_GONE = 499  # counted for a request whose client left before it was answered

Headers = list[tuple[bytes, bytes]]

#: On every answer: it is data that a browser must not run, frame, sniff or keep.
SECURITY: Headers = [
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]
JSON: Headers = [(b"content-type", b"application/json"), *SECURITY]
PROBLEM: Headers = [(b"content-type", b"application/problem+json"), *SECURITY]


class Endpoint:
    def __init__(self, route: Route, gateway: Gateway) -> None:
        self._route = route
        self._gateway = gateway
        self._decoder = msgspec.json.Decoder(route.body) if route.body else None
        # a text that a handler has written is sent as it is: it may be long
        self._written = bytes if route.answer is str else encode
        self._headers: Headers = [(b"content-type", route.media.encode()), *SECURITY]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status = monotonic(), CLIENT_GONE

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        headers = headers_of(scope)
        gateway = self._gateway.of_request(headers)
        request = Request(gateway, NOBODY, scope["path_params"], headers, receive, address_of(scope))
        try:
            await self._serve(request, scope, noted)
        finally:
            seconds = monotonic() - began
            gateway.tally.count_request(self._route.path, status, seconds)
            if gateway.logs_requests:
                _log_request(request, scope, status, seconds)

    async def _serve(self, request: Request, scope: Scope, send: Send) -> None:
        gateway = request.gateway
        if self._route.body_media:
            request.more_time = scope["fairlead.more_time"]
        budget, taken = gateway.budget, 0
        try:
            arguments = await self._check(request, scope)
            if self._decoder:
                taken = await budget.take(expected_size(request.headers, self._route.most_body))
                arguments["body"] = await self._read_body(request, self._decoder)
            await self._answer(request, arguments, scope, send)
        except ClientGone:
            return
        except Exception as error:
            is_operator = gateway.is_operator(request.caller)
            facts = {"method": self._route.method, "path": self._route.path}
            await send_problem(
                send, logged_problem("request_failed", error, to_operator=is_operator, **facts)
            )
        finally:
            budget.give_back(taken)

    async def _check(self, request: Request, scope: Scope) -> dict[str, Any]:
        """Identifies the caller and checks the scope; returns the query, if the handler takes one."""
        route, headers, gateway = self._route, request.headers, request.gateway
        if route.scope is not None:
            gateway.check_caller(headers)
            request.caller = await gateway.identify(headers, request.address, is_safe=route.is_safe)
            gateway.check_namespace(headers)
        query = read_query(scope["query_string"], route.query)
        if route.scope is not None:
            check_scope(request.caller, route.scope_for(query))
        if route.for_all_tenants:
            check_all_tenants(request.caller)
        return {} if route.query is NoQuery else {"query": query}

    async def _read_body(self, request: Request, decoder: msgspec.json.Decoder[Any]) -> Any:
        body = await read_body(request.headers, request.receive, self._route.most_body)
        if self._route.body_optional and not body:
            return None
        return decoded(request.headers, body, decoder)

    async def _answer(self, request: Request, arguments: dict[str, Any], scope: Scope, send: Send) -> None:
        try:
            answer = await self._route.handler(request, **arguments)
            if self._route.streams:
                await answer(scope, request.receive, send)
            else:
                status, headers = request.status or self._route.status, self._headers + request.answer_headers
                await send_bytes(send, status, self._written(answer), headers, on_lost=request.on_lost)
        except BaseException:
            if request.on_lost:
                request.on_lost()
            raise


def _log_request(request: Request, scope: Scope, status: int, seconds: float) -> None:
    """Without the query, which may hold anything."""
    access.info(
        "request",
        method=scope["method"],
        path=scope["path"],
        status=status,
        ms=round(seconds * 1000, 1),
        client=request.address,
        key=request.caller.key_id,
        trace=request.trace_id,
    )


async def send_problem(send: Send, problem: Problem) -> None:
    headers = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    await send_bytes(send, problem.status, encode(problem.body), PROBLEM + headers)


async def send_bytes(
    send: Send, status: int, body: bytes, headers: Headers, *, on_lost: Callable[[], None] | None = None
) -> None:
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": [*headers, (b"content-length", b"%d" % len(body))],
        "whole": True,
        "on_lost": on_lost,
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
