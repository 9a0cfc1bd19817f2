"""How tasks, limits, workers and the rest look as JSON: the same from the command line and over HTTP."""

from datetime import UTC, datetime, timedelta
from typing import Any

from fairlead.errors import InvalidInput
from fairlead.model.event import Event
from fairlead.model.key import ApiKey
from fairlead.model.limit import Limit, Slot
from fairlead.model.reports import Output
from fairlead.model.stats import Blocker, Explanation, Stats
from fairlead.model.task import Submitted, Task
from fairlead.model.worker import WorkerStats
from fairlead.settings.rates import PERIODS

View = dict[str, Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def time_view(ms: int | None) -> str | None:
    """`2026-01-31T12:00:00.000Z`; reckoned in whole numbers, for a float would lose milliseconds."""
    if ms is None:
        return None
    return (EPOCH + ms * MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def read_time(field: str, text: str) -> int:
    """The ms of an RFC 3339 time; it must say its offset, for nobody knows which zone a bare time means."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            raise ValueError
        return (moment - EPOCH) // MILLISECOND
    except (ValueError, OverflowError):
        example = "2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00"
        raise InvalidInput(field, f"{text!r} is not a time with its offset, such as {example}") from None


def submitted_view(submitted: Submitted) -> View:
    return {
        "task_id": submitted.task_id,
        "status": submitted.status,
        "queue_position": submitted.queue_position,
        "repeated": submitted.repeated,
    }


def task_view(task: Task, queue_position: int | None = None) -> View:
    return {
        "task_id": task.task_id,
        "task_type": task.task_type,
        "status": task.status,
        "priority": task.priority.word,
        "effective_priority": task.effective_priority.word,
        "parameters": task.parameters,
        "user_id": task.user_id,
        "tenant": task.tenant,
        "required_capabilities": list(task.required_capabilities),
        "limits": dict(task.limits),
        "concurrency_group": task.concurrency_group,
        "concurrency_limit": task.concurrency_limit,
        "duration": task.duration,
        "timeout_seconds": task.timeout_ms / 1000,
        "max_retries": task.max_retries,
        "max_wait_seconds": task.max_wait_seconds,
        "delay_seconds": task.delay_seconds,
        "run_at": time_view(task.run_at),
        "idempotency_key": task.idempotency_key,
        "trace_id": task.trace_id,
        "job_id": task.job_id,
        "step": task.step,
        "created_at": time_view(task.created_at),
        "started_at": time_view(task.started_at),
        "completed_at": time_view(task.completed_at),
        "deadline": time_view(task.deadline),
        "attempt": task.attempt,
        "retry_count": task.retry_count,
        "crash_count": task.crash_count,
        "loss_count": task.loss_count,
        "assigned_worker_id": task.assigned_worker_id,
        "fence": task.fence,
        "queue_position": queue_position,
        "progress": _progress_view(task),
        "result": task.result,
        "error": _error_view(task),
    }


def _progress_view(task: Task) -> View | None:
    if task.progress is None:
        return None
    return {"fraction": task.progress.fraction, "message": task.progress.message}


def _error_view(task: Task) -> View | None:
    if task.error is None:
        return None
    error = task.error
    return {
        "code": error.code,
        "message": error.message,
        "retriable": error.retriable,
        "traceback": error.traceback,
    }


def event_view(event: Event) -> View:
    return {
        "task_id": event.task_id,
        "act": event.act,
        "from": event.before,
        "to": event.after,
        "at": time_view(event.at),
        "fence": event.fence,
        "detail": event.detail,
    }


def output_view(output: Output) -> View:
    return {"seq": output.seq, "fence": output.fence, "chunk": output.chunk}


def explanation_view(explanation: Explanation) -> View:
    effective = explanation.effective_priority
    return {
        "task_id": explanation.task_id,
        "status": explanation.state,
        "sentence": explanation.sentence,
        "queue_position": explanation.queue_position,
        "effective_priority": effective if effective is None else effective.word,
        "promoted": explanation.promoted,
        "promotes_at": time_view(explanation.promotes_at),
        "position_in_priority": explanation.position,
        "ahead_by_priority": explanation.ahead,
        "blocked_by": [_blocker_view(blocker) for blocker in explanation.blocked_by],
        "held_for": explanation.held_for,
        "type_paused": explanation.type_paused,
        "no_capable_worker": explanation.no_capable_worker,
        "reserve": explanation.reserve,
        "run_at": time_view(explanation.run_at),
    }


def _blocker_view(blocker: Blocker) -> View:
    return {
        "limit": blocker.limit,
        "needs": blocker.needs,
        "used": blocker.used,
        "of": blocker.of,
        "paused": blocker.paused,
        "free_at": time_view(blocker.free_at),
        "tenant": blocker.tenant,
    }


def limit_view(limit: Limit) -> View:
    view = {
        "name": limit.name,
        "kind": limit.kind,
        "limit": limit.limit,
        "active": limit.active,
        "waiting": limit.waiting,
        "room": limit.room,
        "paused": limit.paused,
        "held_back": limit.hold is not None,
        "shared": limit.shared,
        "tenant": limit.tenant,
    }
    if limit.kind == "rate" and limit.interval_us is not None:
        view |= {"rate": rate_text(limit.interval_us), "burst": limit.limit}
    return view


def limit_and_slots_view(limit: Limit) -> View:
    slots = [_slot_view(slot) for slot in limit.slots]
    return limit_view(limit) | {"group": limit.name, "slots": slots, "has_more_slots": limit.has_more_slots}


def _slot_view(slot: Slot) -> View:
    return {
        "slot_id": slot.lease_id,
        "task_id": slot.lease_id if slot.is_task else None,
        "worker_id": slot.holder,
        "expires_at": time_view(slot.expires_at),
        "units": slot.units,
        "tenant": slot.tenant,
    }


def rate_text(interval_us: int) -> str:
    """The shortest unit in which this interval is a whole number of times: 1000000 is `1/s`, as is 60/min."""
    for unit in ("s", "min", "h", "day"):
        period_us = PERIODS[unit] * 1_000_000
        count = period_us // interval_us
        if count and period_us // count == interval_us:
            return f"{count}/{unit}"
    return f"1 per {interval_us / 1_000_000:g} s"


def worker_view(worker: WorkerStats) -> View:
    return {
        "worker_id": worker.worker_id,
        "name": worker.name,
        "status": worker.state,
        "capacity": worker.capacity,
        "reserve": worker.reserve,
        "current_load": worker.running,
        "capabilities": list(worker.capabilities),
        "task_types": None if worker.task_types is None else list(worker.task_types),
        "version": worker.version,
        "seen_at": time_view(worker.seen),
    }


def key_view(key: ApiKey) -> View:
    return {
        "id": key.id,
        "name": key.name,
        "state": key.state,
        "scopes": list(key.scopes),
        "tenant": key.tenant,
        "created_at": time_view(key.created_at),
        "expires_at": time_view(key.expires_at),
        "revoked_at": time_view(key.revoked_at),
        "last_used_at": time_view(key.last_used_at),
        "replaces": key.replaces,
        "rate": None if key.interval_us is None else rate_text(key.interval_us),
        "max_priority": key.max_priority,
    }


def stats_view(stats: Stats) -> View:
    ended = stats.ended_last_minute
    return {
        "queues": {
            priority: {"depth": queue.depth, "oldest_age_seconds": queue.oldest_age_seconds}
            for priority, queue in stats.queues.items()
        },
        "delayed": stats.delayed,
        "workers": {**_worker_counts(stats), "used_capacity": stats.used_capacity},
        "throughput": {
            "completed_last_minute": ended["completed"],
            "failed_last_minute": ended["failed"] + ended["dead_letter"],
            "cancelled_last_minute": ended["cancelled"],
        },
        "lost_events": stats.lost_events,
    }


def _worker_counts(stats: Stats) -> View:
    """Null for a tenant: the workers are not its own."""
    kinds = ("active", "draining", "dead")
    if stats.held is not None:
        return dict.fromkeys((*kinds, "total_capacity"))
    states = [worker.state for worker in stats.workers]
    return {kind: states.count(kind) for kind in kinds} | {"total_capacity": stats.total_capacity}
