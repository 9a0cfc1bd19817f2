"""A slot that is held, and what is known of all slots of a group."""

import msgspec

from fairlead.errors import InvalidInput
from fairlead.slots.record import Record, State

MOST_SLOTS = 1000  # of a group: whoever finds it full has read them all


class Slot(msgspec.Struct, frozen=True):
    """A lease. `fence` is greater than that of every earlier holder of this slot."""

    group: str
    slot_id: int
    fence: int
    worker_id: str
    task_id: str | None
    expires_at: int  # ms
    token: str

    @classmethod
    def of(cls, group: str, slot_id: int, record: Record) -> "Slot":
        return cls(
            group,
            slot_id,
            record.fence,
            record.worker_id or "",
            record.task_id,
            record.expires_ms,
            record.token or "",
        )


class SlotInfo(msgspec.Struct, frozen=True):
    slot_id: int
    state: State
    fence: int | None  # None: its object is damaged
    worker_id: str | None
    task_id: str | None
    expires_at: str | None


class SlotStatus(msgspec.Struct, frozen=True):
    group: str
    limit: int | None  # None: nobody has set it yet
    active: int  # held, also those above a limit that was lowered
    slots: tuple[SlotInfo, ...]


class GroupLimit(msgspec.Struct, frozen=True):
    limit: int


def read_limit(group: str, content: bytes) -> int:
    try:
        limit = msgspec.json.decode(content, type=GroupLimit).limit
    except msgspec.DecodeError:
        limit = -1
    if not 0 <= limit <= MOST_SLOTS:
        raise InvalidInput(
            "group",
            f"the limit of {group} is damaged: set it again, `fairlead concurrency set {group} --limit N`",
        )
    return limit


def write_limit(limit: int) -> bytes:
    return msgspec.json.encode(GroupLimit(limit))
