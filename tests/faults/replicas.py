"""A primary and its replica, which can take its place."""

import contextlib
from collections.abc import Iterator

import redis

from tests.servers import Server, free_port, running


@contextlib.contextmanager
def primary_and_replica() -> Iterator[tuple[Server, Server]]:
    port = free_port()
    local = ("--bind", "127.0.0.1", "--repl-diskless-sync-delay", "0")
    with (
        running("valkey", "--port", str(port), *local) as primary,
        running("valkey", "--replicaof", f"127.0.0.1 {port}") as replica,
    ):
        yield primary, replica


def promote(replica: Server, primary: Server) -> None:
    """It has all that was written to the primary so far, and nothing that comes later."""
    with redis.Redis.from_url(primary.url) as writes, redis.Redis.from_url(replica.url) as copy:
        assert writes.wait(1, 20_000) == 1
        copy.execute_command("REPLICAOF", "NO", "ONE")


def is_linked(replica: Server) -> bool:
    with redis.Redis.from_url(replica.url) as copy:
        return bool(copy.info("replication")["master_link_status"] == "up")
