"""What `fairlead top` shows: what decides the pace, what waits, each limit with who is next, the workers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.cli.table import Table, make_table
from fairlead.clock import now_ms
from fairlead.model.forecast import Forecast, ForecastRun, LimitForecast
from fairlead.model.stats import Stats
from fairlead.model.worker import WorkerStats
from fairlead.shapes.forecast import ForecastAnswer
from fairlead.shapes.stats import StatsAnswer
from fairlead.times import age_text, span_text

PRIORITIES = ("priority", "queued", "oldest")
LIMITS = ("limit", "used", "waiting", "held by", "free in", "next", "starts in", "last starts in", "state")
WORKERS = ("worker", "name", "status", "running", "seen")
LEAST_USED_OF_LIMIT = ("state", "last starts in", "held by", "free in")
LEAST_USED_OF_WORKER = ("name", "seen")
STATES = ("active", "draining", "dead")  # in this order


@dataclass(frozen=True, slots=True)
class Now:
    stats: Stats
    forecast: Forecast

    @property
    def answer(self) -> dict[str, Any]:
        return {
            "stats": StatsAnswer.from_value(self.stats),
            "forecast": ForecastAnswer.from_value(self.forecast),
        }

    def headline(self) -> str:
        waiting = sum(queue.depth for queue in self.stats.queues.values())
        counts = f"{waiting} {'task waits' if waiting == 1 else 'tasks wait'}, {self._running}"
        if self.stats.delayed:
            counts += f", {self.stats.delayed} delayed"
        return f"{counts}. {self._pace()}".rstrip() if waiting else f"{counts}."

    def lately(self) -> str:
        """What has ended, and how true the estimates were; empty if neither is known."""
        ended, quality = self.stats.ended_last_minute, self.stats.estimates
        words = []
        if ended.total():
            failed = ended["failed"] + ended["dead_letter"]
            words.append(f"Last minute: {ended['completed']} completed, {failed} failed.")
        if quality.coverage_p90 is not None:
            words.append(f"Last hour: {quality.coverage_p90:.0%} of {quality.count} waits within p90.")
        return " ".join(words)

    @property
    def _running(self) -> str:
        used = self.stats.used_capacity
        word = "runs" if used == 1 else "run"
        return (
            f"{used} {word}"
            if self.stats.held is not None
            else f"{used} of {self.stats.total_capacity} {word}"
        )

    def _pace(self) -> str:
        """What those that wait the longest wait for."""
        if self.stats.held is None and not self.stats.total_capacity:
            return "There is no worker: start one with `fairlead worker`."
        slowest = max(self._binding(), key=lambda limit: limit.last_start_p50 or 0, default=None)
        if slowest is None:
            return ""
        paused = next((limit for limit in self._binding() if limit.paused), None)
        if paused:
            return f"{_name(paused)} is paused, and {_wait(paused.waiting)} for it."
        left = _seconds_until(slowest.last_start_p50 or 0)
        until = f" The last starts in about {span_text(left)}." if left else ""
        if slowest.kind == "workers":
            return f"All slots of the workers are in use.{until}"
        return f"{_name(slowest)} is full, and {_wait(slowest.waiting)} for it.{until}"

    def _binding(self) -> Iterator[LimitForecast]:
        """Limits that are full, or paused, and waited for."""
        workers = [self.forecast.workers] if self.forecast.workers else []
        for limit in (*self.forecast.limits, *workers):
            if limit.waiting and (limit.paused or limit.active >= limit.limit):
                yield limit

    def tables(self, wanted: str = "") -> list[Table]:
        """`wanted`: only limits and workers whose names contain this."""
        queues = [
            (priority, queue.depth, span_text(queue.oldest_age_seconds) if queue.depth else None)
            for priority, queue in self.stats.queues.items()
        ]
        limits = [limit for limit in self.forecast.limits if wanted in _name(limit)]
        workers = [worker for worker in self.stats.workers if wanted in f"{worker.worker_id} {worker.name}"]
        workers.sort(key=lambda worker: (STATES.index(worker.state), worker.name, worker.worker_id))
        tables = [make_table(PRIORITIES, queues)]
        if limits:
            tables.append(make_table(LIMITS, map(_limit, limits), LEAST_USED_OF_LIMIT))
        if workers:
            tables.append(make_table(WORKERS, map(_worker, workers), LEAST_USED_OF_WORKER))
        return tables


def shortened(tables: Sequence[Table], room: int) -> list[Table]:
    """With rows for this many lines, shared by all tables as evenly as possible."""
    counts, sizes = [0] * len(tables), [len(table.rows) for table in tables]
    free = room - 2 * len(tables)  # headers, and lines between
    while free > 0 and counts != sizes:
        for index, size in enumerate(sizes):
            if counts[index] < size and free > 0:
                counts[index], free = counts[index] + 1, free - 1
    return [
        Table(table.columns, table.rows[:count], table.least_used)
        for table, count in zip(tables, counts, strict=True)
    ]


def _wait(count: int) -> str:
    return "1 waits" if count == 1 else f"{count} wait"


def _limit(limit: LimitForecast) -> tuple[object, ...]:
    runs = [run for track in limit.tracks for run in track.runs]
    held = sorted((run for run in runs if run.is_running), key=lambda run: run.end_p50)
    expected = sorted((run for run in runs if not run.is_running), key=lambda run: run.start_p50)
    first, then = held[:1], expected[:1]
    return (
        _name(limit),
        f"{limit.active} of {limit.limit}",
        limit.waiting or None,
        "".join(map(_who, first)) + (f", {len(held) - 1} more" if len(held) > 1 else ""),
        "".join(_range(run.end_p50, run.end_p90) for run in first),
        "".join(map(_who, then)),
        "".join(_range(run.start_p50, run.start_p90) for run in then),
        span_text(_seconds_until(limit.last_start_p50)) if limit.last_start_p50 is not None else None,
        "paused" if limit.paused else None,
    )


def _worker(worker: WorkerStats) -> tuple[object, ...]:
    seen = f"{age_text(now_ms() - worker.seen)} ago"
    return worker.worker_id, worker.name, worker.state, f"{worker.running} of {worker.capacity}", seen


def _who(run: ForecastRun) -> str:
    if run.foreign:
        return "someone else"
    return " of ".join(filter(None, (run.task_type or "a lease", run.user_id)))


def _range(p50: int, p90: int) -> str:
    """`12 s`, or `12 s to 3 min`."""
    half, most = span_text(_seconds_until(p50)), span_text(_seconds_until(p90))
    return half if half == most else f"{half} to {most}"


def _seconds_until(at: int) -> float:
    return max(0, at - now_ms()) / 1000


def _name(limit: LimitForecast) -> str:
    return limit.name if limit.tenant is None else f"{limit.name} of {limit.tenant}"
