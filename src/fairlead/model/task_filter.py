"""Which tasks a list has."""

from typing import TypedDict


class TaskFilter(TypedDict, total=False):
    """Which tasks a page lists, and where it begins; what is left out or None may be anything."""

    status: str | None
    priority: str | None
    task_type: str | None
    user_id: str | None
    search: str | None
    limit: int
    cursor: str
