"""Handlers that block the event loop or hold the interpreter's lock, on a machine that is busy besides."""

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chaos.options import Options
from chaos.results import keep
from tests.faults.blocked import hold_up
from tests.faults.fleet import LEASE
from tests.faults.stage import stage
from tests.servers import running

AT_ONCE = 4
BURNERS = 4


def run(options: Options) -> None:
    times = options.sized(200)
    print(f"blocked: seed {options.seed}, {times} times", flush=True)
    began = time.monotonic()
    with _busy_machine():
        found = asyncio.run(_block(options.seed, times))
    figures = {
        "seed": options.seed,
        "busy_processes": BURNERS,
        "lease_ms": round(LEASE * 1000),
        **{kind: _figures(seconds) for kind, seconds in found.items()},
        "seconds": round(time.monotonic() - began),
    }
    print(figures)
    print(f"kept in {keep('blocked', figures)}")


async def _block(seed: int, times: int) -> dict[str, list[float]]:
    """For how long each was blocked; AssertionError at the first that lost its lease."""
    dice, room, found = random.Random(seed), asyncio.Semaphore(AT_ONCE), dict[str, list[float]]()
    with running("valkey") as server:
        async with stage(server.url) as scene:
            await scene.fleet.start(processes=AT_ONCE, capacity=1)
            await scene.fleet.man()

            async def one(kind: str) -> None:
                async with room:
                    blocked = await hold_up(scene.store, scene.history, kind, 3 * LEASE)
                    found.setdefault(kind, []).append(blocked)
                    print(f"{kind} for {blocked:.1f} s", flush=True)

            async with asyncio.TaskGroup() as group:
                for kind in dice.choices(["sleep_hard", "sleep_at_once", "grip"], k=times):
                    group.create_task(one(kind))
    return found


def _figures(seconds: list[float]) -> dict[str, Any]:
    return {
        "times": len(seconds),
        "shortest_seconds": round(min(seconds), 2),
        "longest_seconds": round(max(seconds), 2),
    }


@contextmanager
def _busy_machine() -> Iterator[None]:
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BURNERS)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
