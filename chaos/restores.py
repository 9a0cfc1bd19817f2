"""Everything is lost in the middle of 10,000 tasks and jobs, and restored from the history."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from tests.faults.restores import play, site

SUBMITS = 10_000


def run(options: Options) -> None:
    losses = options.sized(5)
    figures: dict[str, Any] = {"seed": options.seed}
    for durability in ("always", "ledger"):
        print(f"restores: {durability}, seed {options.seed}, {losses} losses", flush=True)
        figures[durability] = asyncio.run(_lose(options.seed, durability, losses))
        print(figures[durability], flush=True)
    assert figures["ledger"]["missing"] == 0
    print(f"kept in {keep('restores', figures)}")


async def _lose(seed: int, durability: str, losses: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/history.sqlite3"
        async with site(Path(folder), durability, url) as place:
            return await play(place, seed, submits=SUBMITS, losses=losses)
