"""A cluster of several nodes: each says which one holds the namespace, and `redis+cluster://` follows it."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis

from fairlead import errors
from fairlead.model.states import State
from fairlead.model.task import NewTask
from fairlead.store.doctor.doctor import examine
from fairlead.store.keys import Keys
from fairlead.store.store import Store
from tests.commands import Shell
from tests.connections import is_answered
from tests.servers import Server, free_port, running
from tests.waiting import wait_until

HALF = 8192  # of all slots


@pytest.fixture
def nodes() -> Iterator[list[Server]]:
    """Two nodes that do not know each other, each with no slots yet."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                running(
                    "valkey", "--cluster-enabled", "yes", "--port", str(free_port()), "--bind", "127.0.0.1"
                )
            )
            for _ in range(2)
        ]


async def meet(first: Any, second: Any) -> None:
    first.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, HALF - 1)
    second.execute_command("CLUSTER", "ADDSLOTSRANGE", HALF, 2 * HALF - 1)
    first.execute_command("CLUSTER", "MEET", "127.0.0.1", second.config_get("port")["port"])
    await wait_until(
        lambda: all(b"cluster_state:ok" in one.execute_command("CLUSTER", "INFO") for one in (first, second)),
        40,
    )


async def test_the_node_that_holds_the_namespace_is_named_by_the_other(
    nodes: list[Server], tmp_path: Path
) -> None:
    with redis.Redis.from_url(nodes[0].url) as first, redis.Redis.from_url(nodes[1].url) as second:
        await meet(first, second)
        slot = first.execute_command("CLUSTER", "KEYSLOT", Keys("default").meta)
        holder, other = nodes if slot < HALF else reversed(nodes)
        where = (second if slot >= HALF else first).config_get("port")["port"]
    async with Store.connect(holder.url) as store:
        await store.submit_one(NewTask(task_type="echo"))
    store = Store.connect(other.url)
    with pytest.raises(errors.WrongNode):
        await store.open()
    await store.close()
    (tmp_path / "tasks.py").write_text("from fairlead import Fairlead\n\nfl = Fairlead()\n")
    for command in (("server", "--port", "0"), ("worker", "tasks:fl"), ("stats",), ("doctor",)):
        ended = await Shell(tmp_path, ("--engine", other.url)).run(*command)
        assert (ended.code, ended.out) == (2, ""), ended
        assert f"(127.0.0.1:{where}): set engine.url to redis+cluster://127.0.0.1:{where}" in ended.err
        assert ended.err.count("\n") == 1


async def test_a_cluster_is_followed_to_the_node_that_holds_the_namespace_and_to_the_next(
    nodes: list[Server], tmp_path: Path
) -> None:
    with redis.Redis.from_url(nodes[0].url) as first, redis.Redis.from_url(nodes[1].url) as second:
        await meet(first, second)
        slot = first.execute_command("CLUSTER", "KEYSLOT", Keys("default").meta)
        source, target = (first, second) if slot < HALF else (second, first)
        ports = [one.config_get("port")["port"] for one in (first, second)]
        anywhere, elsewhere = (f"redis+cluster://127.0.0.1:1,127.0.0.1:{port}" for port in ports)
        async with Store.connect(anywhere) as store, Store.connect(elsewhere) as other:
            before = NewTask(task_type="echo")
            await store.submit_one(before)
            assert (await other.get(before.task_id)).status is State.QUEUED
            async with store.live.watch() as events:
                assert await anext(events) is None
                await move(slot, source, target, store)
                for one in (store, other):
                    await wait_until(partial(is_answered, partial(one.workers.wait, "w", 0.01)))
                    await wait_until(partial(is_answered, one.promote))
                    assert (await one.get(before.task_id)).status is State.QUEUED
                assert await anext(events) is None, "the subscription has followed, and says so"
            assert await examine(store.connection) == []
    for command in (("stats",), ("doctor",)):
        ended = await Shell(tmp_path, ("--engine", anywhere)).run(*command)
        assert ended.code == 0, ended


async def move(slot: int, source: Any, target: Any, store: Store) -> None:
    """Half of the keys, then the rest: in between no act may run on a half of its namespace."""
    names = {client: client.execute_command("CLUSTER", "MYID").decode() for client in (source, target)}
    port = target.config_get("port")["port"]
    target.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source])
    source.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target])
    keys = sorted(source.execute_command("CLUSTER", "GETKEYSINSLOT", slot, 1000))
    assert len(keys) > 4
    for half in (keys[::2], keys[1::2]):
        with pytest.raises(errors.StoreUnavailable):
            await store.submit_one(NewTask(task_type="echo"))
        source.execute_command("MIGRATE", "127.0.0.1", port, "", 0, 5000, "KEYS", *half)
    for client in (target, source):
        client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", names[target])
