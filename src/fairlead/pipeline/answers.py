"""What a service answered, or why it did not: a pure function from what came to what becomes of the step."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import msgspec

from fairlead.checks import MOST_BYTES, to_json
from fairlead.errors import InvalidInput, PermanentError, RetriableError
from fairlead.rules.http_retry import RETRIABLE_STATUS, retry_after_seconds

MOST_RETRY_AFTER = 3600.0  # seconds; a service that asks for more is called again after this
MOST_QUOTED = 300  # characters of an answer that says what went wrong
PLAIN = ("", "identity")
TOO_LARGE = (
    f"the service answered with more than {MOST_BYTES} bytes: let it answer with an address of the data"
)


@dataclass(frozen=True, slots=True)
class Heard:
    """What came: with a body of more than is accepted, one that was cut off after that."""

    status: int
    headers: Mapping[str, str]  # by names in small letters
    body: bytes = b""


Result = dict[str, Any]  # {"data": ..., "metrics": {...}}
ServiceError = RetriableError | PermanentError


def _failure(code: str, message: str, *, retriable: bool = False, retry_after: float = 0.0) -> ServiceError:
    """`retry_after`: seconds, at least."""
    error = RetriableError(message, retry_after=retry_after) if retriable else PermanentError(message)
    error.code = code
    return error


def classify(heard: Heard | Exception, took_ms: int) -> Result | ServiceError:
    """`took_ms`: how long the call took, for a service that does not say it itself."""
    if isinstance(heard, Exception):
        return _broken(heard)
    if 200 <= heard.status < 300:
        return _read(heard, took_ms)
    if 300 <= heard.status < 400:
        message = f"the service answered {heard.status}: redirects are not followed, give its own address"
        return _failure(f"service_status_{heard.status}", message)
    return _failure(
        f"service_status_{heard.status}",
        f"the service answered {heard.status}{_quoted(heard)}",
        retriable=heard.status in RETRIABLE_STATUS,
        retry_after=min(retry_after_seconds(heard.headers), MOST_RETRY_AFTER),
    )


def _broken(problem: Exception) -> ServiceError:
    """What the exception says stays out: it may name addresses inside of the operator's network."""
    if isinstance(problem, httpx.ConnectError | httpx.ConnectTimeout):
        return _failure("service_unreachable", "the service cannot be reached", retriable=True)
    if isinstance(problem, TimeoutError | httpx.TimeoutException):
        return _failure("service_timeout", "the service did not answer in time", retriable=True)
    if isinstance(problem, httpx.TransportError | OSError):
        message = "the connection broke before the service had answered"
        return _failure("service_connection_lost", message, retriable=True)
    return _failure("service_bad_url", "the service cannot be called: its URL is not usable")


def _read(heard: Heard, took_ms: int) -> Result | ServiceError:
    kind = heard.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return _bad(f"its Content-Type is {kind or 'missing'}, not application/json")
    if (encoding := heard.headers.get("content-encoding", "").lower()) not in PLAIN:
        return _bad(f"its Content-Encoding is {encoding}, which was not asked for")
    if len(heard.body) > MOST_BYTES:
        return _failure("service_answer_too_large", TOO_LARGE)
    try:
        said = msgspec.json.decode(heard.body)
    except (ValueError, RecursionError) as problem:
        return _bad(f"it is not JSON: {problem}")
    if not isinstance(said, dict) or "data" not in said:
        return _bad("it is not an object with `data`")
    metrics = {} if said.get("metrics") is None else said["metrics"]
    if not isinstance(metrics, dict):
        return _bad("its `metrics` are not an object")
    result = {"data": said["data"], "metrics": {"execution_time_ms": took_ms, **metrics}}
    try:
        to_json("answer", result)
    except InvalidInput as problem:  # what the store would refuse is better said here
        if problem.code == "too_large":
            return _failure("service_answer_too_large", TOO_LARGE)
        return _bad(problem.message)
    return result


def _bad(why: str) -> ServiceError:
    return _failure(
        "service_bad_answer", f'expected {{"data": ..., "metrics": {{...}}}} from the service, but {why}'
    )


def _quoted(heard: Heard) -> str:
    """The body of the answer, if it is text."""
    words = " ".join(heard.body[: 4 * MOST_QUOTED].decode(errors="replace").split())
    readable = "".join(letter for letter in words if letter.isprintable())[:MOST_QUOTED]
    return f": {readable}" if readable else ""
