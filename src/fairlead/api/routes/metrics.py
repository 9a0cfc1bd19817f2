"""Metrics for Prometheus, read from the store at each scrape: every server returns the same."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from fairlead import __version__
from fairlead.api.exposition import MEDIA, Lines, counter, gauge, gauges, histogram, page
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.model.estimate import ERROR_BOUNDS, EstimateQuality
from fairlead.model.metrics import BOUNDS, SERVED_BOUNDS, Histogram, Labels, LimitUse, Metrics
from fairlead.model.priority import NAMED_PRIORITIES, PRIORITIES
from fairlead.model.stats import Stats

WORKER_STATES = ("active", "draining", "dead")
ENDS = ("completed", "failed", "dead_letter", "cancelled")
PROMOTIONS = (("low", "medium"), ("low", "high"), ("medium", "high"))

T = TypeVar("T")

routes = Routes()


@routes.get("/metrics", scope="metrics", for_all_tenants=True, answer=str, media=MEDIA)
async def metrics(request: Request) -> bytes:
    """Get metrics for Prometheus: what waits, runs and has happened, and the use of limits."""
    store, gateway = request.store, request.gateway
    await gateway.tally.add()  # what this process has counted: that of the others is seconds old
    shown, count = await store.metrics.limits_shown()
    slots = [use for use in shown if use.is_slots]
    left_out = max(0, count - len(shown))
    if left_out:
        every_other, other_slots = await gateway.other_limits.sums([use.name for use in shown])
        shown, slots = [*shown, every_other], [*slots, other_slots]
    counted, stats = await store.metrics.read(), await store.stats(brief=True)
    reasons = {(reason,): 1 for reason in gateway.readiness.reasons}
    return page(
        [
            *_of_queues(stats, counted),
            *_of_tasks(stats, counted),
            *_of_workers(stats, counted),
            *_of_limits(shown, slots, counted, left_out),
            *_of_estimates(stats.estimates),
            *_of_servers(counted),
            *_of_history(stats),
            gauges("not_ready", "1 for each reason why the server is not ready.", reasons, "reason"),
            gauges(
                "build_info", "Always 1; the label is the version that runs.", {(__version__,): 1}, "version"
            ),
        ]
    )


def _of_queues(stats: Stats, counted: Metrics) -> Iterator[Lines]:
    depths = {(name,): queue.depth for name, queue in stats.queues.items()}
    yield gauges("queue_depth", "Tasks that wait, by effective priority.", depths, "priority")
    oldest = {(name,): queue.oldest_age_seconds for name, queue in stats.queues.items()}
    yield gauges("queue_oldest_age_seconds", "How long the oldest of them has waited.", oldest, "priority")
    ages = {
        (name, f"p{share:.0%}"[:-1]): age for name, of in counted.ages.items() for share, age in of.items()
    }
    yield gauges(
        "queue_age_seconds", "How long this share of them has waited at most.", ages, "priority", "percentile"
    )
    yield gauge("delayed_tasks", "Tasks that are to start later.", stats.delayed)


def _of_tasks(stats: Stats, counted: Metrics) -> Iterator[Lines]:
    counters, waits, runs = counted.counters, counted.histograms["wait"], counted.histograms["run"]
    for priority in PRIORITIES:
        waits[(priority,)]  # every one is shown, also if nothing has happened
    ended: Counter[Labels] = Counter(
        {(priority, end): counters["ended"][priority, end] for priority in PRIORITIES for end in ENDS}
    )
    for labels, found in runs.items():
        ended[labels] += found.buckets.total()
    submitted: dict[Labels, int] = {(priority,): counters["submitted"][priority,] for priority in PRIORITIES}
    started = {labels: found.buckets.total() for labels, found in waits.items()}
    yield counter("tasks_submitted_total", "Tasks that were accepted.", _named(submitted), "priority")
    yield counter("tasks_started_total", "Starts of tasks, retries among them.", _named(started), "priority")
    yield counter("tasks_ended_total", "Tasks that ended.", _named(ended), "priority", "status")
    yield counter(
        "task_retries_total",
        "Runs that failed and were repeated.",
        _named(counters["retries"]),
        "priority",
        "reason",
    )
    yield counter("tasks_failed_total", "Tasks that failed for good.", counters["failed"], "reason")
    dead = sum(count for (_, end), count in ended.items() if end in ("failed", "dead_letter"))
    yield counter("tasks_dlq_total", "Tasks that became dead letters.", {(): dead})
    risen = {pair: counters["promoted"][_numbers(pair)] for pair in PROMOTIONS}
    yield counter("tasks_promoted_total", "Promotions, by effective priority.", risen, "from", "to")
    about = "How long tasks had waited that started."
    yield histogram("task_wait_seconds", about, BOUNDS, _named(waits), "priority")
    about = "How long the last run of ended tasks took."
    yield histogram("task_duration_seconds", about, BOUNDS, _named(runs), "priority", "status")
    now = {"queued": sum(queue.depth for queue in stats.queues.values()), "delayed": stats.delayed}
    states = now | {"executing": stats.used_capacity}
    yield gauges("task_state", "Tasks that have not ended.", _labelled(states), "status")
    lately = {end: stats.ended_last_minute[end] for end in ENDS}
    yield gauges("tasks_ended_last_minute", "Tasks that ended within a minute.", _labelled(lately), "status")
    yield gauge("dead_letters", "Dead letters that are kept.", counted.dead_letters)


def _of_workers(stats: Stats, counted: Metrics) -> Iterator[Lines]:
    found = Counter(worker.state for worker in stats.workers)
    workers = _labelled({state: found[state] for state in WORKER_STATES})
    yield gauges("workers", "Workers by state.", workers, "state")
    yield gauges("workers_total", "The same.", workers, "status")
    yield gauge("capacity", "Tasks that the active workers can run at once.", stats.total_capacity)
    yield gauge("capacity_used", "Tasks that workers run.", stats.used_capacity)
    used = stats.used_capacity / stats.total_capacity if stats.total_capacity else 0.0
    yield gauge("worker_capacity_used_ratio", "Used by total capacity; 0 without workers.", used)
    lost = counted.counters["workers_lost"][()]
    yield counter("worker_heartbeat_failures_total", "Workers that fell silent.", {(): lost})


def _of_limits(
    shown: Sequence[LimitUse], slots: Sequence[LimitUse], counted: Metrics, left_out: int
) -> Iterator[Lines]:
    units = {(use.name,): use.limit for use in shown}
    yield gauges("limit", "Units of a limit: slots, or the burst of a rate.", units, "limit")
    yield gauges("limit_active", "Units that are held.", {(use.name,): use.active for use in shown}, "limit")
    waiting = {(use.name,): use.waiting for use in shown}
    yield gauges("limit_waiting", "Tasks and acquires that wait for it.", waiting, "limit")
    yield gauge("limits_left_out", "Limits without series of their own: they are in `other`.", left_out)
    active, most = [{(use.name,): getattr(use, of) for use in slots} for of in ("active", "limit")]
    yield gauges("concurrency_slots_active", "Slots that are held.", active, "group")
    yield gauges("concurrency_slots_limit", "Slots that there are.", most, "group")
    waits = counted.histograms["acquired"]
    taken: Counter[Labels] = Counter(
        {(*of, "acquired"): found.buckets.total() for of, found in waits.items()}
    )
    taken.update({(*of, "rejected"): count for of, count in counted.counters["rejected"].items()})
    about = "Units taken by tasks and leases, and acquires that got none."
    yield counter("concurrency_acquisition_total", about, taken, "group", "result")
    yield histogram("concurrency_wait_seconds", "How long they had waited.", BOUNDS, waits, "group")


def _of_estimates(quality: EstimateQuality) -> Iterator[Lines]:
    fitted = {("true",): quality.within_total, ("false",): quality.beyond_total}
    about = "Tasks that waited and started, by whether within p90."
    yield counter("estimates_total", about, fitted, "within_p90")
    counts = [*(quality.errors or [0] * len(ERROR_BOUNDS)), quality.within_total + quality.beyond_total]
    parts = [after - before for before, after in zip([0, *counts], counts, strict=False)]
    errors = Histogram(Counter(dict(enumerate(parts, 1))), round(quality.error_seconds * 1000))
    about = "By how much the p50 of an estimate differed from the wait."
    yield histogram("estimate_error_seconds", about, ERROR_BOUNDS, {(): errors})


def _of_history(stats: Stats) -> Iterator[Lines]:
    lag = {} if stats.history_lag_seconds is None else {(): stats.history_lag_seconds}
    yield gauges("history_lag_seconds", "How long the oldest unrecorded event has waited.", lag)
    waiting = {(): stats.unrecorded_events} if lag else {}
    yield gauges("unrecorded_events", "Events that wait to be recorded.", waiting)
    yield gauge("lost_events", "Events dropped from the outbox unread.", stats.lost_events)


def _of_servers(counted: Metrics) -> Iterator[Lines]:
    histograms = counted.histograms
    requests = {(route, status): count for (status, route), count in counted.counters["requests"].items()}
    yield counter("http_requests_total", "Requests to servers.", requests, "route", "status")
    about = "How long requests took; long polls wait."
    yield histogram("http_request_seconds", about, SERVED_BOUNDS, histograms["request"], "route")
    about = "How long servers waited for acts of the store."
    yield histogram("store_call_seconds", about, SERVED_BOUNDS, histograms["call"], "act")
    yield gauge(
        "event_loop_lag_seconds", "By how much an event loop of a server was late.", counted.lag_seconds
    )


def _labelled(values: Mapping[str, int]) -> dict[Labels, int]:
    return {(word,): value for word, value in values.items()}


def _named(found: Mapping[Labels, T]) -> dict[Labels, T]:
    """With the priority, which is the first label, in words."""
    return {(PRIORITIES[labels[0]].word, *labels[1:]): value for labels, value in sorted(found.items())}


def _numbers(names: Labels) -> Labels:
    return tuple(str(int(NAMED_PRIORITIES[name])) for name in names)
