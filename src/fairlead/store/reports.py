"""What goes between a worker and the store: leases, results, failures, and the words scripts answer in."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead import errors
from fairlead.checks import MOST_SECONDS, check_fraction, check_units, check_whole, to_json
from fairlead.log.secrets import redacted
from fairlead.log.tracebacks import readable, shortened
from fairlead.priority import Priority
from fairlead.settings import Settings
from fairlead.states import State
from fairlead.store.connection import Answer, unpack_handed
from fairlead.store.specs import spec_of
from fairlead.task import Content, NewTask, Task
from fairlead.tenants import plain_name

MOST_FOLLOW = 199  # tasks: they are accepted in one act with the result, or none of them is
MOST_TRACEBACK = 4096  # bytes of the traceback of the last failure that are kept with a task
MOST_CHUNKS = 1_000
MOST_CHUNK_BYTES = 64 * 1024

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


@dataclass(frozen=True, slots=True)
class Submitted:
    """`queue_position`: 1 + all that were queued in its priority or a better one; None: it is not queued."""

    task_id: str
    status: State
    repeated: bool = False  # the same id or idempotency key was accepted before
    queue_position: int | None = None
    blocked_by: tuple[str, ...] = ()  # limits that had no room for it when it was queued
    #: of a task that was accepted before, has ended, and is remembered by its idempotency key alone
    priority: Priority | None = None
    effective_priority: Priority | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease as its holder names it. Without a fence the worker must hold the current lease."""

    id: str
    fence: int | None = None

    def packed(self) -> dict[str, Any]:
        return {"id": self.id} if self.fence is None else {"id": self.id, "fence": str(self.fence)}


@dataclass(frozen=True, slots=True)
class Completed:
    task_id: str
    fence: int | None = None
    result: Any = None
    follow: Sequence[NewTask] = ()  # tasks to submit in the same step

    def packed(self, settings: Settings) -> dict[str, Any]:
        report = Grant(self.task_id, self.fence).packed()
        report["result"] = to_json("result", self.result)
        if len(self.follow) > MOST_FOLLOW:
            raise errors.InvalidInput(
                "follow", f"are {len(self.follow)} tasks, at most {MOST_FOLLOW} are accepted"
            )
        if self.follow:
            report["follow"] = [spec_of(task, settings) for task in self.follow]
        return report


@dataclass(frozen=True, slots=True)
class Failed:
    task_id: str
    fence: int | None = None
    code: str = "error"
    message: str = ""
    retriable: bool = True
    retry_after_ms: int = 0
    jitter: int = field(default_factory=lambda: random.randint(0, 1000))  # thousandths of the random half
    crashed: bool = False  # what ran it died, its worker lives: counted as a crash, not as a failure
    traceback: str = ""  # of the handler; the middle of a long one is left out

    def packed(self) -> dict[str, Any]:
        traceback = shortened(redacted(readable(self.traceback)), MOST_TRACEBACK)
        check_whole("retry_after_ms", self.retry_after_ms, MOST_SECONDS * 1000)
        check_whole("jitter", self.jitter, 1000)
        return (
            Grant(self.task_id, self.fence).packed()
            | {
                "code": readable(self.code)[:200],
                "message": readable(self.message)[:4000],
                "retriable": self.retriable,
                "retry_after": self.retry_after_ms,
                "jitter": self.jitter,
                "crashed": self.crashed,
            }
            | ({"traceback": traceback} if traceback else {})
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """What a handler tells while it runs. Without fraction and message what it told before stands."""

    task_id: str
    fence: int | None = None
    fraction: float | None = None  # from 0 to 1
    message: str = ""
    chunks: Sequence[Any] = ()  # of output, each any JSON
    first: int | None = None  # the number of the first chunk in this run, from 1: repeated, it is kept once

    def packed(self) -> dict[str, Any]:
        report = Grant(self.task_id, self.fence).packed()
        check_fraction("fraction", self.fraction)
        if not isinstance(self.message, str):
            raise errors.InvalidInput("message", "is not a text")
        if self.fraction is not None or self.message:
            told = {"fraction": self.fraction, "message": readable(self.message)[:4000]}
            report["progress"] = to_json("progress", told)
        return report | self._packed_chunks()

    def _packed_chunks(self) -> dict[str, Any]:
        if isinstance(self.chunks, str) or not isinstance(self.chunks, Sequence):
            raise errors.InvalidInput("chunks", "is not a list")
        if len(self.chunks) > MOST_CHUNKS:
            raise errors.InvalidInput("chunks", f"are {len(self.chunks)}, at most {MOST_CHUNKS} at once")
        if self.first is not None:
            check_units("first", self.first)
        if not self.chunks:
            return {}
        packed = [to_json(f"chunks[{i}]", chunk, MOST_CHUNK_BYTES) for i, chunk in enumerate(self.chunks)]
        return {"chunks": packed} | ({} if self.first is None else {"first": self.first})


@dataclass(frozen=True, slots=True)
class Output:
    """A chunk of output. `seq` grows over all runs of the task, `fence` tells the run."""

    seq: int
    fence: int
    chunk: Any
    event_seq: int = 0  # the number of the event that told of it
    at: int = 0  # ms


@dataclass(frozen=True, slots=True)
class Handed:
    """A task that came with a call: it is the worker's already."""

    task: Task
    now: int  # ms by the store's clock, when its lease began


@dataclass(frozen=True, slots=True)
class Claimed:
    tasks: list[Task] = field(default_factory=list)
    now: int = 0  # ms by the store's clock
    next_alarm: int | None = None  # ms: nothing becomes runnable by time alone before
    draining: bool = False
    again: bool = False  # there may be more that did not fit into this act: ask again at once


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
