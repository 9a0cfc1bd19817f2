"""The report of a run, by how it ended."""

import dataclasses
import email.message
import io
import urllib.error
from typing import Any

import pytest

from fairlead.checks import MOST_SECONDS
from fairlead.errors import InvalidInput, PermanentError, RetriableError
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed, Failed, Grant
from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.worker.handler import Handler
from fairlead.worker.outcome import (
    FailedElsewhere,
    HandlerDied,
    Stop,
    bad_result,
    failed,
    stopped,
)
from tests.pipeline.tasks import report_by

TASK = Task(
    task_id="018f0000-0000-7000-8000-000000000000",
    task_type="draw",
    status=State.EXECUTING,
    priority=Priority.MEDIUM,
    effective_priority=Priority.MEDIUM,
    parameters={},
    created_at=0,
    timeout_ms=1500,
    max_retries=3,
    fence=7,
)


class NoInk(PermanentError):
    """There is no ink."""

    code = "no_ink"


class Busy(RetriableError):
    code = "busy"


class Response:
    """Of httpx or requests: the error carries the response."""

    def __init__(self, status_code: int, headers: dict[str, str] | None = None) -> None:
        self.status_code = status_code
        self.headers = headers or {}


class ResponseCarried(Exception):
    def __init__(self, status_code: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"status {status_code}")
        self.response = Response(status_code, headers)


class StatusCarried(Exception):
    """Of aiohttp: the error carries the status and the headers itself."""

    def __init__(self, status: int, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.headers = headers


def of_urllib(status: int, headers: dict[str, str] | None = None) -> urllib.error.HTTPError:
    message = email.message.Message()
    for name, value in (headers or {}).items():
        message[name] = value
    return urllib.error.HTTPError("http://there", status, f"status {status}", message, io.BytesIO())


HTTP_CLIENTS = [ResponseCarried, StatusCarried, of_urllib]


async def test_the_returned_value_is_the_result() -> None:
    async def draw() -> dict[str, int]:
        return {"a": 1}

    report = await report_by({"draw": Handler("draw", draw, "loop")}, TASK)
    assert report == Completed(TASK.task_id, 7, {"a": 1})


def test_the_exception_decides_whether_it_is_retried(subtests: pytest.Subtests) -> None:
    for problem, code, message, retriable in [
        (ValueError("no such colour"), "ValueError", "no such colour", True),
        (ValueError(), "ValueError", "ValueError", True),
        (ConnectionError("refused"), "ConnectionError", "refused", True),
        (PermanentError("broken"), "permanent_error", "broken", False),
        (NoInk(), "no_ink", "There is no ink.", False),
        (RetriableError("later"), "retriable_error", "later", True),
        (Busy("later"), "busy", "later", True),
        (InvalidInput("colour", "is not a colour"), "invalid_input", "colour: is not a colour", False),
        (SystemExit(3), "SystemExit", "the handler called sys.exit(3)", True),
        (KeyboardInterrupt(), "KeyboardInterrupt", "KeyboardInterrupt", True),
    ]:
        with subtests.test(problem=problem, code=code, message=message, retriable=retriable):
            report = failed(TASK, problem)
            assert (report.code, report.message, report.retriable) == (code, message, retriable)
            assert (report.task_id, report.fence, report.crashed, report.retry_after_ms) == (
                TASK.task_id,
                7,
                False,
                0,
            )


def test_an_error_of_an_http_client_is_judged_by_its_status(subtests: pytest.Subtests) -> None:
    for error in HTTP_CLIENTS:
        for status, retriable in [
            *((status, True) for status in (408, 425, 429, 502, 503, 504)),
            *((status, False) for status in (400, 401, 403, 404, 409, 422, 500, 501)),
        ]:
            with subtests.test(error=error, status=status, retriable=retriable):
                assert failed(TASK, error(status)).retriable is retriable


def test_a_status_that_is_not_of_an_error_decides_nothing() -> None:
    for status in (0, 200, 399, 600):
        assert failed(TASK, StatusCarried(status)).retriable is True


def test_retry_after_is_honoured(subtests: pytest.Subtests) -> None:
    for error in HTTP_CLIENTS:
        for headers, ms in [
            ({"Retry-After": "12"}, 12_000),
            ({"retry-after": "0.5"}, 500),
            ({"Retry-After": "-3"}, 0),
            ({"Retry-After": "nan"}, 0),
            ({"Retry-After": "inf"}, MOST_SECONDS * 1000),
            ({"Retry-After": "soon"}, 0),
            (
                {"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT", "Date": "Wed, 21 Oct 2015 07:28:00 GMT"},
                30_000,
            ),
            ({"Retry-After": "Wed, 21 Oct 2015 07:28:30 GMT"}, 0),
            ({}, 0),
        ]:
            with subtests.test(error=error, headers=headers, ms=ms):
                assert failed(TASK, error(503, headers)).retry_after_ms == ms


@pytest.mark.parametrize(
    ("retry_after", "ms"),
    [(None, 0), (2.5, 2500), (-1, 0), (float("inf"), MOST_SECONDS * 1000), (float("nan"), 0), ("soon", 0)],
)
def test_our_own_errors_say_when_to_retry(retry_after: Any, ms: int) -> None:
    assert failed(TASK, RetriableError("later", retry_after=retry_after)).retry_after_ms == ms


def test_an_error_that_has_no_answer_is_tried_again() -> None:
    problem = ResponseCarried(404)
    problem.response = None  # type: ignore[assignment]  # as requests does when nobody answered
    assert failed(TASK, problem).retriable


def test_every_exception_can_be_reported() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    class Numbered(PermanentError):
        code = 17  # type: ignore[assignment]

    assert failed(TASK, Mute()).message == "Mute"
    assert failed(TASK, Numbered("n")).code == "17"
    assert failed(TASK, ValueError("\ud800")).message == "?"
    assert len(failed(TASK, ValueError("x" * 10_000_000)).message) == 4000


def test_a_dead_process_is_a_crash_and_not_a_failure() -> None:
    report = failed(TASK, HandlerDied("the process that ran it was killed by SIGKILL"))
    assert (report.code, report.crashed) == ("handler_died", True)


def test_the_report_of_another_process_is_passed_on() -> None:
    report = Failed(TASK.task_id, 7, "no_ink", "m", retriable=False, jitter=5)
    elsewhere = FailedElsewhere(dataclasses.asdict(report))
    assert failed(TASK, elsewhere) == report
    assert str(elsewhere) == report.message


def test_a_task_group_does_not_hide_what_its_one_task_raised() -> None:
    wrapped = ExceptionGroup("unhandled errors in a TaskGroup", [NoInk()])
    assert failed(TASK, ExceptionGroup("outer", [wrapped])).code == "no_ink"
    several = failed(TASK, ExceptionGroup("two", [NoInk(), ValueError()]))
    assert (several.code, several.retriable) == ("ExceptionGroup", True)


def test_a_result_that_cannot_be_kept_is_not_tried_again() -> None:
    report = bad_result(TASK.task_id, 7, InvalidInput("result", "set is not JSON"))
    assert (report.code, report.retriable) == ("bad_result", False)
    assert report.message == "what the handler returned cannot be kept: result: set is not JSON"


def test_a_stopped_run_is_reported_by_why_it_was_stopped() -> None:
    timed_out = stopped(TASK, Stop.TIMEOUT)
    assert isinstance(timed_out, Failed)
    assert (timed_out.code, timed_out.retriable) == ("timeout", True)
    assert timed_out.message == "it ran longer than its timeout of 1.5 s"
    assert stopped(TASK, Stop.CANCELLED) == stopped(TASK, Stop.DRAINED) == Grant(TASK.task_id, 7)
    assert stopped(TASK, Stop.LOST) == Grant(TASK.task_id, 7), "refused, unless the lease is still ours"
