"""The history: the first page of each filter over many rows.

`page` is what a list reads of SQL for its first 50 tasks, on a database with 1,000,000, or for its first 50
jobs, of 1,000,000.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec
import uuid_utils

from benchmarks.bench import Bench
from benchmarks.figures import Check, Figure, Outcome
from fairlead.history.archive import SqlArchive
from fairlead.history.database import Transaction, open_database
from fairlead.history.numbers import PLACES, place_of
from fairlead.history.opening import History
from fairlead.history.queries import Search, searched
from fairlead.history.recording import JOBS, LIMITS, LIMITS_OF_JOBS, TASKS
from fairlead.history.rows import JobRow, TaskRow, job_row, task_row
from fairlead.store.archive import Kind
from fairlead.store.pages import Sought
from tests.postgresql import running_postgresql

ROWS, QUICK_ROWS = 1_000_000, 5_000
AT_ONCE = 5_000
PAGE = 50
TARGET_MS = 100
BEGIN, STEP_MS = 1_700_000_000_000, 100
DATABASES = ("sqlite", "postgresql")
STATES = {97: b"failed", 98: b"dead_letter", 99: b"cancelled"}  # of 100; the others are completed

Filter = tuple[Kind, Mapping[str, str | None], Sought]
MIDDLE = BEGIN + ROWS * STEP_MS // 2
FILTERS: dict[str, Filter] = {
    "all": ("task", {}, Sought()),
    "status failed": ("task", {"state": "failed"}, Sought()),
    "status completed": ("task", {"state": "completed"}, Sought()),
    "status queued (none)": ("task", {"state": "queued"}, Sought()),
    "type, one of 1,000": ("task", {"type": "type-7"}, Sought()),
    "user, one of 10,000": ("task", {"user_id": "user-77"}, Sought()),
    "tenant, one of 100": ("task", {"tenant": "tenant-3"}, Sought()),
    "limit, one of 50": ("task", {}, Sought(needs="limit-9")),
    "tenant and status": ("task", {"tenant": "tenant-3", "state": "failed"}, Sought()),
    "user and type (rare)": ("task", {"user_id": "user-77", "type": "type-1"}, Sought()),
    "priority and type": ("task", {"priority": "2", "type": "type-7"}, Sought()),
    "text in the error": ("task", {}, Sought(error="number 97 ")),
    "text in no error": ("task", {}, Sought(error="nowhere")),
    "part of a user": ("task", {}, Sought("ser-77", ("type", "user_id"))),
    "since and until": ("task", {}, Sought(since=MIDDLE, until=MIDDLE + 10_000_000)),
    "jobs": ("job", {}, Sought()),
    "jobs, status FAILED": ("job", {"status": "FAILED"}, Sought()),
    "jobs, pipeline, one of 1,000": ("job", {"feature": "type-7"}, Sought()),
    "jobs, user, one of 10,000": ("job", {"user_id": "user-77"}, Sought()),
    "jobs, tenant, one of 100": ("job", {"tenant": "tenant-3"}, Sought()),
    "jobs, limit, one of 50": ("job", {}, Sought(needs="limit-9")),
    "jobs, text in the error": ("job", {}, Sought(error="number 97 ")),
    "jobs, since and until": ("job", {}, Sought(since=MIDDLE, until=MIDDLE + 10_000_000)),
}


async def run(bench: Bench) -> Outcome:
    outcome = Outcome(
        notes=["pages are read of SQL alone: a list also reads the store, as without a history"]
    )
    for kind in DATABASES:
        with database(kind) as url:
            await _pages(outcome, kind, url, QUICK_ROWS if bench.quick else ROWS)
    return outcome


@contextmanager
def database(kind: str) -> Iterator[str]:
    if kind == "postgresql":
        with running_postgresql() as server:
            yield server.new_database()
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/history.sqlite3"


async def _pages(outcome: Outcome, database_kind: str, url: str, rows: int) -> None:
    history, archive = History(open_database(url), "default"), SqlArchive(url, "default")
    try:
        await _fill(history, rows)
        for name, (kind, wanted, sought) in FILTERS.items():
            values = [await _page_ms(archive, kind, wanted, sought) for _ in range(7)]
            case = f"page, {name}, {database_kind}"
            outcome.figures.append(Figure(case, "time", "ms", values))
            detail = f"{statistics.median(values):.1f} ms"
            outcome.checks.append(
                Check(case, f"<= {TARGET_MS} ms", statistics.median(values) <= TARGET_MS, detail)
            )
            plan = await _plan(history, kind, wanted, sought)
            scans = ("SCAN " in plan and "INDEX" not in plan) or "Seq Scan" in plan
            outcome.checks.append(Check(case, "by an index", not scans or rows == QUICK_ROWS, plan))
    finally:
        await archive.close()
        await history.close()


async def _fill(history: History, rows: int) -> None:
    number = await history.number()
    for start in range(1, rows + 1, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, rows + 1))
        limits = [(number, f"limit-{n % 50}", place_of(number, n)) for n in numbers]
        async with history.database.transaction() as transaction:
            await transaction.run_many(TASKS, [_task(number, n) for n in numbers])
            await transaction.run_many(LIMITS, limits)
            await transaction.run_many(JOBS, [_job(number, n) for n in numbers])
            await transaction.run_many(LIMITS_OF_JOBS, limits)
    async with history.database.transaction() as transaction:
        await _analyze(transaction, history.database.name)


async def _analyze(transaction: Transaction, kind: str) -> None:
    """As autovacuum does; SQLite does without."""
    if kind == "postgresql":
        await transaction.run("ANALYZE")


def _task(namespace: int, n: int) -> TaskRow | None:
    created = BEGIN + n * STEP_MS
    facts: dict[str, Any] = {"made": n, "type": f"type-{n % 1_000}", "priority": 2, "created": created}
    facts |= {"user_id": f"user-{n % 10_000}", "limits": f"limit-{n % 50}=1"}
    if n % 2:
        facts["tenant"] = f"tenant-{n % 100}"
    state = STATES.get(n % 100, b"completed")
    fields = {
        b"facts": msgspec.msgpack.encode(facts),
        b"state": state,
        b"parameters": b'{"n": %d, "prompt": "a robot that draws another robot"}' % n,
        b"started": b"%d" % (created + 500),
        b"finished": b"%d" % (created + 900),
        b"fence": b"%d" % (created * 1000),
    }
    if state in (b"failed", b"dead_letter"):
        fields[b"error"] = _error(n)
    else:
        fields[b"result"] = b'{"ok": true}'
    return task_row(namespace, str(uuid_utils.uuid7()), fields, n)


def _job(namespace: int, n: int) -> JobRow | None:
    created, has_failed = BEGIN + n * STEP_MS, n % 100 in (97, 98)
    fields = {
        b"made": b"%d" % n,
        b"feature": b"type-%d" % (n % 1_000),
        b"status": b"FAILED" if has_failed else b"COMPLETED",
        b"effective": b"2",
        b"created": b"%d" % created,
        b"finished": b"%d" % (created + 900),
        b"user_id": b"user-%d" % (n % 10_000),
        b"input": b'{"prompt": "a robot that draws another robot"}',
        b"limits": b"limit-%d=1" % (n % 50),
    }
    if n % 2:
        fields[b"tenant"] = b"tenant-%d" % (n % 100)
    if has_failed:
        fields[b"error"] = _error(n)
    return job_row(namespace, str(uuid_utils.uuid7()), fields, n)


def _error(n: int) -> bytes:
    message = f"the printer number {n % 1000} is out of paper"
    return msgspec.json.encode({"code": "busy", "message": message, "retriable": False})


async def _page_ms(
    archive: SqlArchive, kind: Kind, wanted: Mapping[str, str | None], sought: Sought
) -> float:
    began = time.perf_counter()
    within = await archive.range(kind, sought.since, sought.until)
    found, _ = await archive.find(kind, wanted, sought, within, PAGE)
    await archive.records(kind, [one.number for one in found])
    return (time.perf_counter() - began) * 1000


async def _plan(history: History, kind: Kind, wanted: Mapping[str, str | None], sought: Sought) -> str:
    """What the database says of how it finds them."""
    number = await history.number()
    search = Search(kind, number, place_of(number, 0), place_of(number, (1 << PLACES) - 1))
    query = searched(search, wanted, sought, PAGE)
    explain = "EXPLAIN QUERY PLAN " if history.database.name == "sqlite" else "EXPLAIN "
    rows = await history.database.read(explain + query.sql, *query.values)
    return " / ".join(str(row[-1]).strip() for row in rows)
