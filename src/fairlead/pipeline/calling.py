"""One call of a service over HTTP, bounded in time and in size, and what becomes of its step."""

import re
import secrets
from asyncio import timeout
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx
import msgspec

from fairlead import __version__
from fairlead.checks import MOST_BYTES, to_json
from fairlead.clock import monotonic
from fairlead.errors import InvalidInput, PermanentError, RetriableError
from fairlead.rules.http_retry import RETRIABLE_STATUS, retry_after_seconds
from fairlead.settings import ServiceSettings

CONNECT_SECONDS = 5.0
# Servers close what has been idle for 2 s or 5 s: a call must not be sent into a closing connection.
IDLE_SECONDS = 1.5
MOST_IDLE = 100  # connections
MOST_RETRY_AFTER = 3600.0  # seconds; a service that asks for more is called again after this
MOST_QUOTED = 300  # characters of an answer that says what went wrong
PLAIN = ("", "identity")
TOO_LARGE = (
    f"the service answered with more than {MOST_BYTES} bytes: let it answer with an address of the data"
)
TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRequest:
    """What a service is asked, and by which run of which step."""

    task_id: str
    fence: int
    attempt: int
    params: Mapping[str, Any]
    context: Mapping[str, Any]
    job_id: str | None = None
    step: int = 0
    trace_id: str | None = None
    traceparent: str | None = None  # of the span of this run

    def body(self, service: str) -> bytes:
        meta = {
            "job_id": self.job_id,
            "step_index": self.step,
            "service_name": service,
            "attempt": self.attempt,
        }
        return msgspec.json.encode(
            {"meta": meta, "payload": {"params": self.params, "context": self.context}}
        )

    def headers(self) -> dict[str, str]:
        headers = {
            "content-type": "application/json",
            "accept": "application/json",
            "accept-encoding": "identity",  # a small answer must not unpack to a large one
            "user-agent": f"fairlead/{__version__}",
            # The same for every try, so that the service can see that it has done this already...
            "idempotency-key": f"{self.job_id}:{self.step}" if self.job_id else self.task_id,
            # ...and larger for every try, so that it can refuse one that is late.
            "x-fairlead-fence": str(self.fence),
        }
        if traceparent := self.traceparent or self._traceparent():
            headers["traceparent"] = traceparent
        return headers

    def _traceparent(self) -> str | None:
        """Of no known span: only the trace was named."""
        if self.trace_id and TRACE_ID.fullmatch(self.trace_id):
            return f"00-{self.trace_id}-{secrets.token_hex(8)}-01"
        return None


@dataclass(frozen=True, slots=True)
class ServiceResponse:
    """A body that is larger than accepted is cut off after one byte too many or more."""

    status: int
    headers: Mapping[str, str]  # by names in small letters
    body: bytes = b""


Result = dict[str, Any]  # {"data": ..., "metrics": {...}}
ServiceError = RetriableError | PermanentError


class ServiceClient:
    """Calls of one service over its own connections: a service that hangs takes none from another."""

    def __init__(self, name: str, service: ServiceSettings) -> None:
        self._name = name
        self._service = service
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
            # no bound here: how many calls there are at once is the limit's to say, and it may be raised
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=min(service.limit, MOST_IDLE),
                keepalive_expiry=IDLE_SECONDS,
            ),
            follow_redirects=False,
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # one job's must not go to another
        )

    async def call(self, call: ServiceRequest) -> dict[str, Any]:
        """`{"data": ..., "metrics": {...}}`; RetriableError or PermanentError with a `code` otherwise."""
        began = monotonic()
        response: ServiceResponse | Exception
        try:
            async with timeout(self._service.timeout_seconds):
                response = await self._ask(call)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as problem:
            response = problem
        answer = classify(response, round((monotonic() - began) * 1000))
        if isinstance(answer, dict):
            return answer
        answer.facts = self._facts(response)
        raise answer from (response if isinstance(response, Exception) else None)

    def _facts(self, response: ServiceResponse | Exception) -> dict[str, str | int | None]:
        """For the log. The task's error, which customers read, has none of them."""
        where = httpx.URL(self._service.url)
        return {
            "service": self._name,
            "host": where.host + (f":{where.port}" if where.port else ""),
            "status": None if isinstance(response, Exception) else response.status,
            "cause": f"{type(response).__name__}: {response}" if isinstance(response, Exception) else None,
        }

    async def _ask(self, call: ServiceRequest) -> ServiceResponse:
        """Leaving the block closes the connection unless all of the answer was read: also when cancelled."""
        content, headers = call.body(self._name), call.headers()
        async with self._client.stream("POST", self._service.url, content=content, headers=headers) as answer:
            body = b""
            if not answer.has_redirect_location:  # where it leads does not matter here
                async for chunk in answer.aiter_raw():
                    body += chunk
                    if len(body) > MOST_BYTES:
                        break
            return ServiceResponse(answer.status_code, dict(answer.headers.items()), body)

    async def close(self) -> None:
        await self._client.aclose()


def classify(response: ServiceResponse | Exception, took_ms: int) -> Result | ServiceError:
    """The result of the step, or why it has none. `took_ms`: for a service that does not say it itself."""
    if isinstance(response, Exception):
        return _broken(response)
    if 200 <= response.status < 300:
        return _read(response, took_ms)
    if 300 <= response.status < 400:
        message = f"the service answered {response.status}: redirects are not followed, give its own address"
        return _failure(f"service_status_{response.status}", message)
    return _failure(
        f"service_status_{response.status}",
        f"the service answered {response.status}{_quoted(response)}",
        retriable=response.status in RETRIABLE_STATUS,
        retry_after=min(retry_after_seconds(response.headers), MOST_RETRY_AFTER),
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


def _read(response: ServiceResponse, took_ms: int) -> Result | ServiceError:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        return _bad(f"its Content-Type is {kind or 'missing'}, not application/json")
    if (encoding := response.headers.get("content-encoding", "").lower()) not in PLAIN:
        return _bad(f"its Content-Encoding is {encoding}, which was not asked for")
    if len(response.body) > MOST_BYTES:
        return _failure("service_answer_too_large", TOO_LARGE)
    try:
        said = msgspec.json.decode(response.body)
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


def _failure(code: str, message: str, *, retriable: bool = False, retry_after: float = 0.0) -> ServiceError:
    """`retry_after`: seconds, at least."""
    error = RetriableError(message, retry_after=retry_after) if retriable else PermanentError(message)
    error.code = code
    return error


def _quoted(response: ServiceResponse) -> str:
    """The body of the answer, if it is text."""
    words = " ".join(response.body[: 4 * MOST_QUOTED].decode(errors="replace").split())
    readable = "".join(letter for letter in words if letter.isprintable())[:MOST_QUOTED]
    return f": {readable}" if readable else ""
