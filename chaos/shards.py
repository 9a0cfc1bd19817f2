"""Three namespaces on the shards of a cluster: primaries are killed and slots moved, under load."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from tests.clusters import cluster
from tests.faults.shards import KEPT, play


def run(options: Options) -> None:
    rounds = options.sized(20)
    print(f"shards: seed {options.seed}, {rounds} faults on each kind of cluster", flush=True)
    figures = {kind: asyncio.run(_play(kind, options.seed, rounds)) for kind in ("valkey", "redis")}
    print(figures)
    print(f"kept in {keep('shards', {'seed': options.seed, **figures})}")


async def _play(kind: str, seed: int, rounds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fl-shards-") as folder:
        async with cluster(kind, *KEPT) as deployed:
            return await play(deployed, Path(folder), seed, rounds)
