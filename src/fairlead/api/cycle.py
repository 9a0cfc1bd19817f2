"""One request and its answer as uvicorn plays them, but an answer that is whole leaves in one write."""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

LINGER_SECONDS = 1.0


@lru_cache(maxsize=1024)
def header_line(name: bytes, value: bytes) -> bytes:
    """Most answers have the same few: each is checked and written once."""
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise RuntimeError(f"{name!r}: {value!r} is not a header")
    return b"%b: %b\r\n" % (name, value)


class Cycle(RequestResponseCycle):
    """The start of an answer may say `whole`: the body follows at once and complete, its length is among the
    headers, and none of them is of the connection. Then both go together, for two writes are two system calls
    and two packets. It may also bring `on_lost`, which is called when the client has certainly not received
    all of the answer. Whatever else is sent is uvicorn's business.
    """

    on_lost: Callable[[], None] | None = None  # for a whole answer whose loss matters to its sender
    _start: Any = None  # of a whole answer, whose body has not come yet

    async def send(self, message: Any) -> None:
        if self._start is not None:
            start, self._start = self._start, None
            await self._send_whole(start, message["body"])
        elif "whole" in message and not self.response_started:
            self._start = message
        else:
            await super().send(message)

    async def _send_whole(self, start: Any, body: bytes) -> None:
        self.on_lost = start.get("on_lost")
        lines = [STATUS_LINE[start["status"]]]
        lines += [header_line(name, value) for name, value in start["headers"]]
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()  # the reader has not taken the answers before this one
        if self.transport.is_closing():  # what is written now would be dropped
            self.disconnected = True
        if self.disconnected:
            if self.on_lost:
                self.on_lost()
            return
        lines.append(b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n")
        head = b"".join(lines)
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.transport.writelines([head] if self.scope["method"] == "HEAD" else [head, body])
        self.message_event.set()
        if not self.keep_alive:
            self._close()
        self.on_response()

    def _close(self) -> None:
        """When it matters whether the answer was received, the client may close first, which tells."""
        if self.on_lost:
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self.transport.close)
        else:
            self.transport.close()
