"""Dead letters: tasks that failed for good or were given up. Which of them are meant."""

from collections.abc import Mapping
from typing import Any

import msgspec

from fairlead.checks import check_name, check_short, check_time
from fairlead.errors import InvalidInput, UnknownTask
from fairlead.model.states import REPLAYABLE, State
from fairlead.model.task import Task


class DeadFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which dead letters are meant; what is None may be anything. Times are ms, of when they ended."""

    status: str | None = None
    task_type: str | None = None
    user_id: str | None = None
    tenant: str | None = None
    code: str | None = None
    text: str | None = None  # in the message of the error, in any case
    since: int | None = None
    until: int | None = None  # inclusive

    def check(self) -> None:
        """Raises InvalidInput."""
        if self.status not in (None, *REPLAYABLE):
            raise InvalidInput("status", f"{self.status!r} is not one of {', '.join(sorted(REPLAYABLE))}")
        if self.task_type is not None:
            check_name("task_type", self.task_type)
        for name in ("user_id", "tenant", "code", "text"):
            check_short(name, getattr(self, name))
        for name in ("since", "until"):
            if (time := getattr(self, name)) is not None:
                check_time(name, time)

    @property
    def asks_for_times_alone(self) -> bool:
        """The record of a dead letter need not be read to know whether it is meant."""
        return self == DeadFilter(tenant=self.tenant, since=self.since, until=self.until)

    def fits(self, record: Mapping[str, Any]) -> bool:
        """Whether a stored record of a dead letter is meant, by what is in the record."""
        wishes = {"state": self.status, "type": self.task_type, "user_id": self.user_id}
        if any(wish not in (None, record.get(name)) for name, wish in wishes.items()):
            return False
        if self.code is None and self.text is None:
            return True
        error = msgspec.json.decode(record.get("error", '{"code":"","message":""}'))
        return self.code in (None, error["code"]) and (self.text or "").lower() in error["message"].lower()


ALL_DEAD = DeadFilter()


def check_dead(task: Task) -> None:
    if task.status not in REPLAYABLE:
        raise UnknownTask("There is no such dead letter: the task was replayed, or has not failed.")


def why_dead(task: Task) -> str:
    """Why a dead letter is one, in one sentence."""
    code = task.error.code if task.error else "no error"
    if code == "worker_lost" and not task.crash_count:
        return f"{task.loss_count} workers were lost with it."
    if code in ("worker_lost", "handler_died") and task.crash_count:
        return f"What ran it died {_times(task.crash_count)}: it is probably the cause."
    if task.started_at is None:
        return f"It was never started ({code})."
    if task.status is State.FAILED:
        return f"Its run failed with {code}, which is not retried."
    return f"It failed {_times(task.retry_count + 1)}, the last time with {code}: no retries are left."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
