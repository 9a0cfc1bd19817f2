"""What may happen to a job between its steps and during one, over HTTP; and where its priority comes from."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from tests.api.listening import receive, receive_all, socket, types
from tests.api.serving import Gateway
from tests.pipeline.gateway_client import JOBS, GatewayClient, client_to, gateway_with, held_port
from tests.pipeline.servers import GOOD, RawService, Request, hangs, raw_service, says
from tests.servers import Server
from tests.waiting import wait_until

SETTINGS = """
[promotion]
low_to_medium_seconds = 5
medium_to_high_seconds = 3600
[services.first]
url = "http://127.0.0.1:{port}/v1/execute"
[services.second]
url = "http://127.0.0.1:{port}/v1/execute"
[pipelines]
both = ["first", "second"]
[priority_service]
url = "http://127.0.0.1:{priorities}/users/{{user_id}}/priority"
fallback = "low"
timeout_seconds = 30
"""


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    with held_port() as port, held_port() as priorities:
        yield {"port": port, "priorities": priorities}


@pytest.fixture(scope="module")
def gateway(
    start_server: Callable[[str], Server], tmp_path_factory: pytest.TempPathFactory, ports: dict[str, int]
) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("between")
    with gateway_with(start_server("valkey").url, folder, SETTINGS.format(**ports)) as gateway:
        yield gateway


@pytest.fixture
async def client(gateway: Gateway) -> AsyncIterator[GatewayClient]:
    async with client_to(gateway) as client:
        yield client


@pytest.fixture
async def service(ports: dict[str, int]) -> AsyncIterator[RawService]:
    async with raw_service(says(GOOD), ports["port"]) as made:
        yield made


async def pause(client: GatewayClient, service: str, paused: bool) -> None:
    answer = await client.api.put(f"/api/v1/limits/service:{service}", json={"limit": 0 if paused else 1})
    assert answer.is_success, answer.text


@pytest.fixture
async def between_steps(client: GatewayClient, service: RawService) -> AsyncIterator[dict[str, Any]]:
    """A job whose first step is done and whose second finds no room."""
    await pause(client, "second", True)
    submitted = await client.submit("both")

    async def waits() -> bool:
        return bool((await client.job(submitted["job_id"]))["current_step_index"] == 1)

    await wait_until(waits)
    yield submitted
    await pause(client, "second", False)


async def test_without_the_priority_service_jobs_are_accepted_with_the_fallback(
    client: GatewayClient, service: RawService, ports: dict[str, int]
) -> None:
    submitted = await client.submit("both", user_id="ann")
    assert submitted["priority"] == "low"
    assert (await client.ended(submitted["job_id"]))["status"] == "COMPLETED"
    async with raw_service(says({"priority": "high"}), ports["priorities"]) as priorities:
        paying = await client.submit("both", user_id="ann")
        modest = await client.submit("both", user_id="ann", priority="medium")
    assert (paying["priority"], modest["priority"]) == ("high", "medium")
    for one in (paying, modest):
        assert (await client.ended(one["job_id"]))["status"] == "COMPLETED"
    assert [request.line for request in priorities.requests] == ["GET /users/ann/priority HTTP/1.1"]


async def test_a_job_is_promoted_while_it_waits_between_two_steps(
    client: GatewayClient, service: RawService
) -> None:
    watched = asyncio.Event()

    async def when_watched(request: Request, writer: asyncio.StreamWriter) -> None:
        await watched.wait()
        await says(GOOD)(request, writer)

    service.reply = when_watched
    await pause(client, "second", True)
    job_id = (await client.submit("both", priority="low"))["job_id"]
    await wait_until(lambda: service.requests)  # what runs is not promoted
    async with socket(client.gateway, f"/ws/{job_id}") as opened:
        messages = await receive(opened)
        watched.set()
        while messages[-1]["type"] != "JOB_PROMOTED":
            messages += await receive(opened)
        job = await client.job(job_id)
        assert (job["status"], job["current_step_index"]) == ("RUNNING", 1)
        assert (job["priority"], job["original_priority"]) == ("medium", "low")
        assert job["promoted_at"] is not None
        await pause(client, "second", False)
        rest, _ = await receive_all(opened)
    assert types(messages + rest) == [
        *("STEP_START", "STEP_COMPLETE", "QUEUED", "WAITING", "JOB_PROMOTED"),
        *("STEP_START", "STEP_COMPLETE", "JOB_COMPLETE"),
    ]


async def test_a_job_cancelled_between_two_steps_never_reaches_the_second(
    client: GatewayClient, service: RawService, between_steps: dict[str, Any]
) -> None:
    job_id = between_steps["job_id"]
    assert (await client.api.delete(f"{JOBS}/{job_id}")).json() == {"job_id": job_id, "status": "CANCELLED"}
    await pause(client, "second", False)
    after = await client.submit("both")
    assert (await client.ended(after["job_id"]))["status"] == "COMPLETED"
    job = await client.job(job_id)
    assert (job["status"], job["context"]["step_0_first"]["data"]) == ("CANCELLED", GOOD["data"])
    metas = [request.body["meta"] for request in service.requests]
    assert [one["service_name"] for one in metas if one["job_id"] == job_id] == ["first"]


async def test_a_job_cancelled_during_a_step_frees_its_slot_for_the_next(
    client: GatewayClient, service: RawService
) -> None:
    service.reply = hangs
    job_id = (await client.submit("both"))["job_id"]
    await wait_until(lambda: service.requests)
    async with socket(client.gateway, f"/ws/{job_id}") as opened:
        assert (await client.api.delete(f"{JOBS}/{job_id}")).is_success
        messages, _ = await receive_all(opened)
    assert types(messages)[-1] == "CANCELLED"
    await wait_until(lambda: service.gone == 1, because="the call is cut off")
    service.reply = says(GOOD)
    after = await client.submit("both")
    assert (await client.ended(after["job_id"]))["status"] == "COMPLETED"
