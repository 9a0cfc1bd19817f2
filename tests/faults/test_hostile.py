"""Hostile clients, all at once: others are served, and the server takes little memory."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.faults.gateways import Server
from tests.faults.hostile.lines import ATTACKS
from tests.faults.hostile.play import Siege, besieged
from tests.servers import Server as Engine
from tests.servers import running

SECONDS = 2
SHARE = 0.1  # of the connections that the campaign opens
MOST_MB = 300


@pytest.fixture
async def siege(tmp_path: Path) -> AsyncIterator[Siege]:
    with running("valkey") as engine:
        server = Server(("server", "--engine", engine.url), tmp_path, processes=1)
        await server.start()
        try:
            async with besieged(engine.url, server) as siege:
                yield siege
            await _check(engine, tmp_path)
        finally:
            await server.kill()


async def _check(engine: Engine, folder: Path) -> None:
    async with Store.connect(engine.url) as store:
        assert not await examine(store.connection)
    (log,) = folder.glob("server-*.log")
    assert "Traceback" not in log.read_text(), log.read_text()


@pytest.mark.timeout(120)
@pytest.mark.parametrize("by", [("stranger",), ("client", "worker")], ids=["strangers", "holders of keys"])
async def test_others_are_served_and_memory_is_kept(siege: Siege, by: tuple[str, ...]) -> None:
    attacks = [name for name, attack in ATTACKS.items() if attack.by in by]
    found = await siege.withstand(*attacks, seconds=SECONDS, share=SHARE)
    print(found)
    assert found["requests"] and not found["failed"]
    assert found["memory_mb"] < MOST_MB
    assert found["attack"]["connections"] > len(attacks)
