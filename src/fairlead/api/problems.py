"""Errors as HTTP answers: RFC 9457 problems, from one table."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import uuid_utils

from fairlead import errors
from fairlead.log.events import EventLog, Fact
from fairlead.log.tracebacks import traceback_of

log = EventLog("fairlead.api")


class HttpProblem(errors.FairleadError):
    """Something is wrong with the request itself."""

    status = 400
    headers: tuple[tuple[str, str], ...] = ()


class NotFound(HttpProblem):
    """There is nothing at this address: /openapi.json lists all routes."""

    status, code = 404, "not_found"


class MethodNotAllowed(HttpProblem):
    """This address does not support the method: see the Allow header."""

    status, code = 405, "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__()
        self.headers = (("allow", allowed),)


class MalformedJson(HttpProblem):
    """The body is not JSON: send one value, in UTF-8."""

    status, code = 400, "malformed_json"


class NotJson(HttpProblem):
    """The body must be JSON: send it with Content-Type: application/json."""

    status, code = 415, "unsupported_media_type"


class BodyTooLarge(HttpProblem):
    """The body is too large: send less, or send a reference to it."""

    status, code = 413, "body_too_large"

    def __init__(self, most: int) -> None:
        size = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
        super().__init__(f"The body is larger than {size}: send less, or send a reference to it.")


class BodyTooSlow(HttpProblem):
    """The body did not arrive in time: send it faster."""

    status, code = 408, "request_timeout"


class Overloaded(HttpProblem):
    """This server holds too many large requests: retry in a second, or send less at once."""

    status, code = 503, "overloaded"
    headers = (("retry-after", "1"),)


class Unauthorized(HttpProblem):
    """A valid key is required: send Authorization: Bearer flk_...; `fairlead key create` creates one."""

    status, code = 401, "unauthorized"
    headers = (("www-authenticate", 'Bearer realm="fairlead"'),)


class TooManyFailures(HttpProblem):
    """Too many requests without a valid key came from this address: retry later, or send a valid key."""

    status, code = 429, "too_many_failures"

    def __init__(self, retry_after: float) -> None:
        super().__init__()
        self.headers = (("retry-after", whole_seconds(retry_after)),)


class TooManyConnections(HttpProblem):
    """This key has too many connections for live updates open: close some, or raise server.live_per_key."""

    status, code = 429, "too_many_connections"
    headers = (("retry-after", "5"),)

    def __init__(self, most: int) -> None:
        super().__init__(f"This key has {most} connections for live updates open: close some of them first.")


class TooManyWatched(HttpProblem):
    """This socket watches too many tasks: wait until some have ended, or open another one."""

    status, code = 429, "too_many_watched"

    def __init__(self, most: int) -> None:
        super().__init__(f"This socket watches {most} tasks: wait until some have ended, or open another.")


class Forbidden(HttpProblem):
    """This key may not do this: use one with the required scope."""

    status, code = 403, "forbidden"


class PriorityNotAllowed(HttpProblem):
    """This key may not use such a priority: ask for a lower one, or use another key."""

    status, code = 403, "priority_not_allowed"


class WrongHost(HttpProblem):
    """The Host header does not name this server: use the address it listens on, or set server.hosts."""

    status, code = 421, "wrong_host"


class ForeignOrigin(HttpProblem):
    """A page of another site sent this request: use the pages of this server, or set server.hosts."""

    status, code = 403, "foreign_origin"


class InvalidBody(HttpProblem):
    """Some fields are invalid."""

    status, code = 422, "invalid_input"

    def __init__(self, fields: list[tuple[str, str]], message: str | None = None) -> None:
        super().__init__(message or "; ".join(f"{field}: {words}" for field, words in fields))
        self.fields = fields


class NotReady(HttpProblem):
    """This server is not ready: `reasons` says why, and what to do."""

    status, code = 503, "not_ready"
    headers = (("retry-after", "1"),)

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(" ".join(reasons.values()))
        self.reasons = reasons

    @property
    def public_message(self) -> str:
        """The reasons may name addresses, folders and settings."""
        return "This server is not ready: send the key of an operator, or read its log, to see why."


#: The status of every other error. One that is not listed is internal: 500.
STATUS: dict[type[errors.FairleadError], int] = {
    errors.InvalidInput: 422,
    errors.IdempotencyConflict: 409,
    errors.UnknownTask: 404,
    errors.UnknownJob: 404,
    errors.UnknownPipeline: 422,
    errors.UnknownWorker: 404,
    errors.UnknownLimit: 404,
    errors.Fenced: 409,
    errors.LimitFull: 409,
    errors.AlreadyFinished: 409,
    errors.NotReplayable: 409,
    errors.StepOfJob: 409,
    errors.NotResumable: 409,
    errors.NotPurgeable: 409,
    errors.QueueFull: 429,
    errors.RateLimited: 429,
    errors.StoreFull: 507,
    errors.StoreUnavailable: 503,
    errors.StoreFault: 503,
}

RETRY_SECONDS = 1  # when the store does not answer
FULL_SECONDS = 5  # when the store is out of memory


@dataclass(frozen=True, slots=True)
class Problem:
    status: int
    body: dict[str, Any]
    headers: dict[str, str]

    def with_request_id(self, request_id: str) -> "Problem":
        return Problem(self.status, {**self.body, "request_id": request_id}, self.headers)


def problem_of(error: Exception, *, to_operator: bool = False) -> Problem:
    """Details for operators only (addresses, folders, what the store answered) are left out by default."""
    if isinstance(error, HttpProblem):
        return _problem(error.status, error, dict(error.headers), to_operator)
    if isinstance(error, errors.FairleadError):
        status = status_of(type(error)) if error.code != "too_large" else BodyTooLarge.status
        return _problem(status, error, _headers(status, error), to_operator)
    return _problem(500, errors.FairleadError("Internal error: see the log of the server."), {}, to_operator)


def logged_problem(event: str, error: Exception, *, to_operator: bool = False, **facts: Fact) -> Problem:
    """The problem to answer with. An internal error is logged, and both have the same id."""
    problem = problem_of(error, to_operator=to_operator)
    if problem.status < 500 or isinstance(error, errors.StoreUnavailable | HttpProblem):
        return problem
    request_id = str(uuid_utils.uuid7())
    log.error(event, request_id=request_id, traceback=traceback_of(error), **facts)
    return problem.with_request_id(request_id)


def status_of(kind: type[errors.FairleadError]) -> int:
    if issubclass(kind, HttpProblem):
        return kind.status
    return next((STATUS[base] for base in kind.__mro__ if base in STATUS), 500)


def _headers(status: int, error: errors.FairleadError) -> dict[str, str]:
    if isinstance(error, errors.StoreFull):
        return {"retry-after": str(FULL_SECONDS)}
    if status == 503:
        return {"retry-after": str(RETRY_SECONDS)}
    if isinstance(error, errors.QueueFull):
        return {"retry-after": str(max(1, round(error.retry_after or 1)))}
    if isinstance(error, errors.RateLimited):
        return {"retry-after": whole_seconds(error.retry_after)}
    return {}


def whole_seconds(seconds: float) -> str:
    """For Retry-After, rounded up: a client that waits this long is not early."""
    return str(max(1, math.ceil(seconds)))


def _problem(status: int, error: errors.FairleadError, headers: dict[str, str], to_operator: bool) -> Problem:
    body: dict[str, Any] = {
        "type": f"urn:fairlead:problem:{error.code}",
        "title": (type(error).__doc__ or error.code).partition(":")[0].strip().rstrip("."),
        "status": status,
        "detail": error.message if to_operator else error.public_message,
        "code": error.code,
    }
    if isinstance(error, errors.InvalidInput):
        body["errors"] = [{"field": error.field, "message": error.reason}]
    elif isinstance(error, InvalidBody):
        body["errors"] = [{"field": field, "message": words} for field, words in error.fields]
    elif isinstance(error, errors.UnknownPipeline):
        body["errors"] = [{"field": "feature_name", "message": error.message}]
    elif isinstance(error, NotReady):
        body["reasons"] = [
            {"code": code, "message": words if to_operator else error.public_message}
            for code, words in error.reasons.items()
        ]
    elif isinstance(error, errors.QueueFull):
        body["waiting"] = error.waiting
    return Problem(status, body, headers)
