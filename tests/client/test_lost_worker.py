"""Workers of a gateway that are lost with all their state: their tasks run again when the leases end."""

import os
import signal
from collections.abc import Mapping
from pathlib import Path

import pytest

from fairlead import Fairlead
from tests.apps import draining
from tests.client.conftest import QUICK
from tests.client.test_worker import TARGET, began, fl
from tests.workers import WorkerLauncher

__all__ = ["fl"]  # the fixture


@pytest.fixture(scope="module")
def server_env() -> Mapping[str, str]:
    return {**QUICK, "FAIRLEAD_LEASE__LEASE_SECONDS": "3"}


async def test_when_a_whole_worker_is_killed_another_takes_over_after_the_lease(
    fl: Fairlead, launcher: WorkerLauncher, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    async with launcher.workers(TARGET) as lost:
        task = await draining.until.submit(str(go))
        await began(task)
        os.killpg(lost.process.pid, signal.SIGKILL)
    fence = (await task.get()).fence
    go.touch()
    async with launcher.workers(TARGET) as workers:
        assert await task.result(timeout=40) == "done"
        assert (await task.get()).fence > fence
        assert await workers.end() == 0
