"""The history: the first page of each filter over many rows.

`page` is what a list reads of SQL for its first 50 tasks, on a database with 1,000,000, or for its first 50
jobs, of 1,000,000.
"""

import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import msgspec

from benchmarks.bench import Bench
from benchmarks.figures import Check, Figure, Outcome
from fairlead.history.archive import SqlArchive
from fairlead.history.database import Transaction, open_database
from fairlead.history.numbers import PLACES, place_of
from fairlead.history.opening import History
from fairlead.history.queries import Search, searched
from fairlead.store.archive import Kind
from fairlead.store.pages import Sought
from tests.postgresql import running_postgresql

ROWS, QUICK_ROWS = 1_000_000, 5_000
AT_ONCE = 50_000
PAGE = 50
TARGET_MS = 100
BEGIN, STEP_MS = 1_700_000_000_000, 100
DATABASES = ("sqlite", "postgresql")
NUMBERS = (
    "WITH RECURSIVE numbers (n) AS "
    "(SELECT CAST({first} AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < {last})"
)
PLACE = f"CAST(NAMESPACE AS BIGINT) * {1 << PLACES} + n"
CREATED = f"{BEGIN} + n * {STEP_MS}"
HAS_FAILED = "n % 100 IN (97, 98)"
#: Of a record, which is read when the page is shown; about as large as those of small tasks.
RECORD = msgspec.msgpack.encode({b"facts": msgspec.msgpack.encode({"made": 1, "filling": "x" * 400})})
COMMON = {
    "place": PLACE,
    "namespace": "NAMESPACE",
    "id": "'01900000-0000-7000-8000-' || CAST(100000000000 + n AS TEXT)",
    "priority": "2",
    "user_id": "'user-' || CAST(n % 10000 AS TEXT)",
    "tenant": "CASE WHEN n % 2 = 1 THEN 'tenant-' || CAST(n % 100 AS TEXT) END",
    "created_at": CREATED,
    "completed_at": f"{CREATED} + 900",
    "error_code": f"CASE WHEN {HAS_FAILED} THEN 'busy' END",
    "error": f"CASE WHEN {HAS_FAILED} "
    "THEN 'the printer number ' || CAST(n % 1000 AS TEXT) || ' is out of paper' END",
    "record": "?",
    "event": "n",
}
TYPE = "'type-' || CAST(n % 1000 AS TEXT)"
LIMITS = {"namespace": "NAMESPACE", "name": "'limit-' || CAST(n % 50 AS TEXT)", "place": PLACE}
TABLES: dict[str, dict[str, str]] = {
    "tasks": {
        **COMMON,
        "task_type": TYPE,
        "status": "CASE n % 100 WHEN 97 THEN 'failed' WHEN 98 THEN 'dead_letter' WHEN 99 THEN 'cancelled' "
        "ELSE 'completed' END",
        "attempts": "1",
        "fence": f"({CREATED}) * 1000",
        "parameters": """'{"prompt": "a robot that draws another robot"}'""",
        "result": """'{"ok": true}'""",
    },
    "jobs": {
        **COMMON,
        "feature_name": TYPE,
        "status": f"CASE WHEN {HAS_FAILED} THEN 'FAILED' ELSE 'COMPLETED' END",
    },
    "task_limits": LIMITS,
    "job_limits": LIMITS,
}

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
    """By the database itself, because a million rows made here take ten minutes."""
    number = await history.number()
    for start in range(1, rows + 1, AT_ONCE):
        numbers = NUMBERS.format(first=start, last=min(start + AT_ONCE - 1, rows))
        async with history.database.transaction() as transaction:
            for table, columns in TABLES.items():
                names, values = ", ".join(columns), ", ".join(columns.values())
                sql = f"INSERT INTO {table} ({names}) {numbers} SELECT {values} FROM numbers"
                records = [RECORD] * sql.count("?")
                await transaction.run(sql.replace("NAMESPACE", str(number)), *records)
    async with history.database.transaction() as transaction:
        await _analyze(transaction, history.database.name)


async def _analyze(transaction: Transaction, kind: str) -> None:
    """As autovacuum does; SQLite does without."""
    if kind == "postgresql":
        await transaction.run("ANALYZE")


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
