"""Requests are read from bytes however these are cut, one after the other, and never without a bound."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.http.reader import MOST_HEAD, MOST_HEADERS, RequestReader
from fairlead.api.problems import HeadTooLarge, MalformedRequest

GET = b"GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n"
SIZED = b"POST /sized HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nGET / \r\n\r\n!"
CHUNKED_HEAD = b"POST /chunked HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"4;x=y\r\n\r\n\r\n\r\n3\r\nabc\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\n"
EMPTY = CHUNKED_HEAD + b"0\r\n\r\n"
DECLINED = (
    b"POST /h2c HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n\r\nabc"
)
KINDS = {GET: b"", SIZED: b"GET / \r\n\r\n!", CHUNKED: b"\r\n\r\nabc", EMPTY: b"", DECLINED: b"abc"}


@dataclass
class Request:
    target: bytes
    body: bytes = b""


class Client:
    """Reads as a connection does, and checks that no read goes beyond the end of a request."""

    def __init__(self) -> None:
        self.reader = RequestReader()
        self.requests: list[Request] = []

    def feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            begun = self.reader.head is not None
            at = self.reader.read(data, at)
            if self.reader.head and not begun:
                self.requests.append(Request(self.reader.head.target))
            if self.reader.pieces:
                self.requests[-1].body += b"".join(self.reader.pieces)
                self.reader.pieces = []
            if self.reader.ended:
                self.reader.next()


@given(
    st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5),
    st.lists(st.integers(0, 600), max_size=20),
    st.sampled_from([b"", b"\r\n", b"\r\n\r\n\r\n"]),
)
def test_requests_are_the_same_however_they_are_cut(
    kinds: list[bytes], cuts: list[int], between: bytes
) -> None:
    sent = b"".join(between + kind for kind in kinds)
    client = Client()
    edges = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    for begin, end in pairwise(edges):
        client.feed(sent[begin:end])
    targets = [kind.split(b" ")[1] for kind in kinds]
    assert [request.target for request in client.requests] == targets
    assert [request.body for request in client.requests] == [KINDS[kind] for kind in kinds]


def test_a_request_is_read_to_its_end_and_not_beyond() -> None:
    sent = GET * 100
    reader = RequestReader()
    at = reader.read(sent, 0)
    assert reader.ended and at == len(GET)


def endless(start: bytes, piece: bytes) -> int:
    """How many bytes of an endless rest are taken until it is refused."""
    client = Client()
    client.feed(start)
    taken = 0
    with pytest.raises(HeadTooLarge):
        while taken < 4 * MOST_HEAD:
            client.feed(piece)
            taken += len(piece)
    return taken


def test_input_that_never_ends_is_refused(subtests: pytest.Subtests) -> None:
    for start, piece in [
        (b"", b"\r\n" * 500),
        (b"GET /", b"a" * 1000),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: ", b"x" * 1000),
        (b"GET / HTTP/1.1\r\nHost: a\r\n", b"X-%b: y\r\n" % (b"x" * 990)),
        (CHUNKED_HEAD + b"0\r\n", b"Trailer-%b: y\r\n" % (b"x" * 990)),
        (CHUNKED_HEAD + b"0\r\nTrailer: ", b"x" * 1000),
        (CHUNKED_HEAD + b"3\r\nabc\r\n0\r\n", b"a:\r\n" * 250),
        (CHUNKED_HEAD + b"3;", b"x" * 1000),
        (CHUNKED_HEAD + b"3;x=", b"y" * 1000),
        (CHUNKED_HEAD, b"0" * 1000),
    ]:
        with subtests.test(start=start, piece=piece):
            assert endless(start, piece) <= MOST_HEAD + 8 * 1024


def test_headers_are_counted() -> None:
    with pytest.raises(HeadTooLarge, match="256 headers"):
        Client().feed(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"a: b\r\n" * MOST_HEADERS + b"\r\n")


def test_chunks_may_have_framing_for_each_piece() -> None:
    client = Client()
    client.feed(CHUNKED_HEAD + b"1;some=thing\r\nx\r\n" * 10_000 + b"0\r\n\r\n")
    assert client.requests[0].body == b"x" * 10_000


def test_an_ambiguous_request_is_refused(subtests: pytest.Subtests) -> None:
    for head in [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
        b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\nHost: a\n\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x00b\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n",
    ]:
        with subtests.test(head=head), pytest.raises(MalformedRequest):
            Client().feed(head)
