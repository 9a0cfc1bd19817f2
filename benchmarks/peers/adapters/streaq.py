"""streaQ: uvloop, results not kept, no log line per task."""

import asyncio
from typing import Any

import uvloop
from streaq import Worker

from benchmarks.peers.job import CAPACITY, LEASE, URL, work_async

AT_ONCE = 1_000

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
connection = worker = Worker[Any](
    redis_url=URL,
    concurrency=CAPACITY,
    priorities=["low", "high"],
    idle_timeout=LEASE,
    anyio_kwargs={"use_uvloop": True},
)


@worker.task(silent=True, ttl=0)
async def job(number: int, seconds: float) -> None:
    await work_async(number, seconds)


async def submit(number: int, seconds: float, priority: str | None) -> None:
    await job.enqueue(number, seconds).start(priority=priority or "low")


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    for start in range(0, len(numbers), AT_ONCE):
        some = numbers[start : start + AT_ONCE]
        await worker.enqueue_many(
            [job.enqueue(number, seconds).start(priority=priority or "low") for number in some]
        )
