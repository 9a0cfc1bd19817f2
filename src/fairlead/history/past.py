"""The work of the past as the simulator plays it: what arrived when, what it needed, and how long it ran."""

import heapq
from collections.abc import AsyncIterator
from itertools import count
from typing import NamedTuple

from fairlead.history.opening import History
from fairlead.history.paging import place_since, rows_by_place
from fairlead.history.rows import unpack
from fairlead.model.task import Task
from fairlead.simulate.what_if import PastTask
from fairlead.store.past import has_run, past_task
from fairlead.store.records import read_record


class PastRow(NamedTuple):
    place: int
    id: str
    created_at: int
    record: bytes


async def past_tasks(history: History, since: int, until: int | None = None) -> AsyncIterator[PastTask]:
    """Tasks that were submitted in this time (ms) and have run, in the order of their arrivals.

    A delayed task arrives later than it was submitted: only such are kept in memory until their time.
    """
    waiting: list[tuple[int, int, PastTask]] = []
    order, after = count(), await place_since(history, "tasks", since)
    async for row in rows_by_place(history, "tasks", PastRow, after=after):
        if until is not None and row.created_at > until:
            break
        while waiting and waiting[0][0] <= row.created_at:
            yield heapq.heappop(waiting)[-1]
        task = Task.from_record(row.id, read_record(unpack(row.record)))
        if has_run(task):
            past = past_task(task)
            heapq.heappush(waiting, (past.arrival, next(order), past))
    while waiting:
        yield heapq.heappop(waiting)[-1]
