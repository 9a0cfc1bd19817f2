"""The words scripts answer in, as values and errors; and results as scripts take them."""

from typing import Any

from fairlead import errors
from fairlead.checks import to_json
from fairlead.model.priority import Priority
from fairlead.model.reports import Completed, Grant, Handed
from fairlead.model.states import State
from fairlead.model.task import Content, Submitted, Task
from fairlead.model.tenants import plain_name
from fairlead.store.connection import Answer, unpack_handed

#: The words by which a script refuses, each with the error it becomes.
REFUSALS: dict[str, type[errors.FairleadError]] = {
    "unknown_task": errors.UnknownTask,
    "unknown": errors.UnknownTask,
    "unknown_worker": errors.UnknownWorker,
    "unknown_limit": errors.UnknownLimit,
    "key_unknown": errors.UnknownKey,
    "key_ended": errors.KeyEnded,
    "fenced": errors.Fenced,
    "cancelled": errors.Fenced,
    "already_finished": errors.AlreadyFinished,
    "not_replayable": errors.NotReplayable,
    "unknown_job": errors.UnknownJob,
    "step_of_job": errors.StepOfJob,
    "not_purgeable": errors.NotPurgeable,
    "limit_full": errors.LimitFull,
    "conflict": errors.IdempotencyConflict,
}


def packed_result(report: Completed) -> dict[str, Any]:
    return Grant(report.task_id, report.fence).packed() | {"result": to_json("result", report.result)}


def tasks_of(answer: Answer, content: Content) -> list[Task]:
    return [Task.from_record(row["id"], row["fields"], content) for row in answer["tasks"]]


def handed_by(packed: bytes) -> Handed:
    now, (task_id, record) = unpack_handed(packed)
    return Handed(Task.from_record(task_id, record), now)


def expect_ok(answer: Answer) -> Answer:
    word = answer["answer"]
    if word == "ok":
        return answer
    if word == "uninitialised":
        raise errors.NamespaceNotOpen()
    if word == "invalid":
        raise invalid(answer)
    if word == "too_many_units":
        raise errors.InvalidInput(
            "units", f"the limit has {answer['most']} units: that many can never be free", word
        )
    if word == "too_many_limits":
        raise errors.InvalidInput(
            "name", f"the tenant has {answer['most']} limits already: change one of them instead", word
        )
    raise REFUSALS[word]()


def invalid(row: Answer) -> errors.InvalidInput:
    return errors.InvalidInput(row["field"], row["message"], row["code"])


def answer_or_error(row: Answer) -> State | errors.FairleadError:
    """One answer of a batch of reports. A repeated report is answered as the first one was."""
    word = row["answer"]
    if word in ("ok", "repeated"):
        return State(row["state"])
    if word == "invalid":
        return invalid(row)
    return REFUSALS[word]()


def error_or_none(row: Answer) -> errors.FairleadError | None:
    word = row["answer"]
    return None if word == "ok" else REFUSALS[word]()


def submitted_or_error(row: Answer) -> Submitted | errors.FairleadError:
    word = row["answer"]
    if word == "conflict":
        return errors.IdempotencyConflict()
    if word == "invalid":
        return invalid(row)
    if word in ("queue_full", "too_many_types"):
        refusal = _queue_full if word == "queue_full" else _too_many_types
        return refusal(row["setting"], row["waiting"], row["pace"] / 1000 if "pace" in row else None)
    if word == "evicting":
        return errors.StoreUnsafe(
            f"The store's maxmemory-policy is {row['policy']}, so it may throw tasks away and no new work "
            "is accepted: run `CONFIG SET maxmemory-policy noeviction` there."
        )
    if word == "exists":
        priorities = [Priority(row[name]) for name in ("priority", "effective") if name in row]
        return Submitted(row["id"], State(row["state"]), True, None, (), *priorities)
    blocked_by = tuple(map(plain_name, row.get("blocked_by", ())))
    return Submitted(row["id"], State(row["state"]), False, row.get("position"), blocked_by)


def _queue_full(setting: str, waiting: int, retry_after: float | None) -> errors.QueueFull:
    whose = "of this user " if setting == "max_queued_per_user" else ""
    message = f"{waiting} tasks {whose}wait already: come back later, or raise admission.{setting}."
    return errors.QueueFull(message, waiting=waiting, retry_after=retry_after)


def _too_many_types(setting: str, waiting: int, retry_after: float | None) -> errors.TooManyTypes:
    message = (
        f"Tasks of {waiting} types (each with its capabilities) wait already: use fewer types, "
        f"come back when some are done, or raise admission.{setting}."
    )
    return errors.TooManyTypes(message, waiting=waiting, retry_after=retry_after)
