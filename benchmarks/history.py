"""The history: the first page of each filter over many rows, and what the recorder costs a drain.

`page` is what a list reads of SQL for its first 50 tasks, on a database with 1,000,000. The drain is that of
`throughput`, with a recorder in a process of its own beside it, at low priority, as a server has it.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import uuid_utils

from benchmarks.bench import NO_AOF, Bench, describe, register, small_task
from benchmarks.figures import Check, Figure, Outcome
from benchmarks.throughput import Fairlead
from fairlead.history.archive import SqlArchive
from fairlead.history.database import Transaction, open_database
from fairlead.history.numbers import PLACES, place_of
from fairlead.history.opening import History
from fairlead.history.queries import Search, searched
from fairlead.history.recording import LIMITS
from fairlead.history.recording import TASKS as TASKS_SQL
from fairlead.history.rows import limits_of, task_row
from fairlead.store.archive import Range
from fairlead.store.pages import Sought
from fairlead.store.store import Store
from tests.faults.recorders import Recorders
from tests.postgresql import running_postgresql

ROWS, QUICK_ROWS = 1_000_000, 5_000
AT_ONCE = 5_000
PAGE = 50
TARGET_MS = 100
DRAINED, QUICK_DRAINED = 20_000, 1_000
BEGIN, STEP_MS = 1_700_000_000_000, 100
DATABASES = ("sqlite", "postgresql")
STATES = {97: b"failed", 98: b"dead_letter", 99: b"cancelled"}  # of 100; the others are completed

Filter = tuple[Mapping[str, str | None], Sought]
MIDDLE = BEGIN + ROWS * STEP_MS // 2
FILTERS: dict[str, Filter] = {
    "all": ({}, Sought()),
    "status failed": ({"state": "failed"}, Sought()),
    "status completed": ({"state": "completed"}, Sought()),
    "status queued (none)": ({"state": "queued"}, Sought()),
    "type, one of 1,000": ({"type": "type-7"}, Sought()),
    "user, one of 10,000": ({"user_id": "user-77"}, Sought()),
    "tenant, one of 100": ({"tenant": "tenant-3"}, Sought()),
    "limit, one of 50": ({}, Sought(needs="limit-9")),
    "tenant and status": ({"tenant": "tenant-3", "state": "failed"}, Sought()),
    "user and type (rare)": ({"user_id": "user-77", "type": "type-1"}, Sought()),
    "priority and type": ({"priority": "2", "type": "type-7"}, Sought()),
    "text in the error": ({}, Sought(error="number 97 ")),
    "text in no error": ({}, Sought(error="nowhere")),
    "part of a user": ({}, Sought("ser-77", ("type", "user_id"))),
    "since and until": ({}, Sought(since=MIDDLE, until=MIDDLE + 10_000_000)),
}


async def run(bench: Bench) -> Outcome:
    outcome = Outcome(
        notes=["pages are read of SQL alone: a list also reads the store, as without a history"]
    )
    for kind in DATABASES:
        with database(kind) as url:
            await _pages(outcome, kind, url, QUICK_ROWS if bench.quick else ROWS)
    await _drains(bench, outcome)
    return outcome


@contextmanager
def database(kind: str) -> Iterator[str]:
    if kind == "postgresql":
        with running_postgresql() as server:
            yield server.new_database()
    else:
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/history.sqlite3"


async def _pages(outcome: Outcome, kind: str, url: str, rows: int) -> None:
    history, archive = History(open_database(url), "default"), SqlArchive(url, "default")
    try:
        await _fill(history, rows)
        for name, (wanted, sought) in FILTERS.items():
            values = [await _page_ms(archive, wanted, sought) for _ in range(7)]
            case = f"page, {name}, {kind}"
            outcome.figures.append(Figure(case, "time", "ms", values))
            detail = f"{statistics.median(values):.1f} ms"
            outcome.checks.append(
                Check(case, f"<= {TARGET_MS} ms", statistics.median(values) <= TARGET_MS, detail)
            )
            plan = await _plan(history, wanted, sought)
            scans = ("SCAN tasks" in plan and "INDEX" not in plan) or "Seq Scan" in plan
            outcome.checks.append(Check(case, "by an index", not scans or rows == QUICK_ROWS, plan))
    finally:
        await archive.close()
        await history.close()


async def _fill(history: History, rows: int) -> None:
    number = await history.number()
    for start in range(1, rows + 1, AT_ONCE):
        made = [_row(number, n) for n in range(start, min(start + AT_ONCE, rows + 1))]
        async with history.database.transaction() as transaction:
            await transaction.run_many(TASKS_SQL, made)
            limits = [(number, name, row.place) for row in made for name in limits_of(row)]
            await transaction.run_many(LIMITS, limits)
    async with history.database.transaction() as transaction:
        await _analyze(transaction, history.database.name)


async def _analyze(transaction: Transaction, kind: str) -> None:
    """As autovacuum does; SQLite does without."""
    if kind == "postgresql":
        await transaction.run("ANALYZE")


def _row(namespace: int, n: int) -> Any:
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
        error = {
            "code": "busy",
            "message": f"the printer number {n % 1000} is out of paper",
            "retriable": False,
        }
        fields[b"error"] = msgspec.json.encode(error)
    else:
        fields[b"result"] = b'{"ok": true}'
    return task_row(namespace, str(uuid_utils.uuid7()), fields, n)


async def _page_ms(archive: SqlArchive, wanted: Mapping[str, str | None], sought: Sought) -> float:
    began = time.perf_counter()
    within = await archive.range("task", sought.since, sought.until)
    found, _ = await archive.find("task", wanted, sought, within or Range(), PAGE)
    await archive.records("task", [one.number for one in found])
    return (time.perf_counter() - began) * 1000


async def _plan(history: History, wanted: Mapping[str, str | None], sought: Sought) -> str:
    """What the database says of how it finds them."""
    number = await history.number()
    search = Search("task", number, place_of(number, 0), place_of(number, (1 << PLACES) - 1))
    query = searched(search, wanted, sought, PAGE)
    explain = "EXPLAIN QUERY PLAN " if history.database.name == "sqlite" else "EXPLAIN "
    rows = await history.database.read(explain + query.sql, *query.values)
    return " / ".join(str(row[-1]).strip() for row in rows)


async def _drains(bench: Bench, outcome: Outcome) -> None:
    """Without a recorder, and with one on each database, in turn."""
    count, rounds = (QUICK_DRAINED, 1) if bench.quick else (DRAINED, 5)
    rates, delays = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for _ in range(rounds):
        for kind in ("none", *DATABASES):
            with bench.serve(*NO_AOF) as url:
                outcome.servers["no AOF"] = await describe(url)
                async with bench.store(url) as store, _recording(kind, url, store):
                    await _fill_store(store, count)
                    await _until_recorded(store, kind)
                    began = time.perf_counter()
                    await Fairlead("plain", store, {}).drain(count, 64)
                    rates[kind].append(count / (time.perf_counter() - began))
                    began = time.perf_counter()
                    await _until_recorded(store, kind)
                    delays[kind].append(time.perf_counter() - began)
    for kind, values in rates.items():
        case = f"drain, history {kind}"
        outcome.figures.append(Figure(case, "rate", "tasks/s", values, "more"))
        outcome.figures.append(Figure(case, "recorded after", "s", delays[kind]))
    for kind in DATABASES:
        above, below = (f"drain, history {kind}", "rate"), ("drain, history none", "rate")
        outcome.compare(f"drain: history in {kind} to none", above, below, ">= 0.8")


async def _fill_store(store: Store, count: int) -> None:
    await register(store)
    for _ in range(0, count, 1_000):
        await store.submit(*(small_task(n) for n in range(min(1_000, count))))


async def _until_recorded(store: Store, kind: str) -> None:
    while kind != "none" and ((lag := await store.outbox.lag()) is None or lag.events):
        await asyncio.sleep(0.02)


@asynccontextmanager
async def _recording(kind: str, url: str, store: Store) -> AsyncIterator[None]:
    if kind == "none":
        yield
        return
    with database(kind) as sql, tempfile.TemporaryDirectory() as folder:
        recorders = Recorders(url, store, sql, Path(folder), prepare=be_nice)
        await recorders.start()
        try:
            yield
        finally:
            await recorders.kill()


def be_nice() -> None:
    os.nice(5)
