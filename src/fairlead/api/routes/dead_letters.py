"""Dead letters: tasks that failed for good or were given up. List, replay and purge them."""

import msgspec

from fairlead import errors
from fairlead.api.request import Request
from fairlead.api.table import Routes
from fairlead.model.task import Task
from fairlead.shapes.base import PageQuery
from fairlead.shapes.task import PurgeAnswer, ReplayAnswer, ReplayBody, ReplaysAnswer, TaskAnswer, TasksAnswer
from fairlead.store.pages import Slice

PAGE, PAGES = 200, 20

routes = Routes("/api/v1/dlq", scope="admin")


@routes.get(scope="read")
async def find(request: Request, query: PageQuery) -> TasksAnswer:
    """List dead letters, newest first; a page ends early at 1 MiB."""
    tasks, skip = list[Task](), int(query.cursor or 0)
    for _ in range(PAGES):  # the records of some may have expired
        page = await _dead(request, query.limit - len(tasks), skip)
        tasks, skip = tasks + page.found, skip + page.looked
        if not page.more:
            return _page(tasks, None)
        if page.found:  # all that were asked for, or as much as a page holds
            break
    return _page(tasks, str(skip))


async def _dead(request: Request, count: int, skip: int) -> Slice[Task]:
    return await request.store.dead_page(count, skip, request.caller.tenant, msgspec.Raw)


def _page(tasks: list[Task], cursor: str | None) -> TasksAnswer:
    return TasksAnswer(tasks=[*map(TaskAnswer.from_value, tasks)], next_cursor=cursor)


@routes.post("/replay", refusals=(errors.InvalidInput,))
async def replay_many(request: Request, body: ReplayBody | None) -> ReplaysAnswer:
    """Queue all dead letters again, or those of one type; the jobs of steps are resumed."""
    body = body or ReplayBody()
    store, replayed, skip, more = request.store, list[str](), 0, True
    while len(replayed) < body.limit and more:
        page = await _dead(request, PAGE, skip)
        # those without a record stay where they are
        more, skip = page.more, skip + page.looked - len(page.found)
        for task in page.found:
            if body.task_type not in (None, task.task_type) or len(replayed) >= body.limit:
                skip += 1
                continue
            try:
                replayed += await store.replay(task.task_id)
            except errors.NotReplayable:
                pass  # it has left the list: with another step of its job, or because of another client
            except (errors.UnknownTask, errors.StepOfJob):
                skip += 1  # its record is gone, or its job has not failed
            except errors.InvalidInput:
                skip += 1  # a limit that it needs is gone: a replay of this one alone says which
    after = {"replayed": replayed, "count": len(replayed)}
    await request.audit("replay", body.task_type or "all", None, after)
    return ReplaysAnswer(replayed=replayed)


@routes.post(
    "/{task_id}/replay",
    refusals=(errors.UnknownTask, errors.NotReplayable, errors.StepOfJob, errors.InvalidInput),
)
async def replay(request: Request) -> ReplayAnswer:
    """Queue a dead letter again, with all its retries; if it is a step, its job is resumed."""
    task = await request.own_task(request.path["task_id"])
    replayed = await request.store.replay(task.task_id)
    await request.audit("replay", task.task_id, {"status": task.status}, {"status": "queued"})
    return ReplayAnswer(task_id=task.task_id, status="queued", replayed=replayed)


@routes.delete("/{task_id}", refusals=(errors.UnknownTask, errors.NotPurgeable, errors.StepOfJob))
async def purge(request: Request) -> PurgeAnswer:
    """Delete a dead letter for good."""
    task = await request.own_task(request.path["task_id"])
    await request.store.purge(task.task_id)
    await request.audit("purge", task.task_id, {"status": task.status}, None)
    return PurgeAnswer(task_id=task.task_id, purged=True)
