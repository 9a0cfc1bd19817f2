"""SAQ: uvloop, results not kept, looks for stuck jobs ten times in a lease."""

import asyncio
from typing import Any

import uvloop
from saq import Queue

from benchmarks.peers.job import CAPACITY, LEASE, URL, work_async

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
queue = Queue.from_url(URL)


async def job(ctx: Any, *, number: int, seconds: float) -> None:
    await work_async(number, seconds)


settings = {
    "queue": queue,
    "functions": [job],
    "concurrency": CAPACITY,
    "timers": {"sweep": max(1, LEASE // 10)},
}


async def submit(number: int, seconds: float, priority: str | None) -> None:
    # a job counts as stuck once it is older than its timeout: that is its lease
    await queue.enqueue("job", number=number, seconds=seconds, timeout=LEASE, retries=5, ttl=-1)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    """It has no bulk call that does not wait for the results."""
    for start in range(0, len(numbers), CAPACITY):
        await asyncio.gather(
            *(submit(number, seconds, priority) for number in numbers[start : start + CAPACITY])
        )
