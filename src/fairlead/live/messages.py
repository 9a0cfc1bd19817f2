"""The messages of live updates about a task, made from its events or its state."""

from typing import Any

from msgspec import to_builtins

from fairlead.model.estimate import Estimate
from fairlead.model.event import Event
from fairlead.model.explanation import Explanation
from fairlead.model.priority import Priority
from fairlead.model.reports import Output
from fairlead.model.states import State
from fairlead.model.task import HALTED, Task
from fairlead.shapes.estimate import EstimateAnswer
from fairlead.shapes.task import BlockerAnswer
from fairlead.times import time_text

Message = dict[str, Any]

FROM_STATE = {
    State.QUEUED: "QUEUED",
    State.DELAYED: "QUEUED",
    State.EXECUTING: "STEP_START",
    State.COMPLETED: "JOB_COMPLETE",
    State.FAILED: "JOB_FAILED",
    State.DEAD_LETTER: "JOB_FAILED",
    State.CANCELLED: "CANCELLED",
}


def event_message(event: Event, explanation: Explanation | None = None) -> Message:
    """The message of an event that does not end the task. `explanation`: why a queued task waits."""
    kind, facts = _read(event)
    message = _message(kind, event.seq, event.task_id, event.at)
    if kind in ("QUEUED", "RETRY"):
        facts = {"status": event.after, **facts, **_queue_facts(explanation)}
    return message | facts


def _read(event: Event) -> tuple[str, Message]:
    """The type of the message, and its own fields."""
    detail = event.detail
    match event.act:
        case "claim":
            bounds = detail.get("tier"), detail.get("deadline")  # events of an older version have neither
            return "STEP_START", _start_facts(detail["worker"], event.fence, *bounds)
        case "progress":
            return "PROGRESS", {"fraction": detail["fraction"], "message": detail["message"]}
        case "output":
            return "OUTPUT", {"chunk": detail["chunk"], "fence": event.fence}
        case "extend":
            return "EXTENDED", {"deadline": time_text(detail["deadline"])}
        case "shorten":
            facts = {"tier": detail["tier"], "reason": detail["reason"]}
            return "DOWNGRADED", facts | {"deadline": time_text(detail["deadline"])}
        case "promote" if "from" in detail:
            return "JOB_PROMOTED", {"old": _class(detail["from"]), "new": _class(detail["to"])}
        case "fail" | "expire" if "retries" in detail:
            delay = detail["delay"] / 1000
            return "RETRY", {"code": detail["code"], "delay_seconds": delay, "retries": detail["retries"]}
        case "fail" | "expire" if event.after is State.QUEUED:
            return "QUEUED", {"code": detail["code"], "crashes": detail["crashes"]}
    return FROM_STATE[event.after], {}


def state_messages(task: Task, explanation: Explanation | None = None) -> list[Message]:
    """The current state. Each message has the number of the last event, which the state includes."""
    at = task.completed_at or task.started_at or task.created_at
    first = _message(FROM_STATE[task.status], task.seq, task.task_id, at)
    if task.status in (State.QUEUED, State.DELAYED):
        first |= {"status": task.status, "run_at": time_text(task.run_at), **_queue_facts(explanation)}
        return [first, *waiting_messages(task.seq, at, explanation)]
    if task.status is State.EXECUTING:
        start = first | _start_facts(task.assigned_worker_id, task.fence, task.tier, task.deadline)
        if task.progress is None:
            return [start]
        said = {"fraction": task.progress.fraction, "message": task.progress.message}
        return [start, first | {"type": "PROGRESS"} | said]
    if task.status is State.COMPLETED:
        return [first | {"result": task.result, "truncated": task.truncated}]
    error = task.error
    if error and task.status is not State.CANCELLED:
        return [first | {"code": error.code, "message": error.message, "retryable": error.retriable}]
    if error and error.code == HALTED:  # any other is that of an earlier run
        return [first | {"code": error.code, "message": error.message}]
    return [first]


def _start_facts(worker: str | None, fence: int, tier: str | None, deadline: int | None) -> Message:
    return {"worker_id": worker, "fence": fence, "tier": tier, "deadline": time_text(deadline)}


def waiting_messages(seq: int, at: int, explanation: Explanation | None) -> list[Message]:
    """The limits that the task waits for, and the estimate of its wait, as far as there are any."""
    if not explanation:
        return []
    messages = []
    if explanation.blocked_by:
        limits = [to_builtins(BlockerAnswer.from_value(one)) for one in explanation.blocked_by]
        messages.append(_message("WAITING", seq, explanation.task_id, at) | {"limits": limits})
    if explanation.estimate:
        messages.append(estimate_message(seq, explanation.task_id, explanation.estimate))
    return messages


def estimate_message(seq: int, task_id: str, estimate: Estimate) -> Message:
    """`seq` is that of the message before it: an estimate is no event of the task."""
    facts = {"estimate": to_builtins(EstimateAnswer.from_value(estimate))}
    return _message("ESTIMATE", seq, task_id, estimate.at) | facts


def output_message(task_id: str, output: Output) -> Message:
    """The message of a chunk that was kept: the same as the one of its event."""
    facts = {"chunk": output.chunk, "fence": output.fence}
    return _message("OUTPUT", output.event_seq, task_id, output.at) | facts


def _message(kind: str, seq: int, task_id: str, at: int) -> Message:
    return {"type": kind, "seq": seq, "task_id": task_id, "at": time_text(at)}


def _queue_facts(explanation: Explanation | None) -> Message:
    if explanation is None or explanation.effective_priority is None:  # it may have been claimed since
        return {}
    return {
        "queue_position": explanation.queue_position,
        "effective_priority": explanation.effective_priority.word,
    }


def _class(place: str) -> str:
    return Priority(int(place[0])).word
