"""Reads of the past: single tasks and jobs, and what has happened to a task."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import msgspec

from fairlead.clock import monotonic
from fairlead.errors import HistoryUnavailable
from fairlead.history.database import Row, open_database
from fairlead.history.forgetting import forget_tasks
from fairlead.history.numbers import PLACES, made_of, place_of
from fairlead.history.opening import History, history_url
from fairlead.history.paging import place_since, where_in
from fairlead.history.queries import MOST_LOOKED, TABLES, Search, searched
from fairlead.history.rows import JobRow, TaskRow, fields_of, fields_of_job
from fairlead.model.states import REPLAYABLE
from fairlead.model.task_history import Attempt, HistoryEvent, TaskHistory
from fairlead.settings import Settings
from fairlead.store.archive import Fields, Found, Kind, Range
from fairlead.store.pages import Sought
from fairlead.store.store import Store

READ_SECONDS = 5.0
AWAY_SECONDS = 2.0  # after a failure, before the database is asked again: requests must not wait for it each
SET_BACK_MS = (
    10_000  # by which the clock of the store may have been set back: then later rows have earlier times
)
MOST_EVENTS, MOST_ATTEMPTS = 1_000, 200  # of a task, the latest

Read = Callable[..., Awaitable[list[Row]]]

TASK = ", ".join(TaskRow._fields)
LISTED_TASK = TASK.replace("traceback", "NULL")
JOB = ", ".join(JobRow._fields)
SIZES = {
    "task": "LENGTH(record) + COALESCE(LENGTH(parameters), 0) + COALESCE(LENGTH(result), 0)",
    "job": "LENGTH(record)",
}
DEAD = "SELECT place FROM tasks WHERE id = ? AND namespace = ? AND status IN ({})".format(
    ", ".join(f"'{state}'" for state in sorted(REPLAYABLE))
)
EVENTS = (
    "SELECT seq, at, act, before, after, fence, detail FROM events WHERE task_id = ? AND namespace = ? "
    f"ORDER BY id DESC LIMIT {MOST_EVENTS}"
)
ATTEMPTS = (
    "SELECT fence, worker_id, started_at, ended_at, ended_by, error_code, error, traceback FROM attempts "
    f"WHERE task_id = ? AND namespace = ? ORDER BY fence DESC LIMIT {MOST_ATTEMPTS}"
)


class SqlArchive:
    """What the history has of one namespace. It is opened at the first read, and never written by one."""

    def __init__(self, url: str, namespace: str) -> None:
        self._url, self._namespace = url, namespace
        self._opened: History | None = None
        self._away_until, self._problem = 0.0, ""

    async def record(self, kind: Kind, of: str) -> Fields | None:
        columns = TASK if kind == "task" else JOB
        sql = (
            f"SELECT {columns} FROM {TABLES[kind]} WHERE id = ? AND namespace = ? ORDER BY place DESC LIMIT 1"
        )
        async with self._answering() as (read, number):
            rows = await read(sql, of, number) if number else []
        return _fields(kind, rows[0]) if rows else None

    async def range(self, kind: Kind, since: int | None, until: int | None) -> Range:
        table, after, before = TABLES[kind], 0, None
        async with self._answering() as (read, number):
            if not number:
                return Range()
            if since is not None:
                after = made_of(await place_since(self._history, table, since - SET_BACK_MS))
            if until is not None:
                last = await place_since(self._history, table, until + 1 + SET_BACK_MS)
                sql = f"SELECT place FROM {table} WHERE namespace = ? AND place > ? ORDER BY place LIMIT 1"
                # without one, there may be some that were accepted by then and are not recorded yet
                before = made_of(last) + 1 if await read(sql, number, last) else None
        return Range(after, before)

    async def find(
        self, kind: Kind, wanted: Mapping[str, str | None], sought: Sought, within: Range, count: int
    ) -> tuple[list[Found], int]:
        async with self._answering() as (read, number):
            if not number:
                return [], 0
            newest = (1 << PLACES) - 1 if within.before is None else within.before
            search = Search(kind, number, place_of(number, within.after), place_of(number, newest))
            query = searched(search, wanted, sought, count)
            rows = await read(query.sql, *query.values)
            sql = f"SELECT place, {SIZES[kind]} FROM {TABLES[kind]} WHERE place IN ({{marks}})"
            sizes: dict[int, int] = dict(await where_in(self._history, sql, [place for place, _ in rows]))
            found = [Found(made_of(place), of, sizes.get(place, 0)) for place, of in rows]
            if len(found) == count:
                return found, found[-1].number
            if not query.looked:
                return found, 0
            ((looked, last),) = await read(query.looked, *query.looked_values)
        return found, made_of(last) if looked >= MOST_LOOKED else 0

    async def records(self, kind: Kind, numbers: Sequence[int]) -> dict[int, Fields]:
        columns = LISTED_TASK if kind == "task" else JOB
        sql = f"SELECT {columns} FROM {TABLES[kind]} WHERE place IN ({{marks}})"
        async with self._answering() as (_, number):
            rows = await where_in(self._history, sql, [place_of(number, one) for one in numbers])
        return {made_of(row[0]): _fields(kind, row) for row in rows}

    async def task_history(self, task_id: str) -> TaskHistory:
        async with self._answering() as (read, number):
            if not number:
                return TaskHistory()
            events = await read(EVENTS, task_id, number)
            attempts = await read(ATTEMPTS, task_id, number)
        return TaskHistory([_event(*row) for row in events[::-1]], [Attempt(*row) for row in attempts[::-1]])

    async def forget(self, task_id: str) -> None:
        if not (number := await self._history.known_number()):
            return
        async with self._history.database.transaction() as transaction:
            places = [place for (place,) in await transaction.read(DEAD, task_id, number)]
            await forget_tasks(transaction, number, places)

    async def close(self) -> None:
        if self._opened:
            await self._opened.close()

    @property
    def _history(self) -> History:
        if self._opened is None:
            self._opened = History(open_database(self._url), self._namespace)
        return self._opened

    @asynccontextmanager
    async def _answering(self) -> AsyncIterator[tuple[Read, int]]:
        """How to read, and the number of the namespace. Raises HistoryUnavailable."""
        if monotonic() < self._away_until:
            raise HistoryUnavailable(self._problem)
        try:
            async with asyncio.timeout(READ_SECONDS):
                yield self._history.database.read, await self._history.known_number()
        except (HistoryUnavailable, TimeoutError) as problem:
            self._problem = str(problem) or f"no answer within {READ_SECONDS:g} s"
            self._away_until = monotonic() + AWAY_SECONDS
            raise HistoryUnavailable(self._problem) from problem


@asynccontextmanager
async def with_archive(
    opening: AbstractAsyncContextManager[Store], settings: Settings
) -> AsyncIterator[Store]:
    """A store that also finds what has left it."""
    async with opening as store, contextlib.AsyncExitStack() as stack:
        await add_archive(stack, store, settings)
        yield store


async def add_archive(stack: contextlib.AsyncExitStack, store: Store, settings: Settings) -> None:
    if url := history_url(settings):
        store.archive = archive = SqlArchive(url, store.connection.keys.namespace)
        stack.push_async_callback(archive.close)


def _fields(kind: Kind, row: Row) -> Fields:
    return fields_of(TaskRow(*row)) if kind == "task" else fields_of_job(JobRow(*row))


def _event(seq: int, at: int, act: str, before: str, after: str, fence: int, detail: str) -> HistoryEvent:
    data = msgspec.json.decode(detail, type=dict[str, Any])
    return HistoryEvent(seq, at, act, before, after, data.get("worker"), fence, data)
