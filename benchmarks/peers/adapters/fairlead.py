"""Fairlead: as a user writes and starts it; only the lease is made as long as that of the others.

For other queues that is the time after which a job is given to another worker: here a lease and its grace.
"""

import asyncio
import os

import uvloop

from benchmarks.peers.job import LEASE, URL, work_async
from fairlead import Fairlead

MISSED, GRACE = 3, 1  # defaults: heartbeats per lease, and seconds of grace after it
os.environ["FAIRLEAD_WORKER__HEARTBEAT_SECONDS"] = str((LEASE - GRACE) / MISSED)

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())  # the worker has it by itself
connection = fl = Fairlead(URL)


@fl.task
async def job(number: int, seconds: float) -> None:
    await work_async(number, seconds)


async def submit(number: int, seconds: float, priority: str | None) -> None:
    await job.submit(number, seconds, priority=priority)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    await fl.submit_many(job.new(number, seconds, priority=priority) for number in numbers)
