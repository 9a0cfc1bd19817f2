"""taskiq: the stream broker of taskiq-redis, the one that acknowledges; uvloop, no results."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import uvloop
from taskiq_redis import RedisStreamBroker

from benchmarks.peers.job import CAPACITY, LEASE, URL, work_async

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
broker = RedisStreamBroker(
    URL,
    consumer_id="0",
    idle_timeout=LEASE * 1000,
    unacknowledged_batch_size=CAPACITY,
    unacknowledged_lock_timeout=LEASE,
)


@broker.task(task_name="job")
async def job(number: int, seconds: float) -> None:
    await work_async(number, seconds)


@contextlib.asynccontextmanager
async def connect() -> AsyncIterator[None]:
    await broker.startup()
    yield
    await broker.shutdown()


connection = connect()


async def submit(number: int, seconds: float, priority: str | None) -> None:
    await job.kiq(number, seconds)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    """It has no bulk call: as many at once as there are connections."""
    for start in range(0, len(numbers), CAPACITY):
        await asyncio.gather(*(job.kiq(number, seconds) for number in numbers[start : start + CAPACITY]))
