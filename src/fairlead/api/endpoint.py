"""One route at work: who asks, may they, what do they bring; then one call, and its answer as JSON."""

import logging
from collections.abc import Callable

import msgspec
from starlette.types import Receive, Scope, Send

from fairlead.api.call import Call, ClientGone, address_of, decoded, headers_of, read_body, read_query
from fairlead.api.gateway import NOBODY, Gateway, Identity, check_all_tenants, check_scope
from fairlead.api.problems import Problem, problem_of
from fairlead.api.table import Route
from fairlead.errors import StoreUnavailable

log = logging.getLogger("fairlead.api")
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
        self._written = str.encode if route.answer is str else encode
        self._headers: Headers = [(b"content-type", route.media.encode()), *SECURITY]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(await self._read(scope, receive), scope, send)
        except ClientGone:
            return
        except Exception as error:
            problem = problem_of(error)
            if problem.status >= 500 and not isinstance(error, StoreUnavailable):
                log.exception("request_failed method=%s path=%s", self._route.method, self._route.path)
            await send_problem(send, problem)

    async def _answer(self, call: Call, scope: Scope, send: Send) -> None:
        try:
            said = await self._route.handler(call)
            if self._route.streams:
                await said(scope, call.receive, send)
            else:
                status, body = call.status or self._route.status, self._written(said)
                await send_bytes(send, status, body, self._headers, call.added, call.on_lost)
        except BaseException:
            if call.on_lost:
                call.on_lost()
            raise

    async def _read(self, scope: Scope, receive: Receive) -> Call:
        route, headers = self._route, headers_of(scope)
        call = Call(self._gateway, await self._who(scope, headers), scope["path_params"], headers, receive)
        call.query = read_query(scope["query_string"], route.query)
        if self._decoder:
            body = await read_body(headers, receive, route.most_body)
            if body or not route.body_optional:
                call.body = decoded(headers, body, self._decoder)
        return call

    async def _who(self, scope: Scope, headers: dict[str, str]) -> Identity:
        route, gateway = self._route, self._gateway
        if route.scope is None:
            return NOBODY
        gateway.check_caller(headers)
        who = await gateway.identify(headers.get("authorization"), address_of(scope))
        check_scope(who, route.scope)
        if route.for_all_tenants:
            check_all_tenants(who)
        return who


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
