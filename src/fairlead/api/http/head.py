"""The head of a request, and the check that its framing is unambiguous."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httptools

from fairlead.api.http.problems import MalformedRequest

Headers = list[tuple[bytes, bytes]]
Address = tuple[str, int] | None

#: Headers that decide how the connection is read. A proxy may pick the other one of two that contradict.
FRAMING = frozenset({b"host", b"content-length", b"transfer-encoding", b"expect", b"upgrade"})


@dataclass(slots=True)
class Head:
    method: str
    target: bytes
    version: str
    headers: Headers  # names are in lower case
    keep_alive: bool
    length: int = 0  # of the body, if declared
    chunked: bool = False
    expects_continue: bool = False
    upgrade: bytes = b""

    @property
    def is_websocket(self) -> bool:
        return self.upgrade == b"websocket" and self.method == "GET" and self.version == "1.1"


def check_head(head: Head) -> Head:
    """Reads the headers that decide the framing into the head. Raises MalformedRequest."""
    if head.version not in ("1.1", "1.0") or head.method == "CONNECT":
        raise MalformedRequest()
    framing = [header for header in head.headers if header[0] in FRAMING]
    names = [name for name, _ in framing]
    hosts = names.count(b"host")
    if hosts > 1 or (not hosts and head.version == "1.1"):
        raise MalformedRequest("A request of HTTP/1.1 has exactly one Host header: send one.")
    if names.count(b"content-length") + names.count(b"transfer-encoding") > 1:
        raise MalformedRequest("The length of the body is given twice: send one Content-Length, or chunks.")
    for name, value in framing:
        _read_framing(head, name, value)
    return head


def _read_framing(head: Head, name: bytes, value: bytes) -> None:
    if name == b"content-length":
        head.length = _length(value)
    elif name == b"transfer-encoding":
        head.chunked = value.strip().lower() == b"chunked" and head.version == "1.1"
        if not head.chunked:
            raise MalformedRequest("No Transfer-Encoding but chunked is known here, and only in HTTP/1.1.")
    elif name == b"expect":
        head.expects_continue = head.version == "1.1" and value.lower() == b"100-continue"
    elif name == b"upgrade":
        head.upgrade = value.lower()


def _length(value: bytes) -> int:
    if not (value.isdigit() and len(value) < 19):
        raise MalformedRequest("The Content-Length is not a number of bytes: send one.")
    return int(value)


def scope_of(head: Head, client: Address, server: Address) -> dict[str, Any]:
    """The ASGI scope. Raises MalformedRequest when the address is invalid."""
    try:
        url = httptools.parse_url(head.target)
        raw_path = url.path or b"/"
        path = raw_path.decode("ascii")
    except (httptools.HttpParserError, UnicodeDecodeError):
        raise MalformedRequest("The address is not a URL: percent-encode what is not ASCII.") from None
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": head.version,
        "server": server,
        "client": client,
        "scheme": "http",
        "root_path": "",
        "method": head.method,
        "path": unquote(path) if "%" in path else path,
        "raw_path": raw_path,
        "query_string": url.query or b"",
        "headers": head.headers,
    }
