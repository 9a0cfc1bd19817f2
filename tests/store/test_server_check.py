"""Servers that Fairlead refuses, and the ones it takes."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from fairlead.errors import UnsuitableServer
from fairlead.store.connection import Connection
from fairlead.store.engine.state import check, check_server
from tests.connections import connected
from tests.servers import binary, running

REDIS: dict[str, Any] = {"redis_version": "7.0.15", "role": "master"}
VALKEY = {"redis_version": "7.2.4", "valkey_version": "8.1.8", "server_name": "valkey", "role": "master"}


@pytest.fixture(params=["valkey", pytest.param("redis", marks=pytest.mark.other_server)])
def kind(request: pytest.FixtureRequest) -> str:
    if binary(request.param) is None:
        pytest.skip("no redis-server on this machine")
    return str(request.param)


@contextlib.asynccontextmanager
async def connection_to(url: str) -> AsyncIterator[Connection]:
    connection = connected(url, "checked")
    yield connection
    await connection.close()


async def test_a_real_server_that_keeps_everything_is_taken(kind: str) -> None:
    with running(kind) as server:
        async with connection_to(server.url) as connection:
            await check(connection)


async def test_a_real_server_that_evicts_is_refused_with_what_to_do(kind: str) -> None:
    with running(kind, "--maxmemory-policy", "allkeys-lru") as server:
        async with connection_to(server.url) as connection:
            with pytest.raises(
                UnsuitableServer, match=r"allkeys-lru: .*`CONFIG SET maxmemory-policy noeviction"
            ):
                await check(connection)


async def test_the_policy_is_found_where_config_is_forbidden(kind: str) -> None:
    with running(kind, "--maxmemory-policy", "allkeys-lru", "--rename-command", "CONFIG", "") as server:
        async with connection_to(server.url) as connection:
            with pytest.raises(UnsuitableServer, match="maxmemory-policy is allkeys-lru"):
                await check(connection)


async def test_a_real_replica_is_refused(kind: str) -> None:
    with running(kind, "--replicaof", "127.0.0.1 1") as server:
        async with connection_to(server.url) as connection:
            with pytest.raises(UnsuitableServer, match=r"replica of 127.0.0.1:1: connect to the primary"):
                await check(connection)


def test_new_enough_versions_are_taken(subtests: pytest.Subtests) -> None:
    for info in [
        REDIS,
        {**REDIS, "redis_version": "8.2.0"},
        {**REDIS, "redis_version": "10.0"},
        VALKEY,
        {**VALKEY, "valkey_version": "7.2.4"},
        {**VALKEY, "valkey_version": "9.1.2"},
    ]:
        with subtests.test(info=info):
            check_server(info, "noeviction")


@pytest.mark.parametrize(
    ("info", "named"),
    [
        ({**REDIS, "redis_version": "6.2.14"}, "Redis 6.2.14"),
        ({**REDIS, "redis_version": "2.8.0"}, "Redis 2.8.0"),
        ({**VALKEY, "valkey_version": "7.1.0"}, "Valkey 7.1.0"),
        ({"role": "master"}, "Redis of unknown version"),
    ],
)
def test_old_versions_are_refused_by_name(info: dict[str, Any], named: str) -> None:
    with pytest.raises(
        UnsuitableServer, match=f"this server is {named}: Fairlead needs Redis 7.0 or Valkey 7.2"
    ):
        check_server(info, "noeviction")


def test_an_unknown_policy_is_refused() -> None:
    with pytest.raises(UnsuitableServer, match="maxmemory-policy is not known"):
        check_server(REDIS, "")
