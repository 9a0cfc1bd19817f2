"""What the recorder costs: the drain of `throughput`, with a recorder in a process of its own beside it.

It has a low priority, as a server starts it.
"""

import asyncio
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.bench import NO_AOF, Bench, describe, register, small_task
from benchmarks.figures import Figure, Outcome
from benchmarks.history import DATABASES, database
from benchmarks.throughput import Fairlead
from fairlead.store.store import Store
from tests.faults.recorders import Recorders

DRAINED, QUICK_DRAINED = 20_000, 1_000
ROUNDS = 5


async def run(bench: Bench) -> Outcome:
    """Without a recorder, and with one on each database, in turn."""
    count, rounds = (QUICK_DRAINED, 1) if bench.quick else (DRAINED, ROUNDS)
    outcome = Outcome(notes=["recorded after: from the end of the drain until the history has all of it"])
    rates, delays = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for _ in range(rounds):
        for kind in ("none", *DATABASES):
            with bench.serve(*NO_AOF) as url:
                outcome.servers["no AOF"] = await describe(url)
                async with bench.store(url) as store, _recording(kind, url, store):
                    await _fill_store(store, count)
                    await _until_recorded(store, kind)
                    began = time.perf_counter()
                    await Fairlead("plain", store, {}).drain(count, 64)
                    rates[kind].append(count / (time.perf_counter() - began))
                    began = time.perf_counter()
                    await _until_recorded(store, kind)
                    delays[kind].append(time.perf_counter() - began)
    for kind, values in rates.items():
        case = f"drain, history {kind}"
        outcome.figures.append(Figure(case, "rate", "tasks/s", values, "more"))
        outcome.figures.append(Figure(case, "recorded after", "s", delays[kind]))
    for kind in DATABASES:
        above, below = (f"drain, history {kind}", "rate"), ("drain, history none", "rate")
        outcome.compare(f"drain: history in {kind} to none", above, below, ">= 0.8")
    return outcome


async def _fill_store(store: Store, count: int) -> None:
    await register(store)
    for _ in range(0, count, 1_000):
        await store.submit(*(small_task(n) for n in range(min(1_000, count))))


async def _until_recorded(store: Store, kind: str) -> None:
    while kind != "none" and ((lag := await store.outbox.lag()) is None or lag.events):
        await asyncio.sleep(0.02)


@asynccontextmanager
async def _recording(kind: str, url: str, store: Store) -> AsyncIterator[None]:
    if kind == "none":
        yield
        return
    with database(kind) as sql, tempfile.TemporaryDirectory() as folder:
        recorders = Recorders(url, store, sql, Path(folder), prepare=be_nice)
        await recorders.start()
        try:
            yield
        finally:
            await recorders.kill()


def be_nice() -> None:
    os.nice(5)
