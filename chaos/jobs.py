"""kill -9 of gateways, service workers, supervisors and a durable store in turn, while jobs run."""

import asyncio

from chaos.options import Options
from chaos.results import keep
from tests.faults.jobs import play
from tests.faults.restarts import durable
from tests.faults.stage import stage

JOBS_PER_KILL = 6


def run(options: Options) -> None:
    kills = options.sized(50)
    print(f"jobs: seed {options.seed}, {kills} kills", flush=True)
    asyncio.run(_kill(options.seed, kills))


async def _kill(seed: int, kills: int) -> None:
    with durable() as server:
        await server.start()
        async with stage(server.url) as scene:
            figures = await play(
                server,
                scene.store,
                scene.fleet,
                scene.history,
                seed,
                jobs=kills * JOBS_PER_KILL,
                kills=kills,
            )
    print(figures)
    print(f"kept in {keep('jobs', figures)}")
