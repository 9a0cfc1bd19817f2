"""The handshake of a WebSocket, whose head was read as HTTP."""

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.types import Message
from websockets.datastructures import Headers
from websockets.http11 import Request
from websockets.server import ServerProtocol

from fairlead.api.http.head import Head
from fairlead.api.http.problems import BadHandshake
from fairlead.api.http.wire import CLOSE, STATUS_LINE, header_line


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
