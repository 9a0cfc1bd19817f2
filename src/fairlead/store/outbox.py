"""The events of one act, as the store packs them: for the outbox, and for those who listen."""

from typing import Any, TypeAlias

import msgspec

#: Of a job: its id, the number of its event, the step, its status, its priority by age.
JobRow: TypeAlias = tuple[str, int, int, str, int]
#: Task, act, from ("" for a new one), to, ms, fence, detail (facts, or JSON), number of its event, job.
Row: TypeAlias = tuple[str, str, str, str, int, int, dict[str, Any] | str, int, JobRow | bool]

rows_of = msgspec.msgpack.Decoder(list[Row]).decode


def detail_of(row: Row) -> dict[str, Any]:
    detail = row[6]
    return detail if isinstance(detail, dict) else msgspec.json.decode(detail) if detail else {}
