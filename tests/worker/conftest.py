"""Apps for the worker's tests: on the namespace of the test's own store, which is examined at the end."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead import Fairlead
from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from fairlead.store.store import Store
from tests.servers import Server
from tests.workers import WorkerLauncher

# Nothing here waits for the lease of a task to end, so it outlives a busy machine; retries come at once.
QUICK = """
[worker]
heartbeat_seconds = 0.5
missed_heartbeats = 20
[lease]
grace_seconds = 0.2
[retry]
base_seconds = 0.001
max_seconds = 0.002
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The settings of the store and of all apps on it; tests that need others override this fixture."""
    path = tmp_path / "quick.toml"
    path.write_text(QUICK)
    return path


@pytest.fixture
def settings(config: Path) -> Settings:
    return load_settings(config, {})


@pytest.fixture
def new_app(live_store: Store, server: Server, config: Path) -> Callable[[], Fairlead]:
    """Makes apps beside `live_store`, one per simulated process."""
    return lambda: Fairlead(server.url, namespace=live_store.connection.keys.namespace, config=config)


@pytest.fixture
def launcher(live_store: Store, server: Server, config: Path, tmp_path: Path) -> WorkerLauncher:
    """Starts worker processes beside `live_store`."""
    namespace = live_store.connection.keys.namespace
    where = ("--engine", server.url, "--namespace", namespace, "--config", str(config))
    return WorkerLauncher(tmp_path, lambda: where)


@pytest.fixture
def fl(new_app: Callable[[], Fairlead]) -> Fairlead:
    return new_app()
