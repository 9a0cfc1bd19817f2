"""The audit: what was changed by hand, and whether the list is intact."""

from typing import Annotated, Any

from msgspec import Meta

from fairlead.model.audit import AuditEntry
from fairlead.shapes.base import Answer, Body, Moment, Shape


class AuditQuery(Body, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    cursor: Annotated[str, Meta(pattern=r"^([0-9]{1,20}-[0-9]{1,20})?$")] = ""


class AuditEntryAnswer(Shape[AuditEntry]):
    seq: int
    at: Moment
    actor: str
    act: str
    subject: str
    before: Any
    after: Any
    reason: str
    previous: str  # hash of the entry before
    hash: str


class AuditAnswer(Answer):
    entries: list[AuditEntryAnswer]
    next_cursor: str | None


class VerifyAnswer(Answer):
    problems: list[str]  # a sentence for each entry that was edited, added or removed
