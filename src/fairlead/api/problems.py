"""Errors as HTTP answers: RFC 9457 problems."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import uuid_utils
from msgspec import to_builtins

from fairlead import errors
from fairlead.log.events import EventLog, Fact
from fairlead.log.tracebacks import traceback_of
from fairlead.model.estimate import Estimate
from fairlead.shapes.estimate import EstimateAnswer

UNKNOWN_SECONDS = 60  # when no task ended in the last minute: there may be no worker

log = EventLog("fairlead.api")


class HttpProblem(errors.FairleadError):
    """Something is wrong with the request itself."""

    http_status = 400
    headers: tuple[tuple[str, str], ...] = ()


class NotFound(HttpProblem):
    """There is nothing at this address: /openapi.json lists all routes."""

    http_status, code = 404, "not_found"


class MethodNotAllowed(HttpProblem):
    """This address does not support the method: see the Allow header."""

    http_status, code = 405, "method_not_allowed"

    def __init__(self, allowed: str) -> None:
        super().__init__()
        self.headers = (("allow", allowed),)


class MalformedJson(HttpProblem):
    """The body is not JSON: send one value, in UTF-8."""

    http_status, code = 400, "malformed_json"


class NotJson(HttpProblem):
    """The body must be JSON: send it with Content-Type: application/json."""

    http_status, code = 415, "unsupported_media_type"


class BodyTooLarge(HttpProblem):
    """The body is too large: send less, or send a reference to it."""

    http_status, code = 413, "body_too_large"

    def __init__(self, most: int) -> None:
        size = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
        super().__init__(f"The body is larger than {size}: send less, or send a reference to it.")


class BodyTooSlow(HttpProblem):
    """The body did not arrive in time: send it faster."""

    http_status, code = 408, "request_timeout"


class Overloaded(HttpProblem):
    """This server holds too many large requests: retry in a second, or send less at once."""

    http_status, code = 503, "overloaded"
    retry_after = 1.0


class SimulationRunning(HttpProblem):
    """This server runs another simulation: retry when it has ended, in some seconds at most."""

    http_status, code = 429, "simulation_running"
    retry_after = 1.0


class SimulationFailed(HttpProblem):
    """The simulation took too much time or memory: choose a shorter time."""

    http_status, code = 503, "simulation_failed"


class Unauthorized(HttpProblem):
    """A valid key is required: send Authorization: Bearer flk_...; `fairlead key create` creates one."""

    http_status, code = 401, "unauthorized"
    headers = (("www-authenticate", 'Bearer realm="fairlead"'),)


class CsrfTokenMissing(HttpProblem):
    """A browser's session may change nothing without the token: send it as X-CSRF-Token."""

    http_status, code = 403, "csrf_token_missing"


class TooManyFailures(HttpProblem):
    """Too many requests without a valid key came from this address: retry later, or send a valid key."""

    http_status, code = 429, "too_many_failures"


class TooManyConnections(HttpProblem):
    """This key has too many connections for live updates open: close some, or raise server.live_per_key."""

    http_status, code = 429, "too_many_connections"
    retry_after = 5.0

    def __init__(self, most: int) -> None:
        super().__init__(f"This key has {most} connections for live updates open: close some of them first.")


class TooManyWatched(HttpProblem):
    """This socket watches too many tasks: wait until some have ended, or open another one."""

    http_status, code = 429, "too_many_watched"

    def __init__(self, most: int) -> None:
        super().__init__(f"This socket watches {most} tasks: wait until some have ended, or open another.")


class Forbidden(HttpProblem):
    """This key may not do this: use one with the required scope."""

    http_status, code = 403, "forbidden"


class PriorityNotAllowed(HttpProblem):
    """This key may not use such a priority: ask for a lower one, or use another key."""

    http_status, code = 403, "priority_not_allowed"


class WrongHost(HttpProblem):
    """The Host header does not name this server: use the address it listens on, or set server.hosts."""

    http_status, code = 421, "wrong_host"


class ForeignOrigin(HttpProblem):
    """A page of another site sent this request: use the pages of this server, or set server.hosts."""

    http_status, code = 403, "foreign_origin"


class InvalidBody(errors.InvalidInput):
    """Some fields are invalid."""


class NotReady(HttpProblem):
    """This server is not ready: `reasons` says why, and what to do."""

    http_status, code = 503, "not_ready"
    retry_after = 1.0

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__(" ".join(reasons.values()))
        self.reasons = reasons

    @property
    def public_message(self) -> str:
        """The reasons may name addresses, folders and settings."""
        return "This server is not ready: send the key of an operator, or read its log, to see why."


# What the HTTP server itself refuses, before or instead of the application


class MalformedRequest(HttpProblem):
    """This is not HTTP/1.1: check the request line, the headers and the length of the body."""

    http_status, code = 400, "malformed_request"


class HeadTooLarge(HttpProblem):
    """The address and the headers are larger than 64 KiB: send less in them."""

    http_status, code = 431, "head_too_large"


class BadHandshake(HttpProblem):
    """This is not a WebSocket handshake: see RFC 6455, section 4.1."""

    http_status, code = 400, "bad_handshake"


class ServerFull(HttpProblem):
    """This server has reached its limit of connections: connect again in a moment."""

    http_status, code = 503, "server_full"
    retry_after = 1.0

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This server has reached its limit of {most} connections: connect again in a moment."
        )


class HandshakeTimeout(HttpProblem):
    """The handshake was not answered in time: the store is unavailable, or many wait. Retry in a second."""

    http_status, code = 503, "handshake_timeout"
    retry_after = 1.0


class ServerStops(HttpProblem):
    """This server is stopping: connect again, to another one or later."""

    http_status, code = 503, "server_stops"
    retry_after = 1.0


@dataclass(frozen=True, slots=True)
class Problem:
    status: int
    body: dict[str, Any]
    headers: dict[str, str]


def problem_of(error: Exception, *, to_operator: bool = False) -> Problem:
    """Details for operators only (addresses, folders, what the store answered) are left out by default."""
    if not isinstance(error, errors.FairleadError):
        error = errors.FairleadError("Internal error: see the log of the server.")
    status = BodyTooLarge.http_status if error.code == "too_large" else error.http_status
    body: dict[str, Any] = {
        "type": f"urn:fairlead:problem:{error.code}",
        "title": (type(error).__doc__ or error.code).partition(":")[0].strip().rstrip("."),
        "status": status,
        "detail": error.message if to_operator else error.public_message,
        "code": error.code,
    }
    if isinstance(error, errors.InvalidInput):
        body["errors"] = [{"field": error.field, "message": error.reason}]
    elif isinstance(error, errors.UnknownPipeline):
        body["errors"] = [{"field": "feature_name", "message": error.message}]
    elif isinstance(error, NotReady):
        body["reasons"] = [
            {"code": code, "message": words if to_operator else error.public_message}
            for code, words in error.reasons.items()
        ]
    elif isinstance(error, errors.QueueFull):
        body |= {"waiting": error.waiting, "retry_after_seconds": error.retry_after}
    elif isinstance(error, errors.WaitTooLong):
        estimate = Estimate(error.p50_seconds, error.p90_seconds, error.at)
        body["estimate"] = to_builtins(EstimateAnswer.from_value(estimate))
        body["retry_after_seconds"] = error.retry_after
    return Problem(status, body, _headers(error))


def _headers(error: errors.FairleadError) -> dict[str, str]:
    headers = dict(error.headers) if isinstance(error, HttpProblem) else {}
    if isinstance(error, errors.QueueFull):  # an estimate, if there is one
        seconds = UNKNOWN_SECONDS if error.retry_after is None else error.retry_after
        headers["retry-after"] = str(max(1, round(seconds)))
    elif error.retry_after is not None:  # rounded up: a client that waits this long is not early
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after)))
    return headers


def logged_problem(event: str, error: Exception, *, to_operator: bool = False, **facts: Fact) -> Problem:
    """The problem to answer with. An internal error is logged, and both have the same id."""
    problem = problem_of(error, to_operator=to_operator)
    known = errors.StoreUnavailable | errors.BlobStoreUnavailable | HttpProblem
    if problem.status < 500 or isinstance(error, known):
        return problem
    request_id = str(uuid_utils.uuid7())
    log.error(event, request_id=request_id, traceback=traceback_of(error), **facts)
    problem.body["request_id"] = request_id
    return problem
