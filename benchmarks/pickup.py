"""How soon an idle worker has a task submitted elsewhere, and what it asks of the server while idle.

The worker is a separate process; both read the machine's monotonic clock. `bound`: a bare RPUSH and BLPOP.
"""

import asyncio
import multiprocessing
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis

from benchmarks.bench import NO_AOF, SETTINGS, WORKER, Bench, describe, drop_events, register, small_task
from benchmarks.figures import Figure, Outcome, percentile
from fairlead.model.reports import Completed, Handed
from fairlead.store.address import make_client
from fairlead.store.store import Store

PAUSE = 0.02  # seconds between two tasks
LONGEST = 60  # seconds
# Sent by the worker itself, not by its scripts.
SENT = ("cmdstat_fcall", "cmdstat_evalsha", "cmdstat_eval", "cmdstat_blpop")

Submit = Callable[[Store], Awaitable[None]]


async def run(bench: Bench) -> Outcome:
    rounds, block, seconds = (1, 20, 1) if bench.quick else (10, 100, 30)
    outcome = Outcome(
        notes=[f"{block} tasks a round, {PAUSE * 1000:.0f} ms apart; then idle for {seconds} s"]
    )
    latencies: dict[str, list[list[float]]] = {"fairlead": [], "bound": []}
    with bench.serve(*NO_AOF) as url:
        outcome.servers["all"] = await describe(url)
        async with bench.store(url) as store:
            await _pickup(store, url, 5, work, _submit)  # the server gets to know the scripts
            for _ in range(rounds):
                latencies["fairlead"].append(await _pickup(store, url, block, work, _submit))
                latencies["bound"].append(await _pickup(store, url, block, work_bare, _push))
            outcome.figures += await _idle_commands(store, url, seconds)
    for case, blocks in latencies.items():
        for percent in (50, 99):
            values = [percentile(one, percent) for one in blocks]
            outcome.figures.append(Figure(case, f"pickup p{percent}", "ms", values))
    for measure, target in (("pickup p50", "<= 1.2, moonshot < 1"), ("pickup p99", "")):
        outcome.compare(f"{measure}: Fairlead to bound", ("fairlead", measure), ("bound", measure), target)
    return outcome


async def _pickup(
    store: Store, url: str, count: int, worker: Callable[..., list[float]], submit: Submit
) -> list[float]:
    """Latencies in ms of `count` tasks, each submitted when the worker is idle."""
    async with _elsewhere(worker, url, store.connection.keys.namespace, count) as done:
        for _ in range(count):
            await asyncio.sleep(PAUSE)
            while not await _somebody_waits(store.connection.client):
                await asyncio.sleep(PAUSE)
            await submit(store)
        await drop_events(store)
        latencies: list[float] = await done
        return latencies


async def _somebody_waits(client: Redis) -> bool:
    return int((await client.info("clients"))["blocked_clients"]) > 0


async def _submit(store: Store) -> None:
    await store.submit_one(small_task(time.monotonic_ns()))


async def _push(store: Store) -> None:
    await store.connection.client.rpush(store.connection.keys.prefix + "bare", time.monotonic_ns())


async def _idle_commands(store: Store, url: str, seconds: int) -> list[Figure]:
    client = store.connection.client
    async with _elsewhere(stay_idle, url, store.connection.keys.namespace, seconds + 2):
        while not await _somebody_waits(client):
            await asyncio.sleep(PAUSE)
        before = await client.info("commandstats")
        await asyncio.sleep(seconds)
        after = await client.info("commandstats")
    calls = {name: stat["calls"] - before.get(name, {"calls": 0})["calls"] for name, stat in after.items()}
    calls.pop("cmdstat_info")
    sent = sum(calls.pop(name, 0) for name in SENT)
    return [
        Figure("fairlead", "idle, sent", "commands/s", [sent / seconds]),
        Figure("fairlead", "idle, within scripts", "commands/s", [sum(calls.values()) / seconds]),
    ]


@asynccontextmanager
async def _elsewhere(function: Callable[..., Any], *arguments: Any) -> AsyncIterator[asyncio.Future[Any]]:
    """Runs it in another process meanwhile."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        yield asyncio.get_running_loop().run_in_executor(pool, function, *arguments)


def work(url: str, namespace: str, count: int) -> list[float]:
    """An idle worker: claims, and waits until it is handed a task or called to claim one."""

    async def claim_all() -> list[float]:
        latencies: list[float] = []
        acknowledged: list[int] = []
        async with asyncio.timeout(LONGEST), Store.connect(url, namespace, SETTINGS) as store:
            await register(store)
            while len(latencies) < count:
                tasks = (await store.claim(WORKER, idle=True, acknowledged=acknowledged)).tasks
                acknowledged = []
                if not tasks:
                    called = await store.workers.wait(WORKER, 5)
                    if not isinstance(called, Handed):
                        continue
                    tasks, acknowledged = [called.task], [called.task.fence]
                arrived = time.monotonic_ns()
                latencies += [(arrived - task.parameters["n"]) / 1e6 for task in tasks]
                await store.complete(WORKER, *(Completed(task.task_id, task.fence) for task in tasks))
        return latencies

    return asyncio.run(claim_all())


def work_bare(url: str, namespace: str, count: int) -> list[float]:
    async def pop_all() -> list[float]:
        latencies: list[float] = []
        async with make_client(url, answer_within=None) as client:
            while len(latencies) < count:
                popped: Any = await client.blpop([f"{{fl:{namespace}}}:bare"], LONGEST)
                latencies.append((time.monotonic_ns() - int(popped[1])) / 1e6)
        return latencies

    return asyncio.run(pop_all())


def stay_idle(url: str, namespace: str, seconds: int) -> None:
    """What a worker without work does: it waits until it is woken or has to say that it lives."""

    async def idle() -> None:
        ends = time.monotonic() + seconds
        async with Store.connect(url, namespace, SETTINGS) as store:
            await register(store)
            while (left := ends - time.monotonic()) > 0:
                await store.claim(WORKER, idle=True)
                await store.workers.wait(WORKER, min(left, SETTINGS.worker.heartbeat_seconds))
                await store.workers.heartbeat(WORKER)

    asyncio.run(idle())
