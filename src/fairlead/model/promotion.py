"""A waiting task that will be promoted because of its age."""

from dataclasses import dataclass

from fairlead.model.priority import Priority


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    task_id: str
    task_type: str
    user_id: str | None
    tenant: str | None
    before: Priority
    after: Priority
    at: int  # ms
    waiting_since: int
