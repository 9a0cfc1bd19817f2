"""One task in a hundred kills whatever runs it."""

import asyncio
from typing import Any

from chaos.options import Options
from chaos.results import keep
from tests.faults.poison import swallow
from tests.faults.stage import stage
from tests.servers import running

PROCESSES = 4
CAPACITY = 5


def run(options: Options) -> None:
    pills = options.sized(50)
    print(f"poison: seed {options.seed}, {pills} pills", flush=True)
    figures = asyncio.run(_swallow(options.seed, pills))
    print(figures)
    print(f"kept in {keep('poison', figures)}")


async def _swallow(seed: int, pills: int) -> dict[str, Any]:
    with running("valkey") as server:
        async with stage(server.url) as scene:
            await scene.fleet.start(PROCESSES, CAPACITY)
            await scene.fleet.man()
            figures = await swallow(scene.store, scene.history, seed, good=99 * pills, pills=pills)
            return {"workers": PROCESSES, "capacity": CAPACITY, **figures}
