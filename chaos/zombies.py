"""Workers and whole crews that are stopped for longer than their lease, and then continue."""

import asyncio
import random
import time
from collections.abc import Callable

from chaos.lanes import in_lanes
from chaos.options import Options
from chaos.results import keep
from tests.faults.fleet import LEASE
from tests.faults.stage import stage
from tests.faults.zombies import Outlived, outlive
from tests.servers import running

LANES = 3


def run(options: Options) -> None:
    stops = options.sized(300)
    print(f"zombies: seed {options.seed}, {stops} stops", flush=True)
    began = time.monotonic()
    found = asyncio.run(in_lanes(LANES, stops, options.seed, _lane))
    figures = {
        "seed": options.seed,
        "stops": len(found),
        "supervisors_with_all_workers": sum(one.whole_crew for one in found),
        "late_reports_refused": sum(one.task_type == "report_late" for one in found),
        "runs_that_wrote_after_resuming": sum(one.late > 0 for one in found),
        "longest_late_write_seconds": round(max(one.late for one in found), 3),
        "late_writes_refused": sum(one.refused for one in found),
        "lease_ms": round(LEASE * 1000),
        "seconds": round(time.monotonic() - began),
    }
    print(figures)
    print(f"kept in {keep('zombies', figures)}")


async def _lane(dice: random.Random, rounds: int, note: Callable[[Outlived], None]) -> None:
    with running("valkey") as server:
        async with stage(server.url) as scene:
            for _ in range(2):
                await scene.fleet.start()
            for _ in range(rounds):
                await scene.fleet.man()
                reports = dice.random() < 0.4
                note(
                    await outlive(
                        scene.store,
                        scene.fleet,
                        scene.history,
                        scene.sink,
                        task_type="report_late" if reports else "write",
                        seconds=LEASE if reports else 20 * LEASE,
                        whole_crew=dice.random() < 0.3,
                        longer=dice.uniform(0, 2 * LEASE),
                    )
                )
