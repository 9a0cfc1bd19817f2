"""Dramatiq: worker threads of one process, two queues of which the urgent one has the better priority."""

import dramatiq
from dramatiq.brokers.redis import RedisBroker

from benchmarks.peers.job import LEASE, URL, work

# how many of a million commands look for messages of dead workers; the default: once in minutes
broker = RedisBroker(url=URL, heartbeat_timeout=LEASE * 1000, maintenance_chance=10_000)
dramatiq.set_broker(broker)


@dramatiq.actor(queue_name="low", priority=10)
def low(number: int, seconds: float) -> None:
    work(number, seconds)


@dramatiq.actor(queue_name="high", priority=0)
def high(number: int, seconds: float) -> None:
    work(number, seconds)


ACTORS = {"high": high, "low": low, None: low}


async def submit(number: int, seconds: float, priority: str | None) -> None:
    ACTORS[priority].send(number, seconds)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    dramatiq.group(ACTORS[priority].message(number, seconds) for number in numbers).run()
