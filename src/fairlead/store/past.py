"""The work of the past, as far as the store still has its records."""

import msgspec

from fairlead.model.states import State
from fairlead.model.task import Task
from fairlead.simulate.what_if import PastTask
from fairlead.store.queries import Queries

PAGE = 500
MOST_PAGES = 40
RAN = (State.COMPLETED, State.FAILED, State.DEAD_LETTER)


async def past_tasks(store: Queries, since: int, most: int) -> list[PastTask]:
    """Those that arrived since then and have run, in the order of their arrivals; the latest `most`."""
    found, cursor = list[PastTask](), ""
    for _ in range(MOST_PAGES):
        page = await store.list_tasks(limit=PAGE, cursor=cursor, content=msgspec.Raw)
        found += [past_task(task) for task in page.tasks if has_run(task) and _arrival(task) >= since]
        is_over = page.tasks and page.tasks[-1].created_at < since
        if is_over or len(found) >= most or not (cursor := page.next_cursor):
            break
    return sorted(found[:most], key=lambda task: task.arrival)


def has_run(task: Task) -> bool:
    return task.status in RAN and None not in (task.started_at, task.completed_at) and not task.interactive


def _arrival(task: Task) -> int:
    """When it could have started: a step waits for the one before it, and a delayed task for its time."""
    if task.started_at is not None and task.waited_ms is not None and task.attempt == 1:
        return task.started_at - task.waited_ms
    return max(task.created_at, task.run_at or 0)


def past_task(task: Task) -> PastTask:
    assert task.started_at is not None and task.completed_at is not None
    return PastTask(
        arrival=_arrival(task),
        duration=task.completed_at - task.started_at,
        task_type=task.task_type,
        priority=task.priority,
        limits=task.limits,
        capabilities=task.required_capabilities,
        user_id=task.user_id,
        tenant=task.tenant,
        tier=task.duration,
        size_hint=task.size_hint,
    )
