"""Workers that cannot reach the store for a while; a third of them loses only the answers."""

import asyncio
import random
import time
from collections.abc import Callable

from chaos.lanes import in_lanes
from chaos.options import Options
from chaos.results import keep
from tests.faults.fleet import LEASE
from tests.faults.kills import spread
from tests.faults.partitions import Cut, crews_afar, cut_off
from tests.faults.stage import stage
from tests.servers import running

LANES = 3
RESUMED_MS = 5000


def run(options: Options) -> None:
    cuts = options.sized(200)
    print(f"partitions: seed {options.seed}, {cuts} cuts", flush=True)
    began = time.monotonic()
    found = asyncio.run(in_lanes(LANES, cuts, options.seed, _lane))
    # a worker that kept its lease over a short cut, and still blocks, works again afterwards
    free = [cut for cut in found if cut.task_type != "block" or cut.starts > 1]
    resumed = spread([round(cut.resumed * 1000) for cut in free])
    figures = {
        "seed": options.seed,
        "cuts": len(found),
        "one_way": sum(cut.silent for cut in found),
        "longer_than_a_lease": sum(cut.seconds > LEASE for cut in found),
        "runs_given_to_another_worker": sum(cut.starts > 1 for cut in found),
        "min_ms_between_two_runs": round(min(cut.apart for cut in found) * 1000),
        "ms_until_the_worker_ran_tasks": resumed,
        "lease_ms": round(LEASE * 1000),
        "seconds": round(time.monotonic() - began),
    }
    print(figures)
    assert resumed["max"] <= RESUMED_MS
    print(f"kept in {keep('partitions', figures)}")


async def _lane(dice: random.Random, rounds: int, note: Callable[[Cut], None]) -> None:
    with running("valkey") as server:
        async with stage(server.url) as scene, crews_afar(scene.store, server.url, scene.fleet, 2) as crews:
            for _ in range(rounds):
                await scene.fleet.man()
                note(
                    await cut_off(
                        scene.store,
                        crews,
                        scene.history,
                        scene.sink,
                        task_type=dice.choice(("write", "write", "block", "sit")),
                        seconds=LEASE * dice.choice((0.5, 1, 2, 3, 5)) * dice.uniform(0.8, 1.2),
                        silent=dice.random() < 1 / 3,
                    )
                )
