"""How soon an update reaches its watcher, with many WebSockets open on one server process.

The watchers are a separate process; each update carries the machine's monotonic clock, which both read.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.bench import HOUR, NO_AOF, WORKER, Bench, describe, fill, register
from benchmarks.figures import Figure, Outcome, percentile
from benchmarks.http import served
from fairlead.model.reports import Progress
from fairlead.model.task import Task
from fairlead.store.store import Store
from tests.commands import FAIRLEAD

PAUSE = 0.01  # seconds between two updates
LONGEST = 300  # seconds
PAGE = os.sysconf("SC_PAGE_SIZE")


async def run(bench: Bench) -> Outcome:
    sockets, rounds, block = (50, 1, 50) if bench.quick else (1_000, 10, 200)
    outcome = Outcome(notes=[f"{sockets} WebSockets on one server process, {block} updates a round, no AOF"])
    with bench.serve(*NO_AOF) as url, tempfile.TemporaryDirectory() as folder:
        outcome.servers["store"] = await describe(url)
        async with bench.store(url) as store:
            tasks = await _running_tasks(store, sockets)
            namespace = store.connection.keys.namespace
            command = [FAIRLEAD, "server", "--engine", url, "--namespace", namespace, "--port", "0"]
            with served(command, folder) as (pid, address):
                latencies, grown = await _measure(store, tasks, pid, address, rounds * block)
    blocks = [latencies[start : start + block] for start in range(0, len(latencies), block)]
    for percent in (50, 99):
        values = [percentile(one, percent) for one in blocks]
        outcome.figures.append(Figure("update", f"latency p{percent}", "ms", values))
    outcome.figures.append(Figure("socket", "memory", "KiB", [grown / sockets / 1024]))
    return outcome


async def _running_tasks(store: Store, count: int) -> list[Task]:
    await register(store)
    await fill(store, count)
    tasks: list[Task] = []
    while len(tasks) < count:  # an act gives some of them
        tasks += (await store.claim(WORKER, count - len(tasks), lease_ms=HOUR)).tasks
    return tasks


async def _measure(
    store: Store, tasks: list[Task], pid: int, address: str, updates: int
) -> tuple[list[float], int]:
    """Latencies in ms, in order, and the bytes by which the server has grown once all sockets were open."""
    before = _memory(pid)
    watchers = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.live_watchers", address, str(updates)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert watchers.stdin and watchers.stdout
    async with asyncio.timeout(LONGEST):
        watchers.stdin.write(json.dumps([task.task_id for task in tasks]).encode() + b"\n")
        assert await watchers.stdout.readline() == b"open\n"
        grown = _memory(pid) - before
        for n in range(updates):
            task = tasks[n % len(tasks)]
            await store.progress(WORKER, Progress(task.task_id, task.fence, 0, str(time.monotonic_ns())))
            await asyncio.sleep(PAUSE)
        output, _ = await watchers.communicate()
    latencies: list[float] = json.loads(output)
    return latencies, grown


def _memory(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
