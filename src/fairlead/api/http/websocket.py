"""A connection that speaks WebSocket, after a handshake over HTTP."""

import asyncio
import math
import os
from collections import deque
from enum import Enum
from typing import Any

from starlette.types import Message
from websockets.protocol import State

from fairlead.api.http.handshake import acceptance, agreed, refusal_head, socket_scope
from fairlead.api.http.manager import BoundedProtocol, ConnectionManager
from fairlead.api.http.messages import FrameBudget, MessageReader
from fairlead.api.http.outlet import Outlet
from fairlead.api.http.reader import Head
from fairlead.api.http.wire import refusal
from fairlead.api.live.connections import FAULT, NORMAL, SERVER_STOPS, TOO_SLOW
from fairlead.api.problems import BadHandshake, Forbidden, HandshakeTimeout, ServerStops
from fairlead.log.events import EventLog, LimitedLog
from fairlead.log.tracebacks import traceback_of

STEP = 2 * 1024  # bytes passed to the parser at once: a few hundred frames at most
FRAMES_IN_A_ROW = 64  # that are read before other connections have their turn
PING_SECONDS = 20.0  # between two pings, and for the answer to one
CLOSE_SECONDS = 10.0  # for the client to close, too
STOP_SECONDS = 1.0  # when the server stops

log = EventLog("fairlead.api")
seldom = LimitedLog("fairlead.api", seconds=60)  # for events that clients cause


class Phase(Enum):
    CONNECTING = 1  # the application has not answered the handshake
    REFUSING = 2  # it sends an HTTP answer instead
    OPEN = 3
    CLOSING = 4  # a close frame was sent or received, or the connection is lost


class ClientDisconnected(OSError):
    """The client has disconnected: nothing can be sent to it."""


class WebSocketConnection(BoundedProtocol):
    def __init__(self, manager: ConnectionManager, outlet: Outlet, scope: dict[str, Any], head: Head) -> None:
        super().__init__(manager)
        self.outlet = outlet
        self._head, self._scope = head, scope
        self._phase = Phase.CONNECTING
        self._reader = MessageReader()
        self._frames = self._reader.frames
        self._budget = FrameBudget(at=manager.now())
        self._received = deque[Message]()
        self._news = asyncio.Event()
        self._farewell: Message | None = None  # what the application receives once the connection has ended
        self._ping_at = self._pong_by = self._closed_by = math.inf
        self._answered_by = manager.now() + manager.bounds.handshake_seconds
        self._running: asyncio.Task[None] | None = None

    def begin(self, rest: bytes) -> None:
        """`rest` was received after the handshake."""
        self._unread = rest
        self._manager.join(self)
        if self._phase is not Phase.CONNECTING:  # the server stops
            return
        try:
            self._agreed = agreed(self._head)
        except BadHandshake as problem:
            self._refuse(refusal(problem))
            return
        self._scope = socket_scope(self._scope)
        self._deliver({"type": "websocket.connect"})
        self._advance()
        self._manager.handshakes.join(self)

    # What the queue of handshakes calls

    def start(self) -> None:
        if self._phase is Phase.CONNECTING:  # else the client or the server has ended it just before
            self._running = self._manager.start(self._run())

    # What the transport calls

    def connection_lost(self, exc: Exception | None) -> None:
        self._manager.leave(self)
        self.outlet.lose()
        self._end(1006 if self._phase is Phase.CONNECTING else 1005)
        if self._again:
            self._again.cancel()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._advance()

    # What the manager calls

    def look(self, now: float) -> None:
        if self.outlet.is_stuck(now):
            self._give_up()
        elif now >= self._closed_by:
            self.outlet.transport.abort()
        elif now >= self._answered_by and self._phase in (Phase.CONNECTING, Phase.REFUSING):
            self._time_out()
        elif now >= self._pong_by:
            if self._is_reading:
                self._close(FAULT, "keepalive ping timeout", CLOSE_SECONDS)
            else:  # the pong may have arrived, but not been read
                self._pong_by = now + PING_SECONDS
        elif now >= self._ping_at and self._phase is Phase.OPEN:
            self._ping_at, self._pong_by = math.inf, now + PING_SECONDS
            self._frames.send_ping(os.urandom(4))
            self._flush()

    def shut_down(self) -> None:
        if self._phase is Phase.CONNECTING:
            self._refuse(refusal(ServerStops()))
        elif self._phase is Phase.OPEN:
            self._close(SERVER_STOPS, "", STOP_SECONDS)
        if self.outlet.paused:  # else a stopping server would wait for a client that does not read
            self.abort()

    def close(self) -> None:
        self.outlet.transport.close()
        self._end_within(CLOSE_SECONDS)

    # Reading

    def _advance(self) -> None:
        frames = 0
        while self._may_read() and self._at < len(self._unread):
            piece = self._unread[self._at : self._at + STEP]
            self._at += len(piece)
            frames += self._read(piece)
            if frames >= FRAMES_IN_A_ROW:
                self._read_later()
        if self._discarded is not None:
            return
        if self._at >= len(self._unread):
            self._unread, self._at = b"", 0
        # during the handshake, too, or a disconnect would not be noticed
        self._set_reading(not self._unread and (self._phase is Phase.CONNECTING or self._may_read()))

    def _may_read(self) -> bool:
        if self._again or self.outlet.paused or self._discarded is not None:
            return False
        # after a close frame was sent, the client's is still read
        return self._phase is Phase.CLOSING or (self._phase is Phase.OPEN and not self._received)

    def _read(self, piece: bytes) -> int:
        reader = self._reader
        frames = reader.read(piece)
        self._budget.spend(frames, self._manager.now())
        self._flush()
        if self._phase is Phase.OPEN:
            for message in reader.messages:
                self._deliver(message)
        reader.messages.clear()
        if reader.has_pong:
            reader.has_pong = False
            self._ping_at, self._pong_by = self._manager.now() + PING_SECONDS, math.inf
        if reader.problem is not None:
            self._end_malformed(reader.problem)
        elif reader.goodbye:
            self._end(*reader.goodbye)
            self.close()
        return frames

    def _read_later(self) -> None:
        loop = asyncio.get_running_loop()
        seconds = self._budget.wait_seconds()
        self._again = loop.call_later(seconds, self._continue) if seconds else loop.call_soon(self._continue)

    # What the application does

    async def _run(self) -> None:
        code = NORMAL
        try:
            await self._manager.app(self._scope, self._receive, self._send)
        except (ClientDisconnected, asyncio.CancelledError):
            pass
        except Exception as fault:
            log.error("socket_failed", path=self._scope["path"], traceback=traceback_of(fault))
            code = FAULT
        if self._phase in (Phase.CONNECTING, Phase.REFUSING) and self.outlet.is_open:
            self._refuse(refusal(RuntimeError("the application returned without an answer")))
        elif self._phase is Phase.OPEN:
            self._close(code, "", CLOSE_SECONDS)

    async def _receive(self) -> Message:
        while not self._received:
            if self._farewell:
                return self._farewell
            self._news.clear()
            await self._news.wait()
        message = self._received.popleft()
        self._advance()
        return message

    async def _send(self, message: Message) -> None:
        await self.outlet.drain()
        if not self.outlet.is_open or (self._farewell and self._phase is not Phase.REFUSING):
            raise ClientDisconnected
        kind = message["type"]
        if self._phase is Phase.CONNECTING:
            self._answer_handshake(kind, message)
        elif self._phase is Phase.REFUSING and kind == "websocket.http.response.body":
            self._answer += [message.get("body", b"")]
            if not message.get("more_body"):
                self._refuse(b"".join(self._answer))
        elif self._phase is Phase.OPEN and kind == "websocket.send":
            text = message.get("text")
            if text is None:
                self._frames.send_binary(message["bytes"])
            else:
                self._frames.send_text(text.encode())
            self._flush()
        elif self._phase is Phase.OPEN and kind == "websocket.close":
            self._close(message.get("code", NORMAL), message.get("reason") or "", CLOSE_SECONDS)
        else:
            raise RuntimeError(f"{kind} while the socket is {self._phase.name.lower()}")

    def _answer_handshake(self, kind: str, message: Message) -> None:
        if kind == "websocket.accept":
            self._accept()
        elif kind == "websocket.close":
            self._refuse(refusal(Forbidden("This WebSocket is not open to you: ask for another address.")))
        elif kind == "websocket.http.response.start":
            self._phase = Phase.REFUSING
            self._answer = [*refusal_head(message)]
        else:
            raise RuntimeError(f"{kind} before the handshake was answered")

    def _accept(self) -> None:
        self.outlet.write(*acceptance(self._agreed))
        self._phase = Phase.OPEN
        self._manager.handshakes.leave(self)
        self._ping_at = self._manager.now() + PING_SECONDS
        self._advance()

    # Ending

    def _deliver(self, message: Message) -> None:
        self._received.append(message)
        self._news.set()

    def _end(self, code: int, reason: str = "") -> None:
        """The application receives this after the messages that came before."""
        if self._farewell is None:
            self._farewell = {"type": "websocket.disconnect", "code": code, "reason": reason}
            self._news.set()
            self._manager.handshakes.leave(self)
        self._phase = Phase.CLOSING

    def _close(self, code: int, reason: str, seconds: float) -> None:
        """Sends a close frame; the client has some time to answer it."""
        if self._frames.state is State.OPEN:
            self._frames.send_close(code, reason)
            self._flush()
        self._end(code, reason)
        self._end_within(seconds)
        self._advance()

    def _give_up(self) -> None:
        """The client sees the reason if it reads after all; pending sends fail at once."""
        if self._frames.state is State.OPEN:  # else its close frame was answered
            self._frames.send_close(TOO_SLOW, "reads too slowly")
            self._flush()
        self._end(TOO_SLOW)
        self.outlet.lose()
        self.close()

    def _end_malformed(self, problem: str) -> None:
        if self._phase is Phase.OPEN:
            host, _ = self._scope["client"] or (None, None)
            seldom.warning("socket_malformed", client=host, problem=problem)
        said = self._frames.close_sent
        self._end(said.code if said else 1002)
        self._discard_rest()
        self._end_within(CLOSE_SECONDS)

    def _refuse(self, answer: bytes) -> None:
        self.outlet.write(answer)
        self._end(1006)
        self.close()

    def _time_out(self) -> None:
        """While the store is unavailable each handshake takes seconds, and waits for all before it."""
        self._refuse(refusal(HandshakeTimeout()))
        if self._running:
            self._running.cancel()

    def _end_within(self, seconds: float) -> None:
        self._closed_by = min(self._closed_by, self._manager.now() + seconds)

    def _flush(self) -> None:
        parts = [part for part in self._frames.data_to_send() if part]
        if parts and self.outlet.is_open:
            self.outlet.write(*parts)
