"""The ledger: a submit is answered when SQL has it too."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from fairlead import errors
from fairlead.history.database import open_database
from fairlead.history.opening import History
from fairlead.model.task import Submitted
from fairlead.settings import EngineSettings, HistorySettings, Settings
from fairlead.store import acceptance
from fairlead.store.store import Store
from fairlead.upkeep.recording import PROMPT_SECONDS, Recording
from tests.recording import job_rows, task_rows
from tests.store.job_steps import job
from tests.store.namespace import key_names, new, raw
from tests.waiting import wait_until

LEDGER = Settings(engine=EngineSettings(durability="ledger"), history=HistorySettings(url="sqlite:///x"))


@pytest.fixture
async def ledger(open_store: Callable[..., Store]) -> Store:
    store = open_store(settings=LEDGER)
    await store.open()
    return store


@pytest.fixture
async def history(ledger: Store, tmp_path: Path) -> AsyncIterator[History]:
    database = open_database(f"sqlite:///{tmp_path / 'history.sqlite3'}", durable=True)
    opened = History(database, ledger.connection.keys.namespace)
    yield opened
    await opened.close()


@contextlib.asynccontextmanager
async def recording(store: Store, history: History) -> AsyncIterator[None]:
    running = asyncio.create_task(Recording(store, history, idle_seconds=PROMPT_SECONDS).run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


async def test_what_was_answered_is_in_sql(ledger: Store, history: History) -> None:
    async with recording(ledger, history):
        one, *some = [new() for _ in range(4)]
        await ledger.submit_one(one)
        assert [row.id for row in await task_rows(history)] == [one.task_id]
        await ledger.submit(*some)
        assert len(await task_rows(history)) == 4
        submitted = await ledger.jobs.submit(job())
        assert [row.id for row in await job_rows(history)] == [submitted.job_id]


async def test_while_sql_is_away_a_submit_is_refused_and_repeated_later(
    ledger: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptance, "RECORDED_WITHIN", 0.1)
    task = new()
    for _ in range(2):
        with pytest.raises(errors.NotRecorded):
            await ledger.submit_one(task)
    with pytest.raises(errors.NotRecorded):
        await ledger.submit(new(), new())
    assert (await ledger.get(task.task_id)).task_id == task.task_id  # it was accepted all the same
    monkeypatch.setattr(acceptance, "RECORDED_WITHIN", 20)
    async with recording(ledger, history):
        again = await ledger.submit_one(task)
        assert (again.task_id, again.repeated) == (task.task_id, True)
        assert task.task_id in {row.id for row in await task_rows(history)}


async def test_submits_that_wait_share_transactions(
    ledger: Store, history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    transaction, count = history.database.transaction, 0

    def counted() -> object:
        nonlocal count
        count += 1
        return transaction()

    async with recording(ledger, history):
        await ledger.submit_one(new())
        monkeypatch.setattr(history.database, "transaction", counted)
        answers = await asyncio.gather(*(ledger.submit_one(new()) for _ in range(100)))
    assert all(isinstance(answer, Submitted) for answer in answers)
    assert 0 < count < 50
    assert len(await task_rows(history)) == 101


async def test_what_is_lost_before_it_was_recorded_is_not_confirmed(ledger: Store) -> None:
    """Also if the counters of what comes after the loss say that everything is recorded."""
    submitting = asyncio.create_task(ledger.submit_one(new()))
    meta = ledger.connection.keys.meta
    await wait_until(lambda: raw(ledger).hexists(meta, "events"))
    prefix = ledger.connection.keys.prefix
    await raw(ledger).delete(*[prefix + name for name in await key_names(ledger)])
    with pytest.raises(errors.NotRecorded):
        await submitting
    await ledger.epochs.accept("new", 0)
    await ledger.open()
