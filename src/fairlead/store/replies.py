"""The words that acts answer in, as values and errors."""

from collections.abc import Callable
from typing import Any

import msgspec

from fairlead import errors
from fairlead.model.job import JobStatus
from fairlead.model.priority import Priority
from fairlead.model.reports import Handed
from fairlead.model.states import State
from fairlead.model.task import Content, Submitted, Task
from fairlead.model.tenants import plain_name
from fairlead.store.connection import Answer, unpack_handed

#: The words by which an act refuses, each with the error it becomes.
REFUSALS: dict[str, type[errors.FairleadError]] = {
    "uninitialised": errors.NamespaceNotOpen,
    "unknown_task": errors.UnknownTask,
    "unknown_worker": errors.UnknownWorker,
    "unknown_limit": errors.UnknownLimit,
    "key_unknown": errors.UnknownKey,
    "key_ended": errors.KeyEnded,
    "fenced": errors.Fenced,
    "cancelled": errors.Fenced,
    "unknown": errors.Fenced,
    "not_replayable": errors.NotReplayable,
    "unknown_job": errors.UnknownJob,
    "step_of_job": errors.StepOfJob,
    "not_purgeable": errors.NotPurgeable,
    "limit_full": errors.LimitFull,
    "conflict": errors.IdempotencyConflict,
}


def expect_ok(answer: Answer, *accepted: str) -> Answer:
    """Raises the error of a refusal. `accepted`: words besides `ok` that are not one."""
    if problem := refusal(answer, *accepted):
        raise problem
    return answer


def refusal(answer: Answer, *accepted: str) -> errors.FairleadError | None:
    word = answer["answer"]
    if word == "ok" or word in accepted:
        return None
    return DETAILED[word](answer) if word in DETAILED else REFUSALS[word]()


def _invalid(answer: Answer) -> errors.InvalidInput:
    return errors.InvalidInput(answer["field"], answer["message"], answer["code"])


def _too_many_units(answer: Answer) -> errors.InvalidInput:
    message = f"the limit has {answer['most']} units: that many can never be free"
    return errors.InvalidInput("units", message, "too_many_units")


def _too_many_limits(answer: Answer) -> errors.InvalidInput:
    message = f"the tenant has {answer['most']} limits already: change one of them instead"
    return errors.InvalidInput("name", message, "too_many_limits")


def _busy(answer: Answer) -> errors.InvalidInput:
    message = f"still holds {answer['running']} tasks: report or release them first"
    return errors.InvalidInput("worker_id", message)


def _queue_full(answer: Answer) -> errors.QueueFull:
    whose = "of this user " if answer["setting"] == "max_queued_per_user" else ""
    message = f"tasks {whose}wait already: come back later, or raise admission.{answer['setting']}."
    return errors.QueueFull(f"{answer['waiting']} {message}", **_load(answer))


def _too_many_types(answer: Answer) -> errors.TooManyTypes:
    message = (
        f"Tasks of {answer['waiting']} types (each with its capabilities) wait already: use fewer types, "
        f"come back when some are done, or raise admission.{answer['setting']}."
    )
    return errors.TooManyTypes(message, **_load(answer))


def _load(answer: Answer) -> dict[str, Any]:
    retry_after = answer["pace"] / 1000 if "pace" in answer else None
    return {"waiting": answer["waiting"], "retry_after": retry_after}


def _evicting(answer: Answer) -> errors.StoreUnsafe:
    return errors.StoreUnsafe(
        f"The store's maxmemory-policy is {answer['policy']}, so it may throw tasks away and no new work "
        "is accepted: run `CONFIG SET maxmemory-policy noeviction` there."
    )


def _rate_limited(answer: Answer) -> errors.RateLimited:
    return errors.RateLimited(retry_after=answer["wait"] / 1000)


def _already_finished(answer: Answer) -> errors.AlreadyFinished:
    if "status" not in answer:
        return errors.AlreadyFinished()
    return errors.AlreadyFinished(f"The job is {answer['status']} already: nothing was changed.")


def _not_resumable(answer: Answer) -> errors.NotResumable:
    if answer["status"] != JobStatus.FAILED:
        return errors.NotResumable(f"The job is {answer['status']}: only a failed one can be resumed.")
    problem = msgspec.json.decode(answer["error"])
    why = f"step {problem['step']} failed for good ({problem['code']}: {problem['message']})"
    return errors.NotResumable(f"The job cannot be resumed: {why}. Submit a new one.")


#: Refusals whose message has facts of the answer.
DETAILED: dict[str, Callable[[Answer], errors.FairleadError]] = {
    "invalid": _invalid,
    "too_many_units": _too_many_units,
    "too_many_limits": _too_many_limits,
    "busy": _busy,
    "queue_full": _queue_full,
    "too_many_types": _too_many_types,
    "evicting": _evicting,
    "rate_limited": _rate_limited,
    "already_finished": _already_finished,
    "not_resumable": _not_resumable,
}


def state_or_error(row: Answer) -> State | errors.FairleadError:
    """A repeated report is answered as the first one was."""
    return refusal(row, "repeated") or State(row["state"])


def submitted_or_error(row: Answer) -> Submitted | errors.FairleadError:
    return refusal(row, "exists") or submitted(row)


def submitted(row: Answer) -> Submitted:
    """Raises the error of a refusal."""
    if expect_ok(row, "exists")["answer"] == "exists":
        priorities = [Priority(row[name]) for name in ("priority", "effective") if name in row]
        return Submitted(row["id"], State(row["state"]), True, None, (), *priorities)
    blocked_by = tuple(map(plain_name, row.get("blocked_by", ())))
    return Submitted(row["id"], State(row["state"]), False, row.get("position"), blocked_by)


def tasks_of(answer: Answer, content: Content) -> list[Task]:
    return [Task.from_record(row["id"], row["fields"], content) for row in answer["tasks"]]


def handed_by(packed: bytes) -> Handed:
    now, (task_id, record) = unpack_handed(packed)
    return Handed(Task.from_record(task_id, record), now)
