"""What is measured of each queue. Times are those of the records that the jobs write."""

import asyncio
import random
import time
from collections import defaultdict
from dataclasses import dataclass, replace

from redis.asyncio import Redis

from benchmarks.bench import server_cpu
from benchmarks.figures import percentile
from benchmarks.peers.contender import Contender, Failed, Record

# seconds, twice between two submits; uneven, so that a worker's poll does not keep step with it
PAUSE = (0.005, 0.015)
LOOK_EVERY = 0.2  # seconds, where all records are read again

Seen = dict[str, float]  # measure -> value


@dataclass(frozen=True, slots=True)
class Sizes:
    tasks: int
    rounds: int = 3
    pickup_rounds: int = 15  # short ones: a shared machine is fast or slow for some seconds at a time
    pickups: int = 60  # in each
    idle_seconds: int = 10
    calm: float = 1.5  # seconds: the server resizes its tables and shrinks buffers once a second
    lease: int = 30  # seconds, where nothing is killed
    killed_jobs: int = 1_000
    killed_seconds: float = 0.05  # of each of those jobs
    killed_lease: int = 10
    low_seconds: float = 0  # of each low job that the high ones pass
    give_up: int = 120  # seconds after the kill

    @property
    def singles(self) -> int:
        return max(1, self.tasks // 5)

    @property
    def urgent(self) -> int:
        return max(1, self.tasks // 100)


def quick(tasks: int) -> Sizes:
    return Sizes(
        tasks,
        rounds=1,
        pickup_rounds=1,
        pickups=20,
        idle_seconds=1,
        calm=0.05,
        killed_jobs=120,
        killed_lease=2,
        low_seconds=1,  # so few would else be done before the high ones are there
        give_up=10,
    )


async def throughput(contender: Contender, sizes: Sizes) -> Seen:
    """Submits one by one and in bulk without a worker, then starts one and has everything done."""
    client, first, total = contender.client, 1 + sizes.singles, 1 + sizes.singles + sizes.tasks
    async with contender.producer() as producer:
        await producer.submit(0, 1)  # the server keeps the scripts: they are no task's memory
    await client.flushall()
    empty = await _memory(client, sizes.calm)
    async with contender.producer() as producer:
        await producer.submit(0, 1)  # connects
        one_by_one = await producer.submit(1, sizes.singles)
        bulk = await producer.submit(first, sizes.tasks, bulk=True)
    seen = {
        "submit one": sizes.singles / one_by_one.seconds,
        "submit bulk": sizes.tasks / bulk.seconds,
        # without a producer: the buffers of its connections are the server's memory too
        "memory": (await _memory(client, sizes.calm) - empty) / total,
    }
    async with contender.worker() as worker:
        started = await contender.wait_for(1, worker)
        worker_cpu, redis_cpu = worker.cpu_seconds(), await server_cpu(client)
        await contender.wait_for(total, worker)
        worker_cpu, redis_cpu = worker.cpu_seconds() - worker_cpu, await server_cpu(client) - redis_cpu
    times = [record.at for record in await contender.records()]
    seen["drain"] = (total - 1) / ((max(times) - min(times)) / 1e9)
    if started < total:
        seen["worker CPU"] = worker_cpu / (total - started) * 1e6
        seen["Redis CPU"] = redis_cpu / (total - started) * 1e6
    return seen


async def pickup(contender: Contender, sizes: Sizes) -> Seen:
    """Submits single jobs to an idle worker."""
    await contender.client.flushall()
    uneven = random.Random(1)
    async with contender.worker() as worker:
        async with contender.producer() as producer:
            await producer.submit(0, 1)
            await contender.wait_for(1, worker)
            began = {}
            for number in range(1, 1 + sizes.pickups):
                await asyncio.sleep(uneven.uniform(*PAUSE))
                await contender.wait_for(number, worker)  # a slow one must not queue up
                await asyncio.sleep(uneven.uniform(*PAUSE))  # until it is idle
                began[number] = (await producer.submit(number, 1)).began
            await contender.wait_for(1 + sizes.pickups, worker)
        records = await contender.records()
    latencies = [(record.at - began[record.number]) / 1e6 for record in records if record.number]
    return {"pickup p50": percentile(latencies, 50), "pickup p99": percentile(latencies, 99)}


async def idle(contender: Contender, sizes: Sizes) -> Seen:
    """Leaves a worker alone that has done something, and counts what it asks of the server."""
    await contender.client.flushall()
    async with contender.worker() as worker:
        async with contender.producer() as producer:
            await producer.submit(0, 1)
            await contender.wait_for(1, worker)
        await asyncio.sleep(sizes.calm)
        before = await _calls(contender.client)
        await asyncio.sleep(sizes.idle_seconds)
        commands = await _calls(contender.client) - before
    return {"idle": commands / sizes.idle_seconds}


async def priority(contender: Contender, sizes: Sizes) -> Seen:
    """Submits a few high jobs while many low ones are being worked off: when has the last high one run?"""
    await contender.client.flushall()
    async with contender.producer() as producer:
        await producer.submit(0, sizes.tasks, bulk=True, seconds=sizes.low_seconds, priority="low")
        async with contender.worker() as worker:
            await contender.wait_for(max(1, sizes.tasks // 10), worker)
            queued = await producer.submit(sizes.tasks, sizes.urgent, bulk=True, priority="high")
            records = await _until_high_are_done(contender, sizes)
    last = max(record.at for record in records if record.number >= sizes.tasks)
    low = [record.at for record in records if record.number < sizes.tasks]
    if len(low) == sizes.tasks and max(low) < queued.ended:
        raise Failed("all low jobs were done before the high ones were queued: take more --tasks")
    return {
        "high behind low": max(0, last - queued.ended) / 1e6,
        "low before high": sum(queued.ended <= at <= last for at in low),
    }


async def _until_high_are_done(contender: Contender, sizes: Sizes) -> list[Record]:
    ends = time.monotonic() + sizes.give_up
    while True:
        records = await contender.records()
        done = {record.number for record in records if record.number >= sizes.tasks}
        if len(done) == sizes.urgent:
            return records
        if time.monotonic() > ends:
            raise Failed(f"{len(done)} of {sizes.urgent} high jobs were done after {sizes.give_up} s")
        await asyncio.sleep(LOOK_EVERY)


async def kill(contender: Contender, sizes: Sizes) -> Seen:
    """Kills the worker when a third of the jobs is done, starts another: are all jobs done, and once?"""
    contender = replace(contender, lease=sizes.killed_lease)
    await contender.client.flushall()
    async with contender.producer() as producer:
        await producer.submit(0, sizes.killed_jobs, bulk=True, seconds=sizes.killed_seconds)
    async with contender.worker() as worker:
        await contender.wait_for(sizes.killed_jobs // 3, worker)
        # jobs that began together have ended together: in the midst of the next ones
        await asyncio.sleep(sizes.killed_seconds / 2)
        await worker.kill()
    killed = time.monotonic_ns()
    async with contender.worker():
        await _until_back(contender, sizes)
        # what had ended, but not been reported, comes again with its lease, maybe after all others are back
        so_far = (time.monotonic_ns() - killed) / 1e9
        await asyncio.sleep(max(0, sizes.killed_lease - so_far) + sizes.killed_lease / 2)
        records = await contender.records()
    ends: dict[int, list[int]] = defaultdict(list)
    for record in records:
        ends[record.number].append(record.at)
    missing = sizes.killed_jobs - len(ends)
    seen: Seen = {"not back": missing, "done twice": sum(len(times) > 1 for times in ends.values())}
    if not missing:
        seen["all back"] = (max(map(min, ends.values())) - killed) / 1e9
    return seen


async def _until_back(contender: Contender, sizes: Sizes) -> None:
    ends = time.monotonic() + sizes.give_up
    while time.monotonic() < ends:
        if len({record.number for record in await contender.records()}) == sizes.killed_jobs:
            return
        await asyncio.sleep(LOOK_EVERY)


async def _memory(client: Redis, calm: float) -> int:
    await asyncio.sleep(calm)
    return int((await client.info("memory"))["used_memory"])


async def _calls(client: Redis) -> int:
    """Commands the server has run so far, including those in scripts, except our own requests."""
    stats = await client.info("commandstats")
    return sum(stat["calls"] for name, stat in stats.items() if name != "cmdstat_info")
