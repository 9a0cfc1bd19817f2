"""A connection that speaks HTTP: one request at a time; what is sent meanwhile waits in the kernel."""

import asyncio
import math
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from fairlead.api.http.exchange import Exchange
from fairlead.api.http.manager import BoundedProtocol, ConnectionManager
from fairlead.api.http.outlet import Outlet, has_unacknowledged
from fairlead.api.http.reader import Address, Head, RequestReader, scope_of
from fairlead.api.http.websocket import WebSocketConnection
from fairlead.api.http.wire import refusal
from fairlead.api.problems import BodyTooSlow, HttpProblem

LINGER_SECONDS = 1.0  # in which a client may read the last answer and close first
MOST_UNCONFIRMED = 64
PIECES_IN_A_ROW = 256  # of a body, each perhaps one byte, before other connections have their turn


class HttpConnection(BoundedProtocol):
    def __init__(self, manager: ConnectionManager) -> None:
        super().__init__(manager)
        self._bounds = manager.bounds
        self._reader = RequestReader()
        self._exchange: Exchange | None = None
        self._hung_up = False  # the client has
        self._unconfirmed = deque[Callable[[], None]](maxlen=MOST_UNCONFIRMED)
        self._deadline = math.inf  # for what is awaited from the client

    # What the transport calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.outlet = Outlet(self._transport, self._bounds.write_seconds)
        self._client = _address(transport.get_extra_info("peername"))
        self._local = _address(transport.get_extra_info("sockname"))
        self._wait(self._bounds.read_seconds)
        self._manager.join(self)
        self._manager.note_idle(self)

    def data_received(self, data: bytes) -> None:
        if self._exchange is None and self._discarded is None:
            self._unconfirmed.clear()  # a client that sends another request has read the last answer
            if not self._reader.has_begun:
                self._wait(self._bounds.read_seconds)
        super().data_received(data)

    def eof_received(self) -> None:
        self._hung_up = True

    def connection_lost(self, exc: Exception | None) -> None:
        self._manager.leave(self)
        if self._again:
            self._again.cancel()
        if self._unconfirmed and self._has_lost_something():
            for on_lost in self._unconfirmed:
                on_lost()
        self._unconfirmed.clear()
        self.outlet.lose()
        if self._exchange:
            self._exchange.disconnect()
        self._reader.close()

    # What the manager calls

    def look(self, now: float) -> None:
        if self.outlet.is_stuck(now):
            self._transport.abort()
        elif now >= self._deadline:
            self._end_waiting()

    def shut_down(self) -> None:
        """The server stops: a request under way may end."""
        if self._exchange is None or self._exchange.answered:
            self.close()
        else:
            self._exchange.keep_alive = False

    def close(self) -> None:
        if not self._transport.is_closing():
            self._transport.close()
            self._wait(self._bounds.write_seconds)

    # What the exchange calls

    def answered(self, exchange: Exchange) -> None:
        if exchange.on_lost:
            self._unconfirmed.append(exchange.on_lost)
        if exchange.keep_alive:
            if exchange.request_complete:
                self._begin_again()
            else:
                self._advance()  # the rest of the body is read and dropped
        elif not exchange.request_complete:
            self._linger()
        elif exchange.on_lost:  # let the client close first, which shows that it received the answer
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self.close)
        else:
            self.close()

    def body_taken(self) -> None:
        self._advance()

    def more_time(self) -> None:
        """A long body has arrived in part, and its rest may take as long again."""
        if self._exchange and not self._exchange.request_complete:
            self._wait(self._bounds.read_seconds)

    # Reading

    def _advance(self) -> None:
        pieces = 0
        try:
            while self._at < len(self._unread) and self._may_read():
                self._at = self._reader.read(self._unread, self._at)
                pieces += len(self._reader.pieces)
                self._pass_on()
                if pieces > PIECES_IN_A_ROW and not self._again:
                    self._again = asyncio.get_running_loop().call_soon(self._continue)
        except HttpProblem as problem:
            self._refuse(problem)
        if self._discarded is not None:
            return
        if self._at >= len(self._unread):
            self._unread, self._at = b"", 0
        has_room = self._exchange is None or self._exchange.has_room
        self._set_reading(has_room and not (self._unread or self._again))

    def _may_read(self) -> bool:
        if self._again or self._discarded is not None or self._transport.is_closing():
            return False
        exchange = self._exchange
        return exchange is None or (not exchange.request_complete and exchange.has_room)

    def _pass_on(self) -> None:
        reader = self._reader
        if self._exchange is None:
            if reader.head is None:
                return
            self._begin(reader.head)
        exchange = self._exchange
        if exchange is None:  # the WebSocket reads from here on
            return
        if reader.pieces:
            exchange.feed(reader.pieces)
            reader.pieces = []
        if reader.ended:
            exchange.end_request()
            self._deadline = math.inf
            if exchange.answered:
                self._begin_again()

    def _begin(self, head: Head) -> None:
        scope = scope_of(head, self._client, self._local)
        self._manager.note_busy(self)
        if head.is_websocket:
            self._upgrade(scope, head)
            return
        self._wait(self._bounds.read_seconds)
        scope["fairlead.more_time"] = self.more_time
        self._exchange = Exchange(self, scope, head)
        self._manager.start(self._exchange.run(self._manager.app))

    def _begin_again(self) -> None:
        """Waits for the next request."""
        self._exchange = None
        self._reader.next()
        self._wait(self._bounds.read_seconds if self._unread else self._bounds.idle_seconds)
        self._manager.note_idle(self)
        if self._manager.is_stopping:
            self.close()
        else:
            self._advance()

    def _upgrade(self, scope: dict[str, Any], head: Head) -> None:
        rest, self._unread, self._at = self._unread[self._at :], b"", 0
        self._manager.leave(self)
        self._discarded = 0
        self._set_reading(True)
        socket = WebSocketConnection(self._manager, self.outlet, scope, head)
        self._transport.set_protocol(socket)
        socket.begin(rest)

    # Ending

    def _end_waiting(self) -> None:
        exchange = self._exchange
        if self._transport.is_closing() or self._discarded is not None:
            self._transport.abort()
        elif exchange and not exchange.started:
            self._refuse(BodyTooSlow())  # a client that has sent a head expects an answer
        else:
            self.close()

    def _refuse(self, problem: HttpProblem) -> None:
        """Answers a request that cannot be read with a problem, like any other refusal."""
        if self._exchange:
            if self._exchange.started:
                self.close()
                return
            self._exchange.disconnect()
        if self._transport.is_closing():
            return
        self._manager.note_busy(self)
        self.outlet.write(refusal(problem))
        self._linger()

    def _linger(self) -> None:
        self._discard_rest()
        self._wait(self._bounds.read_seconds)

    def _has_lost_something(self) -> bool:
        """Certainly. A reset proves nothing: some clients and proxies end every connection with one."""
        return self.outlet.paused or (self._hung_up and has_unacknowledged(self._transport))

    def _wait(self, seconds: float) -> None:
        self._deadline = self._manager.now() + seconds


def _address(given: Any) -> Address:
    return (str(given[0]), int(given[1])) if isinstance(given, tuple) else None
