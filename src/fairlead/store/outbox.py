"""The events of one act, as the store packs them: for the outbox, and for those who listen."""

from typing import Any, NamedTuple

import msgspec


class JobRow(NamedTuple):
    """The job of the task, if it is a step of one."""

    id: str
    seq: int  # the number of the event among those of the job
    step: int
    status: str
    priority: int  # by age


class Row(NamedTuple):
    task: str
    act: str
    before: str  # state; "" for a new task
    after: str
    at: int  # ms
    fence: int
    packed_detail: dict[str, Any] | str  # facts, or JSON
    seq: int  # the number of the event among those of the task
    job: JobRow | bool

    @property
    def detail(self) -> dict[str, Any]:
        detail = self.packed_detail
        return detail if isinstance(detail, dict) else msgspec.json.decode(detail) if detail else {}


rows_of = msgspec.msgpack.Decoder(list[Row]).decode
