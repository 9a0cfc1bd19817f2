"""Dead letters: tasks that failed for good or were given up. List, show, replay and purge them."""

import msgspec
from msgspec.structs import replace as replaced

from fairlead import errors
from fairlead.api.request import Request
from fairlead.api.routes.limits import tenant_of
from fairlead.api.table import Routes
from fairlead.model.dead_letter import DeadFilter, check_dead, why_dead
from fairlead.shapes.dead_letter import (
    DeadLetterAnswer,
    DeadQuery,
    PurgeAnswer,
    ReplayAnswer,
    ReplayBody,
    ReplaysAnswer,
)
from fairlead.shapes.task import TaskAnswer, TasksAnswer

PAGE = 200

routes = Routes("/api/v1/dlq", scope="admin")


def _own(request: Request, wanted: DeadFilter) -> DeadFilter:
    """With the key of a tenant those of that tenant alone are meant."""
    return replaced(wanted, tenant=tenant_of(request, wanted.tenant))


@routes.get(scope="read", refusals=(errors.InvalidInput,))
async def find(request: Request, query: DeadQuery) -> TasksAnswer:
    """List dead letters, the latest first; a page ends early at 1 MiB."""
    wanted = _own(request, query.wanted)
    page = await request.store.dead_letters.page(query.limit, query.cursor, wanted, content=msgspec.Raw)
    return TasksAnswer(tasks=[*map(TaskAnswer.from_value, page.tasks)], next_cursor=page.next_cursor or None)


@routes.post("/replay", refusals=(errors.InvalidInput,))
async def replay_many(request: Request, body: ReplayBody | None) -> ReplaysAnswer:
    """Queue all dead letters again, or those of one type; the jobs of steps are resumed."""
    body = body or ReplayBody()
    store, replayed, cursor = request.store, list[str](), ""
    wanted = _own(request, DeadFilter(task_type=body.task_type))
    while len(replayed) < body.limit:
        page = await store.dead_letters.page(
            min(PAGE, body.limit - len(replayed)), cursor, wanted, content=msgspec.Raw
        )
        for task in page.tasks:
            try:
                replayed += await store.replay(task.task_id)
            except (errors.NotReplayable, errors.UnknownTask, errors.StepOfJob):
                pass  # it has left the list meanwhile, or its job has not failed
            except errors.InvalidInput:
                pass  # a limit that it needs is gone: a replay of this one alone says which
        if not (cursor := page.next_cursor):
            break
    after = {"replayed": replayed, "count": len(replayed)}
    await request.audit("replay", body.task_type or "all", None, after)
    return ReplaysAnswer(replayed=replayed)


@routes.get("/{task_id}", scope="read", refusals=(errors.UnknownTask,))
async def get(request: Request) -> DeadLetterAnswer:
    """Show a dead letter: why it is one, and the traceback of its last run."""
    task = await request.own_task(request.path["task_id"])
    check_dead(task)
    return DeadLetterAnswer.from_value(task, why=why_dead(task))


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
