"""A primary, two replicas and three Sentinels, all real, and the ways in which a primary goes."""

import contextlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import redis

from fairlead.settings import Settings
from fairlead.store.store import Store
from tests.connections import is_answered
from tests.servers import binary, free_port
from tests.waiting import wait_until

SERVICE = "jobs"
DOWN_MS = 600  # without a sign of life, until a Sentinel believes that a server is down
LOCAL = ("--bind", "127.0.0.1", "--save", "")
SERVER = ("--repl-diskless-sync-delay", "0", "--repl-timeout", "5", "--repl-ping-replica-period", "1")


@dataclass
class Node:
    port: int
    command: list[str]
    process: subprocess.Popen[bytes] | None = None

    def start(self, replica_of: "Node | None" = None) -> None:
        silent = subprocess.DEVNULL
        follows = ("--replicaof", f"127.0.0.1 {replica_of.port}") if replica_of else ()
        self.process = subprocess.Popen([*self.command, *follows], stdout=silent, stderr=silent)

    def signal(self, number: signal.Signals) -> None:
        assert self.process
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process:
            self.process.kill()
            self.process.wait()

    def role(self) -> str:
        return str(self.ask("ROLE")[0])

    def ask(self, *command: Any) -> Any:
        with redis.Redis(port=self.port, socket_timeout=2, decode_responses=True) as client:
            return client.execute_command(*command)


@dataclass
class Deployment:
    kind: str
    folder: Path
    servers: list[Node] = field(default_factory=list)
    sentinels: list[Node] = field(default_factory=list)

    @property
    def url(self) -> str:
        hosts = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{hosts}/{SERVICE}"

    def are_linked(self) -> bool:
        first, *others = self.servers
        with contextlib.suppress(redis.RedisError, OSError):
            return all(_is_linked(one, first) for one in others)
        return False

    def primary(self) -> Node:
        """By the word of the first Sentinel."""
        port = int(self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1])
        return next(server for server in self.servers if server.port == port)

    async def settled(self, replicas: int = 2) -> None:
        """Every Sentinel sees the same primary, and that it has its replicas."""
        await wait_until(
            lambda: self._is_settled(replicas), 60, "the replicas follow and the Sentinels agree"
        )

    def _is_settled(self, replicas: int) -> bool:
        with contextlib.suppress(redis.RedisError, OSError):
            primary = self.primary()
            role = primary.ask("ROLE")
            if role[0] != "master" or len(role[2]) < replicas:
                return False
            linked = [one for one in self.servers if one is not primary and _is_linked(one, primary)]
            return len(linked) >= replicas and all(
                self._agrees(sentinel, primary, replicas) for sentinel in self.sentinels
            )
        return False

    def _agrees(self, sentinel: Node, primary: Node, replicas: int) -> bool:
        about = _pairs(sentinel.ask("SENTINEL", "MASTER", SERVICE))
        sound = [
            one for one in sentinel.ask("SENTINEL", "REPLICAS", SERVICE) if _pairs(one)["flags"] == "slave"
        ]
        return (
            int(about["port"]) == primary.port
            and about["flags"] == "master"
            and int(about["num-other-sentinels"]) == len(self.sentinels) - 1
            and len(sound) >= replicas
        )

    def chosen(self) -> Node | None:
        """The replica that the first Sentinel promotes."""
        about = map(_pairs, self.sentinels[0].ask("SENTINEL", "REPLICAS", SERVICE))
        ports = [int(one["port"]) for one in about if "promoted" in one["flags"]]
        return next((server for server in self.servers if server.port in ports), None)

    async def another_is_primary(self, before: Node) -> Node:
        def has_changed() -> bool:
            with contextlib.suppress(redis.RedisError, OSError):
                now = self.primary()
                return now is not before and bool(now.ask("ROLE")[0] == "master")
            return False

        await wait_until(has_changed, 60, "a replica has taken over")
        return self.primary()

    def close(self) -> None:
        for node in (*self.sentinels, *self.servers):
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.asynccontextmanager
async def deployment(
    kind: str = "valkey", *options: str, down_ms: int = DOWN_MS
) -> AsyncIterator[Deployment]:
    """`options`: of each server. `down_ms`: of the Sentinels."""
    program = binary(kind)
    assert program, f"no server for {kind}"
    made = Deployment(kind, Path(tempfile.mkdtemp(prefix="fl-sentinel-")))
    try:
        for _ in range(3):
            port, folder = free_port(), made.folder
            name = f"{port}.aof"
            command = [program, "--port", str(port), *LOCAL, *SERVER, *options]
            command += ["--dir", str(folder), "--dbfilename", f"{port}.rdb", "--appenddirname", name]
            command += ["--logfile", str(folder / f"{port}.log")]
            made.servers.append(Node(port, command))
            made.servers[-1].start(made.servers[0] if made.servers[1:] else None)
        # a Sentinel asks at once and then every ten seconds, so the replicas are there before it
        await wait_until(made.are_linked, 30, "the replicas follow")
        for _ in range(3):
            made.sentinels.append(_sentinel(program, made, down_ms))
            made.sentinels[-1].start()
        await made.settled()
        yield made
    finally:
        made.close()


@contextlib.asynccontextmanager
async def opened(url: str, settings: Settings | None = None) -> AsyncIterator[Store]:
    """On a busy machine the first attempt may take too long."""
    store = Store.connect(url, settings=settings)
    try:
        await wait_until(partial(is_answered, store.open), because="the store is open")
        yield store
    finally:
        await store.close()


def _sentinel(program: str, made: Deployment, down_ms: int) -> Node:
    """It writes what it learns into its configuration."""
    port, primary = free_port(), made.servers[0].port
    file = made.folder / f"sentinel-{port}.conf"
    lines = [
        f"port {port}",
        "bind 127.0.0.1",
        f"dir {made.folder}",
        f"logfile {made.folder}/sentinel-{port}.log",
        f"sentinel monitor {SERVICE} 127.0.0.1 {primary} 2",
        f"sentinel down-after-milliseconds {SERVICE} {down_ms}",
        f"sentinel failover-timeout {SERVICE} 6000",
        f"sentinel parallel-syncs {SERVICE} 2",
    ]
    file.write_text("\n".join(lines) + "\n")
    return Node(port, [program, str(file), "--sentinel"])


def _is_linked(replica: Node, primary: Node) -> bool:
    role = replica.ask("ROLE")
    return bool(role[0] == "slave" and int(role[2]) == primary.port and role[3] == "connected")


def _pairs(facts: Any) -> dict[str, str]:
    return facts if isinstance(facts, dict) else dict(zip(facts[::2], facts[1::2], strict=True))
