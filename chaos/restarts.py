"""kill -9 of a durable server under load."""

import asyncio
import random

from chaos.options import Options
from chaos.results import keep
from tests.faults.fleet import LEASE
from tests.faults.restarts import durable, play
from tests.faults.stage import stage

RESUMED_MS = 5000


def run(options: Options) -> None:
    restarts = options.sized(50)
    print(f"restarts: seed {options.seed}, {restarts} restarts", flush=True)
    asyncio.run(_restart(options.seed, restarts))


async def _restart(seed: int, restarts: int) -> None:
    dice = random.Random(seed)
    outages = [dice.choice((0, 0.5, LEASE + 1.5)) * dice.uniform(0.5, 1.5) for _ in range(restarts)]
    with durable() as server:
        await server.start()
        async with stage(server.url) as scene:
            verdict, figures = await play(
                scene.store,
                server,
                scene.fleet,
                scene.history,
                seed,
                tasks=100 * restarts,
                outages=outages,
                crews=3,
            )
            print(figures)
            assert not verdict.faults, verdict.faults[:10]
            assert figures["ms_until_each_worker_claimed"]["max"] <= RESUMED_MS
    print(f"kept in {keep('restarts', figures)}")
