"""Celery: the solo pool, which hands nothing over to processes or threads; acknowledges late, no results."""

from celery import Celery

from benchmarks.peers.job import LEASE, URL, work

PRIORITY = {"high": 0, "low": 9, None: 0}  # on Redis the least number is the best

app = Celery("bench", broker=URL)
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=1,  # a prefetched job has lost its priority
    broker_transport_options={
        "visibility_timeout": LEASE,
        "priority_steps": [0, 9],
        "queue_order_strategy": "priority",
    },
)


@app.task(name="job")
def job(number: int, seconds: float) -> None:
    work(number, seconds)


async def submit(number: int, seconds: float, priority: str | None) -> None:
    job.apply_async((number, seconds), priority=PRIORITY[priority])


async def submit_many(numbers: range, seconds: float, priority: str | None) -> None:
    with app.producer_pool.acquire(block=True) as producer:
        for number in numbers:
            job.apply_async((number, seconds), priority=PRIORITY[priority], producer=producer)
