"""`replicas = N`: what changes something is answered when N replicas have it, and not before."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from msgspec.structs import replace

from fairlead import errors
from fairlead.model.reports import Completed
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.settings import EngineSettings, Settings, Slots
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.api.requests import TASKS, good
from tests.api.serving import serving
from tests.api.test_server_state import client_of, turns_green, turns_red
from tests.connections import PatientConnection
from tests.faults.replicas import is_linked, primary_and_replica, promote
from tests.servers import Server
from tests.store.namespace import claim_one, new
from tests.waiting import wait_until

Pair = tuple[Server, Server]


def patient(url: str) -> Store:
    """A machine that is busy may take long for an answer, but it must be the right one."""
    settings = replace(Settings(), engine=EngineSettings(url=url, replicas=1))
    return Store(PatientConnection.to(url, "replicated", replicas=1), settings)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    with primary_and_replica() as (primary, replica):
        await wait_until(lambda: is_linked(replica), 30, "the replica follows")
        yield primary, replica
        replica.process.send_signal(signal.SIGCONT)


@pytest.fixture
async def store(pair: Pair) -> AsyncIterator[Store]:
    url = pair[0].url
    async with patient(url) as store:
        yield store
        assert await examine(store.connection) == []


async def test_nothing_is_answered_before_the_replica_has_it(pair: Pair, store: Store) -> None:
    await store.workers.register("w")
    before = new()
    await store.submit_one(before)
    claimed = await claim_one(store, "w")
    pair[1].process.send_signal(signal.SIGSTOP)
    task = new()
    calls = (
        partial(store.submit_one, task),
        partial(store.submit, task),
        partial(store.complete, "w", Completed(claimed.task_id, claimed.fence, "done")),
        partial(store.claim, "w", request="r"),
        partial(store.limits.set, "gpu", Slots(limit=1)),
    )
    refused = await asyncio.gather(*(call() for call in calls), return_exceptions=True)
    assert [type(one) for one in refused] == [errors.NotReplicated] * len(calls)
    assert (await store.get(before.task_id)).status is State.COMPLETED, "reads are answered meanwhile"
    async with other_process(pair) as other:
        with pytest.raises(errors.NotReplicated):  # it finds the task there, and changes nothing itself
            await other.submit_one(task)
    pair[1].process.send_signal(signal.SIGCONT)
    await wait_until(partial(is_answered, store))
    assert (await store.submit_one(task)).task_id == task.task_id, "the same id is the same task"
    assert await calls[2]() == [State.COMPLETED]
    (again,) = (await store.claim("w", request="r")).tasks
    assert again.task_id == task.task_id


@contextlib.asynccontextmanager
async def other_process(pair: Pair) -> AsyncIterator[Store]:
    store = patient(pair[0].url)
    yield store
    await store.close()


async def queued(store: Store) -> int:
    return sum(depth.depth for depth in (await store.stats()).queues.values())


async def is_answered(store: Store) -> bool:
    try:
        await store.promote()
    except errors.NotReplicated:
        return False
    return True


async def test_a_task_is_handed_to_a_waiting_worker_only_when_the_replica_knows_of_it(
    pair: Pair, store: Store
) -> None:
    await store.workers.register("w")
    assert not (await store.claim("w", idle=True, acknowledged=())).tasks
    waiting = asyncio.create_task(store.workers.wait("w", 20))
    await wait_until(lambda: blocked(pair[0]) == 1)
    pair[1].process.send_signal(signal.SIGSTOP)
    task = new()
    with pytest.raises(errors.NotReplicated):
        await store.submit_one(task)
    with pytest.raises(errors.NotReplicated):
        await waiting
    pair[1].process.send_signal(signal.SIGCONT)
    await wait_until(partial(is_answered, store))
    (given,) = (await store.claim("w", idle=True, acknowledged=())).tasks
    assert given.task_id == task.task_id


async def test_what_no_replica_has_is_not_recorded_as_history(pair: Pair, store: Store) -> None:
    position = await store.outbox.begin() - 1
    await store.submit_one(new())
    recorded = (await store.outbox.after(position)).events[-1][0]
    pair[1].process.send_signal(signal.SIGSTOP)
    with pytest.raises(errors.NotReplicated):
        await store.submit_one(new())
    with pytest.raises(errors.NotReplicated):
        await store.outbox.after(recorded)
    pair[1].process.send_signal(signal.SIGCONT)
    await wait_until(partial(is_answered, store))
    assert (await store.outbox.after(recorded)).events


async def test_calls_at_the_same_time_share_a_wait(pair: Pair, store: Store) -> None:
    before = waits(pair[0])
    tasks = [NewTask(task_type="echo") for _ in range(200)]
    await asyncio.gather(*(store.submit_one(task) for task in tasks))
    assert waits(pair[0]) - before <= 20
    assert await queued(store) == 200


async def test_a_change_that_no_replica_had_is_no_loss_after_a_fail_over(pair: Pair) -> None:
    primary, replica = pair
    async with patient(primary.url) as before:
        await before.submit_one(new())
        promote(replica, primary)
        with pytest.raises(errors.NotReplicated):
            await before.submit_one(new())
        await before.stats()
        known = before.connection.membership
    async with Store.connect(replica.url, "replicated") as after:
        after.connection.membership = known
        await after.epochs.check()
        await after.submit_one(new())
        assert await queued(after) == 2
        assert await examine(after.connection) == []


async def test_another_primary_cannot_confirm_what_the_one_before_has_done(pair: Pair, store: Store) -> None:
    replication = store.connection._replication
    assert replication
    channel = await store.connection.route.connect()
    await replication.confirm(channel.server)
    with redis.Redis.from_url(pair[0].url) as client:  # it goes and comes back with another history
        client.execute_command("REPLICAOF", "127.0.0.1", "1")
        client.execute_command("REPLICAOF", "NO", "ONE")
    await wait_until(lambda: is_linked(pair[1]))
    replication._channel = None
    with pytest.raises(errors.NotReplicated, match="another server"):
        await replication.confirm(channel.server)
    channel.abort()


async def test_a_gateway_asks_clients_to_retry_and_is_not_ready_without_replicas(
    pair: Pair, tmp_path: Path
) -> None:
    primary, replica = pair
    env = {"FAIRLEAD_ENGINE__REPLICAS": "1", "FAIRLEAD_ENGINE__URL": primary.url}
    with (
        serving(primary.url, "replicated", tmp_path, env=env) as gateway,
        redis.Redis.from_url(replica.url) as copy,
    ):
        async with client_of(gateway) as api:
            key = {"Idempotency-Key": "the-same"}
            copy.execute_command("REPLICAOF", "NO", "ONE")

            async def is_not_replicated() -> bool:
                answer = await api.post(TASKS, json={"task_type": "echo"}, headers=key)
                assert (answer.status_code, int(answer.headers["retry-after"])) == (503, 1)
                return bool(answer.json()["code"] == "not_replicated")

            await wait_until(is_not_replicated)
            assert "0 of the 1 replicas" in await turns_red(api, "store_lacks_replicas")
            port = read(primary, "CONFIG", "GET", "port")[b"port"].decode()
            copy.execute_command("REPLICAOF", "127.0.0.1", port)
            await turns_green(api)
            again = await api.post(TASKS, json={"task_type": "echo"}, headers=key)
            assert good(again, 200)["status"] == "queued", "it was accepted before, and is confirmed now"


def read(server: Server, *command: str) -> Any:
    with redis.Redis.from_url(server.url) as client:
        return client.execute_command(*command)


def waits(server: Server) -> int:
    with redis.Redis.from_url(server.url) as client:
        return int(client.info("commandstats")["cmdstat_wait"]["calls"])


def blocked(server: Server) -> int:
    with redis.Redis.from_url(server.url) as client:
        return int(client.info("clients")["blocked_clients"])
