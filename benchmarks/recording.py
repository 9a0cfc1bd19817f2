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

from benchmarks.bench import NO_AOF, Bench, cpu_of, describe, register, server_cpu, small_task
from benchmarks.figures import Figure, Outcome
from benchmarks.history import DATABASES, database
from benchmarks.throughput import Fairlead
from fairlead.store.store import Store
from tests.faults.recorders import Recorders

DRAINED, QUICK_DRAINED = 20_000, 1_000
ROUNDS = 9
RATE = "rate"
UNITS = {RATE: "tasks/s", "recorded after": "s", "recorder CPU": "us/task", "server CPU": "us/task"}


async def run(bench: Bench) -> Outcome:
    """Without a recorder, and with one on each database, in turn."""
    count, rounds = (QUICK_DRAINED, 1) if bench.quick else (DRAINED, ROUNDS)
    outcome = Outcome(
        notes=[
            "recorded after: from the end of the drain until the history has all of it",
            "recorder CPU: until then, with SQLite, which is a part of the process, and without PostgreSQL",
        ]
    )
    measured: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(rounds):
        for kind in ("none", *DATABASES):
            with bench.serve(*NO_AOF) as url:
                outcome.servers["no AOF"] = await describe(url)
                async with bench.store(url) as store, _recording(kind, url, store) as recorders:
                    for measure, value in (await _drain(store, recorders, count)).items():
                        measured[kind][measure].append(value)
    for kind, values in measured.items():
        for measure, unit in UNITS.items():
            if measure in values:
                better = "more" if measure == RATE else "less"
                outcome.figures.append(
                    Figure(f"drain, history {kind}", measure, unit, values[measure], better)
                )
    for kind in DATABASES:
        above, below = (f"drain, history {kind}", RATE), ("drain, history none", RATE)
        outcome.compare(f"drain: history in {kind} to none", above, below, ">= 0.8")
    return outcome


async def _drain(store: Store, recorders: Recorders | None, count: int) -> dict[str, float]:
    client = store.connection.client
    await _fill_store(store, count)
    if recorders:
        await _until_recorded(store)
    cpu, recorder_cpu = await server_cpu(client), cpu_of(recorders.pid) if recorders else 0
    began = time.perf_counter()
    await Fairlead("plain", store, {}).drain(count, 64)
    ended = time.perf_counter()
    found = {RATE: count / (ended - began)}
    if recorders:
        await _until_recorded(store)
        found["recorded after"] = time.perf_counter() - ended
        found["recorder CPU"] = (cpu_of(recorders.pid) - recorder_cpu) / count * 1e6
    return found | {"server CPU": (await server_cpu(client) - cpu) / count * 1e6}


async def _fill_store(store: Store, count: int) -> None:
    await register(store)
    for _ in range(0, count, 1_000):
        await store.submit(*(small_task(n) for n in range(min(1_000, count))))


async def _until_recorded(store: Store) -> None:
    while (lag := await store.outbox.lag()) is None or lag.events:
        await asyncio.sleep(0.02)


@asynccontextmanager
async def _recording(kind: str, url: str, store: Store) -> AsyncIterator[Recorders | None]:
    if kind == "none":
        yield None
        return
    with database(kind) as sql, tempfile.TemporaryDirectory() as folder:
        recorders = Recorders(url, store, sql, Path(folder), prepare=be_nice)
        await recorders.start()
        try:
            yield recorders
        finally:
            await recorders.kill()


def be_nice() -> None:
    os.nice(5)
