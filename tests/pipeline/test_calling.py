"""One call of a service, against a real server that misbehaves in every way."""

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.errors import PermanentError, RetriableError
from fairlead.pipeline import calling
from fairlead.pipeline.calling import ServiceClient, ServiceRequest
from fairlead.settings import ServiceSettings
from tests.pages import Page, all_blocks
from tests.pipeline.servers import (
    GOOD,
    RawService,
    Reply,
    Request,
    breaks_off,
    breaks_off_between_chunks,
    closes,
    drips,
    gibberish,
    hangs,
    raw_service,
    resets,
    says,
)
from tests.waiting import wait_until

FIFTY_MB = 50 * 1024 * 1024


@contextlib.asynccontextmanager
async def client(url: str, timeout: float = 15) -> AsyncIterator[ServiceClient]:
    made = ServiceClient("enhancer", ServiceSettings(url=url, limit=2, timeout_seconds=timeout))
    try:
        yield made
    finally:
        await made.close()


def a_call(**facts: Any) -> ServiceRequest:
    usual: dict[str, Any] = {
        "task_id": "01900000-0000-7000-8000-000000000001",
        "fence": 17,
        "attempt": 2,
        "job_id": "01900000-0000-7000-8000-00000000000a",
        "step": 1,
        "params": {"prompt": "a city"},
        "context": {"step_0_x": {"status": "SUCCESS", "data": 1, "metrics": {}}},
    }
    return ServiceRequest(**{**usual, **facts})


def test_the_page_shows_what_a_service_receives() -> None:
    (block,) = [one for one in all_blocks(Page("docs/pipelines.md").text) if one.kind == "json"]
    shown = json.loads(block.text)
    meta, payload = shown["meta"], shown["payload"]
    facts = {"job_id": meta["job_id"], "step": meta["step_index"], "attempt": meta["attempt"], **payload}
    assert json.loads(a_call(**facts).body(meta["service_name"])) == shown


async def refusal(service: RawService, reply: Reply, timeout: float = 15) -> RetriableError | PermanentError:
    service.reply = reply
    async with client(service.url, timeout) as calls:
        with pytest.raises((RetriableError, PermanentError)) as caught:
            await calls.call(a_call())
    assert len(service.requests) == 1  # it does not retry by itself
    problem = caught.value
    assert isinstance(problem, RetriableError | PermanentError)
    return problem


async def test_a_service_is_called_as_the_contract_says(service: RawService) -> None:
    async with client(service.url) as calls:
        assert await calls.call(a_call(trace_id="4bf92f3577b34da6a3ce929d0e0e4736")) == GOOD
    (request,) = service.requests
    assert request.line == "POST /v1/execute?model=small HTTP/1.1"
    assert request.body == {
        "meta": {
            "job_id": "01900000-0000-7000-8000-00000000000a",
            "step_index": 1,
            "service_name": "enhancer",
            "attempt": 2,
        },
        "payload": {
            "params": {"prompt": "a city"},
            "context": {"step_0_x": {"status": "SUCCESS", "data": 1, "metrics": {}}},
        },
    }
    headers = request.headers
    assert headers["content-type"] == "application/json"
    assert headers["idempotency-key"] == "01900000-0000-7000-8000-00000000000a:1"
    assert headers["x-fairlead-fence"] == "17"
    assert headers["accept-encoding"] == "identity"
    assert re.fullmatch("00-4bf92f3577b34da6a3ce929d0e0e4736-[0-9a-f]{16}-01", headers["traceparent"])


@pytest.mark.parametrize("trace_id", [None, "", "mine", "0" * 32, "A" * 32, "a\r\nx: y"])
async def test_a_trace_id_that_is_not_standard_is_not_sent_as_one(
    trace_id: str | None, service: RawService
) -> None:
    async with client(service.url) as calls:
        await calls.call(a_call(trace_id=trace_id))
    assert "traceparent" not in service.requests[0].headers


async def test_a_call_outside_of_a_job_is_known_by_its_task(service: RawService) -> None:
    async with client(service.url) as calls:
        await calls.call(a_call(job_id=None, step=0))
    assert service.requests[0].headers["idempotency-key"] == "01900000-0000-7000-8000-000000000001"
    assert service.requests[0].body["meta"]["job_id"] is None


async def test_a_service_that_does_not_say_how_long_it_took_is_timed(service: RawService) -> None:
    service.reply = says({"data": None})
    async with client(service.url) as calls:
        answer = await calls.call(a_call())
    assert answer["data"] is None
    assert answer["metrics"].keys() == {"execution_time_ms"}
    assert isinstance(answer["metrics"]["execution_time_ms"], int)


@pytest.fixture
def kept_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes from one call to the next."""
    monkeypatch.setattr(calling, "IDLE_SECONDS", 60)


@pytest.mark.usefixtures("kept_connections")
async def test_calls_one_after_the_other_share_a_connection(service: RawService) -> None:
    async with client(service.url) as calls:
        for _ in range(3):
            await calls.call(a_call())
    assert [request.connection for request in service.requests] == [1, 1, 1]


@pytest.mark.usefixtures("kept_connections")
async def test_an_error_leaves_the_connection_usable(service: RawService) -> None:
    async with client(service.url) as calls:
        service.reply = says("busy", "503 Service Unavailable")
        with pytest.raises(RetriableError):
            await calls.call(a_call())
        service.reply = says(GOOD)
        assert await calls.call(a_call()) == GOOD
    assert [request.connection for request in service.requests] == [1, 1]


async def test_more_calls_than_the_limit_at_the_start_need_not_wait_for_each_other(
    service: RawService,
) -> None:
    """An operator may have raised the limit since."""
    proceed = asyncio.Event()

    async def waits(request: Request, writer: asyncio.StreamWriter) -> None:
        await proceed.wait()
        await says(GOOD)(request, writer)

    service.reply = waits
    async with client(service.url) as calls:
        under_way = [asyncio.create_task(calls.call(a_call())) for _ in range(5)]
        await wait_until(lambda: len(service.requests) == 5)
        proceed.set()
        assert await asyncio.gather(*under_way) == [GOOD] * 5


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (resets, "service_connection_lost"),
        (closes, "service_connection_lost"),
        (gibberish, "service_connection_lost"),
        (breaks_off, "service_connection_lost"),
        (breaks_off_between_chunks, "service_connection_lost"),
        (says("busy", "503 Service Unavailable"), "service_status_503"),
        (says("", "429 Too Many Requests"), "service_status_429"),
    ],
)
async def test_a_temporary_problem_is_retriable(reply: Reply, code: str, service: RawService) -> None:
    problem = await refusal(service, reply)
    assert isinstance(problem, RetriableError)
    assert problem.code == code


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (says("{", "200 OK"), "service_bad_answer"),
        (says(["data"]), "service_bad_answer"),
        (says({"result": 1}), "service_bad_answer"),
        (says("<html>", content_type="text/html"), "service_bad_answer"),
        (says(GOOD, content_type=""), "service_bad_answer"),
        (says(b"\x1f\x8b", content_encoding="gzip"), "service_bad_answer"),
        (says("oops", "500 Internal Server Error"), "service_status_500"),
        (says({"detail": "no prompt"}, "422 Unprocessable"), "service_status_422"),
    ],
)
async def test_a_lasting_problem_fails_for_good(reply: Reply, code: str, service: RawService) -> None:
    problem = await refusal(service, reply)
    assert isinstance(problem, PermanentError)
    assert problem.code == code


async def test_the_detail_of_an_error_of_the_service_is_passed_on(service: RawService) -> None:
    problem = await refusal(service, says({"detail": "no prompt"}, "422 Unprocessable"))
    assert str(problem) == 'the service answered 422: {"detail":"no prompt"}'


async def test_retry_after_is_honoured(service: RawService) -> None:
    problem = await refusal(service, says("busy", "503 Service Unavailable", retry_after="7"))
    assert isinstance(problem, RetriableError)
    assert problem.retry_after == 7


@pytest.mark.parametrize("reply", [hangs, drips])
async def test_the_whole_call_has_one_time_limit(reply: Reply, service: RawService) -> None:
    async with asyncio.timeout(20):
        problem = await refusal(service, reply, timeout=2)
    assert isinstance(problem, RetriableError)
    assert problem.code == "service_timeout"
    await wait_until(lambda: service.gone == 1, because="the connection is closed")


async def test_an_answer_that_is_too_large_is_not_read_to_its_end(service: RawService) -> None:
    written = 0

    async def floods(_: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {FIFTY_MB}\r\n\r\n"
        writer.write(head.encode())
        while written < FIFTY_MB:
            writer.write(b" " * 65536)
            await writer.drain()
            written += 65536

    problem = await refusal(service, floods)
    assert isinstance(problem, PermanentError)
    assert problem.code == "service_answer_too_large"
    await wait_until(lambda: service.gone == 1, because="the connection is closed")
    assert written < FIFTY_MB


@pytest.mark.parametrize(
    "status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"]
)
async def test_a_redirect_is_not_followed_and_its_body_is_not_kept(status: str, service: RawService) -> None:
    async with raw_service(says(GOOD)) as elsewhere:
        problem = await refusal(service, says("secret", status, location=elsewhere.url))
        assert elsewhere.connections == 0
    assert isinstance(problem, PermanentError)
    assert problem.code == f"service_status_{status[:3]}"
    assert "secret" not in str(problem) and elsewhere.url not in str(problem)


async def test_a_refused_connection_is_retriable() -> None:
    async with client("http://127.0.0.1:1/") as calls:
        with pytest.raises(RetriableError) as caught:
            await calls.call(a_call())
    assert caught.value.code == "service_unreachable"


async def test_the_wait_for_a_connection_that_is_not_accepted_is_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calling, "CONNECT_SECONDS", 0.2)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, backlog=1)
    address = server.sockets[0].getsockname()
    server.get_loop().remove_reader(server.sockets[0].fileno())  # it listens, but accepts no connection
    taken = [await _half_open(address) for _ in range(4)]  # until its line is full
    try:
        async with client(f"http://{address[0]}:{address[1]}/") as calls, asyncio.timeout(20):
            with pytest.raises(RetriableError) as caught:
                await calls.call(a_call())
        assert caught.value.code == "service_unreachable"
    finally:
        for task in taken:
            task.cancel()
        await asyncio.gather(*taken, return_exceptions=True)
        server.close()


async def _half_open(address: tuple[str, int]) -> "asyncio.Task[Any]":
    task = asyncio.create_task(asyncio.open_connection(*address))
    await asyncio.wait({task}, timeout=0.1)
    return task


async def test_a_call_that_is_cancelled_closes_its_connection_at_once(service: RawService) -> None:
    service.reply = hangs
    async with client(service.url, timeout=600) as calls:
        under_way = asyncio.create_task(calls.call(a_call()))
        await wait_until(lambda: service.requests)
        under_way.cancel()
        with pytest.raises(asyncio.CancelledError):
            await under_way
        await wait_until(lambda: service.gone == 1, because="the connection is closed")
        service.reply = says(GOOD)
        assert await calls.call(a_call()) == GOOD


async def test_cookies_of_one_call_are_not_sent_with_another(service: RawService) -> None:
    service.reply = says(GOOD, set_cookie="session=ann; Path=/")
    async with client(service.url) as calls:
        await calls.call(a_call())
        await calls.call(a_call())
    assert ["cookie" in request.headers for request in service.requests] == [False, False]


async def test_a_proxy_of_the_environment_is_ignored(
    service: RawService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with client(service.url) as calls:
        assert await calls.call(a_call()) == GOOD
