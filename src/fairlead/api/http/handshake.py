"""Handshakes of WebSockets, whose heads were read as HTTP, and the queue that bounds how many run at once."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from starlette.types import Message
from websockets.datastructures import Headers
from websockets.http11 import Request
from websockets.server import ServerProtocol

from fairlead.api.http.reader import Head
from fairlead.api.http.wire import CLOSE, STATUS_LINE, header_line
from fairlead.api.problems import BadHandshake

MOST_UNDER_WAY = 8  # in a process; each costs as much as several plain requests


def agreed(head: Head) -> Headers:
    """The headers of the answer that accepts this handshake. Raises BadHandshake."""
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in head.headers])
    answer = ServerProtocol().accept(Request(head.target.decode("ascii"), headers))
    if answer.status_code != 101:
        words = bytes(answer.body or b"").decode().strip()
        raise BadHandshake(f"{words} See RFC 6455, section 4.1.")
    del answer.headers["Date"]
    return answer.headers


def acceptance(headers: Headers) -> Iterable[bytes]:
    """The answer to a handshake that the application accepts."""
    yield STATUS_LINE[101]
    for name, value in headers.raw_items():
        yield header_line(name.lower().encode(), value.encode())
    yield b"\r\n"


def refusal_head(message: Message) -> Iterable[bytes]:
    """The head of the answer that the application starts with this message instead of accepting."""
    yield STATUS_LINE[message["status"]]
    for name, value in message.get("headers", ()):
        yield header_line(name, value)
    yield CLOSE
    yield b"\r\n"


def socket_scope(scope: Mapping[str, Any]) -> dict[str, Any]:
    """The ASGI scope of a WebSocket, from that of its request."""
    return {
        **{name: value for name, value in scope.items() if name != "method"},
        "type": "websocket",
        "scheme": "ws",
        "extensions": {"websocket.http.response": {}},
    }


class Handshake(Protocol):
    def start(self) -> None: ...


class HandshakeQueue:
    """First in, first out. Plain requests do not wait here."""

    def __init__(self) -> None:
        self._under_way: set[Handshake] = set()
        self._waiting: OrderedDict[Handshake, None] = OrderedDict()

    def join(self, handshake: Handshake) -> None:
        if len(self._under_way) < MOST_UNDER_WAY:
            self._under_way.add(handshake)
            handshake.start()
        else:
            self._waiting[handshake] = None

    def leave(self, handshake: Handshake) -> None:
        """It was answered, or its client has disconnected, perhaps before its turn."""
        self._waiting.pop(handshake, None)
        if handshake not in self._under_way:
            return
        self._under_way.discard(handshake)
        if self._waiting:
            following, _ = self._waiting.popitem(last=False)
            self._under_way.add(following)
            # not at once: many clients that have disconnected would make one long turn of the event loop
            asyncio.get_running_loop().call_soon(following.start)
