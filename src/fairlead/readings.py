"""The views of `views.py`, read back: what a gateway answered, as the values of the store."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from fairlead.model.job import Job, JobError, JobStatus, JobStep
from fairlead.model.limit import Lease, Limit, Slot
from fairlead.model.priority import NAMED_PRIORITIES
from fairlead.model.reports import Claimed, Output
from fairlead.model.states import State
from fairlead.model.stats import Blocker, Depth, Explanation, Stats
from fairlead.model.task import Submitted, Task, TaskError, TaskProgress
from fairlead.model.worker import Beat, WorkerStats
from fairlead.settings.rates import PERIODS
from fairlead.views import View, read_time

RATE = re.compile(r"([0-9]+)/([a-z]+)|1 per ([0-9.e+-]+) s")

#: What a task is called in the view and in the value alike.
SAME = (
    "task_id",
    "task_type",
    "parameters",
    "max_retries",
    "concurrency_group",
    "concurrency_limit",
    "duration",
    "max_wait_seconds",
    "delay_seconds",
    "user_id",
    "tenant",
    "retry_count",
    "crash_count",
    "loss_count",
    "fence",
    "assigned_worker_id",
    "result",
    "trace_id",
    "job_id",
    "step",
    "idempotency_key",
)


def read_task(view: View) -> Task:
    """Also of a task as a poll shows it, which is the beginning of one."""
    error, progress = view.get("error"), view.get("progress")
    return Task(
        **{name: view[name] for name in SAME if name in view},
        status=State(view.get("status", State.EXECUTING)),
        priority=NAMED_PRIORITIES[view["priority"]],
        effective_priority=NAMED_PRIORITIES[view["effective_priority"]],
        created_at=read_time("created_at", view["created_at"]),
        timeout_ms=round(view["timeout_seconds"] * 1000),
        required_capabilities=tuple(view.get("required_capabilities", ())),
        limits=view.get("limits", {}),
        run_at=_time(view, "run_at"),
        started_at=_time(view, "started_at"),
        deadline=_time(view, "deadline"),
        completed_at=_time(view, "completed_at"),
        error=TaskError(**error) if error else None,
        progress=TaskProgress(**progress) if progress else None,
    )


def _time(view: View, name: str) -> int | None:
    text = view.get(name)
    return None if text is None else read_time(name, text)


def read_submitted(view: View) -> Submitted:
    return Submitted(
        view["task_id"],
        State(view["status"]),
        view["repeated"],
        view["queue_position"],
        tuple(view["blocked_by"]),
    )


def read_job(view: View) -> Job:
    """Of a step, what is told of it in the job's context too. The tenant is that of the key."""
    context, error = view["context"], view["error"]
    return Job(
        job_id=view["id"],
        feature_name=view["feature_name"],
        status=JobStatus(view["status"]),
        input_data=view["input_data"],
        steps=tuple(_step(one, context) for one in view["steps"]),
        current_step_index=view["current_step_index"],
        priority=NAMED_PRIORITIES[view["priority"]],
        original_priority=NAMED_PRIORITIES[view["original_priority"]],
        user_id=view["user_id"],
        tenant=None,
        queued_at=read_time("queued_at", view["queued_at"]),
        last_progress_at=read_time("last_progress_at", view["last_progress_at"]),
        promoted_at=_time(view, "promoted_at"),
        completed_at=_time(view, "completed_at"),
        error=JobError(**error) if error else None,
    )


def _step(view: View, context: Mapping[str, Any]) -> JobStep:
    step = JobStep(index=view["index"], name=view["name"], task_id=view["task_id"], stage=view["stage"])
    attempts = context.get(f"{step.key}__attempts", 0)
    return replace(step, result=context.get(step.key), attempts=attempts)


def read_output(view: View) -> Output:
    """Its number is that of the message that told of it."""
    return Output(view["seq"], view["fence"], view["chunk"], view["seq"])


def read_explanation(view: View) -> Explanation:
    effective = view["effective_priority"]
    return Explanation(
        task_id=view["task_id"],
        state=State(view["status"]),
        effective_priority=None if effective is None else NAMED_PRIORITIES[effective],
        promoted=view["promoted"],
        position=view["position_in_priority"],
        ahead=view["ahead_by_priority"],
        promotes_at=_time(view, "promotes_at"),
        blocked_by=tuple(_blocker(one) for one in view["blocked_by"]),
        held_for=view["held_for"],
        type_paused=view["type_paused"],
        no_capable_worker=view["no_capable_worker"],
        reserve=view["reserve"],
        run_at=_time(view, "run_at"),
    )


def _blocker(view: View) -> Blocker:
    return Blocker(**{**view, "free_at": _time(view, "free_at")})


def read_limit(view: View) -> Limit:
    """Which sub-queue its units are kept back for is not told: it may be another tenant's."""
    return Limit(
        name=view["name"],
        kind=view["kind"],
        limit=view["limit"],
        active=view["active"],
        waiting=view["waiting"],
        room=view["room"],
        paused=view["paused"],
        interval_us=read_rate(view["rate"]) if view.get("rate") else None,
        hold="" if view["held_back"] else None,
        slots=tuple(_slot(one) for one in view.get("slots", ())),
        has_more_slots=view.get("has_more_slots", False),
        tenant=view["tenant"],
        shared=view["shared"],
    )


def read_rate(text: str) -> int:
    """The interval of `60/min` in microseconds."""
    match = RATE.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a rate")
    if match[3]:
        return round(float(match[3]) * 1_000_000)
    return PERIODS[match[2]] * 1_000_000 // int(match[1])


def _slot(view: View) -> Slot:
    return Slot(
        view["slot_id"],
        view["units"],
        view["task_id"] is not None,
        view["worker_id"],
        _time(view, "expires_at"),
        view["tenant"],
    )


def read_lease(limit: str, view: View) -> Lease:
    return Lease(view["lease_id"], limit, view["fence"], read_time("expires_at", view["expires_at"]))


def read_worker(view: View) -> WorkerStats:
    return WorkerStats(
        worker_id=view["worker_id"],
        state=view["status"],
        capacity=view["capacity"],
        running=view["current_load"],
        seen=read_time("seen_at", view["seen_at"]),
        reserve=view["reserve"],
        task_types=None if view["task_types"] is None else tuple(view["task_types"]),
        capabilities=tuple(view["capabilities"]),
        name=view["name"],
        version=view["version"],
    )


def read_stats(view: View, workers: list[WorkerStats]) -> Stats:
    """Dead letters are counted among the failed."""
    ended = ("completed", "failed", "cancelled")
    counts = view["workers"]
    return Stats(
        queues={priority: Depth(**queue) for priority, queue in view["queues"].items()},
        workers=workers,
        delayed=view["delayed"],
        ended_last_minute=Counter({state: view["throughput"][f"{state}_last_minute"] for state in ended}),
        lost_events=view["lost_events"],
        held=counts["used_capacity"] if counts["active"] is None else None,
    )


def read_claimed(view: View) -> Claimed:
    return Claimed(
        tasks=[read_task(one) for one in view["tasks"]],
        now=_time(view, "now") or 0,
        next_alarm=_time(view, "next_alarm"),
        draining=view["draining"],
        again=view["again"],
    )


def read_beat(view: View) -> Beat:
    return Beat(
        state=view["status"],
        now=read_time("now", view["now"]),
        leases=_times(view["leases"]),
        deadlines=_times(view["deadlines"]),
        stopping=_times(view["stopping"]),
        lost=view["lost"],
    )


def _times(by_task: Mapping[str, str]) -> dict[str, int]:
    return {task: read_time(task, at) for task, at in by_task.items()}
