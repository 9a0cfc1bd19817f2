"""Forgets what ended too long ago, and the oldest of what takes too much room; a batch at a time."""

from dataclasses import dataclass

from fairlead.history.forgetting import forget_jobs, forget_tasks
from fairlead.history.generations import generations_of
from fairlead.history.numbers import event_id
from fairlead.history.opening import History
from fairlead.history.paging import first_since, place_since

AT_ONCE = 500
DAY_MS = 86_400_000
ENOUGH = 0.95  # of the most bytes: the level to which it is brought

OLD = "SELECT place FROM {} WHERE namespace = ? AND place <= ? AND completed_at < ? ORDER BY place LIMIT ?"
OLDEST = "SELECT place FROM {} WHERE namespace = ? AND completed_at IS NOT NULL ORDER BY place LIMIT ?"
#: Events of tasks whose rows are gone: their records were, before they were read.
ORPHANS = (
    "SELECT id FROM events WHERE namespace = ? AND id > ? AND id <= ? AND NOT EXISTS "
    "(SELECT 1 FROM tasks WHERE tasks.id = events.task_id AND tasks.namespace = events.namespace) "
    "ORDER BY id LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Keep:
    """What is kept of the past. Tasks and jobs that have not ended are always kept, and so is the audit."""

    days: float = 30
    bytes: int = 10 * 1024**3


async def prune(history: History, keep: Keep, now: int) -> int:
    """Deletes one batch of each kind; returns how many rows of the largest."""
    before = now - round(keep.days * DAY_MS)
    deleted = max(
        await _prune_ended(history, "tasks", before),
        await _prune_ended(history, "jobs", before),
        await _prune_orphans(history, before),
    )
    if deleted < AT_ONCE:
        deleted = max(deleted, await _prune_by_size(history, keep.bytes))
    return deleted


async def _prune_ended(history: History, table: str, before: int) -> int:
    """What has ended by then was accepted by then: no index by the time of the end is needed."""
    number, last = await history.number(), await place_since(history, table, before)
    rows = await history.database.read(OLD.format(table), number, last, before, AT_ONCE)
    return await _forget(history, table, [place for (place,) in rows])


async def _prune_orphans(history: History, before: int) -> int:
    number = await history.number()
    for generation in await generations_of(history):
        bounds = event_id(generation.id, 0), event_id(generation.id + 1, 0)
        last = await first_since(history, "events", ("id", "at"), bounds, before)
        rows = await history.database.read(ORPHANS, number, bounds[0], last, AT_ONCE)
        if rows:
            async with history.database.transaction() as transaction:
                await transaction.run_many("DELETE FROM events WHERE id = ?", rows)
            return len(rows)
    return 0


async def _prune_by_size(history: History, most: int) -> int:
    """Of this namespace, although all in the database are measured together."""
    size = await history.database.size()
    if size <= most:
        return 0
    deleted = 0
    while size > ENOUGH * most and deleted < AT_ONCE:
        rows = await history.database.read(OLDEST.format("tasks"), await history.number(), AT_ONCE // 5)
        if not rows:
            break
        deleted += await _forget(history, "tasks", [place for (place,) in rows])
        size = await history.database.size()
    return deleted


async def _forget(history: History, table: str, places: list[int]) -> int:
    if places:
        forget = forget_tasks if table == "tasks" else forget_jobs
        async with history.database.transaction() as transaction:
            await forget(transaction, await history.number(), places)
    return len(places)
