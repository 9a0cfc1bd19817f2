"""Memory of a queued task: of 100,000 small ones, with their events and after a recorder took those away."""

import asyncio
import shutil

from redis.asyncio import Redis

from benchmarks.bench import EMBEDDED, Bench, describe, drop_events, small_task
from benchmarks.figures import Figure, Outcome
from fairlead.model.task import MOST_PER_CALL
from fairlead.store.store import Store

CONSISTS = (
    "a queued task is its record (a hash), a member of three sorted sets: its sub-queue, the order of its "
    "place, and the ages; and an entry of the list of all tasks; "
    "its event stays until a recorder has stored it; each as MEMORY USAGE says, the rest is the table of keys"
)
DEFAULTS = ("--hash-max-listpack-value", "64")


async def run(bench: Bench) -> Outcome:
    count, calm = (2_000, 0.05) if bench.quick else (100_000, 1.5)
    outcome = Outcome(notes=[f"{count:,} tasks", CONSISTS])
    for case, kind, options in _cases(bench):
        if kind == "redis" and not shutil.which("redis-server"):
            outcome.notes.append(f"{case}: not measured, there is no redis-server on this machine")
            continue
        with bench.serve(*options, kind=kind) as url:
            outcome.servers[case] = await describe(url)
            async with bench.store(url) as store:
                outcome.figures += await _measure(store, case, count, calm)
    return outcome


def _cases(bench: Bench) -> list[tuple[str, str, tuple[str, ...]]]:
    if not bench.own:
        return [("as it is", bench.server, ())]
    settings = {"embedded": EMBEDDED, "defaults": DEFAULTS}
    kinds = ("valkey", "redis")
    return [(f"{kind}, {name}", kind, options) for kind in kinds for name, options in settings.items()]


async def _measure(store: Store, case: str, count: int, calm: float) -> list[Figure]:
    client, keys = store.connection.client, store.connection.keys
    before, full, one = await weigh(store, count, calm)
    events = await _size(client, keys.key("events"))
    await drop_events(store)
    used = (await _used(client, calm) - before) / count
    parts = {
        "record": await _size(client, keys.key("task", one)),
        "queue": await _size(client, keys.key("queue", "1n:echo;|")) / count,
        "order": await _size(client, keys.key("order", "1n")) / count,
        "age": await _size(client, keys.key("age", "1n")) / count,
        "list": await _size(client, keys.key("tasks")) / count,
    }
    values = {
        "a queued task": used,
        "with its event": (full - before) / count,
        **parts,
        "rest (key table)": used - sum(parts.values()),
        "event": events / count,
    }
    return [Figure(case, measure, "bytes", [value]) for measure, value in values.items()]


async def weigh(store: Store, count: int, calm: float) -> tuple[int, int, str]:
    """Bytes used before and after `count` small tasks were queued, with their events; the id of the last."""
    client = store.connection.client
    await _submit(store, 1)  # the server keeps the script
    before = await _used(client, calm)
    last = await _submit(store, count)
    return before, await _used(client, calm), last


async def _submit(store: Store, count: int) -> str:
    """Queues this number; returns the id of the last."""
    task = small_task()
    for start in range(0, count, MOST_PER_CALL):
        tasks = [small_task() for _ in range(min(MOST_PER_CALL, count - start))]
        await store.submit(*tasks)
        task = tasks[-1]
    return task.task_id


async def _used(client: Redis, calm: float) -> int:
    await asyncio.sleep(calm)  # the server resizes its tables and shrinks buffers once a second
    return int((await client.info("memory"))["used_memory"])


async def _size(client: Redis, key: str) -> int:
    return int(await client.memory_usage(key, samples=0) or 0)
