"""Servers that are killed lose nothing that was acknowledged, and make nothing twice."""

from pathlib import Path

import pytest

from fairlead.store.store import Store
from tests.faults.gateways import Servers, play
from tests.servers import Server


@pytest.mark.timeout(180)
@pytest.mark.parametrize("processes", [(2,), (1, 1)], ids=["two processes on one port", "two servers"])
async def test_every_acknowledged_task_exists_once(
    live_store: Store, server: Server, tmp_path: Path, seed: int, processes: tuple[int, ...]
) -> None:
    where = ("--engine", server.url, "--namespace", live_store.connection.keys.namespace)
    async with Servers(where, tmp_path, *processes) as servers:
        figures = await play(live_store, servers, seed, clients=50, submits=300, kills=3)
    print(figures)
    assert figures["requests_unanswered"] > 0, "no kill came in the midst of a request"
