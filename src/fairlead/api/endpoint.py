"""One route at work: reads and checks a request, calls its handler, and sends the answer as JSON."""

from collections.abc import Callable

import msgspec
from starlette.types import Receive, Scope, Send

from fairlead.api.budget import Holding
from fairlead.api.faults import noted
from fairlead.api.gateway import NOBODY, Gateway, check_all_tenants, check_scope
from fairlead.api.problems import Problem
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

encode = msgspec.json.Encoder().encode

Headers = list[tuple[bytes, bytes]]

#: On every answer: it is data, and nothing a browser may run, frame, sniff or keep.
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
        self._decoder = route.make_decoder()
        # a text that a handler has written is sent as it is: it may be long
        self._written = bytes if route.answer is str else encode
        self._headers: Headers = [(b"content-type", route.media.encode()), *SECURITY]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(self._gateway, NOBODY, scope["path_params"], headers_of(scope), receive)
        holding = self._gateway.budget.holding()
        try:
            await self._read(request, scope, holding)
            await self._answer(request, scope, send)
        except ClientGone:
            return
        except Exception as error:
            is_operator = self._gateway.is_operator(request.caller)
            facts = {"method": self._route.method, "path": self._route.path}
            await send_problem(send, noted("request_failed", error, to_operator=is_operator, **facts))
        finally:
            holding.give_back()

    async def _answer(self, request: Request, scope: Scope, send: Send) -> None:
        try:
            said = await self._route.handler(request)
            if self._route.streams:
                await said(scope, request.receive, send)
            else:
                status, body = request.status or self._route.status, self._written(said)
                await send_bytes(send, status, body, self._headers, request.added, request.on_lost)
        except BaseException:
            if request.on_lost:
                request.on_lost()
            raise

    async def _read(self, request: Request, scope: Scope, holding: Holding) -> None:
        route, headers = self._route, request.headers
        if route.scope is not None:
            self._gateway.check_caller(headers)
            request.caller = await self._gateway.identify(headers.get("authorization"), address_of(scope))
        request.query = read_query(scope["query_string"], route.query)
        if route.scope is not None:
            check_scope(request.caller, route.scope_for(request.query))
        if route.for_all_tenants:
            check_all_tenants(request.caller)
        if self._decoder:
            await holding.take(expected_size(headers, route.most_body))
            body = await read_body(headers, request.receive, route.most_body)
            if body or not route.body_optional:
                request.body = decoded(headers, body, self._decoder)


async def send_problem(send: Send, problem: Problem) -> None:
    await send_bytes(send, problem.status, encode(problem.body), PROBLEM, problem.headers)


async def send_bytes(
    send: Send,
    status: int,
    body: bytes,
    headers: Headers,
    added: dict[str, str],
    on_lost: Callable[[], None] | None = None,
) -> None:
    extra: list[tuple[bytes, bytes]] = [(b"content-length", b"%d" % len(body))]
    extra += [(name.encode(), value.encode()) for name, value in added.items()]
    start = {
        "type": "http.response.start",
        "status": status,
        "headers": headers + extra,
        "whole": True,
        "on_lost": on_lost,
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
