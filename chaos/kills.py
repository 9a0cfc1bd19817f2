"""kill -9 of workers and supervisors under load."""

import asyncio

from chaos.options import Options
from chaos.results import keep
from tests.faults.fleet import LEASE
from tests.faults.kills import play
from tests.faults.stage import stage
from tests.servers import running

TASKS_PER_KILL = 100
RECOVERED_MS = round((LEASE + 2) * 1000)


def run(options: Options) -> None:
    kills = options.sized(100)
    print(f"kills: seed {options.seed}, {kills} kills", flush=True)
    asyncio.run(_kill(options.seed, kills))


async def _kill(seed: int, kills: int) -> None:
    with running("valkey") as server:
        async with stage(server.url) as scene:
            verdict, figures = await play(
                scene.store,
                scene.fleet,
                scene.history,
                seed,
                tasks=kills * TASKS_PER_KILL,
                kills=kills,
                crews=5,
                processes=4,
                lonely=0.1,
            )
            print(figures)
            assert not verdict.faults, verdict.faults[:10]
            assert not figures["lost_runs_by_cause"]["unexplained"], figures["lost_runs_by_cause"]
            for found in figures["recovery_ms"].values():
                for times in found.values():
                    assert times.get("p99", 0) <= RECOVERED_MS, figures["recovery_ms"]
    print(f"kept in {keep('kills', figures)}")
