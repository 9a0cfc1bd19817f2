"""The server answers, but refuses for now: clients are asked to retry, and work continues by itself."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from redis.asyncio import Redis

from fairlead.errors import StoreUnavailable
from fairlead.store.address import make_client
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.requests import TASKS, HttpWorker, good, ids, refused, submit
from tests.api.serving import Gateway, serving
from tests.servers import Server, running
from tests.waiting import wait_until

WRITES: tuple[tuple[str, Any], ...] = (
    (TASKS, {"task_type": "echo"}),
    (f"{TASKS}/batch", {"tasks": [{"task_type": "echo"}]}),
    ("/internal/workers/register", {}),
    ("/internal/workers/w/poll", {"available_capacity": 1}),
    ("/internal/workers/w/heartbeat", {}),
)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server whose snapshots go to a separate folder, which can be removed."""
    (tmp_path / "snapshots").mkdir()
    with running("valkey", "--dir", str(tmp_path / "snapshots")) as server:
        yield server


@pytest.fixture
def gateway(server: Server, tmp_path: Path) -> Iterator[Gateway]:
    with serving(server.url, "default", tmp_path) as gateway:
        yield gateway


@pytest.fixture
async def api(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=gateway.url, timeout=10, trust_env=False) as client:
        yield client
    async with Store.connect(gateway.engine) as store:
        breaches = await examine(store.connection)
        assert not breaches, breaches


@contextlib.asynccontextmanager
async def read_only(client: Redis) -> AsyncIterator[None]:
    """As after a fail-over: the old primary is a replica now."""
    await client.replicaof("127.0.0.1", 1)
    yield
    await client.replicaof("NO", "ONE")


@contextlib.asynccontextmanager
async def without_replicas(client: Redis) -> AsyncIterator[None]:
    await client.config_set("min-replicas-to-write", 1)
    yield
    await client.config_set("min-replicas-to-write", 0)


@contextlib.asynccontextmanager
async def unable_to_save(client: Redis) -> AsyncIterator[None]:
    folder = Path(str((await client.config_get("dir"))["dir"]))
    await client.config_set("save", "3600 1")
    folder.rmdir()
    await client.bgsave()

    async def has_failed() -> bool:
        return bool((await client.info("persistence"))["rdb_last_bgsave_status"] == "err")

    await wait_until(has_failed)
    yield
    await client.config_set("save", "")


@contextlib.asynccontextmanager
async def busy(client: Redis) -> AsyncIterator[None]:
    """A script of another client does not end."""
    await client.config_set("busy-reply-threshold", 10)
    running = asyncio.ensure_future(client.eval("while true do end", 0))

    async def is_busy() -> bool:
        try:
            await client.ping()
        except redis.ResponseError as problem:
            return str(problem).startswith("BUSY")
        return False

    await wait_until(is_busy)
    yield
    await client.script_kill()
    await asyncio.gather(running, return_exceptions=True)


@pytest.fixture(params=[read_only, without_replicas, unable_to_save, busy], ids=lambda state: state.__name__)
async def refusing(
    request: pytest.FixtureRequest, server: Server
) -> AsyncIterator[Callable[[], AbstractAsyncContextManager[None]]]:
    async with make_client(server.url) as client:
        yield lambda: request.param(client)


async def test_clients_are_asked_to_retry_and_find_everything_unchanged(
    api: httpx.AsyncClient, refusing: Callable[[], AbstractAsyncContextManager[None]]
) -> None:
    given = await submit(api)
    worker = await HttpWorker.register(api)
    async with refusing():
        for path, body in WRITES:
            answer = await api.post(path, json=body)
            refused(answer, 503, "store_unavailable")
            assert int(answer.headers["retry-after"]) >= 1
        refused(await worker.post("poll", available_capacity=1), 503, "store_unavailable")
    good(await api.get("/readyz"))
    (polled,) = await worker.poll(1)
    assert ids([polled]) == [given["task_id"]]
    good(await worker.complete(polled))


async def test_a_batch_that_fills_the_memory_half_way_says_what_was_accepted(
    api: httpx.AsyncClient, server: Server
) -> None:
    tasks = [{"task_type": "echo", "parameters": {"x": "x" * 200_000}} for _ in range(40)]
    async with make_client(server.url) as client:
        used = (await client.info("memory"))["used_memory"]
        await client.config_set("maxmemory-policy", "noeviction")
        await client.config_set("maxmemory", used + 4_000_000)
        answers = good(await api.post(f"{TASKS}/batch", json={"tasks": tasks}), 201)["tasks"]
        await client.config_set("maxmemory", 0)
    outcomes = [one.get("status") or one["error"]["code"] for one in answers]
    accepted = outcomes.count("queued")
    assert 0 < accepted < 40
    assert outcomes == ["queued"] * accepted + ["store_full"] * (40 - accepted)
    good(await api.get(f"{TASKS}/{answers[accepted - 1]['task_id']}"))


async def test_functions_are_kept_again_after_a_server_refused_to_load_them(
    server: Server, refusing: Callable[[], AbstractAsyncContextManager[None]]
) -> None:
    async with Store.connect(server.url, "kept") as store:
        client = store.connection.client
        await client.function_flush("SYNC")
        async with refusing():
            with pytest.raises(StoreUnavailable):
                await store.promote()
        await store.promote()
        assert len(await client.function_list("fairlead_*")) == 1
