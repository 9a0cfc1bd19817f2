"""What has happened to a task: its events, and its runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """A transition; `before` is "" for a new task."""

    seq: int  # among the events of the task
    at: int  # ms
    act: str
    before: str
    after: str
    worker_id: str | None
    fence: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run; what is None is not known, or has not happened."""

    fence: int
    worker_id: str | None
    started_at: int | None
    ended_at: int | None
    ended_by: str | None  # the act
    error_code: str | None
    error: str | None
    traceback: str | None


@dataclass(frozen=True, slots=True)
class TaskHistory:
    events: list[HistoryEvent] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
