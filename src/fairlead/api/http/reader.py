"""Reads requests one after the other from the bytes of a connection, never beyond the end of one.

The framing of each is checked to be unambiguous.
"""

from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import httptools

from fairlead.api.problems import HeadTooLarge, HttpProblem, MalformedRequest

Headers = list[tuple[bytes, bytes]]
Address = tuple[str, int] | None

#: Headers that decide how the connection is read. A proxy may pick the other one of two that contradict.
FRAMING = frozenset({b"host", b"content-length", b"transfer-encoding", b"expect", b"upgrade"})

# Bytes of the address and all headers; also of what a chunked body may have between two chunks.
MOST_HEAD = 64 * 1024
MOST_HEADERS = 256
STEP = 8 * 1024  # bytes passed to the parser at once where the end of a message is unknown
BODY_STEP = 64 * 1024  # where it is known
BLANK_LINE = b"\r\n\r\n"


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


class RequestReader:
    """`at = reader.read(data, at)`, then see `head`, `pieces` and `ended`; `next()` begins another request.

    The parser cannot be stopped within its input, and would process thousands of pipelined requests at once.
    So its input never goes beyond the next place where a message can end: the end of a body of known length,
    or an empty line, with which every head and every chunked body ends.
    """

    def __init__(self) -> None:
        self.next()
        self._parser = self._new_parser()

    def next(self) -> None:
        self.head: Head | None = None  # once it is complete
        self.pieces: list[bytes] = []  # of the body, until they are taken
        self.ended = False
        self._begun = False
        self._url = b""
        self._headers: Headers = []
        self._left = 0  # of a body of known length
        self._seen = 0  # bytes of the head; of a chunked body, since its last piece
        self._tail = b""  # the last bytes that were read: an empty line may come in parts

    def _new_parser(self) -> httptools.HttpRequestParser:
        return httptools.HttpRequestParser(self)

    def close(self) -> None:
        """The parser refers to this reader: without this, only the garbage collector would free both."""
        del self._parser

    @property
    def has_begun(self) -> bool:
        return self._begun or self._seen > 0

    def read(self, data: bytes, at: int) -> int:
        """Reads some of the data from `at` on; returns where it stopped. Raises HttpProblem."""
        if not self._begun and data[at] in b"\r\n":  # empty lines may precede a request
            begin = len(data) - len(data[at:].lstrip(b"\r\n"))
            self._count(begin - at)
            return begin
        end = self._next_stop(data, at)
        if self._left:
            self._left -= end - at
        else:
            self._count(end - at)
            self._tail = (self._tail + data[max(at, end - 3) : end])[-3:]
        self._parse(data if end - at == len(data) else memoryview(data)[at:end])
        return end

    def _next_stop(self, data: bytes, at: int) -> int:
        if self._left:
            return min(len(data), at + min(self._left, BODY_STEP))
        if self._tail:
            seam = self._tail + data[at : at + 3]
            if (found := seam.find(BLANK_LINE)) >= 0:
                return at + found + 4 - len(self._tail)
        end = min(len(data), at + STEP)
        found = data.find(BLANK_LINE, at, end)
        return end if found < 0 else found + 4

    def _count(self, size: int) -> None:
        self._seen += size
        if self._seen > MOST_HEAD:
            if self.head is None:
                raise HeadTooLarge()
            raise HeadTooLarge("The chunk extensions or trailers are larger than 64 KiB: send less in them.")

    def _parse(self, data: bytes | memoryview) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            if self.head and not self.head.is_websocket:
                self._read_again(self.head)
        except httptools.HttpParserError as error:
            problem = error.__context__
            raise problem if isinstance(problem, HttpProblem) else MalformedRequest() from None

    def _read_again(self, head: Head) -> None:
        """Without the Upgrade header, which is not followed: the parser would skip the body."""
        self.next()
        self._parser = self._new_parser()
        lines = [b"%b: %b\r\n" % header for header in head.headers if header[0] != b"upgrade"]
        start = b"%b %b HTTP/%b\r\n" % (head.method.encode(), head.target, head.version.encode())
        self._parse(b"".join([start, *lines, b"\r\n"]))

    # What the parser calls

    def on_message_begin(self) -> None:
        if self._begun:  # the previous one ended elsewhere than expected
            raise MalformedRequest()
        self._begun = True

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.head is not None:
            return  # a trailer, which nobody uses
        if len(self._headers) >= MOST_HEADERS:
            raise HeadTooLarge(f"There are more than {MOST_HEADERS} headers: send fewer.")
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        version = parser.get_http_version()
        keep_alive = version != "1.0" and parser.should_keep_alive()
        head = Head(parser.get_method().decode("ascii"), self._url, version, self._headers, keep_alive)
        self.head = check_head(head)
        if not parser.should_upgrade():
            head.upgrade = b""  # named, but not requested by Connection
        self._left = head.length
        self._seen = 0

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)
        self._seen = 0

    def on_message_complete(self) -> None:
        self.ended = True
