"""A real gateway for each module, and its clients; the namespace is fresh for every test."""

from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from fairlead import Fairlead
from fairlead.client.client import Client
from fairlead.settings import EngineSettings, Settings
from fairlead.store.store import Store
from tests.api.conftest import gateway, store
from tests.api.serving import Gateway
from tests.workers import WorkerLauncher

__all__ = ["gateway", "store"]

#: A lease of 40 s outlives any delay of a busy machine; retries start at once.
QUICK = {
    "FAIRLEAD_WORKER__HEARTBEAT_SECONDS": "0.5",
    "FAIRLEAD_WORKER__MISSED_HEARTBEATS": "80",
    "FAIRLEAD_LEASE__GRACE_SECONDS": "0.2",
    "FAIRLEAD_RETRY__BASE_SECONDS": "0.001",
    "FAIRLEAD_RETRY__MAX_SECONDS": "0.002",
}


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return QUICK


def client_of(url: str, key: str | None = None) -> Client:
    return Client(Settings(engine=EngineSettings(url=url, key=key)))


@pytest.fixture
async def client(gateway: Gateway, store: Store) -> AsyncIterator[Client]:
    async with client_of(gateway.url) as made:
        yield made


@pytest.fixture
def new_app(gateway: Gateway, store: Store) -> Callable[[], Fairlead]:
    """Makes apps of the gateway, one per simulated process."""
    return lambda: Fairlead(gateway.url)


@pytest.fixture
def fl(new_app: Callable[[], Fairlead]) -> Fairlead:
    return new_app()


@pytest.fixture
def launcher(gateway: Gateway, store: Store, tmp_path: Path) -> WorkerLauncher:
    """Starts worker processes that know nothing but the URL."""
    return WorkerLauncher(tmp_path, lambda: ("--url", gateway.url))
