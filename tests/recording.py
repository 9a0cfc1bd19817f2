"""What a recorder has written, and all that it has to write."""

from typing import Any

from fairlead.history.numbers import number_of
from fairlead.history.opening import History
from fairlead.history.rows import EventRow, JobRow, TaskRow
from fairlead.upkeep.recorder import Recorder


async def record_all(recorder: Recorder) -> int:
    """How many events it was."""
    total = 0
    while count := await recorder.run_once():
        total += count
    return total


async def task_rows(history: History) -> list[TaskRow]:
    return [TaskRow(*row) for row in await _all(history, "tasks", TaskRow, "place")]


async def job_rows(history: History) -> list[JobRow]:
    return [JobRow(*row) for row in await _all(history, "jobs", JobRow, "place")]


async def event_rows(history: History) -> list[EventRow]:
    """With their numbers in the outbox for ids."""
    rows = [EventRow(*row) for row in await _all(history, "events", EventRow, "id")]
    return [row._replace(id=number_of(row.id)) for row in rows]


async def _all(history: History, table: str, row: Any, order: str) -> list[Any]:
    return await history.database.read(f"SELECT {', '.join(row._fields)} FROM {table} ORDER BY {order}")
