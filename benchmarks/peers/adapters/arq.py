"""arq: uvloop, polls every 10 ms (by default every 500), results not kept."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import uvloop
from arq import create_pool
from arq.connections import ArqRedis, RedisSettings

from benchmarks.peers.job import CAPACITY, LEASE, URL, work_async

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
ADDED = 10  # seconds arq adds to the timeout of a job before another worker may have it
pool: ArqRedis


async def job(ctx: Any, number: int, seconds: float) -> None:
    await work_async(number, seconds)


class WorkerSettings:
    functions = (job,)
    redis_settings = RedisSettings.from_dsn(URL)
    max_jobs = CAPACITY
    job_timeout = max(1, LEASE - ADDED)
    poll_delay = 0.01
    keep_result = 0
    log_results = False


@contextlib.asynccontextmanager
async def connect() -> AsyncIterator[None]:
    global pool
    pool = await create_pool(WorkerSettings.redis_settings)
    yield
    await pool.aclose()


connection = connect()


async def submit(number: int, seconds: float, priority: str | None) -> None:
    await pool.enqueue_job("job", number, seconds)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    """It has no bulk call."""
    for start in range(0, len(numbers), CAPACITY):
        await asyncio.gather(
            *(submit(number, seconds, priority) for number in numbers[start : start + CAPACITY])
        )
