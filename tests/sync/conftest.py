"""The blocking app of `tests/apps/blocking.py` on each kind of backend, and scripts as real processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead.client.target import Target
from fairlead.store.store import Store
from fairlead.sync import Fairlead
from tests.api.conftest import gateway, server_env, store
from tests.apps import blocking
from tests.sync.scripts import Scripts

__all__ = ["gateway", "server_env", "store"]

BACKENDS = ("embedded", "redis", "gateway")


@pytest.fixture(params=BACKENDS)
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """Where the app connects: to an engine of its own, to a server, or to a gateway."""
    if request.param == "embedded":
        return Target(data=str(tmp_path / "data"))
    if request.param == "gateway":
        request.getfixturevalue("store")  # it is fresh for every test
        return Target(url=request.getfixturevalue("gateway").url)
    store: Store = request.getfixturevalue("live_store")
    url = request.getfixturevalue("server").url
    return Target(url=url, namespace=store.connection.keys.namespace)


@pytest.fixture
def fl(target: Target) -> Iterator[Fairlead]:
    """The app, not connected yet."""
    before, blocking.fl.async_app.target = blocking.fl.async_app.target, target
    yield blocking.fl
    blocking.fl.close()
    blocking.fl.async_app.target = before


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)
