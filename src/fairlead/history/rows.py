"""What the store knows, as rows of SQL, and back."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from fairlead.history.numbers import padded, place_of
from fairlead.model.audit import AuditEntry
from fairlead.model.states import State
from fairlead.model.task import read_limits
from fairlead.store.records import FACTS, Row, read_facts, read_record

Fields = dict[bytes, bytes]  # of a record in the store

pack = msgspec.msgpack.Encoder().encode
unpack = msgspec.msgpack.Decoder(Fields).decode
to_json = msgspec.json.Encoder().encode

RAN = frozenset({State.COMPLETED, State.FAILED, State.DEAD_LETTER})
NOT_STARTED = "RESOURCE_EXHAUSTED"  # the error of a task that waited too long
#: Fields that are columns alone, because they may be large, and people read them.
OWN_COLUMNS = ("parameters", "result", "traceback")
#: The fields of a job that columns are made of; others are packed.
OF_JOBS = ("made", "feature", "status", "effective", "user_id", "tenant", "created", "finished", "error")


class TaskRow(NamedTuple):
    place: int
    namespace: int
    id: str
    task_type: str
    status: str
    priority: int
    user_id: str | None
    tenant: str | None
    job_id: str | None
    step: int | None
    created_at: int
    started_at: int | None
    completed_at: int | None
    attempts: int
    fence: int
    waited_ms: int | None
    ran_ms: int | None
    estimate_p50_ms: int | None
    estimate_p90_ms: int | None
    error_code: str | None
    error: str | None
    traceback: str | None
    parameters: str | None
    result: str | None
    record: bytes
    event: int


class JobRow(NamedTuple):
    place: int
    namespace: int
    id: str
    feature_name: str
    status: str
    priority: int
    user_id: str | None
    tenant: str | None
    created_at: int
    completed_at: int | None
    error_code: str | None
    error: str | None
    record: bytes
    event: int


class EventRow(NamedTuple):
    id: int
    namespace: int
    task_id: str
    seq: int
    at: int
    act: str
    before: str
    after: str
    fence: int
    detail: str


class AuditRow(NamedTuple):
    namespace: int
    entry: str
    seq: int
    at: int
    content: str
    hash: str


def task_row(namespace: int, task_id: str, fields: Mapping[bytes, bytes], event: int) -> TaskRow | None:
    """None: there is no such record, or it is of a version without lists."""
    left, own = _apart(fields)
    record = read_record({name: value for name, value in left.items() if name.decode() not in OWN_COLUMNS})
    if "made" not in record or "state" not in record:
        return None
    state, error = record["state"], _error(record)
    started, finished = _number(record, "started"), _number(record, "finished")
    ran = finished - started if started and finished and state in RAN else None
    p50, p90 = (record.get("estimate") or (None, None))[:2]
    return TaskRow(
        place=place_of(namespace, int(record["made"])),
        namespace=namespace,
        id=task_id,
        task_type=record["type"],
        status=state,
        priority=int(record["priority"]),
        user_id=plain(record.get("user_id")),
        tenant=plain(record.get("tenant")),
        job_id=record.get("job_id"),
        step=_number(record, "step"),
        created_at=int(record["created"]),
        started_at=started,
        completed_at=finished,
        attempts=1 + sum(_number(record, name) or 0 for name in ("retries", "crashes", "losses")),
        fence=_number(record, "fence") or 0,
        waited_ms=_number(record, "waited"),
        ran_ms=None if error.get("code") == NOT_STARTED else ran,
        estimate_p50_ms=p50,
        estimate_p90_ms=p90,
        error_code=plain(error.get("code")),
        error=plain(error.get("message")),
        record=pack(left),
        event=event,
        **{name: own.get(name) for name in OWN_COLUMNS},
    )


def fields_of(row: TaskRow) -> Fields:
    """The record as the store had it."""
    own = {name.encode(): getattr(row, name) for name in OWN_COLUMNS}
    return unpack(row.record) | {name: text.encode() for name, text in own.items() if text is not None}


def limits_of(row: TaskRow) -> Iterable[str]:
    """The limits that it needs, by the names that its submitter knows."""
    return limits_in(row.record)


def limits_in(record: bytes) -> Iterable[str]:
    fields = unpack(record)
    limits = read_facts(fields.get(FACTS)).get("limits") or fields.get(b"limits", b"").decode()
    return read_limits(limits)


def limits_in_job(record: bytes) -> Iterable[str]:
    """Those that its steps have needed."""
    return read_limits(unpack(record).get(b"limits", b"").decode())


def job_row(namespace: int, job_id: str, fields: Mapping[bytes, bytes], event: int) -> JobRow | None:
    """None: there is no such record, or it is of a version without lists."""
    if b"made" not in fields or b"status" not in fields:
        return None
    record = {name: fields[name.encode()].decode() for name in OF_JOBS if name.encode() in fields}
    error = _error(record)
    return JobRow(
        place=place_of(namespace, int(record["made"])),
        namespace=namespace,
        id=job_id,
        feature_name=record["feature"],
        status=record["status"],
        priority=int(record["effective"]),
        user_id=plain(record.get("user_id")),
        tenant=plain(record.get("tenant")),
        created_at=int(record["created"]),
        completed_at=_number(record, "finished"),
        error_code=plain(error.get("code")),
        error=plain(error.get("message")),
        record=pack(dict(fields)),
        event=event,
    )


def fields_of_job(row: JobRow) -> Fields:
    """The record as the store had it."""
    return unpack(row.record)


def event_row(namespace: int, event: int, row: Row) -> EventRow:
    detail = to_json(row.detail).decode()
    return EventRow(
        event, namespace, row.task, row.seq, row.at, row.act, row.before, row.after, row.fence, detail
    )


def audit_row(namespace: int, place: str, entry: AuditEntry, content: str) -> AuditRow:
    # bytes that are not UTF-8 are an edit by hand, which the hash shows
    readable = plain(content.encode(errors="surrogateescape").decode(errors="replace")) or ""
    return AuditRow(namespace, padded(place), entry.seq, entry.at, readable, entry.hash)


def _apart(fields: Mapping[bytes, bytes]) -> tuple[Fields, dict[str, str]]:
    """The fields without those that are columns; what a column cannot hold stays with the others."""
    left, own = dict(fields), dict[str, str]()
    for name in OWN_COLUMNS:
        value = left.get(name.encode())
        if value is not None and (text := _text(value)) is not None:
            own[name] = text
            del left[name.encode()]
    return left, own


def _text(value: bytes) -> str | None:
    """None: it is not one that PostgreSQL can keep."""
    try:
        return None if b"\0" in value else value.decode()
    except UnicodeDecodeError:
        return None


def plain(text: str | None) -> str | None:
    """To search for; the record has it as it is."""
    return None if text is None else text.replace("\0", "")


def _number(record: Mapping[str, Any], name: str) -> int | None:
    value = record.get(name)
    return None if value in (None, False) else int(value)


def _error(record: Mapping[str, Any]) -> dict[str, Any]:
    text = record.get("error")
    return msgspec.json.decode(text, type=dict[str, Any]) if text else {}
