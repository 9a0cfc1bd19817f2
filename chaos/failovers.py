"""Fail-overs of a primary with two replicas: with `replicas = 1`, without, and repaired by history."""

import asyncio
import itertools
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import FOLDER, keep
from tests.faults.failovers import How, play, staged

TASKS_EACH = 400  # for each fail-over
FEWER = 4  # without replicas: after each loss the namespace is closed for a lease
BACK_MS = 5000


def run(options: Options) -> None:
    count = options.sized(50)
    few = max(3, count // FEWER)
    print(f"failovers: seed {options.seed}, {count} fail-overs", flush=True)
    careful = _fail_over(options.seed, count, ("kill", "stop", "replace"), replicas=1)
    lost = careful.pop("lost")
    assert not any(careful["acknowledged_and_lost"].values()), lost
    assert not careful["losses_noticed"] and not careful["over_a_limit"]
    careless = _fail_over(options.seed, few, ("kill", "stop", "replace"))
    listed = FOLDER / "failovers.lost.txt"
    listed.write_text("".join(f"{what} {one}\n" for what, ids in careless.pop("lost").items() for one in ids))
    repaired = _fail_over(options.seed, few, ("behind", "kill", "replace"), restores=True)
    lost = repaired.pop("lost")
    assert not lost["tasks"] and not lost["jobs"], lost
    figures = {
        "with_replicas_1": careful,
        "without_replicas": careless,
        "with_a_ledger_and_auto_restore": repaired,
    }
    print(f"kept in {keep('failovers', {'seed': options.seed, **figures})} and {listed}")
    # judged last, because a busy machine may be at fault
    assert careful["ms_until_service_was_back"]["max"] <= BACK_MS


def _fail_over(
    seed: int, count: int, kinds: Sequence[How], *, replicas: int = 0, restores: bool = False
) -> dict[str, Any]:
    dice = random.Random(seed)
    hows = list(itertools.islice(itertools.cycle(kinds), count))
    dice.shuffle(hows)

    async def played() -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="fl-failovers-") as folder:
            async with staged(Path(folder), dice, replicas=replicas, restores=restores) as (
                deployed,
                players,
            ):
                return await play(deployed, players, hows, tasks=TASKS_EACH * count)

    found = asyncio.run(played())
    print(found, flush=True)
    assert not found["fences_given_twice"]
    return found
