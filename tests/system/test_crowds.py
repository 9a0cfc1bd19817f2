"""One server process, few files, many clients: everybody is answered, over few connections to the store."""

import asyncio
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import redis

from fairlead.model.task import NewTask
from tests.api.serving import Gateway, serving
from tests.connections import patient_store
from tests.servers import running
from tests.system.crowds import Poller, Reader, Watcher, connect, hang_up
from tests.waiting import wait_until

NAMESPACE = "crowd"
FEW = 20  # connections to the store, those of the test among them


@contextmanager
def crowded(folder: Path, files: int) -> Iterator[tuple[Gateway, redis.Redis]]:
    """A gateway with this limit of open files, alone on a store."""
    env = {"FAIRLEAD_SERVER__LIVE_PER_KEY": "10000"}
    with running("valkey") as server, serving(server.url, NAMESPACE, folder, env=env) as gateway:
        resource.prlimit(gateway.process.pid, resource.RLIMIT_NOFILE, (files, files))
        with redis.Redis.from_url(server.url) as client:
            yield gateway, client


async def submitted(gateway: Gateway, count: int) -> list[str]:
    async with patient_store(gateway.engine, NAMESPACE) as store:
        tasks = [NewTask(task_type="echo") for _ in range(count)]
        for start in range(0, count, 500):
            await store.submit(*tasks[start : start + 500])
    return [task.task_id for task in tasks]


async def cancelled(gateway: Gateway, task_ids: list[str]) -> None:
    async with patient_store(gateway.engine, NAMESPACE) as store:
        for start in range(0, len(task_ids), 100):
            await asyncio.gather(*map(store.cancel, task_ids[start : start + 100]))


class Census:
    """The largest number of connections the store ever had."""

    def __init__(self, client: redis.Redis) -> None:
        self.most = 0
        self._client = client

    async def run(self) -> None:
        while True:
            clients: object = await asyncio.to_thread(self._client.execute_command, "INFO", "clients")
            assert isinstance(clients, dict)
            self.most = max(self.most, clients["connected_clients"])
            await asyncio.sleep(0.05)


async def test_700_sockets_under_1024_files_all_receive_a_cancel(tmp_path: Path) -> None:
    with crowded(tmp_path, files=1024) as (gateway, client):
        (task_id,) = await submitted(gateway, 1)
        watchers = [Watcher(task_id, over_socket=True) for _ in range(700)]
        async with asyncio.timeout(50):
            await connect(gateway, watchers)
            await asyncio.gather(*(watcher.queued for watcher in watchers))
            await cancelled(gateway, [task_id])
            await asyncio.gather(*(watcher.done for watcher in watchers))
        assert client.info("clients")["connected_clients"] < FEW
        hang_up(watchers)


async def test_600_polls_wait_under_1024_files_and_each_gets_its_task(tmp_path: Path) -> None:
    workers = [f"worker-{n}" for n in range(600)]
    with crowded(tmp_path, files=1024) as (gateway, client):
        async with patient_store(gateway.engine, NAMESPACE) as store, asyncio.timeout(50):
            for start in range(0, len(workers), 100):
                some = workers[start : start + 100]
                await asyncio.gather(*(store.workers.register(name, task_types=[name]) for name in some))
            pollers = [Poller(name) for name in workers]
            await connect(gateway, pollers)
            idle = store.connection.keys.key("idle")
            await wait_until(
                lambda: sum(map(int, client.hvals(idle))) == len(workers), 40, "all of them wait"
            )
            assert client.info("clients")["connected_clients"] < FEW
            await store.submit(*(NewTask(task_type=name) for name in workers))
            await asyncio.gather(*(poller.done for poller in pollers))
        given = [
            [task["task_type"] for task in body["tasks"]] for poller in pollers for _, body in poller.answers
        ]
        assert given == [[name] for name in workers]
        hang_up(pollers)


async def test_watchers_receive_what_happened_while_the_subscription_was_lost(tmp_path: Path) -> None:
    with crowded(tmp_path, files=1024) as (gateway, client):
        task_ids = await submitted(gateway, 300)
        watchers = [Watcher(task_id, over_socket=n % 2 == 0) for n, task_id in enumerate(task_ids)]
        async with asyncio.timeout(50):
            await connect(gateway, watchers)
            await asyncio.gather(*(watcher.queued for watcher in watchers))
            assert len(client.client_list(_type="pubsub")) == 1
            client.client_kill_filter(_type="pubsub")
            await cancelled(gateway, task_ids)
            await asyncio.gather(*(watcher.done for watcher in watchers))
        assert len(client.client_list(_type="pubsub")) == 1
        hang_up(watchers)


@pytest.mark.timeout(240)
async def test_10000_reads_at_once_beside_2000_watchers(tmp_path: Path) -> None:
    with crowded(tmp_path, files=4096) as (gateway, client):
        task_ids = await submitted(gateway, 2_000)
        watchers = [Watcher(task_id, over_socket=n % 2 == 0) for n, task_id in enumerate(task_ids)]
        batches = [task_ids[n : n + 10] for n in range(0, 2_000, 10)] * 5
        readers = [Reader([f"/api/v1/tasks/{task_id}" for task_id in some]) for some in batches]
        census = Census(client)
        counting = asyncio.create_task(census.run())
        async with asyncio.timeout(200):
            await connect(gateway, watchers)
            await asyncio.gather(*(watcher.queued for watcher in watchers))
            await connect(gateway, readers)
            await asyncio.gather(cancelled(gateway, task_ids), *(reader.done for reader in readers))
            await asyncio.gather(*(watcher.done for watcher in watchers))
        counting.cancel()
        for some, reader in zip(batches, readers, strict=True):
            assert [(status, body["task_id"]) for status, body in reader.answers] == [(200, i) for i in some]
        assert 0 < census.most < FEW
        hang_up([*watchers, *readers])


async def test_a_server_without_a_free_file_answers_503_and_logs_it_once(tmp_path: Path) -> None:
    with crowded(tmp_path, files=1024) as (gateway, client):
        (task_id,) = await submitted(gateway, 1)
        path = f"/api/v1/tasks/{task_id}"
        async with httpx.AsyncClient(base_url=gateway.url, trust_env=False, timeout=30) as api:
            assert (await api.get(path)).status_code == 200  # on the connection that the other requests use
            pid = gateway.process.pid
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 1024))  # those it has it keeps; none is added
            client.client_kill_filter(_type="normal", skipme=True)
            answers = [await api.get(path) for _ in range(5)]
            assert [answer.status_code for answer in answers] == [503] * 5
            assert "Too many open files" in answers[-1].json()["detail"]
            assert gateway.log_text().count("out_of_files") == 1
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (1024, 1024))
            await wait_until(lambda: is_good(api, path))


async def is_good(api: httpx.AsyncClient, path: str) -> bool:
    return (await api.get(path)).status_code == 200
