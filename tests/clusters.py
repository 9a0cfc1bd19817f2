"""A cluster of three primaries and three replicas, all real, and what an operator does with it."""

import contextlib
import itertools
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import redis
from redis.crc import key_slot

from fairlead.store.keys import Keys
from tests.sentinels import Node
from tests.servers import binary, free_port
from tests.waiting import wait_until

SHARDS = 3
SLOTS = 16_384
NODE_TIMEOUT_MS = 600
OPTIONS = (
    *("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT_MS)),
    # a shard that is away must not stop the others, and a replica takes over whatever it has missed
    *("--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0"),
    *("--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"),
)


def slot_of(namespace: str) -> int:
    return key_slot(Keys(namespace).meta.encode())


def shard_of(namespace: str) -> int:
    return slot_of(namespace) * SHARDS // SLOTS


def on_each_shard(base: str) -> list[str]:
    """A namespace for each shard, in order."""
    found: dict[int, str] = {}
    for number in itertools.count():
        found.setdefault(shard_of(f"{base}{number}"), f"{base}{number}")
        if len(found) == SHARDS:
            return [found[shard] for shard in range(SHARDS)]
    raise AssertionError


@dataclass
class Cluster:
    folder: Path
    primaries: list[Node]
    replicas: list[Node]

    @property
    def url(self) -> str:
        return "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    @property
    def nodes(self) -> list[Node]:
        return [*self.primaries, *self.replicas]

    @property
    def alive(self) -> list[Node]:
        return [node for node in self.nodes if node.process and node.process.poll() is None]

    def masters(self) -> list[Node]:
        """Those that are primaries now."""
        return [node for node in self.alive if node.ask("ROLE")[0] == "master"]

    def primary_of(self, namespace: str) -> Node | None:
        """By the word of the node itself."""
        slot = slot_of(namespace)
        for node in self.alive:
            with contextlib.suppress(redis.RedisError, OSError):
                for row in node.ask("CLUSTER", "SLOTS"):
                    if (
                        row[0] <= slot <= row[1]
                        and row[2][1] == node.port
                        and node.ask("ROLE")[0] == "master"
                    ):
                        return node
        return None

    def is_whole(self) -> bool:
        """All slots are served, and every node that is not a primary follows one."""
        with contextlib.suppress(redis.RedisError, OSError):
            roles = [node.ask("ROLE") for node in self.nodes]
            linked = all(role[0] == "master" or role[3] == "connected" for role in roles)
            are_ok = all("cluster_state:ok" in node.ask("CLUSTER", "INFO") for node in self.nodes)
            primaries = sum(role[0] == "master" for role in roles)
            return linked and are_ok and primaries == SHARDS and all(map(_sees_all, self.nodes))
        return False

    async def has_primary(self, namespace: str, other_than: Node) -> Node:
        found: list[Node] = []

        def has_taken_over() -> bool:
            node = self.primary_of(namespace)
            found[:] = [node] if node and node is not other_than else []
            return bool(found)

        await wait_until(has_taken_over, 60, "a replica has taken over")
        return found[0]

    def move(self, slot: int, target: Node) -> None:
        """While it works, key by key: in between, acts of the slot's namespace are refused."""
        source = next(node for node in self.alive if _serves(node, slot))
        names = {node.port: node.ask("CLUSTER", "MYID") for node in (source, target)}
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source.port])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target.port])
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 20):
            source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
        for node in (target, source):
            node.ask("CLUSTER", "SETSLOT", slot, "NODE", names[target.port])

    def close(self) -> None:
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _serves(node: Node, slot: int) -> bool:
    with contextlib.suppress(redis.RedisError, OSError):
        return any(
            row[0] <= slot <= row[1] and row[2][1] == node.port for row in node.ask("CLUSTER", "SLOTS")
        )
    return False


@contextlib.asynccontextmanager
async def cluster(kind: str = "valkey", *options: str, replicas: bool = True) -> AsyncIterator[Cluster]:
    """`options`: of each node."""
    program = binary(kind)
    assert program, f"no server for {kind}"
    folder = Path(tempfile.mkdtemp(prefix="fl-cluster-"))
    nodes = []
    for _ in range(SHARDS * (1 + replicas)):
        port = free_port()
        command = [program, "--port", str(port), "--dir", str(folder), *OPTIONS, *options]
        command += ["--cluster-config-file", f"{port}.conf", "--dbfilename", f"{port}.rdb"]
        command += ["--appenddirname", f"{port}.aof", "--logfile", str(folder / f"{port}.log")]
        nodes.append(Node(port, command))
    made = Cluster(folder, nodes[:SHARDS], nodes[SHARDS:])
    try:
        for node in nodes:
            node.start()
        await wait_until(lambda: all(map(_answers, nodes)), 30, "all nodes answer")
        _assign(made)
        await wait_until(lambda: all(_knows(node, len(nodes)) for node in nodes), 30, "the nodes have met")
        for primary, replica in zip(made.primaries, made.replicas, strict=False):
            replica.ask("CLUSTER", "REPLICATE", primary.ask("CLUSTER", "MYID"))
        await wait_until(made.is_whole, 60, "all slots are served, and all replicas follow")
        yield made
    finally:
        made.close()


def _assign(made: Cluster) -> None:
    first, *others = made.nodes
    for shard, primary in enumerate(made.primaries):
        primary.ask("CLUSTER", "SET-CONFIG-EPOCH", shard + 1)
        start, end = (-(-SLOTS * number // SHARDS) for number in (shard, shard + 1))
        primary.ask("CLUSTER", "ADDSLOTSRANGE", start, end - 1)
    for node in others:
        first.ask("CLUSTER", "MEET", "127.0.0.1", node.port)


def _answers(node: Node) -> bool:
    with contextlib.suppress(redis.RedisError, OSError):
        return bool(node.ask("PING"))
    return False


def _knows(node: Node, count: int) -> bool:
    return str(node.ask("CLUSTER", "NODES")).count("\n") == count


def _sees_all(node: Node) -> bool:
    """Every slot, each with its primary."""
    return sum(int(row[1]) - int(row[0]) + 1 for row in node.ask("CLUSTER", "SLOTS")) == SLOTS
