"""kill -9 of gateways under clients that repeat unanswered requests with their idempotency keys."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.faults.gateways import Servers, play
from tests.servers import running

SUBMITS_PER_KILL = 100
CLIENTS = 50
SUMS = (
    "acknowledged",
    "acknowledged_and_missing",
    "keys_with_two_tasks",
    "requests_unanswered",
    "unanswered_but_done",
    "seconds",
)
WAYS = {"two_processes": (2,), "two_servers": (1, 1)}


def run(options: Options) -> None:
    kills = options.sized(200)
    print(f"gateway: seed {options.seed}, {kills} kills", flush=True)
    found = {way: asyncio.run(_kill(options.seed, way, kills // len(WAYS))) for way in WAYS}
    figures: dict[str, Any] = {
        "seed": options.seed,
        "clients": CLIENTS,
        **{name: {way: one[name] for way, one in found.items()} for name in ("kills", "given_up")},
        **{name: sum(one[name] for one in found.values()) for name in SUMS},
    }
    print(figures)
    print(f"kept in {keep('gateway', figures)}")


async def _kill(seed: int, way: str, kills: int) -> dict[str, Any]:
    with running("valkey") as server, tempfile.TemporaryDirectory() as folder:
        async with (
            Store.connect(server.url) as store,
            Servers(("--engine", server.url), Path(folder), *WAYS[way]) as servers,
        ):
            figures = await play(
                store, servers, seed, clients=CLIENTS, submits=kills * SUBMITS_PER_KILL, kills=kills
            )
            print(way, figures, flush=True)
            breaches = await examine(store.connection)
            assert not breaches, breaches
            return figures
