"""docket: uvloop, bulk submits in its pipelined chunks, executions not kept, a short sleep when full."""

from datetime import timedelta

import uvloop
from docket import Docket, Worker

from benchmarks.peers.job import CAPACITY, LEASE, URL, work_async

POOL = f"{URL}?max_connections={CAPACITY * 10}"  # each running job takes one
NAP = timedelta(milliseconds=25)

connection = docket = Docket(name="bench", url=POOL, execution_ttl=timedelta(0))


async def job(number: int, seconds: float) -> None:
    await work_async(number, seconds)


async def submit(number: int, seconds: float, priority: str | None) -> None:
    await docket.add(job)(number, seconds)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    await docket.add_many(docket.call(job)(number, seconds) for number in numbers)


async def main() -> None:
    lease = timedelta(seconds=LEASE)
    docket.register(job)
    async with (
        docket,
        Worker(docket, concurrency=CAPACITY, redelivery_timeout=lease, minimum_check_interval=NAP) as worker,
    ):
        await worker.run_forever()


if __name__ == "__main__":
    uvloop.run(main())
