"""The store is down: every call is refused in time with a Retry-After; later everything resumes by itself."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead.api.http.handshake import MOST_UNDER_WAY
from fairlead.api.http.manager import Bounds
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.listening import receive_one, refused_socket, socket
from tests.api.requests import NO_TASK, TASKS, HttpWorker, good, ids, refused, submit
from tests.api.serving import Gateway, serving
from tests.engine_processes import kill, server_pid
from tests.faults.restarts import Durable, durable
from tests.waiting import wait_until

PATIENCE = 8.0  # seconds; two are promised, on a machine that has nothing else to do
CROWD = 20 * MOST_UNDER_WAY  # of handshakes: one after the other they would take 20 times as long
CALLS: tuple[tuple[str, str, Any], ...] = (
    ("POST", TASKS, {"task_type": "echo"}),
    ("POST", f"{TASKS}/batch", {"tasks": [{"task_type": "echo"}]}),
    ("GET", TASKS, None),
    ("GET", f"{TASKS}/{NO_TASK}", None),
    ("DELETE", f"{TASKS}/{NO_TASK}", None),
    ("GET", "/api/v1/queue/stats", None),
    ("POST", "/internal/workers/register", {}),
    ("POST", "/internal/workers/w/poll", {"available_capacity": 1}),
    ("POST", "/internal/workers/w/heartbeat", {}),
    ("PUT", "/api/v1/limits/gpu", {"limit": 1}),
    ("GET", "/task", None),
    ("GET", "/metrics", None),
    ("GET", "/readyz", None),
)


@pytest.fixture
async def server() -> AsyncIterator[Durable]:
    with durable() as server:
        await server.start()
        yield server


@pytest.fixture
async def gateway(server: Durable, tmp_path: Path) -> AsyncIterator[Gateway]:
    with serving(server.url, "default", tmp_path) as gateway:
        yield gateway


@pytest.fixture
async def api(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=gateway.url, timeout=PATIENCE) as client:
        yield client
    async with Store.connect(gateway.engine) as store:
        breaches = await examine(store.connection)
        assert not breaches, breaches


async def all_are_refused(api: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(api.request(how, path, json=body) for how, path, body in CALLS))
    for answer in answers:
        refused(answer, 503, "store_unavailable")
        assert int(answer.headers["retry-after"]) >= 1
    good(await api.get("/healthz"))


async def works_again(api: httpx.AsyncClient) -> None:
    async def is_ready() -> bool:
        return (await api.get("/readyz")).status_code == 200

    await wait_until(is_ready)
    await submit(api)


async def test_a_server_that_does_not_answer(api: httpx.AsyncClient, server: Durable) -> None:
    await submit(api)
    pid = server_pid(server.url)
    os.kill(pid, signal.SIGSTOP)
    try:
        await all_are_refused(api)
    finally:
        os.kill(pid, signal.SIGCONT)
    await works_again(api)


async def test_a_server_that_is_killed_and_started_again(api: httpx.AsyncClient, server: Durable) -> None:
    kept = await submit(api)
    server.kill()
    await all_are_refused(api)
    await server.start()
    await works_again(api)
    good(await api.get(f"{TASKS}/{kept['task_id']}"))


async def test_a_waiting_poll_is_refused_and_may_be_repeated(api: httpx.AsyncClient, server: Durable) -> None:
    worker = await HttpWorker.register(api)
    waiting = asyncio.create_task(worker.post("poll", available_capacity=1, wait_seconds=30))
    good(await api.get("/readyz"))
    server.kill()
    refused(await waiting, 503, "store_unavailable")
    await server.start()
    await works_again(api)
    assert len(ids(await worker.poll())) == 1


async def test_keys_are_not_believed_while_they_cannot_be_looked_up(
    api: httpx.AsyncClient, gateway: Gateway, server: Durable
) -> None:
    async with Store.connect(gateway.engine) as store:
        key = (await store.api_keys.create("ann", ["read"])).key_text

    async def asks() -> bool:
        return (await api.get(TASKS)).status_code == 401

    await wait_until(asks)
    server.kill()
    refused(await api.get(TASKS, headers={"authorization": f"Bearer {key}x"}), 401, "unauthorized")

    async def is_unavailable() -> bool:
        answer = await api.get(TASKS, headers={"authorization": f"Bearer {key}"})
        return answer.status_code == 503

    await wait_until(is_unavailable)
    await server.start()

    async def believed() -> bool:
        answer = await api.get(TASKS, headers={"authorization": f"Bearer {key}"})
        return answer.status_code == 200

    await wait_until(believed)


async def test_the_embedded_server_is_started_again(tmp_path: Path) -> None:
    with serving("", "default", tmp_path) as gateway:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=PATIENCE) as api:
            kept = await submit(api)
            await kill(server_pid(f"unix://{tmp_path}/engine/socket"))
            await works_again(api)
            good(await api.get(f"{TASKS}/{kept['task_id']}"))


async def test_every_handshake_is_answered_while_the_server_does_not_answer(
    api: httpx.AsyncClient, gateway: Gateway, server: Durable
) -> None:
    path = f"/ws/{(await submit(api))['task_id']}"
    pid = server_pid(server.url)
    os.kill(pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(Bounds().handshake_seconds + PATIENCE):
            answers = await asyncio.gather(*(refused_socket(gateway, path) for _ in range(CROWD)))
        assert {status for status, _ in answers} == {503}
        assert {problem["code"] for _, problem in answers} <= {"store_unavailable", "handshake_timeout"}
    finally:
        os.kill(pid, signal.SIGCONT)
    await works_again(api)
    async with socket(gateway, path) as opened:
        assert (await receive_one(opened))["type"]
