"""What becomes of a job whose service misbehaves, line by line: over HTTP, by a real server that calls it."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from tests.api.serving import Gateway
from tests.pipeline.gateway_client import JOBS, GatewayClient, client_to, gateway_with, held_port
from tests.pipeline.servers import (
    GOOD,
    RawService,
    Reply,
    Request,
    breaks_off,
    breaks_off_between_chunks,
    closes,
    drips,
    floods,
    gibberish,
    hangs,
    raw_service,
    resets,
    says,
)
from tests.servers import Server
from tests.store.namespace import events
from tests.waiting import wait_until

ATTEMPTS = 2
SETTINGS = """
[retry]
base_seconds = 0.001
max_seconds = 0.002
[services.ai]
url = "http://127.0.0.1:{port}/v1/execute"
timeout_seconds = 30
max_attempts = {attempts}
[services.hasty]
url = "http://127.0.0.1:{port}/v1/execute"
timeout_seconds = 2
max_attempts = {attempts}
[services.nowhere]
url = "http://127.0.0.1:{nobody}/"
max_attempts = {attempts}
[pipelines]
ask = ["ai"]
hurry = ["hasty"]
lost = ["nowhere"]
"""


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.fixture(scope="module")
def gateway(
    start_server: Callable[[str], Server], tmp_path_factory: pytest.TempPathFactory, port: int
) -> Iterator[Gateway]:
    engine, folder = start_server("valkey").url, tmp_path_factory.mktemp("matrix")
    with held_port() as nobody:
        settings = SETTINGS.format(port=port, nobody=nobody, attempts=ATTEMPTS)
        with gateway_with(engine, folder, settings) as gateway:
            yield gateway


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[GatewayClient]:
    async with client_to(gateway) as client:
        yield client


@pytest.fixture
async def service(port: int) -> AsyncIterator[RawService]:
    async with raw_service(says(GOOD), port) as made:
        yield made


def status(line: str, **headers: str) -> Reply:
    return says({"detail": "no"}, line, **headers)


TOO_LATE = {"hangs": (hangs, "service_timeout"), "drips": (drips, "service_timeout")}
TRIED_AGAIN = {
    "resets": (resets, "service_connection_lost"),
    "closes": (closes, "service_connection_lost"),
    "half an answer": (breaks_off, "service_connection_lost"),
    "half in chunks": (breaks_off_between_chunks, "service_connection_lost"),
    "no HTTP": (gibberish, "service_connection_lost"),
    "408": (status("408 Request Timeout"), "service_status_408"),
    "425": (status("425 Too Early"), "service_status_425"),
    "429": (status("429 Too Many Requests"), "service_status_429"),
    "502": (status("502 Bad Gateway"), "service_status_502"),
    "503": (status("503 Service Unavailable"), "service_status_503"),
    "504": (status("504 Gateway Timeout"), "service_status_504"),
}
FAILED_AT_ONCE = {
    "500": (status("500 Internal Server Error"), "service_status_500"),
    "501": (status("501 Not Implemented"), "service_status_501"),
    "400": (status("400 Bad Request"), "service_status_400"),
    "404": (status("404 Not Found"), "service_status_404"),
    "422": (status("422 Unprocessable"), "service_status_422"),
    "302": (status("302 Found", location="http://127.0.0.1:1/"), "service_status_302"),
    "wrong JSON": (says('{"data": '), "service_bad_answer"),
    "no data": (says({"result": 1}), "service_bad_answer"),
    "HTML": (says("<html>", content_type="text/html"), "service_bad_answer"),
    "50 MB": (floods, "service_answer_too_large"),
}


async def resume(client: GatewayClient, job_id: str, *, force: bool = False) -> tuple[int, str | None]:
    answer = await client.api.post(f"{JOBS}/{job_id}/resume", params={"force": force} if force else {})
    return answer.status_code, answer.json().get("code")


async def fails(client: GatewayClient, feature: str, code: str, attempts: int, *, retryable: bool) -> str:
    job_id: str = (await client.submit(feature))["job_id"]
    job = await client.ended(job_id)
    assert job["status"] == "FAILED"
    error = job["error"]
    assert (error["code"], error["retryable"], error["step"]) == (code, retryable, 0), error
    assert job["context"] == {f"step_0_{job['steps'][0]['name']}__attempts": attempts}
    return job_id


async def succeeds(client: GatewayClient, job_id: str) -> None:
    job = await client.ended(job_id)
    assert (job["status"], job["error"]) == ("COMPLETED", None)
    assert job["context"][f"step_0_{job['steps'][0]['name']}__attempts"] == 1


@pytest.mark.parametrize(
    ("reply", "code"), [*TOO_LATE.values(), *TRIED_AGAIN.values()], ids=[*TOO_LATE, *TRIED_AGAIN]
)
async def test_is_tried_again_and_resumed_when_the_attempts_are_used_up(
    client: GatewayClient, service: RawService, reply: Reply, code: str
) -> None:
    service.reply = reply
    feature = "hurry" if code == "service_timeout" else "ask"
    job_id = await fails(client, feature, code, ATTEMPTS, retryable=True)
    service.reply = says(GOOD)
    assert await resume(client, job_id) == (200, None)
    await succeeds(client, job_id)
    assert [request.body["meta"]["attempt"] for request in service.requests] == [1, 2, 1]


@pytest.mark.parametrize(("reply", "code"), TRIED_AGAIN.values(), ids=TRIED_AGAIN.keys())
async def test_is_forgotten_when_the_next_attempt_succeeds(
    client: GatewayClient, service: RawService, reply: Reply, code: str
) -> None:
    replies = iter([reply, says(GOOD)])

    async def first_badly_then_well(request: Request, writer: asyncio.StreamWriter) -> None:
        await next(replies)(request, writer)

    service.reply = first_badly_then_well
    job = await client.ended((await client.submit("ask"))["job_id"])
    assert (job["status"], job["error"]) == ("COMPLETED", None), code
    assert job["context"] == {"step_0_ai": {"status": "SUCCESS", **GOOD}, "step_0_ai__attempts": 2}


@pytest.mark.parametrize(("reply", "code"), FAILED_AT_ONCE.values(), ids=FAILED_AT_ONCE.keys())
async def test_fails_at_once(client: GatewayClient, service: RawService, reply: Reply, code: str) -> None:
    """For good; once it is repaired, the job is resumed by force."""
    service.reply = reply
    job_id = await fails(client, "ask", code, 1, retryable=False)
    assert len(service.requests) == 1
    assert await resume(client, job_id) == (409, "not_resumable")
    service.reply = says(GOOD)
    assert await resume(client, job_id, force=True) == (200, None)
    await succeeds(client, job_id)


async def test_nobody_at_the_address_is_tried_again(client: GatewayClient) -> None:
    await fails(client, "lost", "service_unreachable", ATTEMPTS, retryable=True)


@pytest.mark.parametrize("line", ["503 Service Unavailable", "429 Too Many Requests"])
async def test_retry_after_is_waited_for(client: GatewayClient, service: RawService, line: str) -> None:
    service.reply = status(line, retry_after="0.7")
    job_id = (await client.submit("ask"))["job_id"]
    (step,) = (await client.ended(job_id))["steps"]
    history = [
        (event["act"], event["to"], event["at"]) for event in await events(client.store, step["task_id"])
    ]
    assert [act for act, _, _ in history] == ["submit", "claim", "fail", "promote", "claim", "fail"]
    assert history[2][1] == "delayed"
    assert history[4][2] - history[2][2] >= 700, (
        "ms of the store's clock, between the failure and the next start"
    )


async def test_no_free_slot_in_time_can_be_resumed(client: GatewayClient, service: RawService) -> None:
    limit = "/api/v1/limits/service:ai"
    assert (await client.api.put(limit, json={"limit": 0})).is_success
    job_id = (await client.submit("ask", max_wait_seconds=3))["job_id"]
    error = (await client.ended(job_id))["error"]
    assert (error["code"], error["retryable"]) == ("RESOURCE_EXHAUSTED", True)
    assert (await client.api.put(limit, json={"limit": 1})).is_success
    assert await resume(client, job_id) == (200, None)
    assert (await client.ended(job_id))["status"] == "COMPLETED"
    assert await resume(client, job_id) == (409, "not_resumable")


async def test_a_cancelled_job_cannot_be_resumed(client: GatewayClient, service: RawService) -> None:
    service.reply = hangs
    job_id = (await client.submit("ask"))["job_id"]
    await wait_until(lambda: service.requests)
    assert (await client.api.delete(f"{JOBS}/{job_id}")).is_success
    assert await resume(client, job_id) == (409, "not_resumable")
