"""The runs of tasks, from the events that begin and end them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from fairlead.history.rows import Fields, plain
from fairlead.model.states import Act, State
from fairlead.store.records import Row

#: What a failure adds to, in the event and in the record.
COUNTS = ("retries", "crashes", "losses")


class AttemptRow(NamedTuple):
    """None: as it is known already."""

    task_id: str
    fence: int
    namespace: int
    worker_id: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    ended_by: str | None = None
    error_code: str | None = None
    error: str | None = None
    traceback: str | None = None


class Failure(msgspec.Struct, frozen=True):
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Attempts:
    """Of some events. A cancelled run is known by its task alone: its event has the fence that ended it."""

    rows: list[AttemptRow]
    cancelled: list[tuple[int, str, int]]  # when, the task, and its namespace


def attempts_of(namespace: int, events: Iterable[Row], records: Mapping[str, Fields]) -> Attempts:
    rows: dict[tuple[str, int], AttemptRow] = {}
    cancelled: list[tuple[int, str, int]] = []
    for event in events:
        if event.act == Act.CLAIM:
            row = AttemptRow(event.task, event.fence, namespace, event.detail.get("worker"), event.at)
        elif event.before != State.EXECUTING or event.after == State.EXECUTING:
            continue
        elif event.act == Act.CANCEL:
            cancelled.append((event.at, event.task, namespace))
            continue
        else:
            known = rows.get((event.task, event.fence)) or AttemptRow(event.task, event.fence, namespace)
            code, message, traceback = _failure(event, records)
            row = known._replace(
                ended_at=event.at,
                ended_by=event.act,
                error_code=plain(code),
                error=message,
                traceback=traceback,
            )
        rows[event.task, event.fence] = row
    return Attempts([*rows.values()], cancelled)


def _failure(event: Row, records: Mapping[str, Fields]) -> tuple[str | None, str | None, str | None]:
    """Code, message and traceback. The record has the words of the last failure, which may be another one."""
    code, record = event.detail.get("code"), records.get(event.task, {})
    if code is None or b"error" not in record:
        return code, None, None
    counts = {name: int(record.get(name.encode(), 0)) for name in COUNTS}
    if any(event.detail.get(name, count) != count for name, count in counts.items()):
        return code, None, None
    failure = msgspec.json.decode(record[b"error"], type=Failure)
    if failure.code != code:
        return code, None, None
    traceback = record.get(b"traceback")
    return code, plain(failure.message), plain(traceback.decode(errors="replace")) if traceback else None
