"""The bound: the least a queue can do, with the scripts of the throughput scenario. No leases, no limits."""

import asyncio
from pathlib import Path

import uvloop
from redis.asyncio import Redis

from benchmarks.peers.job import CAPACITY, URL, record

SCRIPTS = Path(__file__).parents[2]
JOBS, RECORD = "bound", "bound:"
AT_ONCE = 1_000
WAIT = 5  # seconds

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
client = Redis.from_url(URL)
accept = client.register_script((SCRIPTS / "bound_submit.lua").read_text())
advance = client.register_script((SCRIPTS / "bound_next.lua").read_text())


async def submit(number: int, seconds: float, priority: str | None) -> None:
    await submit_many(range(number, number + 1), seconds, priority)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    for start in range(0, len(numbers), AT_ONCE):
        ids = [str(number) for number in numbers[start : start + AT_ONCE]]
        if priority == "high":
            await client.lpush(JOBS, *ids)  # to the head; the record is made when it is claimed
        else:
            await accept(keys=[JOBS, RECORD], args=ids)


async def main() -> None:
    done: list[str] = []
    while True:
        rows = await advance(keys=[JOBS, RECORD], args=[CAPACITY, *done])
        done = [row[0].decode() for row in rows]
        if not done:
            await client.blmove(JOBS, JOBS, WAIT, "LEFT", "LEFT")  # returns as soon as there is a job
            continue
        for number in done:
            record(int(number))


if __name__ == "__main__":
    asyncio.run(main())
