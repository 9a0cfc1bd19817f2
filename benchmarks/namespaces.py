"""What a task costs with 1, 2 and 4 namespaces on three shards, and what an idle one costs a gateway."""

import asyncio
import concurrent.futures
import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Literal

from redis.asyncio import Redis

from benchmarks.bench import NO_AOF, SETTINGS, Bench, describe, drop_events, register, small_task
from benchmarks.figures import Figure, Outcome
from fairlead.model.reports import Completed
from fairlead.store.address import make_client
from fairlead.store.store import Store
from tests.clusters import Cluster, cluster, on_each_shard, shard_of
from tests.commands import FAIRLEAD

COUNTS = (1, 2, 4)  # of namespaces, on three shards
GATEWAYS = (1, 10, 30)  # of namespaces that one gateway serves
AT_ONCE = 64  # tasks of a call
TICKS = os.sysconf("SC_CLK_TCK")

CONSISTS = (
    "one process for each namespace submits tasks in batches of 64, and claims and completes them in batches "
    "of 64, directly on the store; the cost is the processor time of all shards, or of the busiest, per task"
)
IDLE = (
    "a gateway without clients, after it has started: commands, connections and memory per further namespace"
)


async def run(bench: Bench) -> Outcome:
    bench.require_private_server()
    tasks, repeated, seconds = (640, 1, 2.0) if bench.quick else (9_600, 2, 10.0)
    outcome = Outcome(notes=[f"{tasks:,} tasks in all, however many namespaces", CONSISTS, IDLE])
    for _ in range(repeated):
        for count in COUNTS[: 2 if bench.quick else None]:
            async with cluster(bench.server, *NO_AOF, replicas=False) as deployed:
                outcome.servers[f"{count} namespaces"] = await describe(
                    f"redis://127.0.0.1:{deployed.primaries[0].port}"
                )
                _add(outcome, f"{count} namespaces", await _work(deployed, count, tasks))
    for count in GATEWAYS[: 2 if bench.quick else None]:
        with bench.serve(*NO_AOF) as url:
            _add(outcome, f"gateway of {count}", await _idle(url, count, seconds))
    return outcome


def _add(outcome: Outcome, case: str, values: dict[str, tuple[str, float]]) -> None:
    for measure, (unit, value) in values.items():
        for figure in outcome.figures:
            if (figure.case, figure.measure) == (case, measure):
                figure.values.append(value)
                break
        else:
            better: Literal["less", "more"] = "more" if unit == "tasks/s" else "less"
            outcome.figures.append(Figure(case, measure, unit, [value], better))


def names_of(count: int) -> list[str]:
    """As evenly over the shards as there are shards."""
    first = on_each_shard("scale-")
    more = (f"scale-{number}" for number in range(1000) if f"scale-{number}" not in first)
    return [*first, *more][:count]


async def _work(deployed: Cluster, count: int, tasks: int) -> dict[str, tuple[str, float]]:
    names = names_of(count)
    before = _busy(deployed)
    spawn = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(count, mp_context=spawn) as pool:
        loop = asyncio.get_running_loop()
        each = tasks // count // AT_ONCE * AT_ONCE
        driven = await asyncio.gather(
            *(loop.run_in_executor(pool, drive, deployed.url, name, each) for name in names)
        )
    busy = [after - earlier for after, earlier in zip(_busy(deployed), before, strict=True)]
    done = each * count
    return {
        "shards per task": ("us of processor", 1e6 * sum(busy) / done),
        "busiest shard per task": ("us of processor", 1e6 * max(busy) / done),
        "clients per task": ("us of processor", 1e6 * sum(used for used, _ in driven) / done),
        "throughput on this machine": ("tasks/s", sum(each / took for _, took in driven)),
        "shards with work": ("shards", float(len({shard_of(name) for name in names}))),
    }


def _busy(deployed: Cluster) -> list[float]:
    return [_seconds(node.process.pid) for node in deployed.primaries if node.process]


def _seconds(pid: int) -> float:
    """Of a processor, used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def drive(url: str, name: str, tasks: int) -> tuple[float, float]:
    """In a process of its own; the seconds of a processor that it used for them, and those that passed."""
    return asyncio.run(_drive(url, name, tasks))


async def _drive(url: str, name: str, tasks: int) -> tuple[float, float]:
    async with Store.connect(url, name, SETTINGS) as store:
        await register(store)
        began, used = time.perf_counter(), time.process_time()
        for _ in range(tasks // AT_ONCE):
            await store.submit(*(small_task(n) for n in range(AT_ONCE)))
            claimed = (await store.claim("bench", AT_ONCE)).tasks
            while claimed:
                done = [Completed(task.task_id, task.fence) for task in claimed]
                claimed = (await store.report("bench", done, claim=AT_ONCE))[1].tasks
            await drop_events(store)
        return time.process_time() - used, time.perf_counter() - began


async def _idle(url: str, count: int, seconds: float) -> dict[str, tuple[str, float]]:
    client = make_client(url)
    try:
        async with _gateway(url, count) as pid:
            before, began = await _commands(client), time.perf_counter()
            await asyncio.sleep(seconds)
            rate = (await _commands(client) - before) / (time.perf_counter() - began)
            connected = int((await client.info("clients"))["connected_clients"])
            return {
                "commands": ("per second", rate),
                "connections": ("connections", float(connected - 1)),
                "gateway and its processes": ("MiB", _private([pid, *_children(pid)]) / 2**20),
                "engine": ("MiB", (await client.info("memory"))["used_memory"] / 2**20),
            }
    finally:
        await client.aclose()


@contextlib.asynccontextmanager
async def _gateway(url: str, count: int) -> AsyncIterator[int]:
    with tempfile.TemporaryDirectory(prefix="fl-bench-") as folder:
        tables = "".join(f"[namespaces.more-{number}]\n" for number in range(1, count))
        (Path(folder) / "fairlead.toml").write_text(f"{tables}[history]\nenabled = false\n")
        process = await asyncio.create_subprocess_exec(
            FAIRLEAD, "server", "--engine", url, "--port", "0", cwd=folder, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout
        try:
            await process.stdout.readline()  # it listens
            await asyncio.sleep(5.0)  # its caretakers are elected, and forecasts are made
            yield process.pid
        finally:
            process.terminate()
            await process.wait()


async def _commands(client: Redis) -> int:
    return int((await client.info("stats"))["total_commands_processed"])


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(one) for one in found]


def _private(pids: Sequence[int]) -> int:
    """Bytes that they share with no other process."""
    lines = [line for pid in pids for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()]
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))
