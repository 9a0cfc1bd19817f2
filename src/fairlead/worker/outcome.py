"""How a run ended, as it is reported to the store: pure functions from what happened to what is reported."""

from enum import StrEnum
from typing import Any

from fairlead.checks import MOST_SECONDS
from fairlead.errors import (
    BlobTooLarge,
    FairleadError,
    InvalidInput,
    NotInteractive,
    PermanentError,
    RetriableError,
    UnknownBlob,
)
from fairlead.log.tracebacks import is_of_others, readable, traceback_of
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.task import Task
from fairlead.rules.http_retry import RETRIABLE_STATUS, retry_after_seconds

DEADLINE = (
    "DEADLINE"  # the code of a run that did not end within its tier; another try would get no more time
)
MOST_WORDS = 4000  # characters of a message that are kept


class Stop(StrEnum):
    """Why a run is stopped from outside."""

    TIMEOUT = "timeout"
    DEADLINE = "deadline"  # of its tier, and the grace after it
    CANCELLED = "cancelled"
    DRAINED = "drained"  # the worker leaves: another one runs it
    LOST = "lost"  # its lease is over, or about to be


# A grant alone: it is given back, unrun and without penalty, or stopped because it was cancelled.
Report = Completed | Failed | Grant


class HandlerDied(Exception):
    """The process that ran the handler ended."""


class FailedElsewhere(Exception):
    """The handler raised in another process, which has made the report."""

    def __init__(self, report: dict[str, Any]) -> None:
        super().__init__(report["message"])
        self.report = Failed(**report)


def stopped(task: Task, why: Stop, by: BaseException | None = None) -> Report:
    """What to report of a run that was stopped; `by`: with this, whose traceback says where it was.

    One that is lost is given back as well: if the store was only away for a while, the lease is still ours,
    and the heartbeat would keep prolonging it for no run. If it is not ours any more, the fence shows it.
    """
    if why is Stop.TIMEOUT:
        message = f"it ran longer than its timeout of {task.timeout_ms / 1000:g} s"
        return Failed(task.task_id, task.fence, "timeout", message, traceback=_traceback(by))
    if why is Stop.DEADLINE:
        message = "it ran longer than its tier allows"
        return Failed(task.task_id, task.fence, DEADLINE, message, retriable=False, traceback=_traceback(by))
    return Grant(task.task_id, task.fence)


def failed(task: Task, problem: BaseException) -> Failed:
    """A handler raised: is it worth another try, and when?"""
    while isinstance(problem, BaseExceptionGroup) and len(problem.exceptions) == 1:
        problem = problem.exceptions[0]  # a task group wraps what one of its tasks raised
    if isinstance(problem, FailedElsewhere):
        return problem.report
    if isinstance(problem, HandlerDied):
        return Failed(task.task_id, task.fence, "handler_died", str(problem), crashed=True)
    return Failed(
        task.task_id,
        task.fence,
        code=_code(problem),
        message=_words(problem),
        retriable=_is_retriable(problem),
        retry_after_ms=_retry_after_ms(problem),
        traceback=_traceback(problem),
    )


def bad_result(task_id: str, fence: int | None, problem: FairleadError) -> Failed:
    """What the handler returned cannot be kept; another try would give the same."""
    return Failed(
        task_id, fence, "bad_result", f"what the handler returned cannot be kept: {problem}", retriable=False
    )


def _traceback(problem: BaseException | None) -> str:
    """None of an error that Fairlead itself has raised: it says all that there is to say."""
    if isinstance(problem, FailedElsewhere):
        return problem.report.traceback
    if problem is None or not is_of_others(problem):
        return ""
    return traceback_of(problem)


def _code(problem: BaseException) -> str:
    if isinstance(problem, FairleadError):
        return str(problem.code)
    return type(problem).__name__


def _words(problem: BaseException) -> str:
    if isinstance(problem, SystemExit):
        return f"the handler called sys.exit({problem.code!r})"
    try:
        words = str(problem)
    except Exception:  # whatever a handler raises, its run ends and is reported
        words = ""
    return readable(words[:MOST_WORDS]) or type(problem).__name__


def _is_retriable(problem: BaseException) -> bool:
    if isinstance(problem, PermanentError | InvalidInput | NotInteractive | UnknownBlob | BlobTooLarge):
        return False
    status = _http_status(problem)
    return status is None or status in RETRIABLE_STATUS


def _http_status(problem: BaseException) -> int | None:
    """Of the error of an HTTP client (httpx, requests, aiohttp, urllib), whatever its class."""
    response = getattr(problem, "response", None)
    for holder, name in ((response, "status_code"), (problem, "status")):
        status = getattr(holder, name, None)
        if isinstance(status, int) and 400 <= status < 600:
            return status
    return None


def _retry_after_ms(problem: BaseException) -> int:
    try:
        asked = problem.retry_after if isinstance(problem, RetriableError) else _header_seconds(problem)
        return round(min(max(0.0, float(asked or 0)), MOST_SECONDS) * 1000)
    except (AttributeError, TypeError, ValueError):  # not there, or nonsense: the usual pause
        return 0


def _header_seconds(problem: BaseException) -> float:
    answer: Any = getattr(problem, "response", problem)
    return retry_after_seconds(dict(answer.headers.items()))
