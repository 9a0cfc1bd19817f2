"""Fault tests of the worker: leases are short, and worker processes end with the test."""

import random
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.settings import Settings
from fairlead.store.connection import Connection
from fairlead.store.store import Store
from tests.faults.fleet import Fleet
from tests.faults.history import History
from tests.faults.sink import Sink
from tests.faults.wire import Wire, wire
from tests.servers import Server


@pytest.fixture
async def fleet(
    live_store: Store, server: Server, tmp_path: Path, settings: Settings
) -> AsyncIterator[Fleet]:
    """Worker processes on the namespace of `live_store`, with its settings."""
    where = ("--engine", server.url, "--namespace", live_store.connection.keys.namespace)
    async with Fleet(where, tmp_path, settings=settings) as made:
        yield made


@pytest.fixture
async def history(live_store: Store) -> AsyncIterator[History]:
    async with History(live_store).following() as reading:
        yield reading


@pytest.fixture
def sink(server: Server) -> Sink:
    return Sink(server.url)


@pytest.fixture
def seed() -> int:
    chosen = random.randrange(1 << 32)
    print("seed", chosen)
    return chosen


@pytest.fixture
async def lossy(live_store: Store, server: Server) -> AsyncIterator[tuple[Wire, Store]]:
    """A second client of `live_store`'s namespace, behind a wire that can lose replies."""
    with tempfile.TemporaryDirectory(prefix="fl-wire-") as folder:
        async with wire(server.url, Path(folder)) as (line, url):
            store = Store(Connection.to(url, live_store.connection.keys.namespace), live_store.settings)
            yield line, store
            await store.close()
