"""How the namespace is, as Prometheus reads it: asked of the store at each scrape, so any server will do."""

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from fairlead import __version__
from fairlead.api.call import Call
from fairlead.api.table import Route
from fairlead.model.limit import Limit
from fairlead.model.stats import Stats

WORKER_STATES = ("active", "draining", "dead")
ENDS = ("completed", "failed", "dead_letter", "cancelled")


class Picture(Collector):
    """One look at the namespace."""

    def __init__(self, stats: Stats, limits: Sequence[Limit]) -> None:
        self._stats = stats
        self._limits = limits

    def collect(self) -> Iterator[Metric]:
        yield gauge("build_info", "Always 1; the label tells what runs.", {__version__: 1}, "version")
        yield from self._queues()
        yield from self._workers()
        yield from self._of_limits()
        ended = {state: self._stats.ended_last_minute[state] for state in ENDS}
        yield gauge("tasks_ended_last_minute", "Tasks that ended within a minute.", ended, "status")
        yield gauge("lost_events", "Events dropped from the outbox unread.", self._stats.lost_events)

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

    def _of_limits(self) -> Iterator[Metric]:
        units = {limit.full_name: limit.limit for limit in self._limits}
        active = {limit.full_name: limit.active for limit in self._limits}
        waiting = {limit.full_name: limit.waiting for limit in self._limits}
        yield gauge("limit", "Units of a limit: slots, or the burst of a rate.", units, "limit")
        yield gauge("limit_active", "Units that are held.", active, "limit")
        yield gauge("limit_waiting", "Queued tasks that need it.", waiting, "limit")


Values = dict[str, int] | dict[str, float]


def gauge(name: str, about: str, values: float | Values, label: str = "") -> Metric:
    """One value, or one for each value of a label."""
    metric = GaugeMetricFamily(f"fairlead_{name}", about, labels=[label] if label else None)
    for word, value in values.items() if isinstance(values, dict) else [("", values)]:
        metric.add_metric([word] if label else [], value)
    return metric


async def metrics(call: Call) -> str:
    """How much waits, runs and ended lately, and how full each limit is, for Prometheus."""
    store = call.gateway.store
    return generate_latest(Picture(await store.stats(), await store.limits.all())).decode()


ROUTES = (
    Route(
        method="GET",
        path="/metrics",
        scope="metrics",
        handler=metrics,
        answer=str,
        media=CONTENT_TYPE_PLAIN_0_0_4,
        for_all_tenants=True,
    ),
)
