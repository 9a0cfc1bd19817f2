"""One request and its answer, as an ASGI application sees them."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from starlette.types import ASGIApp, Message

from fairlead.api.http.outlet import Outlet
from fairlead.api.http.reader import Head
from fairlead.api.http.wire import CHUNKED, CLOSE, CONTINUE, LAST_CHUNK, STATUS_LINE, answer_of, header_line
from fairlead.api.problems import logged_problem

MOST_BUFFERED = 64 * 1024  # bytes of a body that the application has not received; then no more is read
WITHOUT_BODY = frozenset({204, 304})


class Line(Protocol):
    """The connection, as an exchange sees it."""

    outlet: Outlet

    def answered(self, exchange: "Exchange") -> None: ...
    def body_taken(self) -> None: ...
    def close(self) -> None: ...


class Exchange:
    """The start of an answer may have `whole`: the complete body follows at once. Then both are written
    together, because two writes are two system calls and two packets. It may also have `on_lost`, which is
    called when the client certainly has not received the whole answer.
    """

    __slots__ = (
        *("_body", "_buffered", "_chunked", "_delivered", "_expects_continue", "_head", "_left", "_line"),
        *("_news", "_scope", "_version", "answered", "disconnected", "keep_alive", "on_lost"),
        *("request_complete", "started"),
    )

    def __init__(self, line: Line, scope: dict[str, Any], head: Head) -> None:
        self._line = line
        self._scope = scope
        self._version = head.version
        self._expects_continue = head.expects_continue
        self._body: list[bytes] = []
        self._buffered = 0
        self._delivered = False  # the application has seen the end of the body
        self._news = asyncio.Event()
        self._head = b""  # of a whole answer, until its body follows
        self._chunked = False
        self._left: int | None = None  # bytes of the answer's body that are left; None: its length is unknown
        self.keep_alive = head.keep_alive
        self.on_lost: Callable[[], None] | None = None
        self.request_complete = False
        self.started = False
        self.answered = False
        self.disconnected = False

    # What the connection does

    @property
    def has_room(self) -> bool:
        """For more of the body. Once it is complete the connection is read to notice its end, and what
        arrives after the answer is dropped."""
        return self.request_complete or self.answered or self.disconnected or self._buffered < MOST_BUFFERED

    def feed(self, pieces: list[bytes]) -> None:
        self._expects_continue = False
        if not (self.answered or self.disconnected):
            self._body += pieces
            self._buffered += sum(map(len, pieces))
            self._news.set()

    def end_request(self) -> None:
        self.request_complete = True
        self._expects_continue = False
        self._news.set()

    def disconnect(self) -> None:
        """The client has disconnected."""
        if not self.answered:
            self.disconnected = True
        self._body.clear()
        self._news.set()

    async def run(self, app: ASGIApp) -> None:
        try:
            await app(self._scope, self.receive, self.send)
        except asyncio.CancelledError:  # the server stops, and this request took too long
            self._line.close()
        except Exception as fault:
            self._fail(fault)
        else:
            if not self.answered and self._line.outlet.is_open and not self.disconnected:
                self._fail(RuntimeError("the application returned without a whole answer"))

    def _fail(self, fault: Exception) -> None:
        method, path = self._scope["method"], self._scope["path"]
        problem = logged_problem("request_failed", fault, method=method, path=path)
        if not (self.started or self.disconnected) and self._line.outlet.is_open:
            self.started = True
            self._line.outlet.write(answer_of(problem))
        self._line.close()

    # What the application does

    async def receive(self) -> Message:
        if self._expects_continue and self._line.outlet.is_open:
            self._expects_continue = False
            self._line.outlet.write(CONTINUE)
        while not (self._body or self.disconnected or self.answered):
            if self.request_complete and not self._delivered:
                break
            self._news.clear()
            await self._news.wait()
        if self.disconnected or self.answered:
            return {"type": "http.disconnect"}
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._buffered = 0
        self._delivered = self.request_complete
        if not self.request_complete:
            self._line.body_taken()
        return {"type": "http.request", "body": body, "more_body": not self._delivered}

    async def send(self, message: Message) -> None:
        outlet = self._line.outlet
        self.on_lost = message.get("on_lost", self.on_lost)
        if outlet.paused:
            await outlet.drain()  # the client has not read the previous answers
        if self.disconnected or not outlet.is_open:  # nothing would be sent
            if self.on_lost and message["type"] == "http.response.body":
                self.on_lost()
        elif not self.started:
            self._send_start(message)
        elif not self.answered:
            self._send_body(message)
        else:
            raise RuntimeError(f"{message['type']} after the end of the answer")

    def _send_start(self, start: Message) -> None:
        if start["type"] != "http.response.start":
            raise RuntimeError(f"{start['type']} before the start of the answer")
        headers = start.get("headers", ())
        lines = [STATUS_LINE[start["status"]], *[header_line(name, value) for name, value in headers]]
        known = dict(headers)  # their names are lower-case in ASGI
        if (length := known.get(b"content-length")) is not None:
            self._left = int(length)
        if says_close := b"close" in known.get(b"connection", b"").lower():
            self.keep_alive = False
        self.started = True
        if self._expects_continue:  # the client may send the body or not: the next bytes could be either
            self.keep_alive = False
        without_body = self._scope["method"] == "HEAD" or start["status"] in WITHOUT_BODY
        if without_body:
            self._left = None
        elif self._left is None:
            self._chunked = self._version != "1.0"
            self.keep_alive &= self._chunked
            lines += [CHUNKED] if self._chunked else []
        if not (self.keep_alive or says_close):
            lines.append(CLOSE)
        lines.append(b"\r\n")
        self._head = b"".join(lines)
        if not start.get("whole"):
            self._write()

    def _send_body(self, message: Message) -> None:
        if message["type"] != "http.response.body":
            raise RuntimeError(f"{message['type']} within an answer")
        body, more = message.get("body", b""), message.get("more_body", False)
        if self._scope["method"] == "HEAD":
            body = b""
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self._left and not more):
                raise RuntimeError("the body of the answer differs from its declared length")
        if self._chunked:
            parts = [b"%x\r\n" % len(body), body, b"\r\n"] if body else []
            self._write(*parts, b"" if more else LAST_CHUNK)
        else:
            self._write(body)
        if not more:
            self._finish()

    def _write(self, *parts: bytes) -> None:
        if self._head:
            parts, self._head = (self._head, *parts), b""
        if any(parts):
            self._line.outlet.write(*parts)

    def _finish(self) -> None:
        self.answered = True
        self._body.clear()
        self._news.set()
        self._line.answered(self)
