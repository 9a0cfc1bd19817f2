"""What acts pack: of a task what was asked for, in one field of its record; and the events of one act."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

FACTS, TRACEBACK = b"facts", b"traceback"


def read_record(stored: Mapping[bytes, bytes], without: bytes = b"") -> dict[str, Any]:
    """All fields beside each other but for one. A record of an older version has no packed ones."""
    left_out = (FACTS, without)
    fields = {name.decode(): value.decode() for name, value in stored.items() if name not in left_out}
    return read_facts(stored.get(FACTS)) | fields


def read_facts(packed: bytes | None) -> dict[str, Any]:
    return msgspec.msgpack.decode(packed, type=dict[str, Any]) if packed else {}


def made_of(stored: Mapping[bytes, bytes]) -> int:
    """The number of a task or a job in the list of all."""
    return int(read_facts(stored.get(FACTS)).get("made") or stored[b"made"])


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
