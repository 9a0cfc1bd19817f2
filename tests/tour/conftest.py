"""What the tour needs besides Fairlead: worker processes that end with the test."""

from pathlib import Path

import pytest

from tests.apps.tour import fl
from tests.workers import WorkerLauncher

# Leases short enough to wait for the end of one, and long enough for a busy machine.
SETTINGS = """
[worker]
heartbeat_seconds = 0.5
missed_heartbeats = 8
[lease]
grace_seconds = 0.2
"""


@pytest.fixture
def launcher(tmp_path: Path) -> WorkerLauncher:
    """Starts `fairlead worker`s on the server of the app of the tour, which is connected by then."""
    config = tmp_path / "fairlead.toml"
    config.write_text(SETTINGS)
    return WorkerLauncher(tmp_path, lambda: ("--data", str(fl.target.data), "--config", str(config)))
