"""A store with services declared in it, and one server that plays all of them."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import uuid_utils

from fairlead.settings import Settings
from fairlead.settings.loading import load_settings
from fairlead.store.store import Store
from tests.pipeline.servers import GOOD, RawService, raw_service, says
from tests.servers import Server

# Nothing here waits for a lease to end, so it outlives a busy machine; only `hasty` is to time out.
QUICK = """
[worker]
heartbeat_seconds = 0.5
missed_heartbeats = 20
reserve = 2
[lease]
grace_seconds = 0.2
[retry]
base_seconds = 0.001
max_seconds = 0.002
[services.enhancer]
url = "{url}"
limit = 3
timeout_seconds = 30
max_attempts = 3
[services.painter]
url = "{url}"
timeout_seconds = 30
max_attempts = 1
[services.hasty]
url = "{url}"
timeout_seconds = 0.2
max_attempts = 1
"""


@pytest.fixture
async def service() -> AsyncIterator[RawService]:
    async with raw_service(says(GOOD)) as made:
        yield made


@pytest.fixture
def config(tmp_path: Path, service: RawService) -> Path:
    path = tmp_path / "quick.toml"
    path.write_text(QUICK.format(url=service.url))
    return path


@pytest.fixture
def settings(config: Path, server: Server) -> Settings:
    """With the address of the store: the heartbeat has its own connection."""
    namespace = f"services-{uuid_utils.uuid7()}"
    return load_settings(config, {"REDIS_URL": server.url, "FAIRLEAD_ENGINE__NAMESPACE": namespace})


@pytest.fixture
async def live_store(open_store: Callable[..., Store], settings: Settings) -> Store:
    made = open_store(settings.engine.namespace)
    await made.open()
    return made
