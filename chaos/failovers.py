"""Fail-overs of a primary with two replicas and three Sentinels: with `replicas = 1`, and without."""

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Any, get_args

from chaos.options import Options
from chaos.results import FOLDER, keep
from tests.faults.failovers import How, play, staged

TASKS_EACH = 400  # for each fail-over
WITHOUT = 4  # so many times fewer without replicas: after each loss the namespace is closed for a lease
BACK_MS = 5000


def run(options: Options) -> None:
    count = options.sized(50)
    print(f"failovers: seed {options.seed}, {count} fail-overs", flush=True)
    careful = asyncio.run(_fail_over(options.seed, count, replicas=1))
    lost = careful.pop("lost")
    print(careful, flush=True)
    assert not any(careful["acknowledged_and_lost"].values()), lost
    assert not careful["losses_noticed"] and not careful["over_a_limit"] and not careful["fences_given_twice"]
    assert careful["ms_after_the_new_primary_had_a_replica"]["max"] <= BACK_MS
    careless = asyncio.run(_fail_over(options.seed, max(3, count // WITHOUT), replicas=0))
    lost = careless.pop("lost")
    print(careless, flush=True)
    assert not careless["fences_given_twice"]
    listed = FOLDER / "failovers.lost.txt"
    listed.write_text("".join(f"{what} {one}\n" for what, ids in lost.items() for one in ids))
    figures = {"seed": options.seed, "with_replicas_1": careful, "without_replicas": careless}
    print(f"kept in {keep('failovers', figures)} and {listed}")


async def _fail_over(seed: int, count: int, *, replicas: int) -> dict[str, Any]:
    dice = random.Random(seed)
    kinds: tuple[How, ...] = get_args(How)
    hows = [kinds[number % len(kinds)] for number in range(count)]
    dice.shuffle(hows)
    with tempfile.TemporaryDirectory(prefix="fl-failovers-") as folder:
        async with staged("valkey", replicas, Path(folder), dice) as (deployed, players):
            return await play(deployed, players, hows, tasks=TASKS_EACH * count)
