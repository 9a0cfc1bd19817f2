"""Namespaces for the tests of the store, which run on every kind of server where they are marked so."""

import itertools
import os
from collections.abc import AsyncIterator

import pytest

from fairlead.store import blocking_pool
from fairlead.store.connection import Connection, pack
from fairlead.store.scripts import SCHEMA
from tests.connections import PATIENCE, connected
from tests.servers import Server
from tests.store.busy import POLICY, fill

namespaces = itertools.count()


@pytest.fixture(autouse=True)
def the_end_of_a_wait_may_come_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_pool, "LATE", PATIENCE)


@pytest.fixture
async def fresh(server: Server) -> AsyncIterator[Connection]:
    """An open namespace without work."""
    connection = connected(server.url, f"doctor-{os.getpid()}-{next(namespaces)}")
    client = connection.client
    await connection.run("configure", SCHEMA, pack(POLICY), 1, "token")
    yield connection
    async for key in client.scan_iter(match=connection.keys.prefix + "*", count=1000):
        await client.delete(key)
    await connection.close()


@pytest.fixture
async def busy(fresh: Connection) -> Connection:
    """A namespace in which everything waits, runs or ended."""
    await fill(fresh)
    return fresh
