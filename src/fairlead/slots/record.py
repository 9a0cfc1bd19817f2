"""What the object of a slot says, and what may be done with it."""

from typing import Literal

import msgspec

from fairlead.errors import InvalidInput
from fairlead.slots.objects import MOST_BYTES
from fairlead.times import read_time, time_text

#: A damaged record does not say who holds the slot; it counts as held.
State = Literal["free", "held", "expired", "damaged"]


class Record(msgspec.Struct, frozen=True):
    """`fence` counts the holders the slot has had. The object is never deleted, so that it only grows."""

    fence: int
    task_id: str | None = None
    worker_id: str | None = None
    expires_at: str | None = None  # RFC 3339, by the clock of the holder; None: the slot is free
    token: str | None = None  # of this lease, known to its holder

    @property
    def expires_ms(self) -> int:
        return 0 if self.expires_at is None else read_time("expires_at", self.expires_at)


NEVER_USED = Record(0)


def read_record(content: bytes | None) -> Record | None:
    """None: it is damaged. No content: the slot was never used."""
    if content is None:
        return NEVER_USED
    if len(content) > MOST_BYTES:
        return None
    try:
        record = msgspec.json.decode(content, type=Record)
        record.expires_ms  # noqa: B018 - it raises
    except (msgspec.DecodeError, InvalidInput):
        return None
    return record if record.fence >= 0 else None


def write_record(record: Record) -> bytes:
    return msgspec.json.encode(record)


def state_of(record: Record | None, now: int, skew_ms: int) -> State:
    """Expired: by every clock that differs from the holder's by at most `skew_ms`."""
    if record is None:
        return "damaged"
    if record.expires_at is None:
        return "free"
    return "expired" if now > record.expires_ms + skew_ms else "held"


def taken(record: Record, worker_id: str, task_id: str | None, expires_ms: int, token: str) -> Record:
    return Record(record.fence + 1, task_id, worker_id, time_text(expires_ms), token)


def extended(record: Record, expires_ms: int) -> Record:
    return msgspec.structs.replace(record, expires_at=time_text(max(expires_ms, record.expires_ms)))


def freed(record: Record | None, now: int) -> Record:
    """The fence of a damaged record is lost; milliseconds since 1970 are more than a slot has holders."""
    return Record(now if record is None else record.fence)
