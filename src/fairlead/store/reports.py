"""What goes between a worker and the store: leases, results, failures, and the words scripts answer in."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fairlead import errors
from fairlead.settings import Settings
from fairlead.states import State
from fairlead.store.connection import Answer, pack, text
from fairlead.store.specs import spec_of
from fairlead.task import MOST_SECONDS, NewTask, Task, check_whole, to_json

T = TypeVar("T")
U = TypeVar("U")

#: The words by which a script refuses, each with the error it becomes.
REFUSALS: dict[str, type[errors.FairleadError]] = {
    "unknown_task": errors.UnknownTask,
    "unknown": errors.UnknownTask,
    "unknown_worker": errors.UnknownWorker,
    "unknown_limit": errors.UnknownLimit,
    "fenced": errors.Fenced,
    "cancelled": errors.Fenced,
    "already_finished": errors.AlreadyFinished,
    "not_replayable": errors.NotReplayable,
    "limit_full": errors.LimitFull,
    "conflict": errors.IdempotencyConflict,
}


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

    def packed(self) -> dict[str, Any]:
        check_whole("retry_after_ms", self.retry_after_ms, MOST_SECONDS * 1000)
        check_whole("jitter", self.jitter, 1000)
        return Grant(self.task_id, self.fence).packed() | {
            "code": readable(self.code)[:200],
            "message": readable(self.message)[:4000],
            "retriable": self.retriable,
            "retry_after": self.retry_after_ms,
            "jitter": self.jitter,
        }


def readable(words: str) -> str:
    """What an error says may be anything; a report of it is never refused for that."""
    return words.encode(errors="replace").decode()


@dataclass(frozen=True, slots=True)
class Claimed:
    tasks: list[Task] = field(default_factory=list)
    next_alarm: int | None = None  # ms: nothing becomes runnable by time alone before
    draining: bool = False
    again: bool = False  # much was looked at and found waiting: ask again at once


@dataclass(frozen=True, slots=True)
class Batch:
    """Things to send at once. What cannot be sent is answered with its error, and does not spoil the rest."""

    accepted: list[dict[str, Any]]
    problems: list[errors.FairleadError | None]  # one for each thing asked; None: it is among the accepted

    @classmethod
    def of(cls, things: Iterable[T], form: Callable[[T], dict[str, Any]]) -> "Batch":
        batch = cls([], [])
        for thing in things:
            try:
                batch.accepted.append(form(thing))
                batch.problems.append(None)
            except errors.InvalidInput as problem:
                batch.problems.append(problem)
        return batch

    @property
    def packed(self) -> bytes:
        return pack(self.accepted)

    def answers(self, replies: Iterable[U]) -> "list[U | errors.FairleadError]":
        """In the order in which was asked."""
        waiting = iter(replies)
        return [next(waiting) if problem is None else problem for problem in self.problems]


def expect_ok(answer: Answer) -> Answer:
    word = text(answer[0])
    if word == "ok":
        return answer
    if word == "uninitialised":
        raise errors.StoreFault(
            "The namespace is not open, or the server lost its data: open it, then restore what is missing."
        )
    if word == "too_many_units":
        raise errors.InvalidInput(
            "units", f"the limit has {text(answer[1])} units, so many can never be free", word
        )
    raise REFUSALS[word]()


def answer_or_error(row: list[Any]) -> State | errors.FairleadError:
    """One answer of a batch of reports. A repeated report is answered as the first one was."""
    word = text(row[0])
    if word in ("ok", "repeated"):
        return State(text(row[1]))
    if word == "invalid":
        return errors.InvalidInput(text(row[1]), text(row[3]), text(row[2]))
    return REFUSALS[word]()
