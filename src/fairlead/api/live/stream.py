"""Live updates as Server-Sent Events."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.types import Receive, Scope, Send

from fairlead.api.endpoint import SECURITY, Headers, encode
from fairlead.api.live.connections import NORMAL, Connection
from fairlead.api.problems import logged_problem
from fairlead.api.request import Request
from fairlead.background import cancel_all
from fairlead.live.messages import Message

HEARTBEAT_SECONDS = 15.0
HEARTBEAT = b": still here\n\n"
HEADERS: Headers = [(b"content-type", b"text/event-stream"), *SECURITY]


class EventStream:
    def __init__(self, request: Request, events: AsyncGenerator[bytes]) -> None:
        self._request = request
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = self._request
        with request.gateway.connections.admitted(request.caller.key_id, request.session) as connection:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            if scope["method"] != "HEAD":
                await self._run(send, connection)
            await send({"type": "http.response.body"})

    async def _run(self, send: Send, connection: Connection) -> None:
        sending = asyncio.create_task(self._send_events(send, connection))
        gone = asyncio.create_task(self._request.gone())
        try:
            while not await _one_of(gone, connection.ended):
                await _send(send, HEARTBEAT)
        finally:
            await cancel_all(sending, gone)

    async def _send_events(self, send: Send, connection: Connection) -> None:
        try:
            async with aclosing(self._events) as events:
                async for event in events:
                    await _send(send, event)
        except Exception as error:  # the client reconnects, and gets the error then
            logged_problem("socket_failed", error, what="stream")
        connection.end(NORMAL)


async def events_of(messages: AsyncGenerator[Message]) -> AsyncGenerator[bytes]:
    async with aclosing(messages):
        async for message in messages:
            yield _as_event(message)


def _as_event(message: Message) -> bytes:
    return b"id: %d\nevent: %b\ndata: %b\n\n" % (message["seq"], message["type"].encode(), encode(message))


async def nothing_new(scope: Scope, receive: Receive, send: Send) -> None:
    """The task or job has ended and the client has its last message: 204 stops an event source."""
    await send({"type": "http.response.start", "status": 204, "headers": SECURITY})
    await send({"type": "http.response.body"})


async def _send(send: Send, text: bytes) -> None:
    await send({"type": "http.response.body", "body": text, "more_body": True})


async def _one_of(*ends: asyncio.Future[Any]) -> bool:
    """Whether one of them is done; waits until the next heartbeat is due."""
    done, _ = await asyncio.wait(ends, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    return bool(done)
