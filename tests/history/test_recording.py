"""The recorder at work: one is elected, waits while a database is away, and then catches up without a gap."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fairlead.errors import HistoryUnavailable
from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.model.reports import Completed
from fairlead.settings import Outbox, Settings
from fairlead.store.store import Store
from fairlead.upkeep.recorder import Recorder
from fairlead.upkeep.recording import Recording
from tests.postgresql import Postgresql
from tests.reading import events_of
from tests.recording import event_rows, job_rows, record_all, task_rows
from tests.store.job_steps import job
from tests.store.namespace import new, raw
from tests.waiting import wait_until

QUICK = 0.02


@contextlib.asynccontextmanager
async def recording(store: Store, history: History) -> AsyncIterator[Recording]:
    made = Recording(store, history, idle_seconds=QUICK, longest_pause=QUICK)
    running = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        running.cancel()
        await asyncio.wait([running])


async def work(store: Store, tasks: int) -> None:
    for task in (await store.claim("w", tasks)).tasks:
        await store.complete("w", Completed(task.task_id, task.fence))


async def recorded(history: History) -> list[int]:
    """The numbers of all events that are; none while the database is away."""
    with contextlib.suppress(HistoryUnavailable):
        return [row.id for row in await event_rows(history)]
    return []


async def until_recorded(store: Store, history: History) -> None:
    """All that has happened so far, each once."""
    last = int(await raw(store).hget(store.connection.keys.meta, "events"))

    async def is_complete() -> bool:
        return await recorded(history) == [*range(1, last + 1)]

    await wait_until(is_complete)


async def test_one_of_two_is_elected_and_the_other_takes_over(live_store: Store, history: History) -> None:
    await live_store.submit_one(new())
    connection = live_store.connection

    async def elected() -> str:
        return (await raw(live_store).get(connection.keys.key("recorder")) or b"").decode()

    async with recording(live_store, history) as second, contextlib.AsyncExitStack() as stack:
        await until_recorded(live_store, history)
        first = await stack.enter_async_context(recording(live_store, history))
        assert await elected() == second.name
        await live_store.submit_one(new())
        await until_recorded(live_store, history)
    async with recording(live_store, history) as third:
        await wait_until(lambda: third.is_elected)
        assert await elected() == third.name != first.name


async def test_what_happens_while_postgresql_is_away_is_recorded_when_it_is_back(
    live_store: Store, postgresql: Postgresql
) -> None:
    history = History(open_database(postgresql.new_database()), "default")
    try:
        async with recording(live_store, history):
            await live_store.workers.register("w", capacity=50)
            await live_store.submit(*[new() for _ in range(20)])
            await until_recorded(live_store, history)
            await asyncio.to_thread(postgresql.stop)
            try:
                await work(live_store, 20)
                lag = await live_store.outbox.lag()
                assert lag and lag.events == 40
            finally:
                await asyncio.to_thread(postgresql.start)
            await until_recorded(live_store, history)
        assert {row.status for row in await task_rows(history)} == {"completed"}
        lag = await live_store.outbox.lag()
        assert lag and (lag.events, lag.seconds, lag.lost) == (0, 0, 0)
    finally:
        await history.close()


async def test_what_happens_while_sqlite_is_locked_is_recorded_afterwards(
    live_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairlead.history.sqlite.BUSY_MS", 10)
    path = tmp_path / "history.sqlite3"
    history = History(open_database(f"sqlite:///{path}"), "default")
    problems: list[str] = []
    try:
        await history.number()
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        made = Recording(live_store, history, idle_seconds=QUICK, longest_pause=QUICK, tell=problems.append)
        running = asyncio.create_task(made.run())
        await live_store.submit(*[new() for _ in range(20)])
        await wait_until(lambda: bool(problems))
        assert "database is locked" in problems[0]
        assert await recorded(history) == []
        other.execute("ROLLBACK")
        other.close()
        await until_recorded(live_store, history)
        await wait_until(lambda: problems[-1] == "")
        running.cancel()
        await asyncio.wait([running])
    finally:
        await history.close()


async def test_what_the_store_had_before_it_had_a_history_is_recorded_once(
    store: Store, history: History, settings: Settings
) -> None:
    await store.workers.register("w", capacity=9)
    await store.submit(*[new() for _ in range(5)])
    submitted = await store.jobs.submit(job())
    await store.audit.record("ann", "set", "gpu", 1, 2)
    ((entry, _), *_, (last, _)) = await raw(store).xrange(store.connection.keys.key("events"))
    assert entry != last
    await raw(store).xtrim(store.connection.keys.key("events"), minid=last)  # the bound was reached
    await raw(store).hset(store.connection.keys.meta, "events_gone", int(last.partition(b"-")[0]) - 1)
    await store.submit_one(new())
    recorder = Recorder(store, history)
    await record_all(recorder)
    assert len(await task_rows(history)) == 7
    assert [row.id for row in await job_rows(history)] == [submitted.job_id]
    found = await history.database.read("SELECT tasks_listed, jobs_listed, lost, missing FROM generations")
    assert found == [(None, None, 0, 0)]
    assert await record_all(recorder) == 0


async def test_the_audit_is_recorded_byte_for_byte(
    store: Store, history: History, recorder: Recorder
) -> None:
    written = [await store.audit.record("ann", "set", f"gpu{i}", {"limit": i}, None) for i in range(3)]
    await record_all(recorder)
    stored = await raw(store).xrange(store.connection.keys.key("audit"))
    assert await history.database.read("SELECT content, hash, seq FROM audit ORDER BY entry") == [
        (fields[b"entry"].decode(), one.hash, one.seq)
        for (_, fields), one in zip(stored, written, strict=True)
    ]
    assert await record_all(recorder) == 0


async def test_events_stay_until_the_estimator_has_learnt_from_them(
    store: Store, history: History, recorder: Recorder
) -> None:
    await store.upkeep.elect("me", 60_000)
    await store.submit(*[new() for _ in range(3)])
    ((first, _),) = await raw(store).xrange(store.connection.keys.key("events"))
    await store.submit(*[new() for _ in range(2)])
    await store.estimates.learn("me", {"position": f'"{first.decode()}"'})
    assert await record_all(recorder) == 5
    assert len(await events_of(store)) == 2
    ((last, _),) = await raw(store).xrange(store.connection.keys.key("events"))
    await store.estimates.learn("me", {"position": f'"{last.decode()}"'})
    await recorder.trim()
    assert await events_of(store) == []


async def test_an_estimator_that_is_gone_keeps_no_events(
    store: Store, history: History, recorder: Recorder
) -> None:
    await store.upkeep.elect("me", 60_000)
    await store.estimates.learn("me", {"position": '"0-0"'})
    await store.submit(*[new() for _ in range(3)])
    await record_all(recorder)
    assert len(await events_of(store)) == 3
    await raw(store).hincrby(store.connection.keys.key("learnt"), "kept_at", -600_000)
    await recorder.trim()
    assert await events_of(store) == []


class TestABound:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(outbox=Outbox(max_events=10))

    async def test_what_is_recorded_is_not_lost_when_it_exceeds_the_bound(
        self, store: Store, history: History, recorder: Recorder
    ) -> None:
        await store.upkeep.elect("me", 60_000)
        await store.estimates.learn("me", {"position": '"0-0"'})
        await store.submit(*[new() for _ in range(10)])
        await record_all(recorder)
        await store.submit(*[new() for _ in range(8)])
        assert (await store.stats()).lost_events == 0
        await store.submit(*[new() for _ in range(5)])
        stats = await store.stats()
        assert (stats.lost_events, stats.unrecorded_events) == (8, 5)  # a whole entry
        assert await record_all(recorder) == 5
        assert await history.database.read("SELECT position, lost FROM generations") == [(23, 8)]


async def test_without_a_recorder_there_is_no_lag(store: Store) -> None:
    await store.submit_one(new())
    stats = await store.stats()
    assert (stats.history_lag_seconds, stats.unrecorded_events) == (None, 0)
