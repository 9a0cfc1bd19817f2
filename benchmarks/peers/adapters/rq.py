"""RQ: its forking worker, by a program that has imported everything before (its performance notes)."""

from redis import Redis
from rq import Queue, Retry, Worker

from benchmarks.peers.job import LEASE, URL, connect

server = Redis.from_url(URL)
high, low = Queue("high", connection=server), Queue("low", connection=server)
QUEUES = {"high": high, "low": low, None: low}
OPTIONS = {"result_ttl": 0, "retry": Retry(max=3)}


async def submit(number: int, seconds: float, priority: str | None) -> None:
    QUEUES[priority].enqueue("benchmarks.peers.job.work", number, seconds, **OPTIONS)


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    QUEUES[priority].enqueue_many(
        Queue.prepare_data("benchmarks.peers.job.work", (number, seconds), **OPTIONS) for number in numbers
    )


if __name__ == "__main__":
    connect()  # once: each job is a fork of this process
    Worker(
        [high, low],
        connection=server,
        maintenance_interval=max(1, LEASE // 10),
        job_monitoring_interval=LEASE,
        log_job_description=False,
    ).work(logging_level="WARNING")
