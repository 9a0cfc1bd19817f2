"""What has happened to a task."""

from fairlead.model.task_history import Attempt, HistoryEvent, TaskHistory
from fairlead.shapes.base import Json, Moment, Shape


class HistoryEventAnswer(Shape[HistoryEvent], rename={"before": "from", "after": "to"}):
    seq: int
    at: Moment
    act: str
    before: str
    after: str
    worker_id: str | None
    fence: int
    data: Json


class AttemptAnswer(Shape[Attempt]):
    """One run of the task."""

    fence: int
    worker_id: str | None
    started_at: Moment | None
    ended_at: Moment | None
    ended_by: str | None  # the act
    error_code: str | None
    error: str | None
    traceback: str | None


class HistoryAnswer(Shape[TaskHistory]):
    events: list[HistoryEventAnswer]
    attempts: list[AttemptAnswer]
