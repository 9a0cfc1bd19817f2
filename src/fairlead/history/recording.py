"""Writes what was read from the store, together with how far it goes: as a whole or not at all."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fairlead.history.attempts import AttemptRow, attempts_of
from fairlead.history.generations import Generation, advance
from fairlead.history.numbers import event_id
from fairlead.history.opening import History
from fairlead.history.rows import (
    AuditRow,
    EventRow,
    Fields,
    JobRow,
    TaskRow,
    audit_row,
    event_row,
    job_row,
    limits_in_job,
    limits_of,
    task_row,
)
from fairlead.log.events import EventLog
from fairlead.model.audit import AuditEntry
from fairlead.store.records import Row

T = TypeVar("T")

log = EventLog("fairlead.history")


class Read(NamedTuple):
    """Events with their numbers, the records of tasks and jobs, which may be newer ({}: it is gone), and
    entries of the audit, each with its place and its JSON."""

    events: Sequence[tuple[int, Row]] = ()
    tasks: Mapping[str, Fields] = {}
    jobs: Mapping[str, Fields] = {}
    audit: Sequence[tuple[str, AuditEntry, str]] = ()


def _insert(table: str, row: type, *, known: str) -> str:
    names = row._fields  # type: ignore[attr-defined]
    marks = ", ".join("?" * len(names))
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks}) ON CONFLICT {known}"


def _replace(table: str, row: type) -> str:
    """Not another one with the same number, from a store that has forgotten how far it had counted."""
    names = row._fields[2:]  # type: ignore[attr-defined]
    changes = ", ".join(f"{name} = excluded.{name}" for name in names)
    return _insert(table, row, known=f"(place) DO UPDATE SET {changes} WHERE {table}.id = excluded.id")


def _add_to(table: str, row: type, key: Sequence[str]) -> str:
    names = [name for name in row._fields if name not in key]  # type: ignore[attr-defined]
    changes = ", ".join(f"{name} = COALESCE(excluded.{name}, {table}.{name})" for name in names)
    return _insert(table, row, known=f"({', '.join(key)}) DO UPDATE SET {changes}")


EVENTS = _insert("events", EventRow, known="(id) DO NOTHING")
TASKS, JOBS = _replace("tasks", TaskRow), _replace("jobs", JobRow)
ATTEMPTS = _add_to("attempts", AttemptRow, ("task_id", "fence"))
CANCELLED = (
    "UPDATE attempts SET ended_at = ?, ended_by = 'cancel' "
    "WHERE task_id = ? AND namespace = ? AND ended_at IS NULL"
)
AUDIT = _insert("audit", AuditRow, known="DO NOTHING")
LIMITS, LIMITS_OF_JOBS = (
    f"INSERT INTO {table} (namespace, name, place) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    for table in ("task_limits", "job_limits")
)


async def record(history: History, read: Read, before: Generation, after: Generation) -> None:
    """`after` is `before` with what is recorded then. Raises RecordedElsewhere when somebody else did it."""
    namespace, last = before.namespace, event_id(before.id, after.position)
    tasks = [*_rows(task_row, namespace, read.tasks, last)]
    jobs = [*_rows(job_row, namespace, read.jobs, last)]
    after.missing += len(read.tasks) - len(tasks) + len(read.jobs) - len(jobs)
    events = [event_row(namespace, event_id(before.id, number), event) for number, event in read.events]
    audit = [audit_row(namespace, *entry) for entry in read.audit]
    attempts = attempts_of(namespace, (event for _, event in read.events), read.tasks)
    async with history.database.transaction() as transaction:
        await advance(transaction, before, after)
        await transaction.run_many(EVENTS, events)
        await transaction.run_many(TASKS, tasks)
        await transaction.run_many(LIMITS, [*_limits(tasks)])
        await transaction.run_many(JOBS, jobs)
        await transaction.run_many(LIMITS_OF_JOBS, [*_limits_of_jobs(jobs)])
        await transaction.run_many(ATTEMPTS, attempts.rows)
        await transaction.run_many(CANCELLED, attempts.cancelled)
        await transaction.run_many(AUDIT, audit)


def _rows(
    make: Callable[[int, str, Fields, int], T | None],
    namespace: int,
    records: Mapping[str, Fields],
    last: int,
) -> Iterator[T]:
    for of, fields in records.items():
        try:
            row = make(namespace, of, fields, last)
        except (ValueError, KeyError, TypeError) as problem:  # edited by hand, and no reason to stop here
            log.error("record_unreadable", id=of, problem=str(problem))
        else:
            if row is not None:
                yield row


def _limits(tasks: Iterable[TaskRow]) -> Iterable[tuple[int, str, int]]:
    return ((row.namespace, name, row.place) for row in tasks for name in limits_of(row))


def _limits_of_jobs(jobs: Iterable[JobRow]) -> Iterable[tuple[int, str, int]]:
    return ((row.namespace, name, row.place) for row in jobs for name in limits_in_job(row.record))
