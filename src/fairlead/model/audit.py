"""An entry of the audit: what was changed by hand, by whom and why."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    seq: int
    at: int  # ms
    actor: str
    act: str
    subject: str
    before: Any
    after: Any
    reason: str
    previous: str  # the hash of the entry before
    hash: str = ""


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Entries, the latest first; `next_cursor` is "" when there are no more."""

    entries: list[AuditEntry]
    next_cursor: str = ""
