"""Answers as bytes."""

import re
from functools import lru_cache
from http import HTTPStatus

import msgspec

from fairlead.api.problems import Problem, problem_of

NOT_IN_NAMES = re.compile(b'[\x00-\x1f\x7f()<>@,;:\\[\\]={} \t\\\\"]')
NOT_IN_VALUES = re.compile(b"[\x00-\x08\x0a-\x1f\x7f]")
PHRASES = {status.value: status.phrase.encode() for status in HTTPStatus}
STATUS_LINE = {
    number: b"HTTP/1.1 %d %b\r\n" % (number, PHRASES.get(number, b"")) for number in range(100, 600)
}
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
CLOSE = b"connection: close\r\n"
CHUNKED = b"transfer-encoding: chunked\r\n"
LAST_CHUNK = b"0\r\n\r\n"


@lru_cache(maxsize=1024)
def header_line(name: bytes, value: bytes) -> bytes:
    """Most answers have the same few headers: each is checked and written once."""
    if NOT_IN_NAMES.search(name) or NOT_IN_VALUES.search(value):
        raise RuntimeError(f"{name!r}: {value!r} is not a header")
    return b"%b: %b\r\n" % (name, value)


def refusal(error: Exception) -> bytes:
    return answer_of(problem_of(error))


def answer_of(problem: Problem) -> bytes:
    """An answer after which the connection is closed."""
    body = msgspec.json.encode(problem.body)
    headers = {
        "content-type": "application/problem+json",
        "content-length": str(len(body)),
        **problem.headers,
    }
    lines = [header_line(name.encode(), value.encode()) for name, value in headers.items()]
    return b"".join([STATUS_LINE[problem.status], *lines, CLOSE, b"\r\n", body])
