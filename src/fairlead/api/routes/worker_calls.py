"""What a worker may say and ask while it runs tasks: wait for calls, tell, ask for time, leave."""

from collections.abc import Iterator, Sequence
from itertools import accumulate, islice, takewhile

from msgspec.structs import replace

from fairlead import errors
from fairlead.api.large_bodies import AT_ONCE, in_groups, insist_on, size_of, taking_turns
from fairlead.api.polling import wait_for_call
from fairlead.api.problems import HttpProblem
from fairlead.api.request import BATCH_BODY, Request
from fairlead.api.routes.workers import ANYTHING, UNKNOWN, WORKER, accepted, worker_id
from fairlead.api.table import Route
from fairlead.model.reports import Grant, Progress
from fairlead.shapes.base import Json
from fairlead.shapes.worker import (
    ExpireAnswer,
    ExtendAnswer,
    ExtendBody,
    LeaveAnswer,
    SayAnswer,
    SayBody,
    StallAnswer,
    StallBody,
    TaskProgressBody,
    WaitAnswer,
    WaitBody,
)
from fairlead.times import time_text


async def wait(request: Request) -> Json:
    """Wait until there is something to claim, or a task is cancelled."""
    body: WaitBody = request.body
    return {"called": await wait_for_call(request, worker_id(request), body.wait_seconds)}


async def say(request: Request) -> Json:
    """How far runs are, and what they put out."""
    reports: list[TaskProgressBody] = request.body.reports
    rows: list[Json] = []
    while len(rows) < len(reports):
        some = _next_few(reports, len(rows))
        answers = await (_tell_in_pieces(request, some[0]) if len(some) == 1 else _tell(request, some))
        rows += [accepted(one.task_id, answer) for one, answer in zip(some, answers, strict=True)]
    return {"results": rows}


def _next_few(reports: Sequence[TaskProgressBody], start: int) -> list[TaskProgressBody]:
    """Those from here on that are read and reported together; one with much output alone."""
    sizes = accumulate(sum(map(size_of, one.output)) for one in islice(reports, start, None))
    count = sum(1 for _ in takewhile(lambda size: size <= AT_ONCE, sizes))
    return list(reports[start : start + max(1, count)])


Answers = list[errors.FairleadError | None]


async def _tell(request: Request, some: Sequence[TaskProgressBody]) -> Answers:
    read = [_progress(one) for one in some]
    good = [one for one in read if isinstance(one, Progress)]
    answers = iter(await request.gateway.store.progress(worker_id(request), *good))
    return [next(answers) if isinstance(one, Progress) else one for one in read]


async def _tell_in_pieces(request: Request, report: TaskProgressBody) -> Answers:
    """A few chunks at a time. All are read before the first is reported: if one is refused, all are."""
    pieces = list(_pieces(report))
    if len(pieces) > 1:
        async for read in taking_turns(map(_progress, pieces)):
            problem = _problem(read)
            if problem:
                return [problem]
    async for piece in taking_turns(pieces):
        (answer,) = await _tell(request, [piece])
        if answer:
            return [answer]
    return [None]


def _problem(read: Progress | errors.FairleadError) -> errors.FairleadError | None:
    if isinstance(read, errors.FairleadError):
        return read
    try:
        read.packed()
    except errors.InvalidInput as problem:
        return problem
    return None


def _pieces(report: TaskProgressBody) -> Iterator[TaskProgressBody]:
    sent = 0
    for chunks in [*in_groups(report.output)] or [()]:
        first = None if report.first is None else report.first + sent
        yield replace(report, output=list(chunks), first=first)
        report = replace(report, fraction=None, message="")  # the first piece said it
        sent += len(chunks)


def _progress(one: TaskProgressBody) -> Progress | errors.FairleadError:
    try:
        chunks = [insist_on(chunk, ANYTHING, f"output[{i}]") for i, chunk in enumerate(one.output)]
    except HttpProblem as problem:
        return problem
    return Progress(one.task_id, one.fence, one.fraction, one.message, chunks, one.first)


async def extend(request: Request) -> Json:
    """More time for a task that runs, unless it has more."""
    body: ExtendBody = request.body
    grant = Grant(body.task_id, body.fence)
    deadline = await request.gateway.store.extend(worker_id(request), grant, round(body.seconds * 1000))
    return {"task_id": body.task_id, "deadline": time_text(deadline)}


async def stall(request: Request) -> Json:
    """This worker lives but does not answer: what it has not begun is queued again, and it is given nothing
    until it polls."""
    body: StallBody = request.body
    given_back = await request.gateway.store.workers.stall(worker_id(request), body.request_id, body.begun)
    return {"released": [{"task_id": grant.id, "fence": grant.fence} for grant in given_back]}


async def expire(request: Request) -> Json:
    """This worker is dead for certain: what it held is free now. A task that it held alone has crashed."""
    return {"expired": await request.gateway.store.expire(worker_id(request))}


async def leave(request: Request) -> Json:
    """This worker has stopped and holds nothing."""
    worker = worker_id(request)
    await request.gateway.store.workers.leave(worker)
    return {"worker_id": worker, "left": True}


ROUTES = (
    Route(
        method="POST",
        path=f"{WORKER}/wait",
        scope="worker",
        for_all_tenants=True,
        handler=wait,
        body=WaitBody,
        answer=WaitAnswer,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/progress",
        scope="worker",
        for_all_tenants=True,
        handler=say,
        body=SayBody,
        answer=SayAnswer,
        most_body=BATCH_BODY,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/extend",
        scope="worker",
        for_all_tenants=True,
        handler=extend,
        body=ExtendBody,
        answer=ExtendAnswer,
        refusals=(*UNKNOWN, errors.UnknownTask, errors.Fenced),
    ),
    Route(
        method="POST",
        path=f"{WORKER}/stall",
        scope="worker",
        for_all_tenants=True,
        handler=stall,
        body=StallBody,
        answer=StallAnswer,
        most_body=BATCH_BODY,
        refusals=UNKNOWN,
    ),
    Route(
        method="POST",
        path=f"{WORKER}/expire",
        scope="worker",
        for_all_tenants=True,
        handler=expire,
        answer=ExpireAnswer,
        refusals=UNKNOWN,
    ),
    Route(
        method="DELETE",
        path=WORKER,
        scope="worker",
        for_all_tenants=True,
        handler=leave,
        answer=LeaveAnswer,
        refusals=UNKNOWN,
    ),
)
