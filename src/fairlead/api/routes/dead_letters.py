"""Tasks that failed or were given up: look, replay, purge."""

import msgspec

from fairlead import errors
from fairlead.api.request import Request
from fairlead.api.table import Route
from fairlead.model.task import Task
from fairlead.shapes.base import PageQuery
from fairlead.shapes.task import PurgeAnswer, ReplayAnswer, ReplayBody, ReplaysAnswer, TaskAnswer, TasksAnswer
from fairlead.store.queries import DeadPage

PAGE, PAGES = 200, 20


async def find(request: Request) -> TasksAnswer:
    """The latest first; a page of 1 MiB ends early."""
    query: PageQuery = request.query
    tasks, skip = list[Task](), int(query.cursor or 0)
    for _ in range(PAGES):  # the records of some may have run out
        page = await _dead(request, query.limit - len(tasks), skip)
        tasks, skip = tasks + page.tasks, skip + page.looked
        if not page.more:
            return _page(tasks, None)
        if page.tasks:  # all that were wanted, or as much as a page may hold
            break
    return _page(tasks, str(skip))


async def _dead(request: Request, count: int, skip: int) -> DeadPage:
    return await request.gateway.store.dead_page(count, skip, request.caller.tenant, msgspec.Raw)


def _page(tasks: list[Task], cursor: str | None) -> TasksAnswer:
    return TasksAnswer(tasks=[*map(TaskAnswer.from_value, tasks)], next_cursor=cursor)


async def replay(request: Request) -> ReplayAnswer:
    """Queue it again, with all its retries."""
    task = await request.gateway.own_task(request.caller, request.path["task_id"])
    await request.gateway.store.replay(task.task_id)
    await request.audit("replay", task.task_id, {"status": task.status}, {"status": "queued"})
    return ReplayAnswer(task_id=task.task_id, status="queued")


async def replay_many(request: Request) -> ReplaysAnswer:
    """Queue again all of them, or those of one type."""
    body: ReplayBody = request.body or ReplayBody()
    store, replayed, skip, more = request.gateway.store, list[str](), 0, True
    while len(replayed) < body.limit and more:
        page = await _dead(request, PAGE, skip)
        # Those without a record stay where they are.
        more, skip = page.more, skip + page.looked - len(page.tasks)
        for task in page.tasks:
            if body.task_type not in (None, task.task_type) or len(replayed) == body.limit:
                skip += 1
                continue
            try:
                await store.replay(task.task_id)
                replayed.append(task.task_id)
            except (errors.NotReplayable, errors.UnknownTask, errors.StepOfJob):  # somebody else did, or will
                skip += 1
            except errors.InvalidInput:  # a limit that it needs is gone: replayed alone, it says which
                skip += 1
    after = {"replayed": replayed, "count": len(replayed)}
    await request.audit("replay", body.task_type or "all", None, after)
    return ReplaysAnswer(replayed=replayed)


async def purge(request: Request) -> PurgeAnswer:
    """Forget it for good."""
    task = await request.gateway.own_task(request.caller, request.path["task_id"])
    await request.gateway.store.purge(task.task_id)
    await request.audit("purge", task.task_id, {"status": task.status}, None)
    return PurgeAnswer(task_id=task.task_id, purged=True)


DLQ = "/api/v1/dlq"

ROUTES = (
    Route(method="GET", path=DLQ, scope="read", handler=find, query=PageQuery, answer=TasksAnswer),
    Route(
        method="POST",
        path=f"{DLQ}/replay",
        scope="admin",
        handler=replay_many,
        body=ReplayBody,
        body_optional=True,
        answer=ReplaysAnswer,
        refusals=(errors.InvalidInput,),
    ),
    Route(
        method="POST",
        path=f"{DLQ}/{{task_id}}/replay",
        scope="admin",
        handler=replay,
        answer=ReplayAnswer,
        refusals=(errors.UnknownTask, errors.NotReplayable, errors.StepOfJob, errors.InvalidInput),
    ),
    Route(
        method="DELETE",
        path=f"{DLQ}/{{task_id}}",
        scope="admin",
        handler=purge,
        answer=PurgeAnswer,
        refusals=(errors.UnknownTask, errors.NotPurgeable, errors.StepOfJob),
    ),
)
