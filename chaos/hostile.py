"""Hostile clients, with keys and without, each in turn against one server that others use meanwhile."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from fairlead.store.doctor.doctor import examine
from fairlead.store.store import Store
from tests.faults.gateways import Server
from tests.faults.hostile.lines import ATTACKS
from tests.faults.hostile.play import besieged
from tests.servers import running

SECONDS = 15  # of each attack
MOST_MB = 300
MOST_P99_MS = 250


def run(options: Options) -> None:
    seconds = options.size or SECONDS
    print(f"hostile: {len(ATTACKS)} attacks of {seconds} s each", flush=True)
    found = asyncio.run(_attack_all(seconds))
    figures: dict[str, Any] = {
        "seed": options.seed,
        "seconds_each": seconds,
        "failed": sum(one["failed"] for one in found.values()),
        "max_memory_mb": max(one["memory_mb"] for one in found.values()),
        "worst_p99_ms": max(one["p99_ms"] for one in found.values()),
        **found,
    }
    assert not figures["failed"], figures
    assert figures["max_memory_mb"] < MOST_MB, figures
    assert figures["worst_p99_ms"] < MOST_P99_MS, figures
    print(f"kept in {keep('hostile', figures)}")


async def _attack_all(seconds: float) -> dict[str, dict[str, Any]]:
    found = {}
    with running("valkey") as engine, tempfile.TemporaryDirectory() as folder:
        server = Server(("server", "--engine", engine.url), Path(folder), processes=1)
        await server.start()
        try:
            async with besieged(engine.url, server) as siege:
                for attack in ATTACKS:
                    found[attack] = await siege.withstand(attack, seconds=seconds)
                    print(attack, found[attack], flush=True)
            async with Store.connect(engine.url) as store:
                breaches = await examine(store.connection)
                assert not breaches, breaches
        finally:
            await server.kill()
            log = Path(folder, f"server-{server.port}.log").read_text()
            print(f"{len(log.splitlines())} lines in the server's log", log[-2000:])
        assert "Traceback" not in log
    return found
