"""HTTP as uvicorn speaks it, with bounds it has not: on the size of a head, and on the time for all of it."""

import asyncio
from collections.abc import Callable
from itertools import chain
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from fairlead.api.cycle import Cycle
from fairlead.api.delivery import has_unacknowledged
from fairlead.api.problems import BodyTooSlow, HttpProblem, problem_of
from fairlead.api.slow_readers import GivesUpSlowReaders

MOST_HEAD = 64 * 1024  # bytes: the address and all headers


class NotHttp(HttpProblem):
    """This is not HTTP/1.1: check the request line, the headers and the length of the body."""

    status, code = 400, "malformed_request"


class HeadTooLarge(HttpProblem):
    """The address and the headers are larger than 64 KiB: send less in them."""

    status, code = 431, "head_too_large"


class CappedProtocol(GivesUpSlowReaders, HttpToolsProtocol):
    """Without them a client could make a server keep any number of bytes, or connections, for ever."""

    read_seconds: float
    _head = 0  # bytes since the request began; -1: its head is complete
    _since: float | None = None  # by the loop's clock: something of a request is awaited from then on
    _timer: asyncio.TimerHandle | None = None  # one for the connection: one for each request would cost more
    _refusal: HttpProblem | None = None
    _answering: RequestResponseCycle | None = None  # others may have come behind it, and wait
    _hung_up = False  # the client has

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._unconfirmed: list[Callable[[], None]] = []  # for answers that the client may not have received
        self._await_more()
        self._look()

    def eof_received(self) -> None:
        self._hung_up = True
        super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._look_no_more()
        if self._unconfirmed and self._has_lost_something():
            for on_lost in self._unconfirmed:
                on_lost()
        super().connection_lost(exc)
        if self._answering:  # uvicorn tells only the one that came last
            self._answering.disconnected = True
            self._answering.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self._head >= 0:
            self._head += len(data)
        super().data_received(data)
        if self._head > MOST_HEAD:
            self._refusal = HeadTooLarge()
            self.send_400_response("")
        elif self._since is None and self._is_idle():
            self._await_more()  # an empty line between two requests, which has ended uvicorn's patience

    def _has_lost_something(self) -> bool:
        """For certain. A reset says nothing: some clients and proxies end every connection with one."""
        return self.flow.write_paused or (self._hung_up and has_unacknowledged(self.transport))

    def on_message_begin(self) -> None:
        self._unconfirmed.clear()  # who asks for more has read the answer
        self._head = 0
        self._await_more()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._head = -1
        self._await_more()
        if len(self.url) + sum(map(len, chain.from_iterable(self.headers))) > MOST_HEAD:
            self._refusal = HeadTooLarge()
            raise self._refusal  # the parser stops, and has it answered as what it cannot read
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:  # no upgrade: uvicorn has made one of its own class, and not run it yet
            self.cycle.__class__ = Cycle
        if not self.pipeline:
            self._answering = self.cycle

    def on_message_complete(self) -> None:
        self._since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if isinstance(self._answering, Cycle) and self._answering.on_lost:
            self._unconfirmed.append(self._answering.on_lost)
        self._answering = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()

    def handle_websocket_upgrade(self) -> None:
        self._look_no_more()  # from here on another protocol reads
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """What cannot be read is refused in the same form as everything else."""
        self._head = -1
        if self.transport.is_closing():
            return
        problem = problem_of(self._refusal or NotHttp())
        body = msgspec.json.encode(problem.body)
        self.transport.write(
            STATUS_LINE[problem.status]
            + b"content-type: application/problem+json\r\nconnection: close\r\n"
            + b"content-length: %d\r\n\r\n%b" % (len(body), body)
        )
        self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _await_more(self) -> None:
        self._since = self.loop.time()

    def _look(self) -> None:
        """Now and then: has it been awaited for too long?"""
        if self._since is not None and self.loop.time() - self._since >= self.read_seconds:
            self._cut()
        else:
            self._timer = self.loop.call_later(self.read_seconds / 4, self._look)

    def _look_no_more(self) -> None:
        if self._timer:
            self._timer.cancel()

    def _cut(self) -> None:
        """It did not come in time. Who has sent a head and waits for an answer gets one."""
        cycle = self.cycle
        if self._head < 0 and cycle and cycle is self._answering and not cycle.response_started:
            self._refusal = BodyTooSlow()
            self.send_400_response("")
        elif not self.transport.is_closing():
            self.transport.close()
