"""Huey: its Redis storage with priorities, worker threads, no results."""

from huey import PriorityRedisHuey

from benchmarks.peers.job import URL, work

huey = PriorityRedisHuey("bench", url=URL, results=False)


@huey.task()
def job(number: int, seconds: float) -> None:
    work(number, seconds)


async def submit(number: int, seconds: float, priority: str | None) -> None:
    job(number, seconds, priority=int(priority == "high"))


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    """It has no bulk call."""
    for number in numbers:
        job(number, seconds, priority=int(priority == "high"))
