"""Commands run beside a store of the test, on the same namespace, so that each sees what the other does."""

from pathlib import Path

import pytest

from fairlead.store.store import Store
from tests.commands import Shell
from tests.servers import Server


@pytest.fixture
def shell(live_store: Store, server: Server, tmp_path: Path) -> Shell:
    return Shell.beside(live_store, server.url, tmp_path)
