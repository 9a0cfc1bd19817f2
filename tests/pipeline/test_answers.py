"""What becomes of a step, from what its service answered: one table."""

from typing import Any

import httpx
import msgspec
import pytest

from fairlead.checks import MOST_BYTES
from fairlead.errors import PermanentError, RetriableError
from fairlead.pipeline.calling import MOST_RETRY_AFTER, ServiceError, ServiceResponse, classify
from fairlead.rules.http_retry import retry_after_seconds

JSON = {"content-type": "application/json"}
DATE = "Sun, 15 Nov 2026 12:00:00 GMT"


def response(body: Any, status: int = 200, **headers: str) -> ServiceResponse:
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return ServiceResponse(
        status, JSON | {name.replace("_", "-"): value for name, value in headers.items()}, content
    )


def failure(what: ServiceResponse | Exception) -> ServiceError:
    found = classify(what, 12)
    assert not isinstance(found, dict)
    return found


def test_an_answer_is_data_and_metrics(subtests: pytest.Subtests) -> None:
    for body, answer in [
        (
            {"data": {"a": 1}, "metrics": {"tokens": 3}},
            {"data": {"a": 1}, "metrics": {"execution_time_ms": 12, "tokens": 3}},
        ),
        ({"data": 1, "metrics": {"execution_time_ms": 9}}, {"data": 1, "metrics": {"execution_time_ms": 9}}),
        ({"data": None}, {"data": None, "metrics": {"execution_time_ms": 12}}),
        ({"data": [], "metrics": None}, {"data": [], "metrics": {"execution_time_ms": 12}}),
        ({"data": "x", "status": "SUCCESS", "more": 1}, {"data": "x", "metrics": {"execution_time_ms": 12}}),
    ]:
        with subtests.test(body=body, answer=answer):
            assert classify(response(body), 12) == answer


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", "Application/JSON", "application/x+json"]
)
def test_content_types_of_json(kind: str) -> None:
    assert isinstance(classify(response({"data": 1}, content_type=kind), 0), dict)


def test_a_status_that_may_pass_is_worth_another_try(subtests: pytest.Subtests) -> None:
    for status in [408, 425, 429, 502, 503, 504]:
        with subtests.test(status=status):
            found = failure(response({}, status))
            assert (found.code, isinstance(found, RetriableError)) == (f"service_status_{status}", True)
            assert isinstance(found, RetriableError)


def test_every_other_status_fails_for_good(subtests: pytest.Subtests) -> None:
    for status in [
        100,
        199,
        300,
        301,
        302,
        304,
        307,
        308,
        400,
        401,
        403,
        404,
        405,
        409,
        410,
        413,
        422,
        451,
        500,
        501,
        505,
        507,
        599,
    ]:
        with subtests.test(status=status):
            found = failure(response({}, status, retry_after="5"))
            assert (found.code, isinstance(found, RetriableError)) == (f"service_status_{status}", False)
            assert isinstance(found, PermanentError)


def test_trouble_on_the_way_is_worth_another_try(subtests: pytest.Subtests) -> None:
    for problem, code in [
        (httpx.ConnectError("Connect call failed ('10.1.2.3', 80)"), "service_unreachable"),
        (httpx.ConnectTimeout("slow"), "service_unreachable"),
        (TimeoutError(), "service_timeout"),
        (httpx.ReadTimeout("slow"), "service_timeout"),
        (httpx.ReadError("reset"), "service_connection_lost"),
        (httpx.WriteError("reset"), "service_connection_lost"),
        (httpx.RemoteProtocolError("half"), "service_connection_lost"),
        (ConnectionResetError("reset"), "service_connection_lost"),
    ]:
        with subtests.test(problem=problem, code=code):
            found = failure(problem)
            assert (found.code, isinstance(found, RetriableError)) == (code, True)
            # it may name an address, and customers read it
            assert not str(problem) or str(problem) not in found.message


def test_an_address_that_cannot_be_called_fails_for_good() -> None:
    message = "the service cannot be called: its URL is not usable"
    found = failure(httpx.InvalidURL("http://10.1.2.3:x"))
    assert isinstance(found, PermanentError)
    assert (found.code, found.message) == ("service_bad_url", message)


def test_an_invalid_answer_fails_for_good(subtests: pytest.Subtests) -> None:
    for what, says in [
        (response(b""), "not JSON"),
        (response(b"{"), "not JSON"),
        (response(b'{"data": NaN}'), "not JSON"),
        (response(b'{"data": "\xff"}'), "not JSON"),
        (response(b"[" * 100_000), "not JSON"),
        (response(b'{"data": ' + b"[" * 40 + b"]" * 40 + b"}"), "nested more than 32 deep"),
        (response([]), "not an object with `data`"),
        (response("data"), "not an object with `data`"),
        (response({}), "not an object with `data`"),
        (response({"metrics": {}}), "not an object with `data`"),
        (response({"data": 1, "metrics": [1]}), "`metrics` are not an object"),
        (response({"data": 1}, content_type="text/plain"), "Content-Type is text/plain"),
        (response({"data": 1}, content_type=""), "Content-Type is missing"),
        (response({"data": 1}, content_encoding="gzip"), "Content-Encoding is gzip"),
    ]:
        with subtests.test(what=what, says=says):
            found = failure(what)
            assert (found.code, isinstance(found, RetriableError)) == ("service_bad_answer", False)
            assert says in found.message


def test_an_answer_may_be_as_large_as_a_result() -> None:
    room = MOST_BYTES - len(msgspec.json.encode({"data": "", "metrics": {"execution_time_ms": 12}}))
    assert isinstance(classify(response({"data": "x" * room}), 12), dict)
    for size in (room + 1, MOST_BYTES):  # the second one is larger by itself, the first with its metrics
        found = failure(response({"data": "x" * size}))
        assert (found.code, isinstance(found, RetriableError)) == ("service_answer_too_large", False)


def test_retry_after_is_seconds_or_a_date_and_has_a_bound(subtests: pytest.Subtests) -> None:
    for headers, seconds in [
        ({"retry_after": "7"}, 7),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after": "-3"}, 0),
        ({"retry_after": "soon"}, 0),
        ({"retry_after": "nan"}, 0),
        ({"retry_after": "999999999"}, MOST_RETRY_AFTER),
        ({"retry_after": "inf"}, MOST_RETRY_AFTER),
        ({"retry_after": "Sun, 15 Nov 2026 12:01:30 GMT", "date": DATE}, 90),
        ({"retry_after": "Sun, 15 Nov 2026 11:00:00 GMT", "date": DATE}, 0),
        ({"retry_after": "Sun, 15 Nov 2099 12:00:00 GMT", "date": DATE}, MOST_RETRY_AFTER),
        ({"retry_after": "Sun, 15 Nov 2026 12:01:30 GMT"}, 0),
        ({"retry_after": "Sun, 15 Nov 2026 12:01:30", "date": DATE}, 0),
        ({}, 0),
    ]:
        with subtests.test(headers=headers, seconds=seconds):
            found = failure(response({}, 503, **headers))
            assert isinstance(found, RetriableError)
            assert found.retry_after == seconds


def test_the_name_of_a_header_may_be_in_any_letters() -> None:
    assert retry_after_seconds({"Retry-After": "3"}) == 3


def test_only_the_beginning_of_an_error_is_quoted_and_on_one_line() -> None:
    found = failure(response(b"line one\r\n\x1b[31mline two\x00 " + b"x" * 9999, 500))
    assert found.message.startswith("the service answered 500: line one [31mline two xxx")
    assert len(found.message) < 400 and found.message.isprintable()


def test_an_error_carries_the_code_of_the_failure() -> None:
    assert failure(response({}, 503)).code == "service_status_503"
    assert (RetriableError.code, PermanentError.code) == ("retriable_error", "permanent_error")
