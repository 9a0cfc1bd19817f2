"""Workers of any language: register, poll, report, stay alive, give back, drain."""

import asyncio
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import msgspec
import uuid_utils

from fairlead import errors
from fairlead.api.large_bodies import in_groups, insist_on, taking_turns
from fairlead.api.polling import poll_tasks
from fairlead.api.problems import InvalidBody, problem_of
from fairlead.api.reported import log_reported
from fairlead.api.request import BATCH_BODY, Request
from fairlead.api.table import Route
from fairlead.checks import NAME
from fairlead.model.reports import Completed, Failed, Grant, Progress
from fairlead.model.states import State
from fairlead.model.worker import WorkerStats, latest_first
from fairlead.shapes.base import Json, LongPageQuery
from fairlead.shapes.worker import (
    DrainAnswer,
    HeartbeatAnswer,
    HeartbeatBody,
    OneResult,
    PollAnswer,
    PollBody,
    RegisterAnswer,
    RegisterBody,
    ReleaseAnswer,
    ReleaseBody,
    ResultAnswer,
    ResultBody,
    WorkerAnswer,
    WorkersAnswer,
)
from fairlead.store.queries import PAGE_BYTES

ONE_RESULT = msgspec.json.Decoder(OneResult)
ANYTHING = msgspec.json.Decoder(Any)
AT_ONCE = 200  # workers that are read together: others are served in between
POLL_INTERVAL_MS = 1000  # between two polls that do not wait; those that do may follow at once


def worker_id(request: Request) -> str:
    """What cannot be an id is the id of no worker."""
    if not NAME.fullmatch(request.path["worker_id"]):
        raise errors.UnknownWorker()
    return request.path["worker_id"]


async def register(request: Request) -> Json:
    """Make a worker known; it gets an id to poll with."""
    body: RegisterBody = request.body
    store = request.gateway.store
    usual, worker = store.settings.worker, body.worker_id or str(uuid_utils.uuid7())
    capacity = usual.capacity if body.capacity is None else body.capacity
    await store.workers.register(
        worker,
        capabilities=body.capabilities,
        task_types=body.task_types,
        capacity=capacity,
        reserve=min(usual.reserve, capacity - 1) if body.reserve is None else body.reserve,
        name=body.name or "",
        version=body.version or "",
    )
    return {
        "worker_id": worker,
        "poll_interval_ms": POLL_INTERVAL_MS,
        "heartbeat_seconds": usual.heartbeat_seconds,
        "lease_seconds": store.settings.lease_ms / 1000,
    }


async def poll(request: Request) -> PollAnswer:
    """Up to so many tasks that can start now; waits for one up to `wait_seconds`."""
    return PollAnswer.from_value(await poll_tasks(request, worker_id(request), request.body))


async def result(request: Request) -> Json:
    """How one run, or many, ended; with `poll` also the next tasks, in one trip."""
    body: ResultBody = request.body
    view = await (
        _report_one(request, body) if body.results is None else _report_many(request, body, body.results)
    )
    if body.poll:
        view["polled"] = PollAnswer.from_value(await poll_tasks(request, worker_id(request), body.poll))
    return view


async def _report_one(request: Request, body: ResultBody) -> Json:
    (answer,) = await _report(request, [_one(body)])
    if isinstance(answer, errors.FairleadError):
        raise answer
    return {"accepted": True}


async def _report_many(request: Request, body: ResultBody, items: list[msgspec.Raw]) -> Json:
    """A few at a time. All are read before the first is reported: one that cannot be read spoils them all."""
    if body.task_id is not None:
        raise InvalidBody([("results", "give one result, or a list of them, not both")])
    groups, rows = list(in_groups(items)), list[Json]()
    if len(groups) > 1:
        async for _ in taking_turns(map(_results, groups, _starts(groups))):
            pass
    async for group, start in taking_turns(zip(groups, _starts(groups), strict=True)):
        results = _results(group, start)
        await asyncio.sleep(0)  # what was read is packed in a turn of its own
        answers = await _report(request, results)
        rows += [accepted(one.task_id, answer) for one, answer in zip(results, answers, strict=True)]
    return {"accepted": all(row["accepted"] for row in rows), "results": rows}


def _starts(groups: Sequence[Sequence[msgspec.Raw]]) -> list[int]:
    """Where each of them begins."""
    return [*accumulate(map(len, groups), initial=0)][:-1]


def _results(group: Sequence[msgspec.Raw], start: int) -> list[OneResult]:
    return [insist_on(item, ONE_RESULT, f"results[{start + i}]") for i, item in enumerate(group)]


def _one(body: ResultBody) -> OneResult:
    if body.task_id is None or body.status is None:
        raise InvalidBody([("task_id", "task_id and status are required, or a list of results")])
    return OneResult(
        task_id=body.task_id,
        status=body.status,
        result=insist_on(body.result, ANYTHING, "result"),
        error=body.error,
        fence=body.fence,
    )


async def _report(request: Request, results: list[OneResult]) -> list[State | errors.FairleadError]:
    """In the order of the results; the store takes completions and failures apart."""
    completed = [
        Completed(one.task_id, one.fence, one.result) for one in results if one.status == "completed"
    ]
    failed = [_failed(one) for one in results if one.status == "failed"]
    answers, _ = await request.gateway.store.report(worker_id(request), completed, failed)
    log_reported(worker_id(request), failed, answers[len(completed) :])
    of_completed, of_failed = iter(answers[: len(completed)]), iter(answers[len(completed) :])
    return [next(of_completed if one.status == "completed" else of_failed) for one in results]


def _failed(one: OneResult) -> Failed:
    error = one.error
    if error is None:
        return Failed(one.task_id, one.fence)
    return Failed(
        one.task_id,
        one.fence,
        error.code,
        error.message,
        error.retriable,
        round(error.retry_after_seconds * 1000),
        crashed=error.crashed,
        traceback=error.traceback,
    )


def accepted(task_id: str, answer: State | errors.FairleadError | None) -> Json:
    """One line of an answer to many; None: it was, and there is no more to say."""
    if isinstance(answer, errors.FairleadError):
        return {"task_id": task_id, "accepted": False, "code": answer.code, "error": problem_of(answer).body}
    return {"task_id": task_id, "accepted": True, "status": answer}


async def heartbeat(request: Request) -> HeartbeatAnswer:
    """The worker is alive: its leases are prolonged, and it learns what to stop."""
    body: HeartbeatBody = request.body
    store, worker = request.gateway.store, worker_id(request)
    beat = await store.workers.heartbeat(
        worker, draining=body.status == "draining", lease_ms=store.settings.lease_ms
    )
    told = [
        Progress(task_id, None, progress.fraction, progress.message, progress.output)
        for task_id, progress in body.progress.items()
    ]
    heard = await store.progress(worker, *told) if told else []
    lost = [one.task_id for one, problem in zip(told, heard, strict=True) if _is_lost(problem)]
    stop = list(dict.fromkeys(beat.cancelled + lost))
    return HeartbeatAnswer.from_value(beat, acknowledged=True, cancel=stop)


def _is_lost(problem: errors.FairleadError | None) -> bool:
    """Whether what it told of is not its own any more."""
    if isinstance(problem, errors.InvalidInput):
        raise problem
    return problem is not None


async def release(request: Request) -> Json:
    """Give tasks back unrun, without penalty."""
    body: ReleaseBody = request.body
    grants = [Grant(task_id, body.fences.get(task_id)) for task_id in body.task_ids]
    answers = await request.gateway.store.release(worker_id(request), *grants)
    return {"results": [accepted(*pair) for pair in zip(body.task_ids, answers, strict=True)]}


async def find(request: Request) -> WorkersAnswer:
    """The workers of the last hour, page by page; a page has the latest first and ends early at 1 MiB."""
    workers, cursor, size, most = list[WorkerStats](), request.query.cursor, 0, request.query.limit
    while True:
        page = await request.gateway.store.workers.page(cursor, min(most - len(workers), AT_ONCE))
        workers, cursor, size = workers + page.workers, page.next_cursor, size + page.size
        if not cursor or len(workers) >= most or size >= PAGE_BYTES:
            answers = [WorkerAnswer.from_value(one) for one in latest_first(workers)]
            return WorkersAnswer(workers=answers, next_cursor=cursor or None)


async def drain(request: Request) -> Json:
    """Give a worker nothing more; it ends when it has finished what it holds."""
    worker = worker_id(request)
    await request.gateway.store.workers.drain(worker)
    await request.audit("drain", worker, None, {"status": "draining"})
    return {"worker_id": worker, "status": "draining"}


WORKERS = "/internal/workers"
WORKER = f"{WORKERS}/{{worker_id}}"
UNKNOWN = (errors.UnknownWorker, errors.InvalidInput)

ROUTES = (
    Route(
        method="POST",
        path=f"{WORKERS}/register",
        scope="worker",
        for_all_tenants=True,
        handler=register,
        body=RegisterBody,
        answer=RegisterAnswer,
        status=201,
        refusals=(errors.InvalidInput,),
    ),
    Route(
        method="POST",
        path=f"{WORKER}/poll",
        scope="worker",
        for_all_tenants=True,
        handler=poll,
        body=PollBody,
        answer=PollAnswer,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/result",
        scope="worker",
        for_all_tenants=True,
        handler=result,
        body=ResultBody,
        answer=ResultAnswer,
        most_body=BATCH_BODY,
        refusals=(*UNKNOWN, errors.UnknownTask, errors.Fenced),
    ),
    Route(
        method="POST",
        path=f"{WORKER}/heartbeat",
        scope="worker",
        for_all_tenants=True,
        handler=heartbeat,
        body=HeartbeatBody,
        answer=HeartbeatAnswer,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/release",
        scope="worker",
        for_all_tenants=True,
        handler=release,
        body=ReleaseBody,
        answer=ReleaseAnswer,
        refusals=UNKNOWN,
    ),
    Route(
        method="GET",
        path="/api/v1/workers",
        scope="read",
        for_all_tenants=True,
        handler=find,
        query=LongPageQuery,
        answer=WorkersAnswer,
        refusals=(errors.InvalidInput,),
    ),
    Route(
        method="POST",
        path="/api/v1/workers/{worker_id}/drain",
        scope="admin",
        for_all_tenants=True,
        handler=drain,
        answer=DrainAnswer,
        refusals=UNKNOWN,
    ),
)
