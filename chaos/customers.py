"""Ten thousand customers with a limit of one task each, beside the same work without limits."""

import asyncio
from typing import Any

from chaos.options import Options
from chaos.results import keep
from tests.faults.customers import CALM, CAPACITY, TASKS_EACH, play
from tests.faults.stage import stage
from tests.servers import running

WORKERS = 4
ADMISSION = "[admission]\nmax_queued_per_user = 100000\n"  # all customers are those of one user
WAYS = {"without_limits": False, "with_limits": True}


def run(options: Options) -> None:
    customers = options.size or 10_000
    print(f"customers: seed {options.seed}, {customers} customers", flush=True)
    found = {way: asyncio.run(_serve(options.seed, customers, limited)) for way, limited in WAYS.items()}
    figures: dict[str, Any] = {
        "seed": options.seed,
        "customers": customers,
        "tasks_each": TASKS_EACH,
        "workers": WORKERS,
        "capacity": CAPACITY,
        **found,
        "slowdown_with_limits": round(
            found["with_limits"]["total_seconds"] / found["without_limits"]["total_seconds"], 2
        ),
    }
    print(figures)
    assert found["without_limits"]["customers_with_two_tasks_at_once"], "this proves nothing"
    print(f"kept in {keep('customers', figures)}")


async def _serve(seed: int, customers: int, limited: bool) -> dict[str, Any]:
    with running("valkey") as server:
        async with stage(server.url, ADMISSION, CALM) as scene:
            await scene.fleet.start(WORKERS, CAPACITY)
            await scene.fleet.man()
            figures = await play(
                scene.store, scene.fleet, scene.history, seed, customers=customers, limited=limited
            )
            print(figures, flush=True)
            return figures
