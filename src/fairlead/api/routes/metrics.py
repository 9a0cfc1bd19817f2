"""Metrics for Prometheus, read from the store at each scrape: every server returns the same."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from fairlead import __version__
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.model.estimate import ERROR_BOUNDS, EstimateQuality
from fairlead.model.limit import Limit
from fairlead.model.stats import Stats

WORKER_STATES = ("active", "draining", "dead")
MOST_BYTES = 16 * 1024 * 1024  # of the series of limits: those of about 80,000 limits
ENDS = ("completed", "failed", "dead_letter", "cancelled")

routes = Routes()


class Collected(Collector):
    """Metrics that have been read already."""

    def __init__(self, *metrics: Metric) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics


def general_metrics(stats: Stats, limits_left_out: int) -> Iterator[Metric]:
    """All metrics but those of single limits."""
    yield gauge("build_info", "Always 1; the label is the version that runs.", {__version__: 1}, "version")
    depths = {priority: queue.depth for priority, queue in stats.queues.items()}
    yield gauge("queue_depth", "Tasks that wait, by effective priority.", depths, "priority")
    ages = {priority: queue.oldest_age_seconds for priority, queue in stats.queues.items()}
    yield gauge("queue_oldest_age_seconds", "How long the oldest of them has waited.", ages, "priority")
    yield gauge("delayed_tasks", "Tasks that are to start later.", stats.delayed)
    found = Counter(worker.state for worker in stats.workers)
    workers = {state: found[state] for state in WORKER_STATES}
    yield gauge("workers", "Workers by state.", workers, "state")
    yield gauge("capacity", "Tasks that the active workers can run at once.", stats.total_capacity)
    yield gauge("capacity_used", "Tasks that workers run.", stats.used_capacity)
    ended = {state: stats.ended_last_minute[state] for state in ENDS}
    yield gauge("tasks_ended_last_minute", "Tasks that ended within a minute.", ended, "status")
    yield from estimate_metrics(stats.estimates)
    yield gauge("lost_events", "Events dropped from the outbox unread.", stats.lost_events)
    left_out = "Limits without series here, because there are too many."
    yield gauge("limits_left_out", left_out, limits_left_out)


def estimate_metrics(quality: EstimateQuality) -> Iterator[Metric]:
    fitted = CounterMetricFamily(
        "fairlead_estimates", "Tasks that waited and started, by whether within p90.", labels=["within_p90"]
    )
    fitted.add_metric(["true"], quality.within_total)
    fitted.add_metric(["false"], quality.beyond_total)
    yield fitted
    counts = quality.errors or [0] * len(ERROR_BOUNDS)
    buckets = [(str(bound), count) for bound, count in zip(ERROR_BOUNDS, counts, strict=True)]
    buckets.append(("+Inf", quality.within_total + quality.beyond_total))
    about = "By how much the p50 of an estimate differed from the wait."
    errors = HistogramMetricFamily("fairlead_estimate_error_seconds", about)
    errors.add_metric([], buckets, quality.error_seconds)
    yield errors


class Family:
    """One gauge with a value for each limit. There may be many limits: they are written a few at a time."""

    def __init__(self, name: str, about: str, number: Callable[[Limit], int]) -> None:
        self._name, self._about, self._number = name, about, number
        self._head = self._written([])
        self.texts = [self._head]

    def add(self, limits: Sequence[Limit]) -> int:
        """Returns how many bytes they take."""
        self.texts.append(self._written(limits)[len(self._head) :])
        return len(self.texts[-1])

    def _written(self, limits: Sequence[Limit]) -> bytes:
        values = {limit.full_name: self._number(limit) for limit in limits}
        return generate_latest(Collected(gauge(self._name, self._about, values, "limit")))


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
    """Get metrics for Prometheus: what waits, runs and ended lately, and the use of each limit."""
    store, of_limits, size, shown = request.store, families(), 0, 0
    async for limits in store.limits.pages():
        for family in of_limits:
            size += family.add(limits)
            await asyncio.sleep(0)  # names may be long: other requests are served between two families
        shown += len(limits)
        if size >= MOST_BYTES:
            break
    left_out = max(0, await store.limits.count() - shown)
    general = generate_latest(Collected(*general_metrics(await store.stats(brief=True), left_out)))
    return b"".join([general, *chain.from_iterable(family.texts for family in of_limits)])
