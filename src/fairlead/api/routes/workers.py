"""Workers in any language: register, stay alive, drain, leave; and the list of workers."""

import uuid_utils

from fairlead import errors
from fairlead.api.request import BATCH_BODY, Request
from fairlead.api.table import Routes
from fairlead.checks import NAME
from fairlead.model.reports import Grant, Progress
from fairlead.model.worker import WorkerStats, latest_first
from fairlead.shapes.base import LongPageQuery
from fairlead.shapes.worker import (
    DrainAnswer,
    ExpireAnswer,
    HeartbeatAnswer,
    HeartbeatBody,
    LeaveAnswer,
    RegisterAnswer,
    RegisterBody,
    ReleasedTask,
    StallAnswer,
    StallBody,
    WorkerAnswer,
    WorkersAnswer,
)
from fairlead.store.pages import PAGE_BYTES

AT_ONCE = 200  # workers that are read together: other requests are served in between
POLL_INTERVAL_MS = 1000  # between two polls that do not wait; those that do may follow at once
UNKNOWN = (errors.UnknownWorker, errors.InvalidInput)

routes = Routes("/internal/workers", scope="worker", for_all_tenants=True, refusals=UNKNOWN)
public = Routes("/api/v1/workers", for_all_tenants=True)


def worker_id(request: Request) -> str:
    """What cannot be an id is the id of no worker."""
    if not NAME.fullmatch(request.path["worker_id"]):
        raise errors.UnknownWorker()
    return request.path["worker_id"]


@routes.post("/register", status=201, refusals=(errors.InvalidInput,))
async def register(request: Request, body: RegisterBody) -> RegisterAnswer:
    """Register a worker; it gets an id to poll with."""
    settings = request.store.settings
    usual, worker = settings.worker, body.worker_id or str(uuid_utils.uuid7())
    capacity, reserve = body.capacity or usual.capacity, usual.reserve
    if body.capacity:
        # the usual reserve belongs to the usual capacity: a smaller worker still runs other tasks
        reserve = min(reserve, capacity - 1)
    await request.store.workers.register(
        worker,
        capabilities=body.capabilities,
        task_types=body.task_types,
        capacity=capacity,
        reserve=reserve if body.reserve is None else body.reserve,
        name=body.name or "",
        version=body.version or "",
    )
    return RegisterAnswer(
        worker_id=worker,
        poll_interval_ms=POLL_INTERVAL_MS,
        heartbeat_seconds=usual.heartbeat_seconds,
        lease_seconds=settings.lease_ms / 1000,
    )


@routes.post("/{worker_id}/heartbeat")
async def heartbeat(request: Request, body: HeartbeatBody) -> HeartbeatAnswer:
    """Report that the worker is alive: its leases are renewed, and the answer lists the tasks to stop.

    With `task_ids`, the leases of other tasks are not renewed.
    """
    store, worker = request.store, worker_id(request)
    in_hand = None if body.task_ids is None else [Grant(task_id) for task_id in body.task_ids]
    beat = await store.workers.heartbeat(
        worker, in_hand, draining=body.status == "draining", lease_ms=store.settings.lease_ms
    )
    reports = [
        Progress(task_id, None, progress.fraction, progress.message, progress.output)
        for task_id, progress in body.progress.items()
    ]
    problems = await store.progress(worker, *reports) if reports else []
    lost = [one.task_id for one, problem in zip(reports, problems, strict=True) if _is_lost(problem)]
    stop = list(dict.fromkeys(beat.cancelled + beat.lost + lost))
    return HeartbeatAnswer.from_value(beat, acknowledged=True, cancel=stop)


def _is_lost(problem: errors.FairleadError | None) -> bool:
    """Whether the worker no longer holds the task that it reported on."""
    if isinstance(problem, errors.InvalidInput):
        raise problem
    return problem is not None


@routes.post("/{worker_id}/stall", operation_id="worker_calls_stall", most_body=BATCH_BODY)
async def stall(request: Request, body: StallBody) -> StallAnswer:
    """Report a worker that is alive but does not respond: it gets no more tasks until it polls.

    Those that it has not begun are queued again.
    """
    released = await request.store.workers.stall(worker_id(request), body.request_id, body.begun)
    return StallAnswer(released=[*map(ReleasedTask.from_value, released)])


@routes.post("/{worker_id}/expire", operation_id="worker_calls_expire")
async def expire(request: Request) -> ExpireAnswer:
    """Report a worker that is certainly dead: what it held is free. A task that it held alone has crashed."""
    return ExpireAnswer(expired=await request.store.expire(worker_id(request)))


@routes.delete("/{worker_id}", operation_id="worker_calls_leave")
async def leave(request: Request) -> LeaveAnswer:
    """Report a worker that has stopped and holds nothing."""
    worker = worker_id(request)
    await request.store.workers.leave(worker)
    return LeaveAnswer(worker_id=worker, left=True)


@public.get(scope="read", refusals=(errors.InvalidInput,))
async def find(request: Request, query: LongPageQuery) -> WorkersAnswer:
    """List the workers of the last hour, page by page; a page is sorted, newest first, and ends at 1 MiB."""
    workers, cursor, size = list[WorkerStats](), query.cursor, 0
    while True:
        page = await request.store.workers.page(cursor, min(query.limit - len(workers), AT_ONCE))
        workers, cursor, size = workers + page.workers, page.next_cursor, size + page.size
        if not cursor or len(workers) >= query.limit or size >= PAGE_BYTES:
            answers = [WorkerAnswer.from_value(one) for one in latest_first(workers)]
            return WorkersAnswer(workers=answers, next_cursor=cursor or None)


@public.post("/{worker_id}/expire", scope="admin", operation_id="workers_expire_dead", refusals=UNKNOWN)
async def expire_dead(request: Request) -> ExpireAnswer:
    """End the leases of a worker that is certainly dead. If it still runs, its tasks run twice."""
    worker = worker_id(request)
    expired = await request.store.expire(worker)
    await request.audit("expire", worker, None, {"expired": expired})
    return ExpireAnswer(expired=expired)


@public.post("/{worker_id}/drain", scope="admin", refusals=UNKNOWN)
async def drain(request: Request) -> DrainAnswer:
    """Drain a worker: it gets no more tasks, and stops when it has finished those it holds."""
    worker = worker_id(request)
    await request.store.workers.drain(worker)
    await request.audit("drain", worker, None, {"status": "draining"})
    return DrainAnswer(worker_id=worker, status="draining")
