"""How the namespace is, as Prometheus reads it: asked of the store at each scrape, so any server will do."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fairlead import __version__
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.model.limit import Limit
from fairlead.model.stats import Stats

WORKER_STATES = ("active", "draining", "dead")
MOST_BYTES = 16 * 1024 * 1024  # of the series of limits: those of about 80,000 limits
ENDS = ("completed", "failed", "dead_letter", "cancelled")

routes = Routes()


class Picture(Collector):
    """One look at the namespace, apart from its limits."""

    def __init__(self, stats: Stats, limits_left_out: int) -> None:
        self._stats = stats
        self._limits_left_out = limits_left_out

    def collect(self) -> Iterator[Metric]:
        yield gauge("build_info", "Always 1; the label tells what runs.", {__version__: 1}, "version")
        yield from self._queues()
        yield from self._workers()
        ended = {state: self._stats.ended_last_minute[state] for state in ENDS}
        yield gauge("tasks_ended_last_minute", "Tasks that ended within a minute.", ended, "status")
        yield gauge("lost_events", "Events dropped from the outbox unread.", self._stats.lost_events)
        left_out = "Limits without series here, because there are too many."
        yield gauge("limits_left_out", left_out, self._limits_left_out)

    def _queues(self) -> Iterator[Metric]:
        queues = self._stats.queues
        depths = {priority: queue.depth for priority, queue in queues.items()}
        ages = {priority: queue.oldest_age_seconds for priority, queue in queues.items()}
        yield gauge("queue_depth", "Tasks that wait, by effective priority.", depths, "priority")
        yield gauge("queue_oldest_age_seconds", "How long the oldest of them waits.", ages, "priority")
        yield gauge("delayed_tasks", "Tasks that wait for their time.", self._stats.delayed)

    def _workers(self) -> Iterator[Metric]:
        states = Counter(worker.state for worker in self._stats.workers)
        yield gauge(
            "workers", "Workers by state.", {state: states[state] for state in WORKER_STATES}, "state"
        )
        yield gauge("capacity", "Tasks that the active workers can run at once.", self._stats.total_capacity)
        yield gauge("capacity_used", "Tasks that workers run.", self._stats.used_capacity)


class Family:
    """One number of every limit. There may be many limits: they are added, and written, a few at a time."""

    def __init__(self, name: str, about: str, number: Callable[[Limit], int]) -> None:
        self._name, self._about, self._number = name, about, number
        self._head = self._written([])
        self.texts = [self._head]

    def add(self, limits: Sequence[Limit]) -> int:
        """How many bytes they take."""
        self.texts.append(self._written(limits)[len(self._head) :])
        return len(self.texts[-1])

    def _written(self, limits: Sequence[Limit]) -> bytes:
        values = {limit.full_name: self._number(limit) for limit in limits}
        return generate_latest(Alone(gauge(self._name, self._about, values, "limit")))


class Alone(Collector):
    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


def families() -> tuple[Family, ...]:
    return (
        Family("limit", "Units of a limit: slots, or the burst of a rate.", lambda limit: limit.limit),
        Family("limit_active", "Units that are held.", lambda limit: limit.active),
        Family("limit_waiting", "Queued tasks that need it.", lambda limit: limit.waiting),
    )


Values = dict[str, int] | dict[str, float]


def gauge(name: str, about: str, values: float | Values, label: str = "") -> Metric:
    """One value, or one for each value of a label."""
    metric = GaugeMetricFamily(f"fairlead_{name}", about, labels=[label] if label else None)
    for word, value in values.items() if isinstance(values, dict) else [("", values)]:
        metric.add_metric([word] if label else [], value)
    return metric


@routes.get("/metrics", scope="metrics", for_all_tenants=True, answer=str, media=CONTENT_TYPE_PLAIN_0_0_4)
async def metrics(request: Request) -> bytes:
    """How much waits, runs and ended lately, and how full each limit is, for Prometheus."""
    store, of_limits, size, shown = request.store, families(), 0, 0
    async for limits in store.limits.pages():
        for family in of_limits:
            size += family.add(limits)
            await asyncio.sleep(0)  # names may be long: each family has a turn of its own
        shown += len(limits)
        if size >= MOST_BYTES:
            break
    left_out = max(0, await store.limits.count() - shown)
    general = generate_latest(Picture(await store.stats(brief=True), left_out))
    return b"".join([general, *chain.from_iterable(family.texts for family in of_limits)])
