"""Dead letters: tasks that failed for good or were given up. List, show, replay and purge them."""

import contextlib
from collections.abc import Awaitable, Callable

import msgspec
from msgspec.structs import asdict
from msgspec.structs import replace as replaced

from fairlead import errors
from fairlead.api.request import Request
from fairlead.api.routes.limits import tenant_of
from fairlead.api.table import Routes
from fairlead.model.dead_letter import DeadFilter, check_dead, why_dead
from fairlead.shapes.dead_letter import (
    DeadLetterAnswer,
    DeadQuery,
    ManyBody,
    PurgeAnswer,
    PurgesAnswer,
    ReplayAnswer,
    ReplayBody,
    ReplaysAnswer,
)
from fairlead.shapes.task import TaskAnswer, TasksAnswer

PAGE = 200
REFUSED = (errors.NotReplayable, errors.NotPurgeable, errors.StepOfJob)
DONE = {"replay": "replayed", "purge": "purged"}

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
async def replay_many(request: Request, body: ManyBody | None) -> ReplaysAnswer:
    """Queue all dead letters again, or those that fit; the jobs of steps are resumed."""
    replayed = await _do_many(request, body or ManyBody(), "replay", request.store.replay)
    return ReplaysAnswer(replayed=replayed)


@routes.post("/purge", refusals=(errors.InvalidInput,))
async def purge_many(request: Request, body: ManyBody) -> PurgesAnswer:
    """Delete all dead letters that fit for good, except the steps of jobs."""

    async def purge(task_id: str) -> list[str]:
        await request.store.purge(task_id)
        return [task_id]

    return PurgesAnswer(purged=await _do_many(request, body, "purge", purge))


async def _do_many(
    request: Request, body: ManyBody, act: str, do: Callable[[str], Awaitable[list[str]]]
) -> list[str]:
    """The tasks for which it was done."""
    done, cursor, wanted = list[str](), "", _own(request, body.wanted)
    while len(done) < body.limit:
        count = min(PAGE, body.limit - len(done))
        page = await request.store.dead_letters.page(count, cursor, wanted, content=msgspec.Raw)
        for task in page.tasks:
            # it has left the list meanwhile, is up to its job, or needs a limit that is gone
            with contextlib.suppress(*REFUSED, errors.UnknownTask, errors.InvalidInput):
                done += await do(task.task_id)
        if not (cursor := page.next_cursor):
            break
    given = {name: value for name, value in asdict(wanted).items() if value is not None}
    subject = ", ".join(f"{name} {value}" for name, value in given.items()) or "all"
    await request.audit(act, subject, None, {DONE[act]: done, "count": len(done)})
    return done


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
async def replay(request: Request, body: ReplayBody | None) -> ReplayAnswer:
    """Queue a dead letter again, with all its retries; if it is a step, its job is resumed.

    `parameters` replace those that it had; a step has none of its own.
    """
    task = await request.own_task(request.path["task_id"])
    parameters = body.parameters if body else None
    replayed = await request.store.replay(task.task_id, parameters, tenant=task.tenant)
    edited = {} if parameters is None else {"parameters": "changed"}
    await request.audit("replay", task.task_id, {"status": task.status}, {"status": "queued"} | edited)
    return ReplayAnswer(task_id=task.task_id, status="queued", replayed=replayed)


@routes.delete("/{task_id}", refusals=(errors.UnknownTask, errors.NotPurgeable, errors.StepOfJob))
async def purge(request: Request) -> PurgeAnswer:
    """Delete a dead letter for good."""
    task = await request.own_task(request.path["task_id"])
    await request.store.purge(task.task_id)
    await request.audit("purge", task.task_id, {"status": task.status}, None)
    return PurgeAnswer(task_id=task.task_id, purged=True)
