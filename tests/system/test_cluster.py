"""One node of a cluster that has several: the one that holds the namespace can be used, the others say so."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from fairlead import errors
from fairlead.model.task import NewTask
from fairlead.store.keys import Keys
from fairlead.store.store import Store
from tests.commands import Shell
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
        assert (
            f"another one holds this namespace (127.0.0.1:{where}): set engine.url to that node" in ended.err
        )
        assert ended.err.count("\n") == 1
