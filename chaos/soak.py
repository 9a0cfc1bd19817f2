"""Half an hour at 70 % load with a small fault now and then: does anything grow?"""

import asyncio
import os
import random
import re
import signal
import time
from pathlib import Path
from typing import Any

from chaos.options import Options
from chaos.results import keep
from tests.faults.fleet import LEASE, Crew
from tests.faults.load import Load
from tests.faults.stage import Stage, stage
from tests.servers import running
from tests.waiting import wait_until

SHARE = 0.7  # of what the workers can do
CALIBRATION_SECONDS = 20
SAMPLE_SECONDS = 10
FAULT_SECONDS = 15
PROCESSES = 2
CAPACITY = 8
# what has ended is forgotten soon, so that only what leaks stays
FORGET_SECONDS = 5
FORGETFUL = f"[retention]\nfinished_seconds = {FORGET_SECONDS}\ndead_seconds = {FORGET_SECONDS}\n"


def run(options: Options) -> None:
    print(f"soak: seed {options.seed}, {options.minutes:g} minutes", flush=True)
    figures = asyncio.run(_soak(options.seed, options.minutes * 60))
    print(figures)
    print(f"kept in {keep('soak', figures)}")


async def _soak(seed: int, seconds: float) -> dict[str, Any]:
    dice = random.Random(seed)
    with running("valkey") as server:
        async with stage(server.url, FORGETFUL) as scene:
            calm, troubled = [await scene.fleet.start(PROCESSES, CAPACITY) for _ in range(2)]
            await scene.fleet.man()
            load = Load(scene.store, scene.history, dice, waiting=3 * PROCESSES * CAPACITY)
            keys_before = await _keys_at_rest(scene, load)
            pace = SHARE * await _most_per_second(load)
            watched = {
                "server": server.process.pid,
                "supervisor": calm.process.pid,
                **{f"worker_{number}": pid for number, pid in enumerate(calm.children())},
            }
            samples = asyncio.create_task(_sample(watched, seconds))
            faults = asyncio.create_task(_trouble(troubled, dice, seconds))
            await load.feed(lambda _: samples.done(), pace)
            verdict = await load.end()
            assert not verdict.faults, verdict.faults[:10]
            assert calm.manned(), "a worker that nobody harmed has ended"
            keys_after = list[int]()  # the count that is kept is the one that was judged
            await wait_until(
                lambda: _no_more_keys(scene, keys_before, keys_after),
                200,
                "all but the baseline is forgotten",
            )
            return {
                "seed": seed,
                "minutes": round(seconds / 60, 1),
                "tasks": len(load.needs),
                "tasks_per_second": round(pace),
                "faults": await faults,
                "starts": verdict.starts,
                "ends": dict(verdict.ends),
                "keys_before": keys_before,
                "keys_after": keys_after[-1],
                "kib": {name: _growth(rows) for name, rows in (await samples).items()},
            }


async def _keys_at_rest(scene: Stage, load: Load) -> int:
    """When the first tasks have been forgotten: their types, limits and accounts have not."""
    await load.feed(lambda fed: fed >= 100)
    await load.end()
    await asyncio.sleep(2 * FORGET_SECONDS)
    return await _count_keys(scene)


async def _most_per_second(load: Load) -> float:
    fed, end = len(load.needs), time.monotonic() + CALIBRATION_SECONDS
    await load.feed(lambda _: time.monotonic() > end)
    return (len(load.needs) - fed) / CALIBRATION_SECONDS


async def _trouble(crew: Crew, dice: random.Random, seconds: float) -> dict[str, int]:
    """Kills or stops a worker of this crew from time to time."""
    done, end = {"kill": 0, "stop": 0}, time.monotonic() + seconds
    while time.monotonic() < end:
        await asyncio.sleep(FAULT_SECONDS * dice.uniform(0.5, 1.5))
        children = crew.children()
        fault = dice.choice(list(done))
        if fault == "kill":
            os.kill(dice.choice(children), signal.SIGKILL)
        else:
            stopped = dice.choice(children)
            os.kill(stopped, signal.SIGSTOP)
            await asyncio.sleep(2 * LEASE)
            os.kill(stopped, signal.SIGCONT)
        done[fault] += 1
        await wait_until(crew.manned, 60, "the troubled crew has recovered")
    return done


async def _sample(processes: dict[str, int], seconds: float) -> dict[str, list[tuple[float, int]]]:
    """When, and how much memory each has: KiB."""
    began, rows = time.monotonic(), {name: list[tuple[float, int]]() for name in processes}
    while (now := time.monotonic() - began) < seconds:
        for name, pid in processes.items():
            rows[name].append((now, _resident_kib(pid)))
        await asyncio.sleep(SAMPLE_SECONDS)
    return rows


def _growth(rows: list[tuple[float, int]]) -> dict[str, int]:
    """Of the second half, when caches are warm: by the line of least squares."""
    late = rows[len(rows) // 2 :]
    at, size = sum(row[0] for row in late) / len(late), sum(row[1] for row in late) / len(late)
    over = sum((row[0] - at) ** 2 for row in late) or 1
    slope = sum((row[0] - at) * (row[1] - size) for row in late) / over
    return {"first": rows[0][1], "last": rows[-1][1], "per_10_minutes": round(slope * 600)}


def _resident_kib(pid: int) -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1])


async def _count_keys(scene: Stage) -> int:
    """Except the counters of the last two minutes, which come and go."""
    client, keys = scene.store.connection.client, scene.store.connection.keys
    found = [key async for key in client.scan_iter(match=keys.prefix + "*", count=1000)]
    return sum(not key.startswith(keys.key("recent").encode()) for key in found)


async def _no_more_keys(scene: Stage, than: int, counts: list[int]) -> bool:
    counts.append(await _count_keys(scene))
    return counts[-1] <= than
