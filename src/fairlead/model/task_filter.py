"""Which tasks a list has."""

from typing import TypedDict


class PastFilter(TypedDict, total=False):
    """What is listed of the past: what was accepted within these times (ms), with what text in the message of
    its error, of which tenant, and what needs this limit."""

    since: int | None
    until: int | None
    error: str | None
    tenant: str | None
    needs: str | None


class TaskFilter(PastFilter, total=False):
    """Which tasks a page lists, and where it begins; what is left out or None may be anything."""

    status: str | None
    priority: str | None
    task_type: str | None
    user_id: str | None
    search: str | None
    limit: int
    cursor: str
