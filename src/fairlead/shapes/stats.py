"""How much waits, runs and ended lately."""

from fairlead.shapes.base import Answer


class Queue(Answer):
    depth: int
    oldest_age_seconds: float


class WorkerCounts(Answer):
    """All null but `used_capacity` for a tenant, which counts its own tasks there."""

    active: int | None
    draining: int | None
    dead: int | None
    total_capacity: int | None
    used_capacity: int


class Throughput(Answer):
    completed_last_minute: int
    failed_last_minute: int
    cancelled_last_minute: int


class StatsAnswer(Answer):
    queues: dict[str, Queue]
    delayed: int
    workers: WorkerCounts
    throughput: Throughput
    lost_events: int
