"""Whatever happens to the recorder and its database: work goes on, and then the history has all, once."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from fairlead.api.history_watch import BEHIND, HistoryWatch
from fairlead.api.readiness import Readiness
from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.history.sqlite import Sqlite
from fairlead.store.store import Store
from fairlead.upkeep.recording import Recording
from tests.faults.recorders import QUICK, Recorders, compare, faultless, published, work
from tests.postgresql import Postgresql
from tests.servers import Server
from tests.waiting import wait_until

TASKS = 400


@pytest.fixture
async def recorders(
    live_store: Store, server: Server, history_url: str, tmp_path: Path
) -> AsyncIterator[Recorders]:
    made = Recorders(server.url, live_store, history_url, tmp_path)
    await made.start()
    yield made
    await made.kill()


@pytest.mark.timeout(120)
async def test_recorders_that_are_killed_leave_no_gap_and_record_nothing_twice(
    live_store: Store, recorders: Recorders, history_url: str, seed: int
) -> None:
    done = asyncio.Event()
    async with published(live_store) as seen:
        killing = asyncio.create_task(recorders.kill_again_and_again(random.Random(seed), 5, done))
        await work(live_store, TASKS)
        done.set()
        await killing
    assert recorders.killed >= 5
    assert await compare(live_store, history_url, seen) == faultless(TASKS)


@pytest.mark.timeout(120)
async def test_a_database_that_is_locked_or_hangs_delays_the_history_alone(
    live_store: Store, recorders: Recorders, history_url: str, request: pytest.FixtureRequest
) -> None:
    async with published(live_store) as seen:
        await work(live_store, 50)
        with away(history_url, request):
            await work(live_store, TASKS - 50)
            lag = await live_store.outbox.lag()
            assert lag and lag.events > 0
    assert await compare(live_store, history_url, seen) == faultless(TASKS)


@contextlib.contextmanager
def away(url: str, request: pytest.FixtureRequest) -> Any:
    if url.startswith("sqlite"):
        other = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, timeout=20)
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")
        other.close()
        return
    server: Postgresql = request.getfixturevalue("postgresql")
    server.pause()
    try:
        yield
    finally:
        server.resume()


async def test_a_full_disk_delays_the_history_and_readiness_says_so(
    live_store: Store, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'history.sqlite3'}"
    history, readiness = History(open_database(url), "default"), Readiness()
    watch = HistoryWatch(live_store, readiness, late_seconds=0.001)

    def tell(problem: str) -> None:
        watch.problem = problem

    made = Recording(live_store, history, idle_seconds=QUICK, longest_pause=QUICK, tell=tell)
    recording = asyncio.create_task(made.run())
    try:
        async with published(live_store) as seen:
            await work(live_store, 50)
            await most_pages(history, more=4)
            await work(live_store, TASKS - 50)
            await wait_until(lambda: "database or disk is full" in watch.problem)
            await watch.look()
            readiness.check()
            assert "database or disk is full" in readiness.warnings[BEHIND]
            await most_pages(history, more=100_000)
        assert await compare(live_store, url, seen) == faultless(TASKS)
        await wait_until(lambda: watch.problem == "")
        await watch.look()
        assert readiness.warnings == {}
    finally:
        recording.cancel()
        await asyncio.wait([recording])
        await history.close()


async def most_pages(history: History, more: int) -> None:
    """There is room for this many more in the file, as on a disk of that size."""
    database = history.database
    assert isinstance(database, Sqlite)

    def limit(connection: sqlite3.Connection) -> None:
        ((count,),) = connection.execute("PRAGMA page_count")
        connection.execute(f"PRAGMA max_page_count = {count + more}")

    async with database._writing:
        await database._writer.call(limit)
