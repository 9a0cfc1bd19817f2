"""A server that fills up or is changed while gateways and workers run: they say so, and recover."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import Retention, Settings
from fairlead.settings.loading import load_settings
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.requests import TASKS, refused, submit
from tests.api.serving import Gateway, serving
from tests.commands import Shell
from tests.servers import Server, running
from tests.waiting import wait_until
from tests.workers import WorkerLauncher

#: Its result is as large as what it is given: memory must hold both until the task is forgotten.
BIG = {"task_type": "greet", "parameters": {"name": "x" * 50_000}}
APP = "tests.apps.tour:fl"


@asynccontextmanager
async def client_of(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=gateway.url, timeout=40, trust_env=False) as api:
        yield api


async def reasons(api: httpx.AsyncClient) -> dict[str, str]:
    """Why it is not ready, by /readyz."""
    answer = await api.get("/readyz")
    if answer.status_code == 200:
        return {}
    if answer.json()["code"] == "store_unavailable":
        return {"store_unavailable": answer.json()["detail"]}
    return {one["code"]: one["message"] for one in refused(answer, 503, "not_ready")["reasons"]}


async def turns_red(api: httpx.AsyncClient, reason: str) -> str:
    async def is_red() -> bool:
        return reason in await reasons(api)

    await wait_until(is_red)
    return (await reasons(api))[reason]


async def turns_green(api: httpx.AsyncClient, timeout: float = 20) -> None:
    async def is_green() -> bool:
        return not await reasons(api)

    await wait_until(is_green, timeout)


def configure(server: Server, **changes: Any) -> None:
    with redis.Redis.from_url(server.url) as client:
        for name, value in changes.items():
            client.config_set(name.replace("_", "-"), value)


async def fill(api: httpx.AsyncClient) -> int:
    """Until it takes no more; how many tasks it took."""
    for accepted in range(1000):
        answer = await api.post(TASKS, json=BIG)
        if answer.status_code != 201:
            assert "let workers drain it, or raise maxmemory" in refused(answer, 507, "store_full")["detail"]
            assert int(answer.headers["retry-after"]) > 0
            return accepted
    raise AssertionError("it never got full")


@pytest.mark.parametrize("kind", ["valkey", "redis"])
async def test_a_full_store_without_a_worker_drains_once_one_starts(kind: str, tmp_path: Path) -> None:
    (tmp_path / "fairlead.toml").write_text("[retention]\nleast_seconds = 0\n")
    settings = Settings(retention=Retention(least_seconds=0))
    with running(kind, "--maxmemory", "16mb", "--maxmemory-policy", "noeviction") as server:
        where = ("--engine", server.url, "--namespace", "full")
        with serving(server.url, "full", tmp_path) as gateway:
            async with client_of(gateway) as api:
                assert await fill(api) > 50
        # everything that ran is gone and starts again
        with serving(server.url, "full", tmp_path) as gateway:
            async with client_of(gateway) as api, Store.connect(server.url, "full", settings) as store:
                assert (await Shell(tmp_path, where).run("limit", "set", "disk", "--limit", "2")).code == 0
                refused(await api.post(TASKS, json=BIG), 507, "store_full")
                async with WorkerLauncher(tmp_path, lambda: where).workers(APP):

                    async def is_drained() -> bool:
                        stats = await store.stats()
                        return not any(one.depth for one in stats.queues.values()) and not stats.used_capacity

                    async def accepts() -> bool:
                        return (await api.post(TASKS, json=BIG)).status_code == 201

                    await wait_until(is_drained, 40)
                    await wait_until(accepts, 40)
                assert "memory_nearly_full" in gateway.log_text()
                assert await examine(store.connection) == []


async def test_no_work_is_accepted_while_the_store_may_evict_it(tmp_path: Path) -> None:
    file = tmp_path / "fairlead.toml"
    file.write_text('[tasks.echo]\n[pipelines]\nstory = ["echo"]\n')
    with running("valkey") as server, serving(server.url, "evicts", tmp_path) as gateway:
        async with (
            client_of(gateway) as api,
            Store.connect(server.url, "evicts", load_settings(file, {})) as store,
        ):
            await submit(api)
            configure(server, maxmemory_policy="allkeys-lru")
            sentence = await turns_red(api, "store_evicts")
            assert "maxmemory-policy is allkeys-lru" in sentence
            assert "CONFIG SET maxmemory-policy noeviction" in sentence
            assert f"not_ready reason=store_evicts problem={json.dumps(sentence)}" in gateway.log_text()
            assert 'fairlead_not_ready{reason="store_evicts"} 1' in (await api.get("/metrics")).text
            for path, body in (
                (TASKS, {"task_type": "echo"}),
                ("/api/v1/jobs", {"feature_name": "story"}),
            ):
                answer = await api.post(path, json=body)
                assert "allkeys-lru" in refused(answer, 503, "store_unsafe")["detail"]
            # clients without a gateway are refused too; accepted work can end
            with pytest.raises(errors.StoreUnsafe, match="CONFIG SET maxmemory-policy noeviction"):
                await store.submit_one(NewTask(task_type="echo"))
            await store.workers.register("w")
            (task,) = (await store.claim("w", 1)).tasks
            assert await store.complete("w", Completed(task.task_id, task.fence)) == [State.COMPLETED]
            configure(server, maxmemory_policy="noeviction")
            await turns_green(api)
            await submit(api)
            assert "reason_cleared reason=store_evicts" in gateway.log_text()
            assert "fairlead_not_ready{" not in (await api.get("/metrics")).text


async def test_a_store_that_became_a_replica_is_not_ready(tmp_path: Path) -> None:
    with running("valkey") as server, serving(server.url, "replica", tmp_path) as gateway:
        async with client_of(gateway) as api:
            await turns_green(api)
            with redis.Redis.from_url(server.url) as client:
                client.replicaof("127.0.0.1", 1)  # where nobody is: it keeps its data
                assert "set engine.url to the primary" in await turns_red(api, "store_is_replica")
                client.replicaof("NO", "ONE")
            await turns_green(api)
            await submit(api)


async def test_where_no_gateway_runs_workers_look_at_the_store(tmp_path: Path) -> None:
    config = tmp_path / "fairlead.toml"
    config.write_text("[worker]\nheartbeat_seconds = 0.5\nmissed_heartbeats = 20\n")
    with running("valkey") as server:
        where = ("--engine", server.url, "--namespace", "alone")
        async with (
            Store.connect(server.url, "alone", load_settings(config, {})) as store,
            WorkerLauncher(tmp_path, lambda: where).workers(APP),
        ):
            configure(server, maxmemory_policy="volatile-ttl")

            async def refuses() -> bool:
                try:
                    await store.submit_one(NewTask(task_type="greet", parameters={"name": "Ann"}))
                except errors.StoreUnsafe:
                    return True
                return False

            await wait_until(refuses, 40)
            configure(server, maxmemory_policy="noeviction")

            async def accepts() -> bool:
                return not await refuses()

            await wait_until(accepts, 40)


async def test_a_store_that_cannot_save_a_snapshot_is_not_ready(tmp_path: Path) -> None:
    with running("valkey", "--save", "3600 1") as server, serving(server.url, "saves", tmp_path) as gateway:
        async with client_of(gateway) as api:
            await submit(api)
            with redis.Redis.from_url(server.url) as client:
                in_the_way = Path(client.config_get("dir")["dir"]) / "dump.rdb"
                in_the_way.mkdir()
                client.bgsave()
                assert "could not write a snapshot" in await turns_red(api, "store_cannot_save")
                refused(await api.post(TASKS, json={"task_type": "echo"}), 503, "store_unavailable")
                in_the_way.rmdir()
                client.bgsave()
            await turns_green(api)
            await submit(api)
