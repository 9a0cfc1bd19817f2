"""The server is killed under load: workers resume by themselves, and nothing acknowledged is lost."""

import random
import signal
from pathlib import Path

import msgspec
import pytest

from fairlead.settings import EngineSettings
from fairlead.store.doctor.doctor import examine
from fairlead.store.opening import gateway_store
from tests.faults.fleet import HASTE, LEASE, Fleet
from tests.faults.history import History
from tests.faults.load import Load
from tests.faults.restarts import durable, play
from tests.faults.stage import stage


@pytest.mark.timeout(180)
async def test_a_durable_server_that_is_killed_under_load_loses_nothing_and_workers_resume(
    seed: int,
) -> None:
    with durable() as server:
        await server.start()
        async with stage(server.url) as scene:
            verdict, figures = await play(
                scene.store,
                server,
                scene.fleet,
                scene.history,
                seed,
                tasks=200,
                outages=[0, 0.3, LEASE + 1.5],
                crews=2,
            )
            print(figures)
            assert verdict.faults == []
            assert set(verdict.ends) <= {"completed", "dead_letter"}
            assert [await crew.end() for crew in scene.fleet.crews] == [0, 0]


@pytest.mark.timeout(180)
async def test_when_the_owner_of_the_embedded_server_is_killed_the_others_take_over(
    tmp_path: Path, seed: int
) -> None:
    data = tmp_path / "data"
    settings = msgspec.structs.replace(HASTE, engine=EngineSettings(data=str(data)))
    async with Fleet(("--data", str(data)), tmp_path) as fleet:
        owner = await fleet.start(1)
        await fleet.man()
        await fleet.start(1)
        await fleet.man()
        async with gateway_store(settings) as store, History(store).following() as history:
            load = Load(store, history, random.Random(seed))
            await load.feed(lambda fed: fed >= 60)
            owner.signal(signal.SIGKILL)
            await load.feed(lambda fed: fed >= 150)
            verdict = await load.end()
            assert verdict.faults == []
            assert set(verdict.ends) <= {"completed", "dead_letter"}
            assert await examine(store.connection) == []
