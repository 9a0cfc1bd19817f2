"""One act on a task, as `fairlead task watch --output json` prints it."""

from typing import Any

from fairlead.model.event import Event
from fairlead.shapes.base import Moment, Shape


class EventLine(Shape[Event], rename={"before": "from", "after": "to"}):
    task_id: str
    act: str
    before: str | None
    after: str
    at: Moment
    fence: int
    detail: dict[str, Any]
